"""How does a command ask something of the running proxy that owns its state directory?

One line of text each way over a socket in that directory, which nobody but its owner can reach. What is asked and
answered is the caller's business.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
from collections.abc import Awaitable, Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from proxy.errors import ConfigError

NAME = "control"
_MOST_BYTES = 1 << 16  # of a question
_log = logging.getLogger("hushql")

Responder = Callable[[str], Awaitable[str]]


class Control:
    """The proxy's end: answers each connection's line. `close` when the proxy ends."""

    def __init__(self, path: Path, server: asyncio.Server) -> None:
        self._path = path
        self._server = server

    @classmethod
    async def start(cls, directory: Path, answer: Responder) -> Control:
        """Listen in a directory that this process owns. Raises ConfigError."""
        path = directory / NAME
        listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            path.unlink(missing_ok=True)  # of a proxy that was killed
            with _short_name(directory) as name:
                listening.bind(name)
            path.chmod(0o600)
            server = await asyncio.start_unix_server(
                lambda reader, writer: _answered(reader, writer, answer), sock=listening, limit=_MOST_BYTES
            )
        except OSError as error:
            listening.close()
            raise ConfigError(f"{path} cannot be listened on: {error.strerror}") from error
        return cls(path, server)

    def close(self) -> None:
        self._server.close()
        self._path.unlink(missing_ok=True)


async def _answered(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, answer: Responder) -> None:
    try:
        line = await reader.readline()
        writer.write((await answer(line.decode("utf-8")) + "\n").encode())
        await writer.drain()
    except (OSError, ValueError) as error:  # too long, no text, or nobody there any more
        _log.warning("a command's question was not answered: %s", type(error).__name__)
    finally:
        writer.close()


def ask(directory: Path, line: str) -> str | None:
    """What the proxy that owns the directory answers; None if it cannot be asked. Raises ConfigError if it ends."""
    with closing(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)) as connection:
        try:
            with _short_name(directory) as name:
                connection.connect(name)
        except OSError:
            return None
        try:
            connection.sendall(line.encode() + b"\n")
            with connection.makefile("rb") as answer:
                found = answer.readline()
        except OSError:
            found = b""
    if not found.endswith(b"\n"):
        raise ConfigError(
            "the running proxy ended before it answered",
            hint="Run the command again: what was charged and stored by then is free.",
        )
    return found.decode("utf-8").rstrip("\n")


@contextmanager
def _short_name(directory: Path) -> Iterator[str]:
    """The socket's name by way of its open directory: names of sockets may only have 107 characters."""
    handle = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{handle}/{NAME}"
    finally:
        os.close(handle)
