"""Is a command's line answered by whoever owns the directory, and by nobody else?"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from proxy.admin.control import NAME, Control, ask
from proxy.errors import ConfigError


def answered(directory: Path, answer: Callable[[str], Awaitable[str]], *lines: str) -> list[str | None]:
    """What each line is answered, asked from another thread."""

    async def serve() -> list[str | None]:
        control = await Control.start(directory, answer)
        try:
            assert (directory / NAME).stat().st_mode & 0o777 == 0o600
            return [await asyncio.to_thread(ask, directory, line) for line in lines]
        finally:
            control.close()

    return asyncio.run(serve())


async def shout(line: str) -> str:
    return line.strip().upper()


def test_lines_are_answered_in_directories_of_any_name(tmp_path: Path) -> None:
    deep = tmp_path / ("a" * 100) / ("b" * 100)
    deep.mkdir(parents=True)
    assert answered(deep, shout, "one", "zwölf") == ["ONE", "ZWÖLF"]
    assert not list(deep.iterdir())
    assert ask(deep, "three") is None


def test_the_socket_of_a_proxy_that_was_killed_is_in_nobodys_way(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(tmp_path / NAME)) if len(str(tmp_path)) < 90 else (tmp_path / NAME).touch()
    assert ask(tmp_path, "one") is None
    assert answered(tmp_path, shout, "one") == ["ONE"]


def test_a_proxy_that_ends_meanwhile_is_an_error_with_advice(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def fail(_: str) -> str:
        raise ConnectionResetError

    with caplog.at_level(logging.WARNING, "hushql"), pytest.raises(ConfigError, match="ended before") as said:
        answered(tmp_path, fail, "one")
    assert "Run the command again" in said.value.hint
    assert "ConnectionResetError" in caplog.text


def test_a_line_that_is_too_long_is_not_read(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="ended before"):
        answered(tmp_path, shout, "x" * 10**6)


def test_a_directory_that_cannot_be_listened_in_is_an_error(tmp_path: Path) -> None:
    (tmp_path / NAME).mkdir()
    with pytest.raises(ConfigError, match="cannot be listened on"):
        answered(tmp_path, shout)
