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

from proxy.admin.reload import FileWatch, poked_by_hangup
from proxy.errors import ConfigError


@dataclass(slots=True)
class Heard:
    """What a watch told."""

    changes: list[str] = field(default_factory=list)
    troubles: list[str] = field(default_factory=list)

    async def change(self, path: Path, text: str) -> None:
        self.changes.append(text)

    def trouble(self, path: Path, error: ConfigError) -> None:
        self.troubles.append(error.message)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return write(tmp_path / "p.yaml", "one")


def write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def looks(path: Path, *steps: Callable[[], object]) -> Heard:
    """Watch while the steps happen, with one look before, between and after them, and two more at the end."""
    heard = Heard()

    async def scenario() -> None:
        watch = FileWatch({path: "one"}, heard.change, heard.trouble)
        await watch.look()
        for step in steps:
            step()
            await watch.look()
        await watch.look()
        await watch.look()

    asyncio.run(scenario())
    return heard


def wait() -> None:
    """Nothing happens between two looks."""


def test_nothing_is_told_of_an_unchanged_file(path: Path) -> None:
    assert looks(path, wait, wait) == Heard()


def test_write_in_place_and_rename_over_are_both_noticed(path: Path) -> None:
    other = write(path.with_suffix(".new"), "three")
    heard = looks(path, lambda: write(path, "two"), wait, lambda: other.replace(path), wait)
    assert heard == Heard(["two", "three"], [])


def test_same_content_is_not_told(path: Path) -> None:
    heard = looks(path, lambda: os.utime(path, (1, 1)), wait, lambda: write(path, "one"), wait)
    assert heard == Heard()


def test_vanished_file_is_trouble_once_and_its_return_a_change(path: Path) -> None:
    heard = looks(path, wait, path.unlink, wait, wait, wait, lambda: write(path, "back"), wait)
    assert heard == Heard(["back"], [f"file {path} cannot be read: No such file or directory"])


def test_file_that_is_gone_for_one_look_is_no_trouble(path: Path) -> None:
    assert looks(path, wait, path.unlink, lambda: write(path, "back")) == Heard(["back"], [])


def test_file_that_grows_is_not_read_until_it_rests(path: Path) -> None:
    growing = [lambda i=i: write(path, "x" * i) for i in range(10, 30)]
    assert looks(path, *growing) == Heard(["x" * 29], [])


def test_text_that_cannot_be_read_is_trouble(path: Path) -> None:
    heard = looks(path, lambda: path.write_bytes(b"\xff\xff\xff\xff"), wait)
    assert heard == Heard([], [f"file {path} is not UTF-8 text, at byte 0"])


def test_hangup_tells_of_unchanged_files_without_waiting(path: Path) -> None:
    async def scenario() -> str:
        told: asyncio.Future[str] = asyncio.get_running_loop().create_future()

        async def tell(_: Path, text: str) -> None:
            told.set_result(text)

        watch = FileWatch({path: "one"}, tell, lambda *_: None, interval_s=3600.0)
        await watch.look()
        await watch.look()
        task = asyncio.create_task(watch.run())
        with poked_by_hangup(watch):
            os.kill(os.getpid(), signal.SIGHUP)
            text = await asyncio.wait_for(told, 10)
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.wait_for(task, 10)
        return text

    assert asyncio.run(scenario()) == "one"


def test_watch_looks_again_after_its_interval(path: Path) -> None:
    async def scenario() -> str:
        told: asyncio.Future[str] = asyncio.get_running_loop().create_future()

        async def tell(_: Path, text: str) -> None:
            told.set_result(text)

        watch = FileWatch({path: "old"}, tell, lambda *_: None, interval_s=0.001)
        task = asyncio.create_task(watch.run())
        text = await asyncio.wait_for(told, 10)
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.wait_for(task, 10)
        return text

    assert asyncio.run(scenario()) == "one"


def test_exception_of_the_caller_ends_the_watch(path: Path) -> None:
    async def fail(_: Path, __: str) -> None:
        raise ConfigError("no")

    async def scenario() -> None:
        watch = FileWatch({path: "old"}, fail, lambda *_: None, interval_s=0.001)
        await asyncio.wait_for(watch.run(), 10)

    with pytest.raises(ConfigError, match="no"):
        asyncio.run(scenario())
