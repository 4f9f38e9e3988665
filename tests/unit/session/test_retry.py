"""A test for each line of the table in docs/claims/retry.md, and for each of its rules, as a session has them."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from prometheus_client import CollectorRegistry, generate_latest

from proxy.dp.mechanisms import Distribution
from proxy.engines.base import Cancellation
from proxy.errors import Failure, HushError, LedgerFailed, QueryCanceled, TooMuch
from proxy.ledger.base import Ending, Outcome
from proxy.metrics import Metrics
from proxy.policy.model import PostgresSource
from proxy.session.asking.plancache import PlanCache
from proxy.session.contract import Asking, Spliced
from proxy.session.learning.profiling import Wish, profile
from proxy.session.session import ClientSession
from tests.unit.session.flaky import COUNT, MEDIAN, TWO, Flaky, entries, flaky, refused, stopped
from tests.unit.session.staged import OTHER, SQL, TOLD, World, answer, begin, explained, go_on

NOTHING, STAYS = "Nothing was charged.", "What was reserved for it stays charged."
AGAIN = "What was reserved for it stays charged, and pays for the same statement asked again."
AWAY = "the private data cannot be reached"


@pytest.fixture
def engine(world: World) -> Flaky:
    return flaky(world)


def charge_of(found: object) -> str:
    assert isinstance(found, Spliced)
    return found.notices[0].message


# --- before anything is reserved --------------------------------------------------------------------------


@pytest.mark.parametrize("failure", Failure)
@pytest.mark.parametrize("sql", [COUNT, MEDIAN, TWO, SQL])
def test_what_a_look_finds_out_costs_nothing(world: World, engine: Flaky, failure: Failure, sql: str) -> None:
    engine.away = stopped(failure)
    for number in range(50):
        error = refused(world, sql, session=str(number), fresh="on" if number % 2 else "off")
        assert error.detail == NOTHING
    assert entries(world) == []
    assert world.ledger.all_accounts() == ()
    assert world.ledger.history("shop/ann", 99) == ()
    assert engine.run == 0
    engine.away = None
    assert isinstance(begin(world.session(), sql), Spliced | Asking)
    assert entries(world) == ["charged"]


def test_a_look_that_is_cancelled_costs_nothing(world: World, engine: Flaky) -> None:
    engine.away = QueryCanceled("canceling statement due to user request")
    assert refused(world).sqlstate == "57014"
    assert entries(world) == []


def test_a_cancel_that_comes_while_a_look_finds_all_there_costs_nothing(world: World, engine: Flaky) -> None:
    """A look may wait for a lock, and get it after its client has gone."""
    engine.found = Cancellation.request
    assert refused(world).sqlstate == "57014"
    assert entries(world) == []
    assert world.ledger.all_accounts() == ()
    assert engine.run == 0


def test_the_engine_is_looked_at_before_the_charge_and_asked_after_it(
    world: World, engine: Flaky, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = world.ledger.reserve

    def reserve(*arguments: Any, **named: Any) -> object:
        engine.log.append("reserve")
        return original(*arguments, **named)

    monkeypatch.setattr(world.ledger, "reserve", reserve)
    engine.before = lambda _: engine.log.append("run")
    begin(world.session(), MEDIAN)
    assert engine.log == ["look at 2", "reserve", "run", "run", "session over"]
    engine.log.clear()
    begin(world.session(), TWO)
    assert engine.log == ["look at 2", "reserve", "run", "run", "session over"]


def test_a_charge_that_is_refused_lets_the_session_go(world: World, engine: Flaky) -> None:
    assert refused(world, max_charge="0.001").sqlstate == "DP007"
    assert engine.log == ["look at 1", "session over"]


def test_what_the_login_was_shown_is_given_again_while_the_engine_is_away(world: World, engine: Flaky) -> None:
    first = begin(world.session(), COUNT)
    engine.away = stopped(Failure.UNREACHABLE)
    assert isinstance(first, Spliced)
    assert begin(world.session(), COUNT).arrays == first.arrays
    world.dataset.known = type(world.dataset.known)()  # as after a new start of the proxy
    assert "charged nothing" in charge_of(begin(world.session(), COUNT))
    begin(world.session(name="2"), COUNT)
    assert entries(world) == ["charged", "charged"]  # its session is new


def test_whether_others_were_shown_it_is_not_told_by_an_engine_that_is_away(world: World, engine: Flaky) -> None:
    begin(world.session(), COUNT)
    engine.away = stopped(Failure.UNREACHABLE)
    errors = [refused(world, sql, login="boss") for sql in (COUNT, f"{COUNT} where age > 30")]
    assert len({(e.text(), e.sqlstate) for e in errors}) == 1
    assert entries(world) == ["charged"]


# --- during the first statement -----------------------------------------------------------------------------

_ENDS: dict[str, tuple[Callable[[], HushError], bool]] = {
    "cannot connect, server shutting down or starting": (lambda: stopped(Failure.UNREACHABLE, "57P01"), True),
    "connection lost, crash of the server": (lambda: stopped(Failure.LOST, "57P02"), True),
    "client's cancel or disconnect": (lambda: QueryCanceled("canceling statement due to user request"), False),
    "statement_timeout": (TooMuch, False),
    "memory, disk": (lambda: stopped(Failure.LIMITS, "53200"), False),
    "facts changed": (lambda: stopped(Failure.CHANGED), False),
    "any 22xxx, lock or recovery conflict, anything unknown": (lambda: stopped(Failure.OTHER, "22012"), False),
    "an error of our own": (lambda: LedgerFailed("no"), False),
}


@pytest.mark.parametrize("ended", _ENDS)
@pytest.mark.parametrize("sql", [COUNT, MEDIAN])
def test_only_a_lost_way_to_the_engine_is_paid_for_once(world: World, engine: Flaky, ended: str, sql: str) -> None:
    make, is_taken_up = _ENDS[ended]
    engine.fails_at = {1: make()}
    refused(world, sql)
    spent = world.spent("ann")
    assert spent > 0
    found = begin(world.session(), sql)
    if is_taken_up:
        assert entries(world) == ["charged", "ended", "taken up"]
        assert "charged nothing" in charge_of(found)
        assert (world.spent("ann"), world.spent()) == (spent, spent)
    else:
        assert entries(world) == ["charged", "charged"]
        assert world.spent("ann") == world.spent() == 2 * spent
    assert world.ledger.verify().releases == 1
    again = begin(world.session(), sql)
    assert isinstance(found, Spliced)
    assert again.arrays == found.arrays


def test_three_attempts_are_made_for_one_charge(world: World, engine: Flaky) -> None:
    engine.fails_at = {n: stopped(Failure.LOST) for n in (1, 2, 3, 4, 5)}
    details = [refused(world).detail for _ in range(5)]
    assert details == [AGAIN, AGAIN, STAYS, AGAIN, AGAIN]
    begin(world.session(), COUNT)
    assert entries(world) == [
        "charged", "ended", "taken up", "ended", "taken up", "charged", "ended", "taken up", "ended", "taken up",
    ]  # fmt: skip
    assert world.ledger.verify().releases == 1


def test_who_cancels_while_the_way_is_lost_has_cancelled(world: World, engine: Flaky) -> None:
    """So that nobody finds out by cancelling, free, whether a statement would have gone on."""
    engine.fails_at = {1: stopped(Failure.LOST)}
    engine.before = lambda cancellation: cancellation.request()
    assert refused(world).detail == STAYS
    assert entries(world) == ["charged"]


def test_a_client_that_hangs_up_leaves_nothing_to_take_up(world: World, engine: Flaky) -> None:
    begun, may_fail = threading.Event(), threading.Event()

    def wait(_cancellation: Cancellation) -> None:
        begun.set()
        assert may_fail.wait(60)

    engine.before, engine.fails_at = wait, {1: stopped(Failure.LOST)}

    async def hang_up() -> None:
        session = world.session()
        (piece,) = await session.prepare(COUNT, {})
        asking = asyncio.ensure_future(session.release(piece, (), {}))
        await asyncio.to_thread(begun.wait, 60)
        asking.cancel()
        await asyncio.sleep(0.1)
        may_fail.set()
        with pytest.raises((asyncio.CancelledError, HushError)):
            await asking
        await session.close()

    asyncio.run(hang_up())
    assert entries(world) == ["charged"]


# --- after the first noise ----------------------------------------------------------------------------------


def test_after_the_first_noise_a_release_is_closed(world: World, engine: Flaky) -> None:
    """The noisy numbers that were drawn are lost, and with them what was paid; the error may depend on them."""
    engine.fails_at = {2: stopped(Failure.LOST)}
    assert refused(world, MEDIAN).detail == STAYS
    assert entries(world) == ["charged"]
    begin(world.session(), MEDIAN)
    assert entries(world) == ["charged", "charged"]


@pytest.mark.parametrize("where", ["noise", "choice", "store", "end", "front"])
def test_what_fails_behind_the_engine_is_never_drawn_again(
    world: World, engine: Flaky, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    """Even if it calls itself a lost way to the engine."""

    def fails(*_arguments: object, **_named: object) -> Any:
        raise stopped(Failure.LOST)

    places = {
        "noise": "tests.unit.session.running.Slow.take", "choice": "proxy.release.ranks.select",
        "store": "proxy.release.store.SqliteStore.put", "end": "proxy.session.answering.answer.finish_plan",
        "front": "proxy.session.session.block_patches",
    }  # fmt: skip
    with monkeypatch.context() as patch:
        patch.setattr(places[where], fails)
        with pytest.raises(HushError):
            begin(world.session(), MEDIAN)
    assert "ended" not in entries(world)
    begin(world.session(), MEDIAN)
    is_stored = where in ("end", "front")
    assert entries(world) == ["charged"] if is_stored else ["charged", "charged"]


def test_of_several_releases_only_those_without_a_result_are_attempted_again(world: World, engine: Flaky) -> None:
    engine.fails_at = {2: stopped(Failure.LOST)}
    assert refused(world, TWO).detail == AGAIN
    spent = world.spent()
    assert world.ledger.verify().releases == 1
    begin(world.session(), TWO)
    assert (world.spent(), engine.run) == (spent, 3)
    assert entries(world) == ["charged", "ended", "taken up"]


def test_one_that_is_closed_beside_one_that_is_not_is_paid_for_again(world: World, engine: Flaky) -> None:
    both = f"select * from ({MEDIAN}) a, ({COUNT} where age > 30) b"
    engine.fails_at = {2: stopped(Failure.LOST)}
    assert refused(world, both).detail == STAYS
    spent = world.spent()
    begin(world.session(), both)
    assert world.spent() == pytest.approx(1.5 * spent, rel=1e-6)
    assert entries(world) == ["charged", "ended", "charged and taken up"]


# --- the order ----------------------------------------------------------------------------------------------


def test_the_end_is_written_when_the_session_is_over_and_before_the_client_is_told(
    world: World, engine: Flaky, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine.fails_at = {1: stopped(Failure.LOST)}
    original = world.ledger.end

    def end(ending: Ending) -> None:
        engine.log.append("end")
        original(ending)

    monkeypatch.setattr(world.ledger, "end", end)
    refused(world)
    assert engine.log == ["look at 1", "session over", "end"]


def test_an_end_that_cannot_be_written_is_no_end(world: World, engine: Flaky, monkeypatch: pytest.MonkeyPatch) -> None:
    engine.fails_at = {1: stopped(Failure.LOST)}

    def full(_ending: Ending) -> None:
        raise LedgerFailed("no space")

    with monkeypatch.context() as patch:
        patch.setattr(world.ledger, "end", full)
        error = refused(world)
    assert (error.message, error.detail) == (AWAY, STAYS)
    begin(world.session(), COUNT)
    assert entries(world) == ["charged", "charged"]


# --- who pays -----------------------------------------------------------------------------------------------


def test_a_new_session_pays_as_if_it_were_new_and_the_login_does_not(world: World, engine: Flaky) -> None:
    engine.fails_at = {1: stopped(Failure.LOST)}
    refused(world)
    spent = world.spent()
    begin(world.session(name="2"), COUNT)
    assert world.spent_by_sessions() == [pytest.approx(spent * 1e12)] * 2
    assert world.spent() == world.spent("ann") == spent
    assert entries(world) == ["charged", "ended", "charged and taken up"]


def test_another_login_pays_in_full_and_what_it_does_changes_nothing_for_the_first(world: World, engine: Flaky) -> None:
    engine.fails_at = {1: stopped(Failure.LOST), 2: stopped(Failure.OTHER)}
    refused(world)
    spent = world.spent("ann")
    refused(world, login="boss")
    begin(world.session("boss"), COUNT)
    assert world.spent("boss") == 2 * spent
    assert "charged nothing" in charge_of(begin(world.session(), COUNT))
    assert world.spent("ann") == spent
    assert entries(world) == ["charged", "ended", "charged", "charged", "taken up"]


def test_fresh_noise_is_not_paid_for_by_what_any_noise_was(world: World, engine: Flaky) -> None:
    engine.fails_at = {1: stopped(Failure.LOST), 2: stopped(Failure.LOST)}
    refused(world)
    refused(world, fresh="on")
    assert entries(world) == ["charged", "ended", "charged", "ended"]
    begin(world.session(), COUNT)
    begin(world.session(), COUNT, fresh="on")
    assert entries(world)[4:] == ["taken up", "taken up"]


@pytest.mark.parametrize("edit", [{"data_version": "2"}, {"digest": "another"}])
def test_other_data_or_another_policy_is_another_question(world: World, engine: Flaky, edit: dict[str, str]) -> None:
    engine.fails_at = {1: stopped(Failure.LOST)}
    refused(world)
    now = world.dataset.current
    world.dataset.swap(replace(now, policy=replace(now.policy, **edit)))  # type: ignore[arg-type]
    begin(world.session(), COUNT)
    assert entries(world) == ["charged", "ended", "charged"]


@pytest.mark.parametrize("settings", [{"epsilon": 0.5}, {"max_rows_per_group": "1"}])
def test_another_price_or_plan_is_another_question(world: World, engine: Flaky, settings: dict[str, Any]) -> None:
    sql = "select count(*) from orders"
    engine.fails_at = {1: stopped(Failure.LOST)}
    refused(world, sql)
    begin(world.session(), sql, **settings)
    assert entries(world) == ["charged", "ended", "charged"]


def test_what_is_told_beforehand_is_what_is_charged_then(world: World, engine: Flaky) -> None:
    engine.fails_at = {1: stopped(Failure.LOST)}
    before = explained(world, COUNT)
    refused(world)
    after = explained(world, COUNT)
    assert before != after
    assert "0" in str(after)
    begin(world.session(), COUNT, max_charge="0.001")  # what is free is never too dear
    assert entries(world) == ["charged", "ended", "taken up"]


# --- stages -------------------------------------------------------------------------------------------------


def test_all_of_a_statement_in_stages_is_there_when_its_first_one_was_lost(world: World, engine: Flaky) -> None:
    engine.fails_at = {1: stopped(Failure.LOST)}
    assert refused(world, SQL).detail == AGAIN
    spent = world.spent()
    answer(world)
    assert world.spent() == world.spent("ann") == spent
    assert entries(world) == ["charged", "ended", "taken up"]
    assert world.ledger.verify().releases == 2


def test_a_later_stage_is_attempted_again_for_the_same_value(world: World, engine: Flaky) -> None:
    engine.fails_at = {2: stopped(Failure.LOST)}
    session = world.session()
    asking = begin(session)
    with pytest.raises(HushError) as failed:
        go_on(session, asking)
    assert failed.value.detail == AGAIN
    spent = world.spent()
    answer(world, told=OTHER)
    assert world.spent() == pytest.approx(1.5 * spent, rel=1e-6)
    spent = world.spent()
    answer(world, told=TOLD)
    assert (world.spent(), engine.run) == (spent, 4)
    assert entries(world) == ["charged", "ended", "charged", "taken up"]


def test_a_later_stage_before_which_the_engine_goes_away_is_attempted_again(world: World, engine: Flaky) -> None:
    session = world.session()
    asking = begin(session)
    engine.away = stopped(Failure.UNREACHABLE)
    with pytest.raises(HushError) as failed:
        go_on(session, asking)
    assert (failed.value.message, failed.value.detail) == (AWAY, AGAIN)
    engine.away = None
    spent = world.spent()
    answer(world)
    assert world.spent() == spent


def test_stages_that_are_left_when_one_is_lost_are_not_paid_for_again(world: World, engine: Flaky) -> None:
    sql = f"{SQL} and age > (select min(age) from users)"
    engine.fails_at = {2: stopped(Failure.LOST)}
    session = world.session()
    asking = begin(session, sql)
    with pytest.raises(HushError):
        go_on(session, asking)
    spent = world.spent()
    answer(world, sql)
    assert world.spent() == world.spent("ann") == spent


def test_stages_that_are_drawn_anew_each_time_leave_no_tickets(world: World, engine: Flaky) -> None:
    engine.fails_at = {1: stopped(Failure.LOST), 3: stopped(Failure.LOST)}
    refused(world, SQL, fresh="on")
    whole = world.spent()
    session = world.session()
    asking = begin(session, fresh="on")
    assert world.spent() == pytest.approx(1.5 * whole, rel=1e-6)
    assert entries(world) == ["charged", "ended", "charged and taken up"]
    assert isinstance(asking, Asking)
    with pytest.raises(HushError) as failed:
        asyncio.run(
            session.release(replace(asking.piece, told=TOLD), (), {"hush.epsilon": "1", "hush.fresh": "on"})
        )  # fmt: skip
    assert failed.value.detail == STAYS
    assert entries(world) == ["charged", "ended", "charged and taken up"]


# --- what is said -------------------------------------------------------------------------------------------

_WORDS = {
    Failure.UNREACHABLE: ("58000", AWAY),
    Failure.LOST: ("58000", AWAY),
    Failure.CHANGED: ("58000", "the private data have changed since the policy was loaded"),
    Failure.LIMITS: ("57014", "canceling statement due to statement timeout or memory limit"),
    Failure.OTHER: ("58000", "the private engine could not compute this statement"),
}


@pytest.mark.parametrize("failure", Failure)
def test_clients_are_told_apart_what_does_not_depend_on_rows(world: World, engine: Flaky, failure: Failure) -> None:
    engine.fails_at = {1: stopped(failure, "53200")}
    error = refused(world)
    assert (error.sqlstate, error.message) == _WORDS[failure]
    assert "53200" not in error.text()
    assert "Oops" not in error.text()


def test_too_slow_and_out_of_memory_are_one_word(world: World, engine: Flaky) -> None:
    engine.fails_at = {1: stopped(Failure.LIMITS), 2: TooMuch()}
    first, second = refused(world), refused(world)
    assert (first.sqlstate, first.text()) == (second.sqlstate, second.text())
    assert [a.outcome for a in world.ledger.history("shop/ann", 9)] == [Outcome.CANCELLED] * 2


def test_failures_are_logged_and_counted_by_kind(world: World, engine: Flaky, caplog: pytest.LogCaptureFixture) -> None:
    registry = CollectorRegistry()
    metrics = Metrics(registry)
    session = ClientSession(world.dataset, "ann", "1", world.workers, PlanCache(), metrics)
    now = world.dataset.current
    for number, (failure, code) in enumerate(zip(Failure, ("08001", "57P02", "42P01", "53200", ""), strict=True), 1):
        if failure is Failure.OTHER:
            world.dataset.swap(replace(now, policy=replace(now.policy, source=PostgresSource("host=x password=y"))))
        engine.fails_at = {number: stopped(failure, code)}
        with caplog.at_level(logging.WARNING, logger="hushql"), pytest.raises(HushError):
            begin(session, f"{COUNT} where age > {number}")
    assert caplog.messages == [
        "shop: private DuckDB failed: unreachable, SQLSTATE 08001 (Oops)",
        "shop: private DuckDB failed: lost, SQLSTATE 57P02 (Oops)",
        "shop: private DuckDB failed: changed, SQLSTATE 42P01 (Oops)",
        "shop: private DuckDB failed: limits, SQLSTATE 53200 (Oops)",
        "shop: private PostgreSQL failed: other, SQLSTATE none (Oops)",
    ]
    told = generate_latest(registry).decode()
    for failure in Failure:
        assert f'hushql_engine_failures_total{{kind="{failure.value}"}} 1.0' in told


# --- profiles -----------------------------------------------------------------------------------------------


def test_what_units_are_counted_for_is_looked_for_and_paid_for_in_the_same_way(world: World, engine: Flaky) -> None:
    version, noise = world.dataset.current, world.dataset.noise[Distribution.GAUSSIAN]
    wishes = [Wish(version.policy.tables["orders"], ("amount",))]

    def counted() -> object:
        return profile(version, world.ledger, noise, wishes, 1.0)

    engine.away = stopped(Failure.UNREACHABLE)
    with pytest.raises(HushError, match=AWAY):
        counted()
    assert entries(world) == []
    engine.away, engine.fails_at = None, {1: stopped(Failure.LOST)}
    with pytest.raises(HushError, match=AWAY):
        counted()
    spent = world.spent()
    counted()
    assert world.spent() == spent
    assert entries(world) == ["charged", "ended", "taken up"]
    engine.away = stopped(Failure.UNREACHABLE)
    counted()  # all of it is stored
