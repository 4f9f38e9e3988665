"""Do histograms of quantiles hold every unit within its bounds, and is what they cost the part's share?"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import date, datetime
from fractions import Fraction
from types import MappingProxyType

import duckdb
import pytest

from proxy.dp.quantiles import ROW_WEIGHT
from proxy.errors import HushError, MissingBounds, PolicyForbids
from proxy.plan.parts.quantiles import QuantilePart
from proxy.plan.release_plan import PlanContext, ReleasePlan
from proxy.plan.vector.recipes import Ranked
from proxy.plan.words.explain import explain_block
from proxy.plan.words.explain_lines import explain_lines
from proxy.plan.words.outputs import output_noise
from proxy.policy.model import Neighbors, WrittenBound
from tests.unit.plan.shop import TABLES, context, plan

USERS = ("create table users (user_id integer, age integer, height double, weight double, city varchar, plan varchar,"
         " joined date, born date)")  # fmt: skip
ORDERS = ("create table orders (user_id integer, order_id bigint, store_id integer, amount decimal(10, 2),"
          " status varchar, made timestamptz)")  # fmt: skip


def part(of: ReleasePlan) -> QuantilePart:
    (found,) = of.parts
    assert isinstance(found, QuantilePart)
    return found


def users(column: str, values: Iterable[object], query: str) -> list[tuple[object, ...]]:
    """The histogram of one column of users."""
    connection = duckdb.connect()
    connection.execute(USERS)
    for number, value in enumerate(values):
        connection.execute(f"insert into users (user_id, {column}) values (?, ?)", [number, value])
    return sorted(connection.execute(part(plan(query)).sql).fetchall())


def orders(
    rows: Iterable[tuple[int, float, str | None]], query: str, of: PlanContext | None = None
) -> dict[object, int]:
    """Weights by key and cell of orders: unit, amount, status."""
    connection = duckdb.connect()
    connection.execute(ORDERS)
    for unit, amount, status in rows:
        connection.execute("insert into orders (user_id, amount, status) values (?, ?, ?)", [unit, amount, status])
    found = connection.execute(part(plan(query, of)).sql).fetchall()
    return {tuple(key): weight for *key, weight in found}


# --- cells ----------------------------------------------------------------------------------------------------


def test_each_row_is_in_the_cell_of_its_clamped_value() -> None:
    assert users("age", [-5, 0, 7, 7, 500, None], "select max(age) from users") == [
        (0, 2 * ROW_WEIGHT), (7, 2 * ROW_WEIGHT), (110, ROW_WEIGHT)]  # fmt: skip
    found = users("height", [0.0, 0.004, 124.9999, 250.0, 1e300, float("-inf"), float("nan"), None],
                  "select max(height) from users")  # fmt: skip
    assert found == [(0, 2 * ROW_WEIGHT), (24999, ROW_WEIGHT), (25000, 3 * ROW_WEIGHT), (49999, 2 * ROW_WEIGHT)]
    days = users("joined", [date(2018, 1, 1), date(2019, 1, 1), date(2020, 12, 31), None],
                 "select max(joined) from users")  # fmt: skip
    assert days == [(0, ROW_WEIGHT), (730, ROW_WEIGHT)]


def test_expressions_and_conditions_choose_cells_and_rows() -> None:
    ages = [10, 20, 30, 40, None]
    assert users("age", ages, "select min(age + 1) filter (where age > 15) from users where age < 40") == [
        (4, ROW_WEIGHT), (14, ROW_WEIGHT)]  # fmt: skip
    whole = "select max(age::bigint * 1000000000000000) from users"
    assert [cell for cell, _ in users("age", ages, whole)] == [5000, 10000, 15000, 20000]


def test_the_largest_integers_have_cells() -> None:
    query = "select max(order_id) from orders where order_id between -9223372036854775807 and 9223372036854775807"
    connection = duckdb.connect()
    connection.execute(ORDERS)
    for number, value in enumerate((-(2**63), -(2**63) + 1, 0, 2**63 - 1)):
        connection.execute("insert into orders (user_id, order_id) values (?, ?)", [number, value])
    cells = [cell for cell, _ in sorted(connection.execute(part(plan(query)).sql).fetchall())]
    grid = part(plan(query)).grid
    assert len(cells) == 3
    assert grid.value(cells[0]) < grid.value(cells[1]) < grid.value(cells[2])  # type: ignore[operator]  # integers


def test_local_times_have_cells() -> None:
    of = context(time_zone="Asia/Tokyo")
    connection = duckdb.connect()
    connection.execute("set TimeZone = 'UTC'")
    connection.execute(ORDERS)
    connection.execute("insert into orders (user_id, made) values (1, '2024-06-01 15:30:00+00'), (2, 'infinity')")
    found = part(plan("select percentile_disc(0.5) within group (order by made) from orders", of))
    ((cell, _),) = connection.execute(found.sql).fetchall()
    shown = found.grid.value(cell)
    assert isinstance(shown, datetime)
    assert abs(shown - datetime(2024, 6, 2, 0, 30)).total_seconds() <= 600


# --- bounds ---------------------------------------------------------------------------------------------------


def test_a_unit_above_the_bound_of_a_group_weighs_as_much_as_the_bound() -> None:
    query = "select max(amount) from orders"
    rows = [(1, float(i % 4), "paid") for i in range(240)]
    found = orders(rows, query)
    assert sum(found.values()) == pytest.approx(60 * ROW_WEIGHT, abs=4)
    assert sum(found.values()) <= 60 * ROW_WEIGHT
    assert len(found) == 4
    assert orders(rows[:60], query) == dict.fromkeys(found, 15 * ROW_WEIGHT)


@pytest.mark.parametrize("pure", [False, True])
def test_a_unit_in_many_groups_weighs_no_more_than_all_its_groups_may(pure: bool) -> None:
    of = replace(
        context(pure=pure),
        tables={
            **TABLES,
            "orders": replace(
                TABLES["orders"],
                groups_per_unit=WrittenBound(2),
                rows_per_group=WrittenBound(4),
                rows_per_unit=WrittenBound(60),
            ),
        },
    )
    query = "select status, max(amount) from orders group by status"
    rows = [(1, 5.0, status) for status in ("paid", "refunded", None) for _ in range(4)]
    shares = [w / (4 * ROW_WEIGHT) for w in orders(rows, query, of).values()]
    assert len(shares) == 3
    assert 1.99 < sum(s if pure else s * s for s in shares) <= 2
    small = [(1, 5.0, status) for status in ("paid", "refunded", None)]
    assert set(orders(small, query, of).values()) == {ROW_WEIGHT}, "three rows are within the bounds"
    assert part(plan(query, of)).ladder.groups == 2


def test_no_more_groups_are_charged_than_rows_can_fill() -> None:
    found = plan("select status, extract(month from made), max(amount) from orders group by 1, 2")
    assert found.analysed.bounds.groups == 12
    assert part(found).ladder.groups == 6


@pytest.mark.parametrize(("rows", "per_group"), [(7, 2), (7, 3), (7, 7), (7, 1), (6, 2), (1, 1)])
def test_a_group_that_is_not_full_is_charged_as_one(rows: int, per_group: int) -> None:
    few = replace(
        TABLES["orders"], rows_per_unit=WrittenBound(rows), rows_per_group=WrittenBound(per_group),
        groups_per_unit=WrittenBound(12),
    )  # fmt: skip
    of = replace(context(), tables=MappingProxyType({**TABLES, "orders": few}))
    found = part(plan("select extract(month from made), max(amount) from orders group by 1", of))
    assert found.ladder.groups * per_group >= rows, "as many as its rows can be in, if all but one are full"
    assert (found.ladder.groups - 1) * per_group < rows


@pytest.mark.parametrize(
    ("of", "move"),
    [
        (context(), 10),
        (context(group_size=3), 30),
        (context(neighbors=Neighbors.REPLACE_ONE), 20),
        (context(neighbors=Neighbors.REPLACE_ONE, group_size=2, pure=True), 40),
    ],
)
def test_neighbours_move_as_many_rows_as_their_units_bring(of: PlanContext, move: int) -> None:
    assert part(plan("select status, max(amount) from orders group by 1", of)).ladder.move == move


def test_the_charge_is_divided_among_vector_and_parts() -> None:
    found = plan("select count(*), max(age), min(age), max(joined) from users")
    assert len(found.parts) == 2
    assert sum(p.pico for p in found.parts) < found.cost.pico
    ladders = [p.ladder for p in found.parts if isinstance(p, QuantilePart)]
    assert sum(x.charge * x.levels for x in ladders) <= 2 / 3 * found.cost.pico / 10**12
    assert sorted(x.fractions for x in ladders) == [(Fraction(0), Fraction(1)), (Fraction(1),)]


def test_more_rows_of_a_unit_than_can_be_counted_are_refused() -> None:
    of = replace(context(), tables={**TABLES, "orders": replace(TABLES["orders"], rows_per_unit=WrittenBound(2**40),
                                                                 rows_per_group=WrittenBound(2**40))})  # fmt: skip
    with pytest.raises(PolicyForbids, match="too many rows"):
        plan("select max(amount) from orders", of)


# --- what is asked ---------------------------------------------------------------------------------------------


def test_all_quantiles_of_one_measure_are_one_part() -> None:
    found = plan("select percentile_cont(array[0.9, 0.1]) within group (order by age), max(age),"
                 " percentile_disc(0.9) within group (order by age desc) from users")  # fmt: skip
    assert part(found).ladder.fractions == (Fraction(1, 10), Fraction(9, 10), Fraction(1))
    places = [f.place for f in found.vector.finishes if isinstance(f, Ranked)]
    assert places == [1, 0, 2, 0]


def test_other_rows_are_other_parts() -> None:
    found = plan("select max(age), max(age) filter (where plan = 'pro'), max(age + 1) from users")
    assert len(found.parts) == 3


def test_quantiles_in_pure_accounting_leave_averages_as_they_are() -> None:
    pure = context(pure=True)
    beside, alone = (plan(f"select avg(height){more} from users", pure) for more in (", max(height)", ""))
    assert beside.vector.moments == alone.vector.moments


@pytest.mark.parametrize(
    ("query", "says"),
    [
        ("select max(weight) from users", "no bounds"),
        ("select max(born) from users", 'no bounds are known for "users"."born"'),
        ("select min(born) from users", "no bounds"),
        ("select max(city) from users", "max of text is not supported"),
        ("select min(age > 5) from users", "min of boolean"),
        ("select max(distinct age, height) from users", "one expression"),
        ("select percentile_cont(0.5) within group (order by joined) from users", "percentile_cont of date"),
        ("select percentile_cont(0.5) within group (order by age, height) from users", "ordered by one expression"),
        ("select percentile_cont(1.5) within group (order by age) from users", "from 0 to 1"),
        ("select percentile_cont('1.5') within group (order by age) from users", "from 0 to 1"),
        ("select percentile_cont(null) within group (order by age) from users", "from 0 to 1"),
        ("select percentile_cont(age) within group (order by age) from users", "from 0 to 1"),
        ("select percentile_cont(array[0.5, 2]) within group (order by age) from users", "from 0 to 1"),
        ("select percentile_cont(array[]::float8[]) within group (order by age) from users", "1 to 100 fractions"),
        ("select median(age) from users", "median"),
        ("select rank(3) within group (order by age) from users", "rank"),
        ("select hush.low(percentile_cont(array[0.5]) within group (order by age)) from users", "takes one aggregate"),
        ("select percentile_cont(0.5, 0.6) within group (order by age) from users", "percentile_cont"),
        ("select percentile_cont(0.5) from users", r"percentile_cont\(\) is not supported"),
    ],
)
def test_other_questions_are_refused(query: str, says: str) -> None:
    with pytest.raises(HushError, match=says) as refused:
        plan(query)
    assert refused.value.hint


@pytest.mark.parametrize(
    "text",
    ["0.25", "'0.25'", "1.0 / 4", "(0.25)", "0.2500000001", "array[0.25]", "'{0.25}'", "array['0.25']::float8[]",
     "('{0.25}'::float8[])"],
)  # fmt: skip
def test_fractions_are_read_in_every_spelling(text: str) -> None:
    found = plan(f"select percentile_cont({text}) within group (order by age nulls last) from users")
    assert part(found).ladder.fractions == (Fraction(1, 4),)


def test_the_bounds_that_are_missing_are_named() -> None:
    with pytest.raises(MissingBounds) as refused:
        plan("select percentile_disc(0.5) within group (order by born) from users")
    assert "at tables.users.columns.born" in refused.value.hint


# --- what is told ------------------------------------------------------------------------------------------------


def test_the_plan_says_that_answers_are_approximate() -> None:
    found = plan("select count(*), min(age), percentile_cont(0.5) within group (order by height) from users")
    told = explain_block(found, context().privacy)
    lines = "\n".join(explain_lines(told))
    assert "rank 95 % within" in lines
    assert "approximate: a public value of the grid" in lines
    assert "NULL where the noisy count is below" in lines
    assert "quantile 0.5 of height" in lines
    assert "1 draw of epsilon" in lines
    parts = told["parts"]
    assert isinstance(parts, list)
    assert any("every whole number from 0 to 110" in str(p["bound"]) for p in parts)
    noise = {o.aggregate: o for o in output_noise(found)}
    assert noise["min(age)"].is_of_ranks
    assert noise["min(age)"].half_width_95 > noise["count(*)"].half_width_95
    assert noise["percentile_cont(0.5) WITHIN GROUP (ORDER BY height)"].mechanism == "exponential mechanism"


def test_plans_of_other_fractions_are_told_apart() -> None:
    queries = [f"select percentile_cont({f}) within group (order by age) from users" for f in ("0.5", "0.6")]
    assert len({plan(q).fingerprint for q in queries}) == 2
