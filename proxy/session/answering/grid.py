"""When is it seen from outside that the private work of a statement has ended?

At a multiple of the policy's time grid after it began, however it ended, and nowhere else: what tells of the end (the
answer, an error, the history, the store, others who wait for the same release) comes after the wait that is here. What
is done with released numbers after it takes time too, which follows from these numbers.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from proxy.engines.base import Cancellation

Result = TypeVar("Result")

#: Work in threads. It yields when what is private in it has ended, well or not; what it does then may be seen.
GridWork = Generator[None, None, Result]
Timed = Callable[[float, float], None]


class Clock(Protocol):
    """Seconds, and how to wait for them."""

    def now(self) -> float: ...

    async def sleep(self, seconds: float) -> None: ...


class LoopClock:
    """That of the running event loop. Implements `Clock`."""

    def now(self) -> float:
        return asyncio.get_running_loop().time()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


@dataclass(frozen=True, slots=True)
class TimeGrid:
    """Moments that are `step_s` seconds apart, the first one step after `begun_s`; a step of 0 is no grid."""

    clock: Clock
    begun_s: float
    step_s: float

    async def tick(self) -> None:
        """Wait for the next of them."""
        if self.step_s > 0:
            elapsed = self.clock.now() - self.begun_s
            await self.clock.sleep(max(1, math.ceil(elapsed / self.step_s)) * self.step_s - elapsed)


class Threads:
    """Threads for works of one kind, each taken until the moment of the grid at which its work may be seen to end.

    Were one free before, who waits for a thread would see when the work before it ended. For the same reason nothing
    that is free of charge may run in the threads of what is private.
    """

    def __init__(self, count: int, name: str) -> None:
        self.executor = ThreadPoolExecutor(count, name)
        self.free = asyncio.Semaphore(count)
        self.waiting = 0  # works that have no thread yet

    def close(self) -> None:
        """Wait for what runs, and begin nothing more."""
        self.executor.shutdown(cancel_futures=True)


class GridRunner:
    """Runs the private work of one session.

    Claim: when the private work of a statement ended can be told from outside to a step of the grid, and no better,
    whether it ended well, failed, was cancelled or ran out of time.
    """

    def __init__(self, threads: Threads, clock: Clock, told: Timed = lambda _waited, _took: None) -> None:
        """told: of each work, how long it waited for a thread, and how long it took until the grid let go of it."""
        self._threads = threads
        self._clock = clock
        self._told = told
        self._going: set[asyncio.Task[object]] = set()

    async def run(self, work: GridWork[Result], step_s: float, cancellation: Cancellation) -> Result:
        """The result of the work. Raises what it raises.

        A cancellation acts on the grid too: what has ended by then counts, and is not cancelled any more. Otherwise
        the work is asked to stop, and nobody waits for that but `close`. What waits for a thread has not begun, and is
        asked to stop at once.
        """
        run = _Run(work, self._clock, step_s, self._threads, self._told)
        task = asyncio.create_task(run.go())
        self._going.add(task)
        task.add_done_callback(self._gone)
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            if run.grid is not None and not run.has_ended:
                await _undisturbed(asyncio.create_task(run.grid.tick()))
            if not run.has_ended:
                cancellation.request()
                raise
            return await _undisturbed(task)

    async def close(self) -> None:
        """Wait until nothing is going on."""
        while self._going:
            await asyncio.wait(self._going)

    def _gone(self, task: asyncio.Task[object]) -> None:
        self._going.discard(task)
        if not task.cancelled():
            task.exception()  # somebody has heard of it, or nobody waits for it any more


class _Run(Generic[Result]):
    """One work on its way. grid: since it began. has_ended: what is private in it."""

    def __init__(self, work: GridWork[Result], clock: Clock, step_s: float, threads: Threads, told: Timed) -> None:
        self.grid: TimeGrid | None = None
        self.has_ended = False
        self._work = work
        self._clock = clock
        self._step_s = step_s
        self._threads = threads
        self._told = told

    async def go(self) -> Result:
        loop, came_s = asyncio.get_running_loop(), self._clock.now()
        self._threads.waiting += 1
        try:
            await self._threads.free.acquire()
        finally:
            self._threads.waiting -= 1
        try:
            self.grid = TimeGrid(self._clock, self._clock.now(), self._step_s)
            try:
                step = await loop.run_in_executor(self._threads.executor, self._advance)
            finally:
                self.has_ended = True
            if isinstance(step, _Waits):
                await self.grid.tick()
                self._told(self.grid.begun_s - came_s, self._clock.now() - self.grid.begun_s)
        finally:
            self._threads.free.release()
        while isinstance(step, _Waits):
            # not in the same threads: all of these may wait for what this work has yet to let go
            step = await loop.run_in_executor(None, self._advance)
            if isinstance(step, _Waits):
                await self.grid.tick()
        return step.result

    def _advance(self) -> _Waits | _Done[Result]:
        try:
            next(self._work)
            if self._step_s <= 0:
                return self._advance()
        except StopIteration as end:
            return _Done(end.value)
        return _Waits()


@dataclass(frozen=True, slots=True)
class _Waits:
    """The work is to go on at the next moment of the grid."""


@dataclass(frozen=True, slots=True)
class _Done(Generic[Result]):
    result: Result


async def _undisturbed(task: asyncio.Task[Result]) -> Result:
    """The result of a task, however often who waits for it is cancelled."""
    while not task.done():
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.shield(task)
    return task.result()
