"""Who stops a statement that was cancelled or runs too long?

One thread watches all statements of an engine. It interrupts again and again until the statement is gone, because an
interrupt that arrives before the engine has begun is forgotten by it.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from proxy.engines.base import Cancellation, EngineStopped
from proxy.errors import Failure, TooMuch

_REPEAT_S = 0.02


@dataclass(frozen=True, slots=True, eq=False)
class Watch:
    """One running statement. `deadline_s` is on the monotonic clock."""

    interrupt: Callable[[], None]
    deadline_s: float
    cancellation: Cancellation

    def check(self) -> None:
        """Raise QueryCanceled if the statement should not run any longer, TooMuch if its time is over."""
        self.cancellation.check()
        if time.monotonic() >= self.deadline_s:
            raise TooMuch

    def is_due(self, now_s: float) -> bool:
        return self.cancellation.is_requested or now_s >= self.deadline_s


class Watchdog:
    """Interrupts statements that are due, until `close`."""

    def __init__(self) -> None:
        self._wake = threading.Condition()
        self._running: set[Watch] = set()
        self._is_closed = False
        self._sleeps_until_s = math.inf
        self._thread = threading.Thread(target=self._run, name="engine-watchdog", daemon=True)
        self._thread.start()

    @contextmanager
    def watch(self, interrupt: Callable[[], None], timeout_s: float, cancellation: Cancellation) -> Iterator[Watch]:
        """Interrupt the statement that runs inside the block when its time is over or it is cancelled.

        Raises EngineStopped after `close`.
        """
        one = Watch(interrupt, time.monotonic() + timeout_s, cancellation)
        with self._wake:
            if self._is_closed:
                raise EngineStopped("Closed", Failure.UNREACHABLE)
            self._running.add(one)
            if one.deadline_s < self._sleeps_until_s:  # waking the thread costs more than a small statement
                self._wake.notify()
        cancellation.listen(self._notify)
        try:
            yield one
        finally:
            with self._wake:
                self._running.discard(one)

    def close(self) -> None:
        """Interrupt all that runs and wait until it is gone."""
        with self._wake:
            self._is_closed = True
            self._wake.notify()
        self._thread.join()

    def _notify(self) -> None:
        with self._wake:
            self._wake.notify()

    def _run(self) -> None:
        with self._wake:
            while self._running or not self._is_closed:
                now_s = time.monotonic()
                due = [one for one in self._running if self._is_closed or one.is_due(now_s)]
                for one in due:
                    one.interrupt()
                self._sleeps_until_s = now_s + _REPEAT_S if due else self._next_s(now_s)
                self._wake.wait(self._sleeps_until_s - now_s)

    def _next_s(self, now_s: float) -> float:
        """The next deadline, at most a minute away."""
        return min((one.deadline_s for one in self._running), default=now_s + 60.0)
