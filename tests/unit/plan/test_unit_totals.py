"""Is a sum bounded by a unit's total where the policy knows bounds of it and the noise is less that way?"""

from __future__ import annotations

import math
from dataclasses import replace
from types import MappingProxyType

import duckdb
import pytest

from proxy.plan.release_plan import PlanContext, ReleasePlan
from proxy.plan.vector.moments import ROW_UNITS, UnitTotal
from proxy.plan.words.explain import explain_block
from proxy.plan.words.explain_lines import explain_lines
from proxy.policy.model import Bounded, Unknown
from tests.unit.plan.shop import ORDERS, TABLES, USERS, context, context_with_sums, plan, with_bounds


def totals(of: ReleasePlan) -> list[UnitTotal]:
    return [m for m in of.vector.moments if isinstance(m, UnitTotal)]


@pytest.mark.parametrize("pure", [False, True])
@pytest.mark.parametrize(
    ("query", "used"),
    [
        ("select sum(amount) from orders", 1),
        ("select status, sum(amount) from orders group by status", 1),
        ("select plan, sum(amount) from orders o join users u on o.user_id = u.user_id group by plan", 0),
        ("select sum(amount) filter (where amount > 900), sum(amount) from orders", 2),
        ("select sum(amount) from orders o join stores s on o.store_id = s.store_id where region = 'n'", 1),
        ("select sum(amount * 2) from orders", 0),
        ("select avg(amount) from orders", 0),
        ("select sum(amount) from orders where amount < 3", 0),
    ],
)
def test_a_total_bounds_where_it_is_narrower(query: str, used: int, pure: bool) -> None:
    """Not where private rows are joined, which repeats them, nor for expressions, nor for small amounts."""
    assert len(totals(plan(query, context_with_sums(Bounded(0, 1500), pure=pure)))) == used
    assert not totals(plan(query, context_with_sums(Bounded(0, 10**6), pure=pure)))
    assert not totals(plan(query, context(pure=pure)))


def test_noise_falls_as_the_bounds_do() -> None:
    by_rows = plan("select sum(amount) from orders")
    by_total = plan("select sum(amount) from orders", context_with_sums(Bounded(0, 1500)))
    assert by_rows.sensitivity * 1000 / by_rows.allocation.weights[0] == pytest.approx(60 * 1000)
    assert by_total.sensitivity * 1000 / by_total.allocation.weights[0] == pytest.approx(1500)


def test_both_ways_are_told() -> None:
    of = plan("select sum(amount) from orders", context_with_sums(Bounded(-100, 1500)))
    (choice,) = of.sum_choices
    assert choice.is_used
    assert [choice.least, choice.most] == pytest.approx([-100, 1500])
    assert choice.by_rows / choice.by_total == pytest.approx(40)
    assert choice.by_total == pytest.approx(of.sds[0] * 1000)
    lines = "\n".join(explain_lines(explain_block(of, context().privacy)))
    assert "Sum bounds of sum(amount)" in lines
    assert "by total here" in lines
    assert "1 total of at most" in lines
    assert "over a unit, clipped to [-0.1, 1.5]" in lines
    narrow = plan("select sum(amount), count(*), avg(amount) from orders", context_with_sums(Bounded(0, 59_000)))
    assert [c.is_used for c in narrow.sum_choices] == [False]
    assert "by rows here" in "\n".join(explain_lines(explain_block(narrow, context().privacy)))


def test_other_aggregates_keep_their_moments() -> None:
    """The count and the average of the same rows do not pay for a sum that has a moment of its own."""
    of = plan("select sum(amount), count(*) from orders", context_with_sums(Bounded(0, 900)))
    assert len(of.vector.moments) == 2
    pure = plan("select sum(amount), count(*) from orders", context_with_sums(Bounded(0, 900), pure=True))
    assert len(pure.vector.moments) == 2


def test_totals_are_clipped_and_rows_are_not_scaled() -> None:
    of = plan("select sum(amount) from orders", context_with_sums(Bounded(-100, 1500)))
    for amounts, total in (
        ([1000] * 70, 1500.0),
        ([700, 700], 1400.0),
        ([None], 0.0),
        ([1.5], 1.5),
        ([5000.0], 1000.0),
    ):
        with duckdb.connect() as connection:
            connection.execute("create table orders (user_id integer, amount decimal(18,4))")
            connection.executemany("insert into orders values (1, ?)", [[a] for a in amounts])
            ((_, found),) = connection.execute(of.sql).fetchall()
        assert found * of.units_per_grid[0] * 1000 == pytest.approx(total, abs=1e-5)


def test_where_all_is_zero_there_is_nothing_to_bound() -> None:
    assert not totals(plan("select sum(amount) from orders", context_with_sums(Bounded(0, 0))))
    columns = tuple(replace(c, domain=Bounded(0, 0)) if c.name == "amount" else c for c in ORDERS.columns)
    zero = replace(ORDERS, columns=columns)
    of = replace(context(), tables=MappingProxyType({**TABLES, "orders": with_bounds(zero, "amount", Bounded(0, 9))}))
    assert not totals(plan("select sum(amount) from orders", of))


def test_one_row_for_each_unit_needs_no_total() -> None:
    of = replace(context(), tables=MappingProxyType({**TABLES, "users": with_bounds(USERS, "age", Bounded(0, 30))}))
    assert not totals(plan("select sum(age) from users", of))


def signed(bounds: Bounded, *, pure: bool = False) -> PlanContext:
    """Amounts of either sign, of which a unit has so much in all."""
    columns = tuple(replace(c, domain=Bounded(-1000, 1000)) if c.name == "amount" else c for c in ORDERS.columns)
    orders = with_bounds(replace(ORDERS, columns=columns), "amount", bounds)
    return replace(context(pure=pure), tables=MappingProxyType({**TABLES, "orders": orders}))


EITHER_SIDE = ((-500, 20), (-20, 500), (-1500, -500), (500, 1500), (-900, 900), (-40, 0), (0, 40))


@pytest.mark.parametrize(("low", "high"), EITHER_SIDE)
def test_a_total_lies_between_its_bounds_and_nothing(low: int, high: int) -> None:
    """A group may hold a part of a unit's rows, or none: a lower bound above 0 says nothing of it."""
    (total,) = totals(plan("select status, sum(amount) from orders group by 1", signed(Bounded(low, high))))
    least, most = (end / 1000 * ROW_UNITS for end in (min(low, 0), max(high, 0)))
    assert (total.least, total.most) == (math.ceil(least), math.floor(most))


@pytest.mark.parametrize("pure", [False, True])
@pytest.mark.parametrize(("low", "high"), EITHER_SIDE)
@pytest.mark.parametrize("group", ["", "status, "])
def test_no_unit_within_the_bounds_of_its_total_is_cut(group: str, low: int, high: int, pure: bool) -> None:
    """Its groups have totals of one sign, or one has all of it that is above 0 and another all that is below."""
    text = f"select {group}sum(amount) from orders {'group by 1' if group else ''}"
    of = plan(text, signed(Bounded(low, high), pure=pure))
    (total,), (weight,) = totals(of), of.allocation.weights
    ends = [weight * abs(end) / ROW_UNITS for end in (total.least, total.most)]
    longest = (sum(ends) if pure else math.hypot(*ends)) if group else max(ends)
    assert of.allocation.unit_norm >= longest * (1 - 1e-12)


def test_columns_without_bounds_of_their_sum_stay_as_they_are() -> None:
    assert all(isinstance(c.sum_bounds, Unknown) for c in ORDERS.columns)
    assert plan("select sum(amount) from orders").sum_choices == ()
