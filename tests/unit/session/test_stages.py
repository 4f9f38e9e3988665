"""A statement in stages: what is reserved when, what the later ones read, and what a repeat costs."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry

from proxy.dp.mechanisms import Distribution
from proxy.engines.base import Cancellation
from proxy.errors import BudgetSpent, EngineFailed, HushError, LedgerFailed, PolicyForbids, Unsupported
from proxy.ledger.base import Outcome
from proxy.ledger.sqlite import SqliteLedger
from proxy.metrics import Metrics
from proxy.plan.charge import Reserved
from proxy.policy.model import EpsilonLimit
from proxy.session.contract import Asking, Row, Spliced
from proxy.session.dataset import Dataset
from proxy.session.plancache import PlanCache
from proxy.session.session import ClientSession, Workers
from proxy.session.stages import Progress
from tests.unit.session.make import version
from tests.unit.session.running import NoRows, Slow
from tests.unit.sql.corpus import policy

SQL = "select count(*) from users where score > (select avg(age) from users)"
GROUPED = "select city, count(*) from users where age > (select avg(age) from users) group by city"
Told = tuple[Row, ...]
TOLD: Told = (("true", "numeric", "41.5"),)
OTHER: Told = (("true", "numeric", "42.5"),)


@dataclass(slots=True)
class Watched(NoRows):
    """An engine over empty tables that remembers what it was asked, and may fail."""

    asked: list[str] = field(default_factory=list)
    fails: bool = False

    @contextmanager
    def stages(self, reserved: Reserved, *, timeout_s: float, cancellation: Cancellation) -> Iterator[NoRows]:
        self.asked.append(reserved.sql)
        if self.fails:
            raise EngineFailed("lost")
        yield self


@dataclass(slots=True)
class World:
    """A dataset, and sessions of its logins that are asked one statement each."""

    dataset: Dataset
    ledger: SqliteLedger
    workers: Workers
    engine: Watched

    def session(self, login: str = "ann", name: str = "1") -> ClientSession:
        return ClientSession(self.dataset, login, name, self.workers, PlanCache(), Metrics(CollectorRegistry()))

    def spent(self, login: str = "") -> float:
        """The rho of the dataset's account, or of a login's."""
        wanted = ("user", f"shop/{login}") if login else ("dataset", "shop")
        return sum(t.spent.pico for t in self.ledger.all_accounts() if (t.kind.value, t.name) == wanted) / 1e12

    def spent_by_sessions(self) -> list[int]:
        return [t.spent.pico for t in self.ledger.all_accounts() if t.kind.value == "session"]


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    noise, engine = Slow(), Watched()
    noise.may_go_on.set()
    workers = Workers(thinking=ThreadPoolExecutor(1), waiting=ThreadPoolExecutor(1))
    with closing(SqliteLedger(tmp_path / "state")) as ledger, workers.thinking, workers.waiting:
        served = Dataset(
            ledger=ledger, noise=dict.fromkeys(Distribution, noise), current=replace(version(), engine=engine)
        )
        yield World(served, ledger, workers, engine)


def begin(session: ClientSession, sql: str = SQL, epsilon: float = 1, **settings: str) -> Asking | Spliced:
    values = {"hush.epsilon": str(epsilon), **{f"hush.{n}": v for n, v in settings.items()}}

    async def released() -> Asking | Spliced:
        (piece,) = await session.prepare(sql, values)
        return await session.release(piece, (), (), values)

    return asyncio.run(released())


def go_on(session: ClientSession, asking: Asking | Spliced, told: Told = TOLD, epsilon: float = 1) -> Asking | Spliced:
    assert isinstance(asking, Asking)
    return asyncio.run(session.release(replace(asking.piece, told=told), (), (), {"hush.epsilon": str(epsilon)}))


def answer(
    world: World, sql: str = SQL, told: Told = TOLD, login: str = "ann", epsilon: float = 1, session: str = "1"
) -> Spliced:
    return answered(world.session(login, session), sql, told, epsilon)


def answered(session: ClientSession, sql: str, told: Told, epsilon: float) -> Spliced:
    found = begin(session, sql, epsilon)
    while isinstance(found, Asking):
        found = go_on(session, found, told, epsilon)
    return found


def whole(epsilon: float = 1) -> float:
    return {1.0: 0.02294}[epsilon]


# --- charges ----------------------------------------------------------------------------------------------


def test_all_is_reserved_before_the_first_stage_and_the_second_reads_the_value(world: World) -> None:
    session = world.session()
    asking = begin(session)
    assert isinstance(asking, Asking)
    assert len(world.engine.asked) == 1
    assert "count(*)" not in asking.sql
    assert "pg_typeof" in asking.sql
    assert len(asking.arrays) == 1
    assert world.spent() == world.spent("ann") == pytest.approx(whole(), rel=1e-3)
    assert world.ledger.history("shop/ann", 10)[0].outcome is Outcome.FAILED, "a statement without its last stage"
    spliced = go_on(session, asking)
    assert isinstance(spliced, Spliced)
    assert "41.5" not in world.engine.asked[0]
    assert "41.5" in world.engine.asked[1]
    assert "41.5" not in spliced.literal_sql, "what stands below the line is not for the front"
    assert world.spent() == pytest.approx(whole(), rel=1e-3)
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


def test_a_stage_that_others_have_paid_for_is_charged_as_if_they_had_not(world: World) -> None:
    """Two blocks turn out to be one, so that a ticket is left over: it is paid for either way."""
    sql = f"select ({SQL}), ({SQL.replace('count(*)', 'count( 1 )')} and true)"
    answer(world, sql, login="ann")
    answer(world, sql, login="boss", told=TOLD)
    own = [t.spent for t in world.ledger.all_accounts() if t.kind.value == "user"]
    assert own[0] == own[1]
    assert own[0].pico == pytest.approx(whole() * 1e12, rel=1e-3)


def test_fresh_noise_is_paid_for_again_in_every_stage(world: World) -> None:
    answer(world)
    session = world.session()
    asking = begin(session, fresh="on")
    assert world.spent() == pytest.approx(2 * whole(), rel=1e-3)
    asyncio.run(session.release(replace(asking.piece, told=TOLD), (), (), {"hush.epsilon": "1", "hush.fresh": "on"}))  # type: ignore[union-attr]  # it asks
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
    assert world.spent() == pytest.approx(whole(), rel=1e-3)
    (asked,) = world.ledger.history("shop/ann", 10)
    assert asked.outcome is Outcome.FAILED
    world.engine.fails = False
    answer(world)
    assert world.spent() == pytest.approx(1.5 * whole(), rel=1e-3), "the first stage is at hand"


def test_now_is_the_same_in_all_stages(world: World) -> None:
    recent = "(select avg(age) from users where joined > now() - interval '1 day')"
    answer(world, f"select count(*), {recent} from users where age > {recent}")
    assert len(world.engine.asked) == 2, "what is asked twice is released once"


def test_nested_and_several_stages_share_one_charge(world: World) -> None:
    sql = ("select count(*) from users where age > (select avg(age) from users where age < (select avg(age)"
           " from users)) and age < 2 * (select avg(age) from users)")  # fmt: skip
    answer(world, sql)
    assert len(world.engine.asked) == 3, "what is asked twice is released once"
    assert world.spent() == pytest.approx(whole(), rel=1e-3)


def test_a_cte_of_a_stage_is_released_once(world: World) -> None:
    sql = ("with m as (select avg(age) as a, count(*) as n from users)"
           " select count(*), (select n from m) from users where age > (select a from m)")  # fmt: skip
    answer(world, sql)
    assert len(world.engine.asked) == 2
    answer(world, sql)
    assert world.spent() == pytest.approx(whole(), rel=1e-3)


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


# --- values -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("told", "message"),
    [
        ((("true", "numeric", "NaN"),), "'NaN' is not understood"),
        ((("true", "bigint[]", "{1}"),), "a value of type bigint"),
        ((("true", "interval", "1 day"),), "a value of type interval"),
        ((("true", "text", "x"),), "cannot combine double precision and text"),
    ],
)
def test_values_that_private_rows_cannot_be_compared_with(world: World, told: Told, message: str) -> None:
    session = world.session()
    with pytest.raises(Unsupported, match=message) as refused:
        go_on(session, begin(session), told)
    assert SQL[refused.value.position - 1 :].startswith(("(select avg", "score >"))


def test_too_many_values_are_refused(world: World) -> None:
    sql = "select count(*) from users where city in (select city from users group by city)"
    session = world.session()
    with pytest.raises(Unsupported, match="more than 1000 rows"):
        go_on(session, begin(session, sql), tuple(("true", "text", f"c{n}") for n in range(1001)))


def test_what_is_wrong_in_a_stage_is_said_of_its_place(world: World) -> None:
    sql = "select count(*) from users where age > (with w as (select age from users) select avg(age & 3) from w)"
    with pytest.raises(HushError) as refused:
        begin(world.session(), sql)
    assert sql[refused.value.position - 1 :].startswith("age & 3")
    assert not world.engine.asked
    late = "select count(*) from users where age > (select avg(age) from users) and age & 3 = 1"
    with pytest.raises(HushError) as refused:
        begin(world.session(), late)
    assert late[refused.value.position - 1 :].startswith("age & 3")
    assert not world.engine.asked, "what can never be answered costs nothing"
    whole_number = "select count(*) from users where left(city, (select count(*)::integer from orders)) = 'x'"
    assert isinstance(begin(world.session(), whole_number), Asking)
    mixed = ("select sum(kids - (select avg(age) from users)) from users where joined > (select max(joined) from users)"
             " and left(city, (select count(*)::integer from orders)) = 'x'")  # fmt: skip
    assert isinstance(begin(world.session(), mixed), Asking), "no one value would do for all"
    nested = ("with m as (select avg(age) as a from users where age > (select avg(kids) from users))"
              " select count(*) from users where age > (select a from m)")  # fmt: skip
    assert len(explained(world, nested)["later"]) == 2


def test_a_released_relation_is_joined(world: World) -> None:
    sql = ("with top as (select plan, avg(age) as a from users group by plan order by 2 limit 2)"
           " select u.plan, sum(u.age - a) from users u join top t using (plan) group by u.plan")  # fmt: skip
    rows: Told = (("true", "text", "free", "numeric", "41.5"), ("true", "text", "pro", "numeric", "42.5"))
    answer(world, sql, rows)
    assert len(world.engine.asked) == 2, "the relation and what is joined with it; its CTE is the first again"
    assert "41.5" in world.engine.asked[1]
    none: Told = ((None, "text", None, "numeric", None),)
    session = world.session()
    with pytest.raises(Unsupported, match="has no rows"):
        go_on(session, begin(session, sql), none)


@pytest.mark.parametrize(
    "sql",
    [
        f"{SQL} and age < (select max(age) from users) and kids < (select avg(kids) from users) and kids & 3 > 1",
        f"{SQL} and age > (select avg(kids) from users where kids & 3 > 1)",
        f"{SQL} and age > (select avg(kids) from users where kids > (select avg(age) from users) and kids & 3 > 1)",
        f"""{SQL} and age < (select avg(age) / 2 from users) and kids < 2 * (select -(count(*) + 1) from users)
        and kids & 3 < (select avg(kids) - 1 from users)""",
        "select count(*) from users where city > (select avg(age) from users) and age > (select max(age) from users)",
        """with m as (select plan, avg(age) as a from users group by plan)
        select sum(u.age & 3) from users u join m using (plan) where age > (select avg(age) - 1 from users)""",
    ],
)
def test_what_no_value_of_any_stage_would_help_is_refused_before_it_is_charged(world: World, sql: str) -> None:
    with pytest.raises(Unsupported, match=r"operator &|cannot combine text and numeric") as refused:
        begin(world.session(), sql)
    assert sql[refused.value.position - 1 :].startswith(("kids & 3", "u.age & 3", "city >"))
    assert not world.engine.asked
    assert not world.spent()


def test_values_of_unlike_types_are_found(world: World) -> None:
    sql = ("select count(*) from users where joined > (select max(joined) from users) and left(city, (select"
           " (3 + count(*))::integer from orders)) = (select 'a' || count(*) from users)"
           " and age > (select avg(age) from users) and exists (select plan from users group by plan)")  # fmt: skip
    assert isinstance(begin(world.session(), sql), Asking)


def test_one_stage_in_two_spellings_has_one_value(world: World) -> None:
    inner = "select count(*) from users where age > (select avg(age) * random() from users)"
    answer(world, f"select ({inner}), ({inner.replace('select avg', 'select  /* 2 */ avg')})")
    assert len(world.engine.asked) == 2
    answer(world, "select (select count(*) from users where plan = 'city'), (select count(*) from users where plan ="
                  " city and age > (select avg(age) from users))")  # fmt: skip
    assert world.spent() == pytest.approx(whole() * 2, rel=1e-3)


# --- EXPLAIN ------------------------------------------------------------------------------------------------


def explained(world: World, sql: str, *told: Told) -> Mapping[str, list[Mapping[str, object]]]:
    session = world.session()
    found = begin(session, f"explain (format json) {sql}")
    for rows in told:
        found = go_on(session, found, rows)
    assert isinstance(found, Spliced)
    text = found.arrays[0].text
    ((data,),) = (json.loads(text[2:-2].replace('\\"', '"').replace("\\\\", "\\")),)
    assert isinstance(data, dict)
    return data


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


# --- sub-queries over public tables ---------------------------------------------------------------------------

NUMBERS = "with m as (select avg(age) as a, count(*) as n from users)"
LAST = "select max(store_id) from stores"
FOUR: Told = (("true", "integer", "4"),)


def test_what_is_asked_of_public_tables_costs_nothing(world: World) -> None:
    session, sql = world.session(), f"select count(*) from users where age > ({LAST})"
    asking = begin(session, sql, target_error="5")
    assert isinstance(asking, Asking)
    assert LAST in asking.sql
    assert (world.engine.asked, world.ledger.all_accounts()) == ([], ())
    assert isinstance(go_on(session, asking, FOUR), Spliced)
    (asked,) = world.engine.asked
    assert "4" in asked
    assert LAST not in asked
    assert world.spent() == pytest.approx(whole(), rel=1e-3)
    answer(world, sql, FOUR)
    assert world.spent() == pytest.approx(whole(), rel=1e-3), "a repeat is free"


@pytest.mark.parametrize(
    "sql",
    [
        f"select count(*) from users where age > (select avg(age) from users where kids < ({LAST}))",
        f"select count(*) from users where age > (select avg(age) from users) and kids < ({LAST})",
        f"{NUMBERS} select count(*), (select n from m) from users where age > (select a from m where a > ({LAST}))",
    ],
)
def test_beside_stages_they_leave_the_charge_in_one(world: World, sql: str) -> None:
    session, asking = world.session(), begin(world.session(), sql)
    while isinstance(asking, Asking):
        assert len(world.engine.asked) == 0 or world.spent() == pytest.approx(whole(), rel=1e-3)
        asking = go_on(session, asking, FOUR if LAST in asking.sql and "avg" not in asking.sql else TOLD)
    assert len(world.engine.asked) == 2
    assert world.spent() == pytest.approx(whole(), rel=1e-3)
    assert world.ledger.history("shop/ann", 10)[0].outcome is Outcome.ANSWERED


@pytest.mark.parametrize("value", [LAST, "select 'a' || max(region) from stores"])
def test_estimates_suppose_a_value_for_them(world: World, value: str) -> None:
    column = "plan" if "region" in value else "age"
    sql = f"select count(*) from users where {column} > ({value})"
    estimated = begin(world.session(), f"select * from hush.estimate($$ {sql}; select 1 from users where age $$)")
    assert isinstance(estimated, Spliced)
    assert estimated.arrays[2].text.startswith('{"0.0229')
    answer(world, sql, FOUR if column == "age" else (("true", "text", "anorth"),))
    assert world.spent() == pytest.approx(whole(), rel=1e-3)


def test_estimates_say_what_no_value_can_answer(world: World) -> None:
    wrong = f"select count(*) from users where nobody > ({LAST})"
    estimated = begin(world.session(), f"select * from hush.estimate($$ {wrong} $$)")
    assert isinstance(estimated, Spliced)
    assert "nobody" in estimated.arrays[-1].text


def test_explain_asks_for_them_and_plans_the_rest(world: World) -> None:
    found = explained(world, f"select count(*) from users where age > ({LAST})", FOUR)
    assert len(found["releases"]) == 1
    assert not found["later"]
    assert world.ledger.all_accounts() == ()
