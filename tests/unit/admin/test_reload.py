"""Are changes of files noticed, whole, once, whatever the editor does?"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from proxy.admin import reload
from proxy.admin.files import read_text
from proxy.admin.reload import FileWatch, poked_by_hangup
from proxy.errors import ConfigError

Names = list[set[str]]


@dataclass(slots=True)
class Heard:
    """What a watch told, by file names. awaited: what it is asked to tell of next, whatever changes of it."""

    changes: Names = field(default_factory=list)
    awaited: frozenset[Path] = frozenset()

    async def change(self, paths: frozenset[Path]) -> frozenset[Path]:
        self.changes.append({path.name for path in paths})
        return self.awaited


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return write(tmp_path / "p.yaml", "one")


def write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def looks(path: Path, *steps: Callable[[], object], awaited: frozenset[Path] = frozenset()) -> Names:
    """Watch while the steps happen, with one look before, between and after them, and two more at the end."""
    heard = Heard(awaited=awaited)

    async def scenario() -> None:
        watch = FileWatch([path], heard.change)
        await watch.look()
        for step in steps:
            step()
            await watch.look()
        await watch.look()
        await watch.look()

    asyncio.run(scenario())
    return heard.changes


def wait() -> None:
    """Nothing happens between two looks."""


ONCE: Names = [{"p.yaml"}]


def test_nothing_is_told_of_an_unchanged_file(path: Path) -> None:
    assert looks(path, wait, wait) == []


def test_write_in_place_and_rename_over_are_both_noticed(path: Path) -> None:
    other = write(path.with_suffix(".new"), "three")
    assert looks(path, lambda: write(path, "two"), wait, lambda: other.replace(path), wait) == ONCE * 2


def test_same_content_is_not_told(path: Path) -> None:
    assert looks(path, lambda: os.utime(path, (1, 1)), wait, lambda: write(path, "one"), wait) == []


def test_new_rights_are_told_once(path: Path) -> None:
    path.chmod(0o600)
    assert looks(path, wait, lambda: path.chmod(0o644), wait, wait) == ONCE


def test_vanished_file_is_told_once_and_its_return_too(path: Path) -> None:
    assert looks(path, wait, path.unlink, wait, wait, wait) == ONCE
    write(path, "one")
    assert looks(path, wait, path.unlink, wait, wait, wait, lambda: write(path, "one"), wait) == ONCE * 2


def test_file_that_is_gone_for_one_look_is_told_of_once(path: Path) -> None:
    assert looks(path, wait, path.unlink, lambda: write(path, "back")) == ONCE


def test_file_that_grows_is_not_told_until_it_rests(path: Path) -> None:
    growing = [lambda i=i: write(path, "x" * i) for i in range(10, 30)]
    assert looks(path, *growing) == ONCE


def test_file_that_is_written_while_it_is_read_is_told_when_it_is_whole(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[str] = []

    def read_between_truncation_and_text(path: Path, what: str) -> str:
        if told:
            return read_text(path, what)
        told.append("")
        write(path, "")
        text = read_text(path, what)
        write(path, "whole")
        return text

    write(path, "new")

    def begin() -> None:
        write(path, "newer")
        monkeypatch.setattr(reload, "read_text", read_between_truncation_and_text)

    assert looks(path, begin, wait) == ONCE
    assert told == [""]


def test_file_that_vanishes_before_the_first_look_is_told(path: Path) -> None:
    heard, gone = Heard(), path.unlink

    async def scenario() -> None:
        watch = FileWatch([path], heard.change)
        gone()
        await watch.look()
        await watch.look()

    asyncio.run(scenario())
    assert heard.changes == ONCE


def test_text_that_cannot_be_read_is_told_once(path: Path) -> None:
    assert looks(path, lambda: path.write_bytes(b"\xff\xff\xff\xff"), wait, wait) == ONCE


def test_files_that_change_together_are_told_together(path: Path) -> None:
    users, heard = write(path.with_name("u.yaml"), "one"), Heard()

    async def scenario() -> None:
        watch = FileWatch([path, users], heard.change)
        for _ in range(2):
            await watch.look()
        write(path, "two")
        write(users, "two")
        for _ in range(3):
            await watch.look()

    asyncio.run(scenario())
    assert heard.changes == [{"p.yaml", "u.yaml"}]


# --- what an untaken change waits for ---------------------------------------------------------------------


def test_awaited_file_that_appears_is_told(path: Path) -> None:
    data = path.with_name("data")
    assert looks(path, lambda: write(path, "two"), wait, wait, awaited=frozenset({data})) == ONCE
    data.unlink(missing_ok=True)
    write(path, "one")
    found = looks(
        path, lambda: write(path, "two"), wait, wait, lambda: write(data, ""), wait, awaited=frozenset({data})
    )
    assert found == [{"p.yaml"}, {"data"}]


def test_awaited_file_that_was_there_is_told_when_it_changes(path: Path) -> None:
    data = write(path.with_name("data"), "wrong")
    awaited = frozenset({data})
    assert looks(path, lambda: write(path, "two"), wait, wait, awaited=awaited) == ONCE
    write(path, "one")
    found = looks(path, lambda: write(path, "two"), wait, lambda: write(data, "right"), wait, wait, awaited=awaited)
    assert found == [{"p.yaml"}, {"data"}]


def test_awaited_text_is_told_when_it_is_only_touched(path: Path) -> None:
    touch = lambda: os.utime(path, (1, 1))  # noqa: E731
    found = looks(path, lambda: write(path, "two"), wait, touch, wait, wait, awaited=frozenset({path}))
    assert found == ONCE * 2


def test_what_is_no_longer_awaited_is_not_told(path: Path) -> None:
    data, heard = path.with_name("data"), Heard(awaited=frozenset({path.with_name("data")}))

    async def scenario() -> None:
        watch = FileWatch([path], heard.change)
        await watch.look()
        write(path, "two")
        await watch.look()
        await watch.look()
        heard.awaited = frozenset()
        write(path, "three")
        await watch.look()
        await watch.look()
        write(data, "")
        await watch.look()
        await watch.look()

    asyncio.run(scenario())
    assert heard.changes == ONCE * 2


# --- the rhythm -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("is_awaited", [False, True])
def test_hangup_tells_once_of_all_files_without_waiting(path: Path, is_awaited: bool) -> None:
    """Also of those that were edited the moment before, and of nothing twice."""
    users, heard = write(path.with_name("u.yaml"), "one"), Heard(awaited=frozenset({path} if is_awaited else ()))

    async def scenario() -> None:
        told = asyncio.Event()

        async def change(paths: frozenset[Path]) -> frozenset[Path]:
            told.set()
            return await heard.change(paths)

        watch = FileWatch([path, users], change, interval_s=3600.0)
        for text in ("first", "second"):
            write(path, text)
            await watch.look()
            await watch.look()
        told.clear()
        heard.changes.clear()
        write(path, "two")
        task = asyncio.create_task(watch.run())
        with poked_by_hangup(watch):
            os.kill(os.getpid(), signal.SIGHUP)
            await asyncio.wait_for(told.wait(), 60)
        for _ in range(3):
            await watch.look()
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.wait_for(task, 60)

    asyncio.run(scenario())
    assert heard.changes == [{"p.yaml", "u.yaml"}]


def test_watch_looks_again_after_its_interval(path: Path) -> None:
    async def scenario() -> frozenset[Path]:
        told: asyncio.Future[frozenset[Path]] = asyncio.get_running_loop().create_future()

        async def tell(paths: frozenset[Path]) -> frozenset[Path]:
            told.set_result(paths)
            return frozenset()

        watch = FileWatch([path], tell, interval_s=0.001)
        write(path, "two")
        task = asyncio.create_task(watch.run())
        found = await asyncio.wait_for(told, 60)
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.wait_for(task, 60)
        return found

    assert asyncio.run(scenario()) == {path}


def test_exception_of_the_caller_ends_the_watch(path: Path) -> None:
    async def fail(_: frozenset[Path]) -> frozenset[Path]:
        raise ConfigError("no")

    async def scenario() -> None:
        watch = FileWatch([path], fail, interval_s=0.001)
        write(path, "two")
        await asyncio.wait_for(watch.run(), 60)

    with pytest.raises(ConfigError, match="no"):
        asyncio.run(scenario())
