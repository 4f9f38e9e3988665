"""A statement in stages: what is reserved when, what a repeat costs, and what EXPLAIN says of it."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from types import MappingProxyType

import pytest

from proxy.errors import AuthenticationFailed, BudgetSpent, EngineFailed, LedgerFailed, PolicyForbids
from proxy.ledger.base import Outcome
from proxy.ledger.chain import Entry, Keyed
from proxy.policy.model import EpsilonLimit, Guest, NoLimit
from proxy.session.asking.stages import Progress
from proxy.session.contract import Asking, Spliced
from tests.unit.session.make import version
from tests.unit.session.staged import (
    GROUPED,
    OTHER,
    SQL,
    TOLD,
    WHOLE,
    World,
    answer,
    begin,
    explained,
    go_on,
)
from tests.unit.sql.corpus import policy


def test_all_is_reserved_before_the_first_stage_and_the_second_reads_the_value(world: World) -> None:
    session = world.session()
    asking = begin(session)
    assert isinstance(asking, Asking)
    assert len(world.engine.asked) == 1
    assert "count(*)" not in asking.sql
    assert "pg_typeof" in asking.sql
    assert len(asking.arrays) == 1
    assert world.spent() == world.spent("ann") == pytest.approx(WHOLE, rel=1e-3)
    assert world.ledger.history("shop/ann", 10)[0].outcome is Outcome.FAILED, "a statement without its last stage"
    spliced = go_on(session, asking)
    assert isinstance(spliced, Spliced)
    assert "41.5" not in world.engine.asked[0]
    assert "41.5" in world.engine.asked[1]
    assert "41.5" not in spliced.literal_sql, "what stands below the line is not for the front"
    assert world.spent() == pytest.approx(WHOLE, rel=1e-3)
    assert world.ledger.verify().releases == 2
    (asked,) = world.ledger.history("shop/ann", 10)
    assert (asked.outcome, asked.query) == (Outcome.ANSWERED, SQL)
    assert "charged epsilon 1" in spliced.notices[0].message


def test_a_repeat_is_free_as_long_as_the_value_is_the_same(world: World) -> None:
    answer(world)
    before = world.spent()
    again = answer(world)
    assert len(world.engine.asked) == 2
    assert "charged nothing" in again.notices[0].message
    assert world.spent() == before
    assert [a.reused for a in world.ledger.history("shop/ann", 10)] == [True, False]
    answer(world, told=OTHER)
    assert "42.5" in world.engine.asked[2]
    assert world.spent() == pytest.approx(before * 1.5, rel=1e-6), "the first stage was paid for"


def test_another_login_pays_the_same_and_is_shown_the_same(world: World) -> None:
    """The dataset pays for the ticket of the last stage again: before its value is known nobody can say what it is."""
    first = answer(world, GROUPED)
    before = world.spent()
    again = answer(world, GROUPED, login="boss")
    assert len(world.engine.asked) == 2
    assert again.arrays == first.arrays
    assert world.spent() == pytest.approx(1.5 * before, rel=1e-6)
    own = [t.spent for t in world.ledger.all_accounts() if t.kind.value == "user"]
    assert own[0] == own[1]
    assert own[0].atto > 0
    spent = world.spent()
    answer(world, GROUPED, login="boss", session="2")
    assert world.spent() == spent, "a session of whom has seen all"


def test_by_which_rule_a_later_stage_shows_private_keys_is_kept_with_its_charge(world: World) -> None:
    answer(world, GROUPED)
    charged, keyed = world.ledger.entries()
    assert isinstance(charged, Entry)
    assert isinstance(keyed, Keyed)
    (later,) = (r for r in charged.releases if r.cost.atto)
    assert (keyed.release_id, later.keys) == (later.release_id, ())
    (rule,) = keyed.keys
    assert rule.tau > rule.sigma_n > 0
    answer(world, GROUPED, login="boss", session="2")
    repeated = [r for e in world.ledger.entries(2) if isinstance(e, Entry) for r in e.releases if r.keys]
    assert repeated == [], "the ticket of another asker has its own entry"
    assert [e.keys for e in world.ledger.entries(2) if isinstance(e, Keyed)] == [(rule,)]


def test_the_most_frequent_of_unlisted_values_is_paid_for_with_its_delta_in_a_later_stage(world: World) -> None:
    answer(world, "select mode() within group (order by city) from users where age > (select avg(age) from users)")
    charged, keyed = world.ledger.entries()
    assert isinstance(charged, Entry)
    assert isinstance(keyed, Keyed)
    assert [bool(r.cost.atto) for r in charged.releases].count(True) >= 1


def test_a_stage_that_others_have_paid_for_is_charged_as_if_they_had_not(world: World) -> None:
    """Two blocks turn out to be one, so that a ticket is left over: it is paid for either way."""
    sql = f"select ({SQL}), ({SQL.replace('count(*)', 'count( 1 )')} and true)"
    answer(world, sql, login="ann")
    answer(world, sql, login="boss", told=TOLD)
    own = [t.spent for t in world.ledger.all_accounts() if t.kind.value == "user"]
    assert own[0] == own[1]
    assert own[0].pico == pytest.approx(WHOLE * 1e12, rel=1e-3)
    answer(world, sql, login="ann", session="2")
    sessions = world.spent_by_sessions()
    assert len(sessions) == 3
    assert len(set(sessions)) == 1, "a new session pays for the ticket that is left with the last stage"


def test_fresh_noise_is_paid_for_again_in_every_stage(world: World) -> None:
    answer(world)
    session = world.session()
    asking = begin(session, fresh="on")
    assert world.spent() == pytest.approx(2 * WHOLE, rel=1e-3)
    asyncio.run(session.release(replace(asking.piece, told=TOLD), (), {"hush.epsilon": "1", "hush.fresh": "on"}))  # type: ignore[union-attr]  # it asks
    assert len(world.engine.asked) == 4


def test_what_cannot_be_paid_for_as_a_whole_is_not_begun(world: World) -> None:
    answer(world, "select count(*) from orders", login="boss", epsilon=4)
    spent = world.spent("boss")
    with pytest.raises(BudgetSpent, match="user"):
        begin(world.session("boss"), epsilon=3)
    assert len(world.engine.asked) == 1
    answer(world, epsilon=3)
    with pytest.raises(BudgetSpent, match="user"):
        begin(world.session("boss"), epsilon=3)
    assert world.spent("boss") == spent, "the first stage was at hand, and could have been paid for alone"


def test_a_session_that_cannot_pay_for_all_does_not_pay_for_a_stage_that_is_at_hand(world: World) -> None:
    budgets = replace(policy().budgets, session=EpsilonLimit(1.05))
    world.dataset.current = replace(version(replace(policy(), budgets=budgets)), engine=world.engine)
    answer(world)
    answer(world, "select count(*) from orders", epsilon=0.5, session="2")
    spent = world.spent_by_sessions()
    with pytest.raises(BudgetSpent, match="session") as refused:
        begin(world.session("ann", "2"))
    assert "Nothing was charged" in refused.value.detail
    assert world.spent_by_sessions() == spent, "what is left would pay for the first stage alone"


def test_a_dataset_that_is_spent_refuses_the_first_stage_whoever_has_asked_for_it(world: World) -> None:
    budgets = policy().budgets
    few = replace(policy(), budgets=replace(budgets, dataset=EpsilonLimit(1.05)))
    world.dataset.current = replace(version(few), engine=world.engine)
    answer(world)
    with pytest.raises(BudgetSpent, match="dataset") as spent:
        begin(world.session("boss"), SQL.replace(">", "<"))
    assert world.spent("boss") == 0
    assert "Nothing was charged" in spent.value.detail
    begun = begin(world.session("ann", "2"), SQL.replace(">", "<"))
    with pytest.raises(BudgetSpent, match="dataset") as midway:
        go_on(world.session("ann", "2"), begun)
    assert "stays charged" in midway.value.detail, "a new session of hers has paid for the stage that she knew"
    assert world.spent("ann") == world.spent()


def test_a_stage_that_fails_keeps_the_charge_of_all(world: World) -> None:
    session = world.session()
    asking = begin(session)
    world.engine.fails = True
    with pytest.raises(EngineFailed):
        go_on(session, asking)
    assert world.spent() == pytest.approx(WHOLE, rel=1e-3)
    (asked,) = world.ledger.history("shop/ann", 10)
    assert asked.outcome is Outcome.FAILED
    world.engine.fails = False
    answer(world)
    assert world.spent() == pytest.approx(1.5 * WHOLE, rel=1e-3), "the first stage is at hand"


def test_now_is_the_same_in_all_stages(world: World) -> None:
    recent = "(select avg(age) from users where joined > now() - interval '1 day')"
    answer(world, f"select count(*), {recent} from users where age > {recent}")
    assert len(world.engine.asked) == 2, "what is asked twice is released once"


def test_nested_and_several_stages_share_one_charge(world: World) -> None:
    sql = ("select count(*) from users where age > (select avg(age) from users where age < (select avg(age)"
           " from users)) and age < 2 * (select avg(age) from users)")  # fmt: skip
    answer(world, sql)
    assert len(world.engine.asked) == 3, "what is asked twice is released once"
    assert world.spent() == pytest.approx(WHOLE, rel=1e-3)


def test_a_cte_of_a_stage_is_released_once(world: World) -> None:
    sql = ("with m as (select avg(age) as a, count(*) as n from users)"
           " select count(*), (select n from m) from users where age > (select a from m)")  # fmt: skip
    answer(world, sql)
    assert len(world.engine.asked) == 2
    answer(world, sql)
    assert world.spent() == pytest.approx(WHOLE, rel=1e-3)


def test_a_stage_that_costs_more_than_its_ticket_is_not_computed(world: World) -> None:
    session = world.session()
    asking = begin(session)
    assert isinstance(asking, Asking)
    progress = asking.piece.handle
    assert isinstance(progress, Progress)
    dear = replace(progress, share=10 * progress.share)
    with pytest.raises(LedgerFailed, match="costs more than was reserved"):
        go_on(session, replace(asking, piece=replace(asking.piece, handle=dear)))
    assert len(world.engine.asked) == 1


def test_a_policy_that_changes_between_stages_ends_the_statement(world: World) -> None:
    session = world.session()
    asking = begin(session)
    world.dataset.swap(replace(version(), engine=world.engine))
    with pytest.raises(PolicyForbids, match="policy has changed"):
        go_on(session, asking)


def test_guests_who_come_and_go_end_no_statement_of_others(world: World) -> None:
    """Nobody makes others pay for nothing by logging in again and again."""
    session = world.session()
    for name in ("gil", "hal"):
        asking = begin(session)
        guest = Guest(name=name, role="analyst", budget=NoLimit(), groups=frozenset())
        world.dataset.admit(MappingProxyType({name: guest}))
        assert isinstance(go_on(session, asking), Spliced)


def test_a_guest_whose_role_changes_between_stages_asks_again(world: World) -> None:
    guest = Guest(name="gil", role="analyst", budget=NoLimit(), groups=frozenset())
    world.dataset.admit(MappingProxyType({"gil": guest}))
    session = world.session("gil")
    asking = begin(session)
    world.dataset.admit(MappingProxyType({"gil": replace(guest, role="clerk")}))
    with pytest.raises(PolicyForbids, match="policy has changed"):
        go_on(session, asking)
    world.dataset.admit(MappingProxyType({}))
    with pytest.raises(AuthenticationFailed):
        go_on(session, asking)


# --- EXPLAIN ------------------------------------------------------------------------------------------------


def test_explain_runs_no_stage_and_tells_the_whole_charge(world: World) -> None:
    two = f"{GROUPED} having count(*) > 1 and bool_and(newsletter = (select count(*) > 5 from orders))"
    data = explained(world, two)
    assert len(data["releases"]) == 2
    assert len(data["later"]) == 1
    assert data["charge_epsilon"] == pytest.approx(1, rel=1e-3)
    assert not world.engine.asked
    assert not world.spent()


def test_explain_of_what_was_paid_for_goes_on_to_the_last_stage(world: World) -> None:
    answer(world)
    data = explained(world, SQL, TOLD)
    assert [r["reused"] for r in data["releases"]] == [True, True]
    assert not data["later"]
    assert not data["charge_epsilon"]
    assert len(world.engine.asked) == 2
    text = begin(world.session(), f"explain {GROUPED}")
    assert isinstance(text, Asking), "its first stage is the same"
    first_only = explained(world, "select count(*) from users where age < (select avg(kids) from users)")
    assert len(first_only["later"]) == 1
