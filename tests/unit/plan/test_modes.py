"""Are modes looked for among public values alone, over rows within every unit's bounds, at the part's share?"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace
from datetime import date
from statistics import NormalDist
from types import MappingProxyType

import duckdb
import pytest

from proxy.analysis.keys import NULL_KEY
from proxy.dp.quantiles import ROW_WEIGHT
from proxy.errors import HushError, MissingBounds, PolicyForbids
from proxy.plan.parts.modes import ModePart
from proxy.plan.release_plan import PlanContext, ReleasePlan, Threshold
from proxy.plan.reuse.derive import derive
from proxy.plan.words.describe import describe_draw
from proxy.plan.words.explain import explain_block
from proxy.plan.words.explain_lines import explain_lines
from proxy.plan.words.outputs import output_noise
from proxy.policy.model import Neighbors, WrittenBound
from proxy.sql.algebra.nodes import columns_of
from tests.unit.plan.shop import TABLES, context, plan
from tests.unit.plan.survey import of_survey
from tests.unit.plan.test_quantiles import ORDERS, USERS
from tests.unit.release.make import planned_over

AGE = "select mode() within group (order by age) from users"
CITY = "mode() within group (order by city)"
STATUS = "select mode() within group (order by status) from orders"


def part(of: ReleasePlan) -> ModePart:
    (found,) = of.parts
    assert isinstance(found, ModePart)
    return found


def plan_survey(query: str) -> ReleasePlan:
    return planned_over(query, of_survey())[0]


def users(column: str, values: Iterable[object], query: str) -> list[tuple[object, ...]]:
    """The weights of the values of one column of users."""
    connection = duckdb.connect()
    connection.execute(USERS)
    for number, value in enumerate(values):
        connection.execute(f"insert into users (user_id, {column}) values (?, ?)", [number, value])
    return sorted(connection.execute(part(plan(query)).sql).fetchall())


def orders(rows: Iterable[tuple[int, str | None]], query: str, of: PlanContext | None = None) -> dict[object, int]:
    """Weights by key and value of orders: unit, status."""
    connection = duckdb.connect()
    connection.execute(ORDERS)
    for unit, status in rows:
        connection.execute("insert into orders (user_id, amount, status) values (?, 5, ?)", [unit, status])
    found = connection.execute(part(plan(query, of)).sql).fetchall()
    return {tuple(key): weight for *key, weight in found}


# --- candidates -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("of", "candidates"),
    [
        ("plan", ("free", "pro")),
        ("age", tuple(range(111))),
        ("age > 30", (False, True)),
        ("age / 50", (0, 1, 2)),
        ("extract(year from joined)", (2019, 2020)),
        ("case when age > 9 then 'old' else 'new' end", ("old", "new")),
        ("date_trunc('year', joined)::date", (date(2019, 1, 1), date(2020, 1, 1))),
    ],
)
def test_candidates_are_public_values(of: str, candidates: tuple[object, ...]) -> None:
    found = part(plan(f"select mode() within group (order by {of}) from users"))
    assert set(found.candidates) == set(candidates)
    assert found.poll.candidates == len(found.candidates)


def test_conditions_name_candidates() -> None:
    of = "select mode() within group (order by {}) from users where {}"
    assert part(plan(of.format("city", "city in ('a', 'b')"))).candidates == ("a", "b")
    assert part(plan(of.format("age", "age between 5 and 6"))).candidates == (5, 6)
    filtered = "select mode() within group (order by city) filter (where city in ('a', 'c')) from users"
    assert part(plan(filtered)).candidates == ("a", "c")
    assert part(plan("select mode() within group (order by null) from users")).candidates == (NULL_KEY,)


def test_values_that_nobody_listed_are_not_counted() -> None:
    found = users(
        "plan", ["free", "free", "pro", "gold", None], "select mode() within group (order by plan) from users"
    )
    assert found == [("free", 2 * ROW_WEIGHT), ("pro", ROW_WEIGHT)]
    ages = users("age", [-1, 0, 7, 7, 111, None], AGE)
    assert ages == [(0, ROW_WEIGHT), (7, 2 * ROW_WEIGHT)], "values out of bounds are not moved to them"


def test_conditions_and_filters_choose_rows() -> None:
    query = "select mode() within group (order by age / 10) filter (where age > 15) from users where age < 40"
    assert users("age", [10, 20, 25, 30, 40, None], query) == [(2, 2 * ROW_WEIGHT), (3, ROW_WEIGHT)]


# --- bounds -----------------------------------------------------------------------------------------------------


def test_a_unit_above_the_bound_of_a_group_weighs_as_much_as_the_bound() -> None:
    rows = [(1, "paid")] * 90 + [(1, "refunded")] * 30 + [(2, "refunded")]
    found = orders(rows, STATUS)
    assert found["paid",] == pytest.approx(45 * ROW_WEIGHT, abs=1)
    assert found["paid",] <= 45 * ROW_WEIGHT
    assert found["refunded",] == pytest.approx(16 * ROW_WEIGHT, abs=1)


def test_rows_without_a_value_do_not_make_others_weigh_less() -> None:
    assert orders([(1, "paid")] * 60 + [(1, None)] * 60, STATUS) == {("paid",): 60 * ROW_WEIGHT}


@pytest.mark.parametrize("pure", [False, True])
def test_a_unit_in_many_groups_weighs_no_more_than_all_its_groups_may(pure: bool) -> None:
    few = replace(TABLES["orders"], groups_per_unit=WrittenBound(2), rows_per_group=WrittenBound(4),
                  rows_per_unit=WrittenBound(60))  # fmt: skip
    of = replace(context(pure=pure), tables=MappingProxyType({**TABLES, "orders": few}))
    query = "select status, mode() within group (order by amount > 1) from orders group by status"
    rows = [(1, status) for status in ("paid", "refunded", None) for _ in range(4)]
    shares = [w / (4 * ROW_WEIGHT) for w in orders(rows, query, of).values()]
    assert len(shares) == 3
    assert 1.99 < sum(s if pure else s * s for s in shares) <= 2
    assert part(plan(query, of)).poll.groups == 2


@pytest.mark.parametrize(
    ("of", "move", "is_monotone"),
    [
        (context(), 10, True),
        (context(group_size=3), 30, True),
        (context(neighbors=Neighbors.REPLACE_ONE), 10, False),
        (context(neighbors=Neighbors.REPLACE_ONE, group_size=2, pure=True), 20, False),
    ],
)
def test_modes_move_by_the_rows_that_units_bring_and_both_ways_if_one_is_replaced(
    of: PlanContext, move: int, is_monotone: bool
) -> None:
    poll = part(plan("select status, mode() within group (order by amount > 1) from orders group by 1", of)).poll
    assert (poll.move, poll.is_monotone) == (move, is_monotone)
    apart = move if is_monotone else 2 * move
    assert poll.steepness * apart == pytest.approx(poll.epsilon)
    full = poll.groups * (poll.epsilon if of.privacy.accounting.value == "pure" else poll.epsilon**2 / 8)
    assert full == pytest.approx(poll.amount)


def test_the_charge_is_divided_among_vector_and_modes() -> None:
    found = plan("select mode() within group (order by age), mode() within group (order by plan), count(*),"
                 " mode() within group (order by age desc) from users")  # fmt: skip
    assert len(found.parts) == 2, "the direction of the order makes no other mode"
    assert sum(p.pico for p in found.parts) < found.cost.pico
    assert all(p.pico == found.parts[0].pico for p in found.parts)


def test_more_rows_of_a_unit_than_can_be_counted_are_refused_for_modes() -> None:
    many = replace(TABLES["orders"], rows_per_unit=WrittenBound(2**40), rows_per_group=WrittenBound(2**40))
    with pytest.raises(PolicyForbids, match="too many rows"):
        plan(STATUS, replace(context(), tables=MappingProxyType({**TABLES, "orders": many})))


# --- refusals ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("query", "says", "hint"),
    [
        (f"select {CITY}, count(*) from users", '"users"."city" are not listed',
         "SELECT city, count(*) FROM users GROUP BY 1 ORDER BY 2 DESC LIMIT 1."),
        (f"select plan, {CITY}, count(*) from users group by 1", "not listed",
         "SELECT plan, city, count(*) FROM users GROUP BY 1, 2 ORDER BY 1, 3 DESC."),
        (f"select age > 3, {CITY}, count(*) from users group by 1", "not listed", "SELECT x, count"),
        ("select mode() within group (order by lower(city)), count(*) from users", "this expression",
         "Name them, WHERE x IN"),
        (f"select {CITY} filter (where age > 3), count(*) from users", "not listed", "Keep your"),
        (f"select {CITY}, count(*) from users where age > 3", "not listed", "Keep your conditions."),
        (f"select city, {CITY} from users group by city", "not listed", "Name them, WHERE city IN"),
        ("select mode() within group (order by height) from users", "not listed", "floor(height)"),
        ("select mode() within group (order by born), count(*) from users", "not listed", "WHERE born BETWEEN '2024"),
        ("select mode() within group (order by order_id), count(*) from orders", "not listed",
         "WHERE order_id BETWEEN 0 AND"),
        ("select mode() within group (order by made) from orders", "not listed", "made::date"),
        ("select mode() within group (order by order_id) from orders where order_id between 0 and 109999",
         "these are 110,000", "order_id / 10)"),
        ("select mode() within group (order by floor(weight)) from users where weight between 0 and 9999 group by city",
         "at most 1,024 values here, and these are 10,000", "floor(x / 10)"),
        ("select mode() within group (order by born) from users where born between '1000-01-01' and '1999-12-31'",
         "these are 365,242", "date_trunc('month', born)"),
        ("select mode() within group (order by age, plan) from users", "one expression", "ORDER BY x"),
        ("select mode() from users", "mode", "WITHIN GROUP"),
        ("select mode(age) from users", "mode", "WITHIN GROUP (ORDER BY age)"),
        ("select mode() within group (order by interval '1 day') from users", "mode of interval", "days"),
        ("select hush.high(mode() within group (order by age)) from users", "no interval", "Leave it out."),
        ("select hush.high(mode() within group (order by age) * 2) from users", "no interval", "Leave it out."),
    ],
)  # fmt: skip
def test_modes_of_other_values_are_refused_with_what_to_write(query: str, says: str, hint: str) -> None:
    with pytest.raises(HushError, match=says) as refused:
        plan(query)
    assert hint in refused.value.hint


def test_what_a_hint_says_can_be_planned() -> None:
    for query in (
        "select city, count(*) from users group by 1 order by 2 desc limit 1",
        "select plan, city, count(*) from users group by 1, 2 order by 1, 3 desc",
        "select mode() within group (order by city) from users where city in ('a', 'b')",
        "select mode() within group (order by floor(height)) from users where height between 0 and 100",
        "select mode() within group (order by made::date) from orders where made between '2024-01-01' and '2024-12-31'",
        "select mode() within group (order by born) from users where born between '2024-01-01' and '2024-12-31'",
        "select mode() within group (order by order_id) from orders where order_id between 0 and 100",
        "select mode() within group (order by order_id / 10) from orders where order_id between 0 and 109999",
        "select mode() within group (order by floor(weight / 100)) from users where weight between 0 and 20000",
    ):
        assert plan(query).cost.pico


def test_candidates_of_unknown_bounds_are_too_few_facts() -> None:
    with pytest.raises(MissingBounds):
        plan("select mode() within group (order by weight) from users")


# --- what is told -----------------------------------------------------------------------------------------------


def test_the_plan_says_how_often_another_value_is_given() -> None:
    found = plan(f"{AGE} where plan = 'pro'")
    poll = part(found).poll
    lines = " ".join(line.strip() for line in explain_lines(explain_block(found, context().privacy)))
    short = poll.short_up(0.05)
    assert f"an element {short} rows short of the best is given with a chance of at most 5 %" in lines
    assert math.exp(-poll.steepness * short) <= 0.05
    assert f"drawn from 111 public values; the chance falls with k rows as exp(-{poll.steepness:.4g} k)" in lines
    assert f"NULL where the noisy count is below {poll.least}" in lines
    assert "Part most frequent value of age where" not in lines
    assert "numbers move by 1 row up or down alike in a group, 1 full group; 111 public values" in lines
    assert "1 draw of epsilon" in lines
    (noise,) = output_noise(found)
    assert (noise.is_of_mode, noise.is_of_ranks, noise.is_of_rows) == (True, False, True)
    assert noise.half_width_95 == short
    assert noise.mechanism == "exponential mechanism"


def test_a_replaced_unit_is_told_of() -> None:
    of = context(neighbors=Neighbors.REPLACE_ONE)
    lines = " ".join(line.strip() for line in explain_lines(explain_block(plan(AGE, of), of.privacy)))
    assert "numbers move by 1 row up and down in a group" in lines


def test_plans_of_other_candidates_are_told_apart() -> None:
    queries = [AGE, f"{AGE} where age < 50", "select mode() within group (order by plan) from users"]
    assert len({plan(q).fingerprint for q in queries}) == 3


# --- values that nobody listed -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("query", "counting"),
    [
        (f"select {CITY} from users", "select city, count(*) from users where city is not null group by city"),
        (f"select plan, {CITY} from users group by plan",
         "select plan, city, count(*) from users where city is not null group by plan, city"),
        (f"select {CITY} filter (where age >= 5) from users where plan = 'pro'",
         "select city, count(*) from users where plan = 'pro' and age >= 5 and city is not null group by city"),
        ("select mode() within group (order by order_id) from orders",
         "select order_id, count(*) from orders where order_id is not null group by order_id"),
        ("select mode() within group (order by born) from users",
         "select born, count(*) from users where born is not null group by born"),
        ("select mode() within group (order by lower(city)) from users",
         "select lower(city), count(*) from users where lower(city) is not null group by 1"),
    ],
)  # fmt: skip
def test_rows_of_values_that_nobody_listed_are_counted_as_those_of_private_keys(query: str, counting: str) -> None:
    """All that is released, and by which rule, is that of the statement that counts them."""
    found, other = plan(query), plan(counting)
    assert (found.sql, found.cost, found.selection, found.sds) == (other.sql, other.cost, other.selection, other.sds)
    assert isinstance(found.selection, Threshold)
    assert not found.parts
    assert [a.kind.value for a in found.elects] == ["mode"]
    assert not other.elects
    assert found.fingerprint != other.fingerprint


def test_a_value_that_is_always_there_needs_no_condition() -> None:
    users = TABLES["users"]
    sure = replace(users, columns=tuple(replace(c, nullable=c.name != "city") for c in users.columns))
    found = plan(f"select {CITY} from users", replace(context(), tables=MappingProxyType({**TABLES, "users": sure})))
    assert found.elects
    assert {c.name for s in found.analysed.owned.block.where for c in columns_of(s)} == {"user_id"}


def test_where_no_delta_is_there_values_that_nobody_listed_are_refused() -> None:
    with pytest.raises(MissingBounds, match="not listed"):
        plan(f"select {CITY} from users", context(pure=True))


def test_the_plan_says_how_far_the_largest_noisy_number_may_be_from_the_best() -> None:
    found = plan(f"select {CITY} from users")
    (noise,) = output_noise(found)
    assert noise.aggregate == "mode() WITHIN GROUP (ORDER BY city)"
    assert noise.is_of_mode
    short = noise.half_width_95 / (math.sqrt(2.0) * found.sds[0])
    assert NormalDist().cdf(-short) <= 0.05 < NormalDist().cdf(-short + 0.3)
    lines = " ".join(line.strip() for line in explain_lines(explain_block(found, context().privacy)))
    assert "of values above the threshold the one with the largest noisy number; NULL where there is none" in lines
    assert "Key city: private: shown above the threshold" in lines


def test_the_largest_number_is_read_from_no_other_answer_and_no_other_from_it() -> None:
    mode = plan(f"select {CITY} from users")
    counted = plan("select city, count(*) from users where city is not null group by city")
    assert derive(counted, (counted,), 10.0)
    assert derive(mode, (counted,), 10.0) == ()
    assert derive(counted, (mode,), 10.0) == ()


# --- values that were randomized ----------------------------------------------------------------------------------


def test_stored_values_are_counted_where_all_were_drawn_alike() -> None:
    """What one more row with a true value adds to that value beyond what it adds to each other: p - q."""
    found = part(plan_survey("select mode() within group (order by vote) from people"))
    assert set(found.candidates) == set("abcde")
    assert found.poll.is_monotone
    assert found.nearer == pytest.approx(0.6)
    lines = " ".join(describe_draw(found).split())
    assert "one more row with a true value is 0.6 of one more with it stored, on average" in lines
    assert part(plan_survey("select mode() within group (order by plan) from people")).nearer == 1.0
