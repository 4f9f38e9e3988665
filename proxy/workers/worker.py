"""What does a process do that thinks for the proxy?

It has one socket, and nothing else that the proxy holds: no data, no ledger, no keys, no randomness. It is told
premises and does one work after the other, each within its share of the processor's time, until the proxy hangs up.
"""

from __future__ import annotations

import contextlib
import gc
import math
import os
import resource
import signal
import socket
import time
import traceback
from collections.abc import Iterator
from types import FrameType

from proxy.errors import HushError
from proxy.pipeline.outline import Cuts
from proxy.sql.algebra.constants import Unread
from proxy.workers.frames import HEADER_BYTES, FrameKind, WorkFrame, read_header
from proxy.workers.parcel import Packer, SharedPremises

_GRACE_S = 2  # a work that does not notice the end of its time in so many seconds ends its process
_AGAIN_S = 0.002  # after which a work is ended that was in the middle of what must not be
_ENDED_IN = ("proxy.", "sqlglot.")  # elsewhere a lock may be held: a library's, the import system's, a measurement's
_LARGE_CHARS = 100_000  # works of so many leave memory behind that is worth looking for


class _Slow(BaseException):
    """The work's share of the processor is used up."""


class _Dropped(BaseException):
    """Nobody waits for the work any more."""


def serve(link: socket.socket, most_bytes: int) -> None:
    """Do works until the other end hangs up, or memory has run out once."""
    gc.set_threshold(50_000, 20, 100)  # trees of large statements are made of hundreds of thousands of nodes
    _limit(resource.RLIMIT_AS, most_bytes)
    worker = _Worker(link)
    signal.signal(signal.SIGPROF, worker.on_time)
    signal.signal(signal.SIGUSR1, worker.on_drop)
    with contextlib.suppress(ConnectionError):
        worker.run()


def _limit(what: int, most: int) -> None:
    """Lower a limit of this process, where the system lets it."""
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(what, (most, resource.getrlimit(what)[1]))


def _may_end_in(frame: FrameType | None) -> bool:
    """Whether what runs may be left by an exception: nothing that the next work needs stays locked or half done."""
    module = "" if frame is None else frame.f_globals.get("__name__", "")
    return module.startswith(_ENDED_IN) and module != __name__  # which is about to notice it


def _is_of_memory(error: BaseException | None) -> bool:
    """Whether memory was lacking at the root of it: libraries raise errors of their own from every other."""
    while error and not isinstance(error, MemoryError):
        error = error.__cause__ or error.__context__
    return error is not None


class _Worker:
    def __init__(self, link: socket.socket) -> None:
        self._link = link
        self._packer = Packer(SharedPremises())
        self._cuts = Cuts()
        self._is_working = False
        self._is_dropped = False

    def on_time(self, number: int, frame: FrameType | None) -> None:
        """The processor's time that was given to a work has passed; comes again until the work has ended."""
        if self._is_working and _may_end_in(frame):
            raise _Dropped if self._is_dropped else _Slow

    def on_drop(self, number: int, frame: FrameType | None) -> None:
        """The proxy wants no answer to the work any more."""
        if self._is_working:
            self._is_dropped = True
            signal.setitimer(signal.ITIMER_PROF, _AGAIN_S, _AGAIN_S)
            self.on_time(number, frame)

    def run(self) -> None:
        """Until the other end hangs up. Raises ConnectionError."""
        while header := self._received(HEADER_BYTES):
            kind, amount, length = read_header(header)
            content = self._received(length)
            match kind:
                case FrameKind.KNOW:
                    self._packer.shared.add(int(amount), self._packer.unpack(content))
                case FrameKind.FORGET:
                    self._packer.shared.forget(int(amount))
                case _:
                    answer = self._answer(content, amount)
                    self._link.sendall(answer.raw())
                    if answer.kind is FrameKind.LARGE:
                        return
            if length > _LARGE_CHARS:
                gc.collect()

    def _received(self, count: int) -> bytes:
        """So many bytes; none at the end of all."""
        parts, left = [], count
        while left:
            data = self._link.recv(min(left, 2**20))
            if not data:
                return b""
            parts.append(data)
            left -= len(data)
        return b"".join(parts)

    def _answer(self, content: bytes, seconds: float) -> WorkFrame:
        """Do one work, and say what came of it."""
        try:
            with self._timed(seconds):
                work, args, kwargs = self._packer.unpack(content)
                return WorkFrame(FrameKind.RETURNED, 0, self._packer.pack(work(self._cuts, *args, **kwargs)))
        except (HushError, Unread) as error:
            return (
                WorkFrame(FrameKind.LARGE)
                if _is_of_memory(error)
                else WorkFrame(FrameKind.RAISED, 0, self._packer.pack(error))
            )
        except _Slow:
            return WorkFrame(FrameKind.SLOW)
        except _Dropped:
            return WorkFrame(FrameKind.DROPPED)
        except Exception as error:  # noqa: BLE001 - whatever it is: the proxy says that it is its own fault
            if _is_of_memory(error):
                return WorkFrame(FrameKind.LARGE)
            places = "".join(traceback.format_tb(error.__traceback__))
            return WorkFrame(FrameKind.FAILED, 0, f"{type(error).__name__}\n{places}".encode())
        finally:
            self._cuts.let_go()

    @contextlib.contextmanager
    def _timed(self, seconds: float) -> Iterator[None]:
        """Raises _Slow when the processor was busy with it for so long; not noticing that is the end of the process."""
        _limit(resource.RLIMIT_CPU, math.ceil(time.process_time() + seconds) + _GRACE_S)
        self._is_working, self._is_dropped = True, False
        try:
            signal.setitimer(signal.ITIMER_PROF, seconds, _AGAIN_S)
            yield
        finally:
            self._is_working = False
            signal.setitimer(signal.ITIMER_PROF, 0)


def main(link: socket.socket, niceness: int, most_bytes: int) -> None:
    """The whole life of the process."""
    os.nice(niceness)
    with link:
        serve(link, most_bytes)
