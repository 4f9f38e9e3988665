"""A work is ended by its time, or because nobody waits for it, where nothing stays locked behind it."""

from __future__ import annotations

import gc
import os
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator

import pytest
from sqlglot.errors import TokenError

from proxy.errors import Unsupported
from proxy.workers.frames import FrameKind
from proxy.workers.worker import _Dropped, _Slow, _Worker

_NOT_ENDED_IN = ("threading", "importlib._bootstrap", "coverage.collector", "proxyish", "proxy.workers.worker")
_BUSY = """\
def busy(seconds):
    end = time.process_time() + seconds
    while time.process_time() < end:
        pass
"""


def busy_in(module: str) -> Callable[[float], None]:
    """A function of a module that takes so many seconds of the processor."""
    found: dict[str, object] = {"__name__": module, "time": time}
    exec(_BUSY, found)
    busy = found["busy"]
    assert callable(busy)
    return busy


@pytest.fixture
def worker() -> Iterator[_Worker]:
    """Handles the signals of this process, in whose main thread the test runs."""
    assert threading.current_thread() is threading.main_thread()
    ours, theirs = socket.socketpair()
    found = _Worker(ours)
    before = [(n, signal.getsignal(n)) for n in (signal.SIGPROF, signal.SIGUSR1)]
    signal.signal(signal.SIGPROF, found.on_time)
    signal.signal(signal.SIGUSR1, found.on_drop)
    gc.collect()
    gc.disable()  # what other tests left behind may have finalizers of ours, in which an exception is only told
    with ours, theirs:
        yield found
    gc.enable()
    for number, handler in before:
        signal.signal(number, handler)


@pytest.fixture(autouse=True)
def no_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """The limit on the processor's time is of a process that only works."""
    monkeypatch.setattr("proxy.workers.worker._limit", lambda _what, _most: None)


@pytest.mark.parametrize("module", ["proxy.sql.binding.binder", "sqlglot.parser"])
def test_a_work_ends_where_its_time_is_over(worker: _Worker, module: str) -> None:
    began = time.process_time()
    with pytest.raises(_Slow), worker._timed(0.02):
        busy_in(module)(5)
    assert time.process_time() - began < 3


@pytest.mark.parametrize("module", _NOT_ENDED_IN)
def test_a_work_is_not_ended_where_another_s_lock_may_be_held(worker: _Worker, module: str) -> None:
    lock = threading.Lock()

    def work() -> None:
        with lock:
            busy_in(module)(0.1)
        busy_in("proxy.plan.sql.moment_sql")(5)

    began = time.process_time()
    with pytest.raises(_Slow), worker._timed(0.02):
        work()
    assert 0.1 <= time.process_time() - began < 3, "it ends as soon as its own code runs"
    assert not lock.locked()


def test_a_work_that_nobody_waits_for_ends_in_its_own_code(worker: _Worker) -> None:
    began = time.process_time()
    with pytest.raises(_Dropped), worker._timed(60):
        exec("os.kill(os.getpid(), signal.SIGUSR1)\nbusy(0.1)",
             {"__name__": "threading", "os": os, "signal": signal, "busy": busy_in("threading")})  # fmt: skip
        assert time.process_time() - began >= 0.1
        busy_in("proxy.plan.sql.moment_sql")(5)
    assert time.process_time() - began < 3


def test_signals_that_come_between_works_end_none(worker: _Worker) -> None:
    os.kill(os.getpid(), signal.SIGUSR1)
    os.kill(os.getpid(), signal.SIGPROF)
    with worker._timed(60):
        busy_in("proxy.plan.sql.moment_sql")(0.05)


def _lacking(_cuts: object) -> None:
    raise MemoryError


def _lacking_in_a_library(_cuts: object) -> None:
    try:
        _lacking(_cuts)
    except Exception as error:
        raise TokenError("Error tokenizing ''") from error


def _unreadable(_cuts: object) -> None:
    try:
        _lacking_in_a_library(_cuts)
    except TokenError as error:
        raise Unsupported("statement names a private table and cannot be read") from error


def _malformed(_cuts: object) -> None:
    raise Unsupported("statement names a private table and cannot be read")


@pytest.mark.parametrize(
    ("work", "kind"),
    [
        (_lacking, FrameKind.LARGE),
        (_lacking_in_a_library, FrameKind.LARGE),
        (_unreadable, FrameKind.LARGE),
        (_malformed, FrameKind.RAISED),
    ],
)
def test_lack_of_memory_is_told_whatever_was_made_of_it(
    worker: _Worker, monkeypatch: pytest.MonkeyPatch, work: Callable[[object], None], kind: FrameKind
) -> None:
    monkeypatch.setattr(worker._packer, "unpack", lambda _content: (work, (), {}))
    assert worker._answer(b"", 60).kind is kind
