"""Nothing that others can look at tells when the private work of a session's statement has ended, but on the grid."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NoReturn

import pytest

from proxy.engines.base import EngineStopped
from proxy.errors import BadGroups, HushError, LedgerFailed, QueryCanceled, Unsupported
from proxy.ledger.base import Outcome
from proxy.plan.charge import Reserved
from proxy.release.raw import KeptKeys, RawResult
from proxy.release.sets import publish_plan
from proxy.session.answering import answer as answering
from proxy.session.answering import attempt as attempts
from proxy.session.contract import Asking, Spliced
from proxy.session.session import ClientSession
from tests.unit.session.running import Slow
from tests.unit.session.staged import OTHER, SQL, Watched, World, begin, go_on, serving
from tests.unit.sql.corpus import policy

STEP_S = 2.0
COUNT = "select count(*) from users"
GROUPS = "select plan, count(*) from users group by plan"


@dataclass(slots=True)
class Watch:
    """A clock on which time passes in waits alone, and who looks around in each of them. Implements `Clock`."""

    look: Callable[[], object] = lambda: None
    seconds: float = 50.0
    seen: list[object] = field(default_factory=list)

    def now(self) -> float:
        return self.seconds

    async def sleep(self, seconds: float) -> None:
        self.seen.append(await asyncio.to_thread(self.look))
        self.seconds += seconds


@pytest.fixture
def watch() -> Watch:
    return Watch()


@pytest.fixture
def world(tmp_path: Path, watch: Watch) -> Iterator[World]:
    served = policy()
    gridded = replace(served, privacy=replace(served.privacy, time_grid_s=STEP_S))
    with serving(tmp_path / "state", gridded, watch) as made:
        watch.look = lambda: signs(made)
        yield made


def signs(world: World) -> tuple[list[Outcome], int]:
    """What other sessions of a login can ask for, free: how its statements ended, and what is stored."""
    history = world.ledger.history("shop/ann", 10)
    return [asked.outcome for asked in history], world.ledger.verify().releases


def stop_engine(world: World, patch: pytest.MonkeyPatch) -> None:
    world.engine.fails = True


def break_noise(world: World, patch: pytest.MonkeyPatch) -> None:
    def take(_noise: Slow, _n: int) -> tuple[int, ...]:
        raise EngineStopped("no more noise")

    patch.setattr(Slow, "take", take)


def fill_disk(world: World, patch: pytest.MonkeyPatch) -> None:
    def put(_reserved: Reserved, _payload: bytes) -> None:
        raise LedgerFailed("no space")

    patch.setattr(world.ledger.store, "put", put)


def show_too_many_groups(world: World, patch: pytest.MonkeyPatch) -> None:
    def published(*arguments: Any) -> NoReturn:
        publish_plan(*arguments)
        raise BadGroups("the answer has too many groups to be sent")

    patch.setattr(attempts, "publish_plan", published)


def break_finishing(world: World, patch: pytest.MonkeyPatch) -> None:
    def finished(*_: object, **__: object) -> NoReturn:
        raise Unsupported("this number has no text")

    patch.setattr(answering, "finish_plan", finished)


ENDS = {
    "engine": stop_engine, "noise": break_noise, "store": fill_disk, "too many groups": show_too_many_groups,
    "finishing": break_finishing,
}  # fmt: skip
STORED = frozenset({"finishing"})  # what ends after the last draw is kept for those who have paid


@pytest.mark.parametrize("why", ENDS)
@pytest.mark.parametrize("sql", [COUNT, GROUPS, f"copy ({COUNT}) to stdout"])
def test_a_failure_shows_on_the_grid_alone(
    why: str, sql: str, world: World, watch: Watch, monkeypatch: pytest.MonkeyPatch
) -> None:
    ENDS[why](world, monkeypatch)
    with pytest.raises(HushError):
        begin(world.session(), sql)
    assert watch.seen == [([Outcome.UNFINISHED], 0)]
    assert watch.now() == 50.0 + STEP_S
    assert signs(world) == ([Outcome.FAILED], int(why in STORED))


@pytest.mark.parametrize("sql", [COUNT, GROUPS])
def test_a_time_limit_of_the_engine_shows_on_the_grid_alone(
    sql: str, world: World, watch: Watch, monkeypatch: pytest.MonkeyPatch
) -> None:
    def published(*_: object) -> NoReturn:
        raise QueryCanceled("canceling statement due to statement timeout")

    monkeypatch.setattr(attempts, "publish_plan", published)
    with pytest.raises(QueryCanceled, match="statement timeout"):
        begin(world.session(), sql)
    assert watch.seen == [([Outcome.UNFINISHED], 0)]
    assert watch.now() == 50.0 + STEP_S
    assert signs(world) == ([Outcome.CANCELLED], 0)


@pytest.mark.parametrize("sql", [COUNT, f"copy ({COUNT}) to stdout"])
def test_a_cancelled_statement_shows_on_the_grid_alone(sql: str, world: World, watch: Watch) -> None:
    """By its client, by the time limit of its session, or by a hangup: that is one and the same here."""
    begun, may_end = threading.Event(), threading.Event()
    watch.look = lambda: (signs(world), begun.is_set())

    def rows(_engine: Watched, _stage: int, _kept: KeptKeys) -> RawResult:
        begun.set()
        assert may_end.wait(60)
        return RawResult(6, ())

    async def cancelled() -> None:
        session = world.session()
        (piece,) = await session.prepare(sql, {})
        task = asyncio.create_task(session.release(piece, (), {"hush.epsilon": "1"}))
        await asyncio.to_thread(begun.wait, 60)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert watch.seen == [(([Outcome.UNFINISHED], 0), True)], "the cancellation waits for the grid"
        watch.seconds += 0.3
        may_end.set()
        await session.close()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Watched, "rows", rows, raising=False)
        asyncio.run(cancelled())
    assert watch.now() == 50.0 + 2 * STEP_S, "and so does the end"
    assert signs(world) == ([Outcome.CANCELLED], 0)


def test_an_answer_shows_on_the_grid_alone(world: World, watch: Watch) -> None:
    begin(world.session(), COUNT)
    assert watch.seen == [([Outcome.UNFINISHED], 0)]
    assert watch.now() == 50.0 + STEP_S
    assert signs(world) == ([Outcome.ANSWERED], 1)


def test_a_stored_answer_that_was_paid_for_needs_no_wait(world: World, watch: Watch) -> None:
    session = world.session()
    begin(session, COUNT)
    begin(session, COUNT)
    assert len(watch.seen) == 1
    begin(world.session(name="2"), COUNT)  # pays for what is stored: that it was must not show
    assert len(watch.seen) == 2


def test_each_stage_shows_on_the_grid_alone(world: World, watch: Watch) -> None:
    session = world.session()
    first = begin(session, SQL)
    assert watch.now() == 50.0 + STEP_S
    world.engine.fails = True
    with pytest.raises(HushError):
        go_on(session, first)
    assert watch.now() == 50.0 + 2 * STEP_S
    assert watch.seen[1] == ([Outcome.FAILED], 1)


def test_who_asks_for_the_same_waits_until_the_grid_of_the_first(world: World, watch: Watch) -> None:
    """Else many who begin at different times would measure one end between them."""
    order: list[str] = []
    watch.look = lambda: order.append("grid")

    async def ask(session: ClientSession, name: str) -> None:
        (piece,) = await session.prepare(COUNT, {})
        found = await session.release(piece, (), {"hush.epsilon": "1"})
        assert isinstance(found, Spliced)
        order.append(name)

    async def both() -> None:
        first, second = world.session(), world.session("boss")
        await asyncio.gather(ask(first, "first"), ask(second, "second"))

    asyncio.run(both())
    assert order == ["grid", "first", "grid", "second"]
    assert signs(world)[1] == 1


def test_a_part_that_was_drawn_before_another_failed_is_kept_for_those_who_paid(world: World, watch: Watch) -> None:
    session, sql = world.session(), f"select ({COUNT}), (select sum(age) from users)"
    world.engine.fails_after = 1
    with pytest.raises(HushError):
        begin(session, sql)
    assert watch.seen == [([Outcome.UNFINISHED], 0)]
    assert signs(world) == ([Outcome.FAILED], 1)


def test_explain_of_a_stage_that_was_paid_for_tells_no_time(world: World, watch: Watch) -> None:
    session = world.session()
    found = begin(session, SQL)
    go_on(session, found, OTHER)
    before = len(watch.seen)
    stage = begin(session, f"explain {SQL}")
    assert isinstance(stage, Asking)
    assert isinstance(go_on(session, stage, OTHER), Spliced)
    assert len(watch.seen) == before > 0
