"""When private work has ended is seen on the grid alone, however it ended."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field

import pytest

from proxy.engines.base import Cancellation
from proxy.errors import EngineFailed, QueryCanceled
from proxy.session.answering.grid import GridRunner, GridWork, LoopClock, Threads

STEP_S = 2.0
PATIENCE_S = 60


@dataclass(slots=True)
class MadeUpTime:
    """A clock that goes on by itself while somebody sleeps, at once. Implements `Clock`."""

    seconds: float = 100.0
    slept: asyncio.Event = field(default_factory=asyncio.Event)

    def now(self) -> float:
        return self.seconds

    async def sleep(self, seconds: float) -> None:
        assert seconds >= 0
        await asyncio.sleep(0)
        self.seconds += seconds
        self.slept.set()

    def take(self, seconds: float) -> None:
        """Work takes so long."""
        self.seconds += seconds


@dataclass(slots=True)
class Shown:
    """What others see, with the time since the beginning."""

    clock: MadeUpTime
    events: list[tuple[str, float]] = field(default_factory=list)

    def see(self, event: str) -> None:
        self.events.append((event, round(self.clock.now() - 100.0, 6)))


def work_of(shown: Shown, seconds: float, failure: Exception | None = None) -> GridWork[str]:
    """Private work of that length, which may fail; then what is seen of it."""
    try:
        shown.clock.take(seconds)
        if failure is not None:
            raise failure
    finally:
        yield
        shown.see("noted")
    return "answer"


@contextmanager
def threads(count: int = 1) -> Iterator[Threads]:
    with closing(Threads(count, "private")) as made:
        yield made


@pytest.mark.parametrize(
    ("took", "seen"), [(0.0, 2.0), (0.076, 2.0), (1.999, 2.0), (2.0, 2.0), (2.001, 4.0), (7.5, 8.0), (400.0, 400.0)]
)
@pytest.mark.parametrize("failure", [None, EngineFailed("it failed"), QueryCanceled("too slow"), ZeroDivisionError()])
def test_whatever_ends_is_seen_on_the_grid(took: float, seen: float, failure: Exception | None) -> None:
    async def check() -> None:
        clock = MadeUpTime()
        shown = Shown(clock)
        runner = GridRunner(pool, clock)
        running = runner.run(work_of(shown, took, failure), STEP_S, Cancellation())
        if failure is None:
            assert await running == "answer"
        else:
            with pytest.raises(type(failure)):
                await running
        shown.see("told")
        assert shown.events == [("noted", seen), ("told", seen)]
        await runner.close()

    with threads() as pool:
        asyncio.run(check())


@pytest.mark.parametrize(("took", "seen"), [(0.076, 2.0), (2.001, 4.0)])
@pytest.mark.parametrize("failure", [None, EngineFailed("it failed")])
def test_what_is_measured_is_what_the_client_sees(took: float, seen: float, failure: Exception | None) -> None:
    async def check() -> None:
        clock, told = MadeUpTime(), list[tuple[float, float]]()
        runner = GridRunner(pool, clock, lambda waited, took: told.append((waited, took)))
        with contextlib.suppress(EngineFailed):
            await runner.run(work_of(Shown(clock), took, failure), STEP_S, Cancellation())
        await runner.close()
        assert told == [(0.0, seen)]
        assert pool.waiting == 0

    with threads() as pool:
        asyncio.run(check())


def test_without_a_grid_nobody_waits() -> None:
    async def check() -> None:
        clock = MadeUpTime()
        shown = Shown(clock)
        assert await GridRunner(pool, clock).run(work_of(shown, 0.3), 0, Cancellation()) == "answer"
        assert shown.events == [("noted", 0.3)]
        assert not clock.slept.is_set()

    with threads() as pool:
        asyncio.run(check())


def test_what_is_not_private_does_not_wait() -> None:
    def known() -> GridWork[int]:
        clock.take(0.3)
        return 7
        yield

    clock = MadeUpTime()
    with threads() as pool:
        assert asyncio.run(GridRunner(pool, clock).run(known(), STEP_S, Cancellation())) == 7
    assert clock.now() == 100.3


def test_a_thread_is_free_for_others_on_the_grid_alone() -> None:
    """Who waits for the only thread sees when it becomes free."""
    shown = Shown(MadeUpTime())

    def other() -> GridWork[None]:
        shown.see("begun")
        return
        yield

    async def check() -> None:
        held, may_pass = asyncio.Event(), asyncio.Event()

        class Held(MadeUpTime):
            async def sleep(self, seconds: float) -> None:
                held.set()
                await may_pass.wait()

        runners = [GridRunner(pool, Held()) for _ in range(2)]
        first = asyncio.create_task(runners[0].run(work_of(shown, 0.3), STEP_S, Cancellation()))
        await held.wait()  # the work has ended and waits for the grid
        second = asyncio.create_task(runners[1].run(other(), STEP_S, Cancellation()))
        await asyncio.sleep(0.05)
        assert shown.events == []
        may_pass.set()
        await second
        assert await first == "answer"

    with threads() as pool:
        asyncio.run(check())
    assert sorted(name for name, _ in shown.events) == ["begun", "noted"]


def test_what_waits_for_a_thread_is_cancelled_at_once() -> None:
    async def check() -> None:
        one, other = Endless(MadeUpTime()), Cancellation()
        runner = GridRunner(pool, one.clock)
        task = await begun(one, runner)
        waits = asyncio.create_task(runner.run(work_of(Shown(one.clock), 0.3), STEP_S, other))
        await asyncio.sleep(0.01)
        waits.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waits
        assert other.is_requested
        assert not one.clock.slept.is_set(), "nothing of it has begun"
        one.may_end.set()
        assert await task == "answer"
        await runner.close()

    with threads() as pool:
        asyncio.run(check())


@dataclass(slots=True)
class Endless:
    """Work that ends when it may, or some time after it was asked to stop."""

    clock: MadeUpTime
    cancellation: Cancellation = field(default_factory=Cancellation)
    begun: threading.Event = field(default_factory=threading.Event)
    may_end: threading.Event = field(default_factory=threading.Event)
    ended: list[str] = field(default_factory=list)

    def work(self) -> GridWork[str]:
        try:
            self.begun.set()
            assert self.may_end.wait(PATIENCE_S)
            self.cancellation.check()
        except QueryCanceled:
            yield
            self.ended.append("cancelled")
            raise
        yield
        self.ended.append("answered")
        return "answer"


async def begun(one: Endless, runner: GridRunner) -> asyncio.Task[str]:
    task = asyncio.create_task(runner.run(one.work(), STEP_S, one.cancellation))
    await asyncio.to_thread(one.begun.wait, PATIENCE_S)
    return task


@pytest.mark.parametrize("times", [1, 3])
def test_a_cancellation_acts_on_the_grid(times: int) -> None:
    """When a client cancels is its own choice: it would measure the end as finely as it likes."""

    async def check() -> None:
        one = Endless(MadeUpTime())
        runner = GridRunner(pool, one.clock)
        task = await begun(one, runner)
        one.clock.take(0.4)
        requested: list[float] = []
        one.cancellation.listen(lambda: requested.append(one.clock.now()))
        for _ in range(times):
            task.cancel()
            await asyncio.sleep(0)
        with pytest.raises(asyncio.CancelledError):
            await task
        assert requested == [one.clock.now()] == [102.0]
        one.may_end.set()
        await runner.close()
        assert one.ended == ["cancelled"]

    with threads() as pool:
        asyncio.run(check())


def test_what_has_ended_before_the_cancellation_acts_is_answered() -> None:
    async def check() -> None:
        one = Endless(MadeUpTime())
        held, may_pass = asyncio.Event(), asyncio.Event()

        class Held(MadeUpTime):
            async def sleep(self, seconds: float) -> None:
                held.set()
                await may_pass.wait()

        runner = GridRunner(pool, Held())
        task = await begun(one, runner)
        one.may_end.set()
        await held.wait()  # the work has ended and waits for the grid
        task.cancel()
        await asyncio.sleep(0.01)
        assert not task.done()
        may_pass.set()
        assert await task == "answer"
        assert one.ended == ["answered"]
        assert not one.cancellation.is_requested

    with threads() as pool:
        asyncio.run(check())


def test_a_time_limit_that_passes_while_an_answer_waits_does_not_spoil_it() -> None:
    async def check() -> str:
        runner = GridRunner(pool, LoopClock())
        async with asyncio.timeout(0.05):
            return await runner.run(work_of(Shown(MadeUpTime()), 0), 0.3, Cancellation())

    with threads() as pool:
        assert asyncio.run(check()) == "answer"


def test_works_that_wait_for_each_other_do_not_take_each_others_threads() -> None:
    """The second has the only thread while the first waits for the grid, and waits for what the first holds."""
    lock = threading.Lock()

    def taking_turns() -> GridWork[bool]:
        with lock:
            yield
        return True

    async def check() -> None:
        runner = GridRunner(pool, LoopClock())
        both = (runner.run(taking_turns(), 0.05, Cancellation()) for _ in range(2))
        assert await asyncio.wait_for(asyncio.gather(*both), PATIENCE_S) == [True, True]

    with threads() as pool:
        asyncio.run(check())


def test_a_session_that_closes_waits_for_what_it_has_left_behind() -> None:
    async def check() -> None:
        one = Endless(MadeUpTime())
        runner = GridRunner(pool, one.clock)
        task = await begun(one, runner)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        closing = asyncio.create_task(runner.close())
        await asyncio.sleep(0.01)
        assert not closing.done()
        one.may_end.set()
        await asyncio.wait_for(closing, PATIENCE_S)
        assert one.ended == ["cancelled"]

    with threads() as pool:
        asyncio.run(check())
