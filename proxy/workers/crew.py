"""How are the processes started that think for the proxy, and how is one of them spoken to?

All are children of one nursery, which sees nothing of the environment but where programs and languages are found.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import select
import signal
import socket
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

from proxy.workers.frames import Splitter, WorkFrame

_log = logging.getLogger("hushql")
_SEEN = ("PATH", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "PYTHONHOME", "PYTHONDONTWRITEBYTECODE", "VIRTUAL_ENV",
         "COVERAGE_PROCESS_CONFIG")  # fmt: skip
_TOLD_WITHIN_S = 2.0  # how a process has ended
_END_WITHIN_S = 6.0
UNKNOWN = 255  # how a process ended that nobody could tell about


class Gone(Exception):
    """The process has ended, by the signal of a negative number, or with an exit code."""

    def __init__(self, how: int) -> None:
        super().__init__(how)
        self.how = how


class Thinker(asyncio.Protocol):
    """One process. Answers come in the order of what was asked."""

    def __init__(self) -> None:
        self.pid = 0
        self.born: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.how: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._splitter = Splitter()
        self._waiting: asyncio.Future[WorkFrame] | None = None  # None: nothing is asked
        self._transport: asyncio.Transport | None = None  # None: not yet connected

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # of a socket; uvloop's derives from nothing

    def data_received(self, data: bytes) -> None:
        for frame in self._splitter.feed(data):
            if self._waiting is not None and not self._waiting.done():
                self._waiting.set_result(frame)

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_exception(ConnectionResetError())

    @property
    def is_alive(self) -> bool:
        return self._transport is not None and not self._transport.is_closing() and not _is_left(self._transport)

    def tell(self, frame: WorkFrame) -> None:
        """Write what has no answer."""
        if self._transport is not None:
            self._transport.write(frame.raw())

    async def ask(self, frame: WorkFrame) -> WorkFrame:
        """The answer to a frame. Raises Gone."""
        self._waiting = asyncio.get_running_loop().create_future()
        if not self.is_alive:
            raise Gone(await self._told())
        self.tell(frame)
        try:
            return await self._waiting
        except ConnectionResetError:
            raise Gone(await self._told()) from None

    async def _told(self) -> int:
        """How the process has ended."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_TOLD_WITHIN_S):
                return await asyncio.shield(self.how)
        return UNKNOWN

    def send_signal(self, number: signal.Signals) -> None:
        """While its socket is open the process is there, and its number is no other's."""
        if self.is_alive and self.pid:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def close(self) -> None:
        """Hang up: the process ends when it is next idle."""
        if self._transport is not None:
            self._transport.close()


def _is_left(transport: asyncio.Transport) -> bool:
    """Whether nobody is at the other end any more; the loop may not have come to see it yet."""
    poll = select.poll()
    poll.register(transport.get_extra_info("socket").fileno(), select.POLLHUP)
    return bool(poll.poll(0))


class _Control(asyncio.Protocol):
    """What the nursery says: who is born, and how others have ended."""

    def __init__(self) -> None:
        self.coming: list[Thinker] = []  # in the order of their births
        self.living: dict[int, Thinker] = {}
        self.has_ended = False
        self._rest = b""

    def data_received(self, data: bytes) -> None:
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            word, pid, *how = line.split()
            if word == b"born":
                thinker = self.living[int(pid)] = self.coming.pop(0)
                thinker.pid = int(pid)
                thinker.born.set_result(None)
            else:
                self.living.pop(int(pid)).how.set_result(int(how[0]))

    def connection_lost(self, exc: Exception | None) -> None:
        self.has_ended = True
        for thinker in self.coming:
            thinker.born.set_result(None)


@dataclass(slots=True)
class _Running:
    """A nursery that was started. socket: to hand others over."""

    process: subprocess.Popen[bytes]
    socket: socket.socket
    control: _Control


@dataclass(slots=True)
class Nursery:
    """Starts processes; is started itself when it is first needed, and again if it has ended."""

    _running: list[_Running] = field(default_factory=list)  # the last one is asked
    _lock: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def start(self) -> None:
        """Let it import what it needs, so that the first process comes at once."""
        if self._running and not self._running[-1].control.has_ended:
            return
        ours, theirs = socket.socketpair()
        with theirs:
            process = subprocess.Popen(  # noqa: ASYNC220 - returns at once
                [sys.executable, "-P", "-m", "proxy.workers.nursery", str(theirs.fileno())], cwd="/",
                env=_environment(), pass_fds=(theirs.fileno(),), stdin=subprocess.DEVNULL, start_new_session=True,
            )  # fmt: skip
        loop = asyncio.get_running_loop()
        _, control = await loop.create_unix_connection(_Control, sock=ours.dup())
        self._running.append(_Running(process, ours, control))

    async def thinker(self, niceness: int, most_bytes: int) -> Thinker:
        """Another process, that may have so much memory. Raises Gone if there can be none."""
        async with self._lock:
            try:
                return await self._born(niceness, most_bytes)
            except Gone:
                return await self._born(niceness, most_bytes)  # of another nursery: that one had ended

    async def _born(self, niceness: int, most_bytes: int) -> Thinker:
        await self.start()
        running = self._running[-1]
        ours, theirs = socket.socketpair()
        _, thinker = await asyncio.get_running_loop().create_unix_connection(Thinker, sock=ours)
        running.control.coming.append(thinker)
        with theirs:
            try:
                socket.send_fds(running.socket, [f"{niceness} {most_bytes}".encode()], [theirs.fileno()])
                await thinker.born
            except OSError:
                running.control.has_ended = True
        if not thinker.pid:
            thinker.close()
            raise Gone(UNKNOWN)
        return thinker

    async def stop(self) -> None:
        """Hang up, and wait until it and all its children have ended."""
        for running in self._running:
            running.socket.shutdown(socket.SHUT_RDWR)
            running.socket.close()
            try:
                await asyncio.to_thread(running.process.wait, _END_WITHIN_S)
            except subprocess.TimeoutExpired:
                _log.warning("the processes that plan did not end by themselves")
                running.process.kill()
                await asyncio.to_thread(running.process.wait)
        self._running.clear()


def _environment() -> dict[str, str]:
    """What a process that thinks may see of ours; passwords and paths of data are not among it."""
    found = {name: os.environ[name] for name in _SEEN if name in os.environ}
    return {**found, "PYTHONPATH": str(Path(__file__).resolve().parents[2]), "OPENBLAS_NUM_THREADS": "1"}
