"""Are learned bounds used for the rows they are of, where they promise less error, and never above the policy's?"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from proxy.analysis.analyse import Lowered
from proxy.analysis.learned import Learned
from proxy.plan.learned import LearnedBound, LearnedTable, is_worth_it, told_of, usable
from proxy.plan.moments import ROW_UNITS, UnitTotal
from proxy.policy.model import Accounting, Bounded, Neighbors, Privacy
from tests.unit.plan.shop import context, context_with_sums, plans
from tests.unit.release.make import planned

LEARNED = Learned(
    rows=(("orders", 7, "learned from data version 3"), ("items", 9, "learned"), ("users", 3, "learned")),
    totals=(("orders", "amount", 40.0), ("items", "qty", 5.0)),
)
KNOWING = Lowered(learned=LEARNED)


@pytest.mark.parametrize(
    ("query", "rows", "per_group", "groups"),
    [
        ("select count(*) from orders", 7, 7, 1),
        ("select status, count(*) from orders group by 1", 7, 7, 3),
        ("select extract(month from made), count(*) from orders group by 1", 7, 7, 7),
        ("select count(*) from orders where amount > 5 and store_id in (select store_id from stores)", 7, 7, 1),
        ("select count(*) from orders join stores using (store_id)", 7, 7, 1),
        ("select count(*) from items", 9, 9, 1),
        ("select status, count(*) from items join orders using (order_id) group by 1", 9, 9, 3),
        ("select count(*) from users", 1, 1, 1),
        ("select count(*) from orders join users using (user_id)", 7, 7, 1),
        ("select count(*) from orders where exists (select 1 from users u where u.user_id = orders.user_id)", 7, 7, 1),
        # what may repeat rows, or makes other ones, keeps the policy's bounds
        ("select count(*) from orders a join orders b using (user_id)", 60, 60, 1),
        ("select count(*) from orders a join orders b using (user_id) join users using (user_id)", 60, 60, 1),
        ("select count(*) from (select user_id, made from orders group by user_id, made) t", 60, 60, 1),
    ],
)
def test_rows_of_one_table_are_bounded_by_what_was_learned(query: str, rows: int, per_group: int, groups: int) -> None:
    bounds = planned(query, context(lowered=KNOWING))[0].analysed.bounds
    assert (bounds.rows, bounds.rows_per_group, bounds.groups) == (rows, per_group, groups)
    assert ("learned" in bounds.source) == (rows in (7, 9))
    if rows == 7:
        assert bounds.source == 'policy, table "orders", 7 of 60 rows learned from data version 3'


def test_learned_bounds_only_lower() -> None:
    lowered = Lowered(rows_per_group=2, groups=3, learned=Learned(rows=(("orders", 5000, "learned"),)))
    bounds = planned("select status, count(*) from orders group by 1", context(lowered=lowered))[0].analysed.bounds
    assert (bounds.rows, bounds.rows_per_group, bounds.groups) == (60, 2, 3)
    assert "learned" not in bounds.source


@pytest.mark.parametrize(
    ("aggregates", "ends"),
    [
        ("sum(amount)", [(0.0, 40.0)]),
        ("sum(amount), count(*)", [(0.0, 40.0)]),
        ("sum(greatest(amount, 1))", []),
        ("avg(amount)", []),
    ],
)
def test_sums_are_bounded_by_what_was_learned(aggregates: str, ends: list[tuple[float, float]]) -> None:
    plan, _ = planned(f"select {aggregates} from orders", context(lowered=KNOWING))
    found = [m for m in plan.vector.moments if isinstance(m, UnitTotal)]
    assert [(t.least / ROW_UNITS * 1000, round(t.most / ROW_UNITS * 1000, 3)) for t in found] == ends


def test_sums_of_a_sub_select_are_not_those_of_its_table() -> None:
    rows = "(select user_id, status, count(*) as amount from orders group by user_id, status)"
    plan, _ = planned(f"select sum(amount) from {rows} as orders", context(lowered=KNOWING))
    assert not any(isinstance(m, UnitTotal) for m in plan.vector.moments)


def test_the_policy_goes_before_what_was_learned_of_sums() -> None:
    (plan,) = plans("select sum(amount) from orders", context_with_sums(Bounded(0, 100), lowered=KNOWING))
    assert [round(c.most) for c in plan.sum_choices] == [100]


@pytest.mark.parametrize("is_pure", [False, True])
def test_totals_of_one_sign_bound_a_unit_in_all_groups_together(is_pure: bool) -> None:
    """Three groups, but the sums in them add up to no more than the sum of all."""
    query = "select status, sum(amount) from orders group by 1"
    plan, _ = planned(query, context(pure=is_pure, lowered=KNOWING))
    (total,), (weight,) = plan.vector.moments, plan.allocation.weights
    assert isinstance(total, UnitTotal)
    assert plan.allocation.unit_norm == pytest.approx(weight * 40.0 / 1000.0, rel=1e-6)


@pytest.mark.parametrize(
    ("bound", "most", "noise", "is_used"),
    [
        (LearnedBound(10, 0), 1000, 9.0, True),
        (LearnedBound(10, 30), 1000, 9.0, True),
        (LearnedBound(300, 30), 1000, 9.0, False),  # what 30 units may lose is more than the noise that is saved
        (LearnedBound(300, 30), 1000, 90.0, True),  # not where there is more noise
        (LearnedBound(900, 0), 1000, 9.0, False),  # too little to gain
        (LearnedBound(10, 30), 1000, 0.1, False),  # an accurate answer would show what is lost
    ],
)
def test_a_bound_is_used_where_it_promises_less_error(
    bound: LearnedBound, most: float, noise: float, is_used: bool
) -> None:
    assert is_worth_it(bound, most, noise) is is_used


FEW, MANY = LearnedBound(10, 30), LearnedBound(900, 30)
OF_ROWS = ("orders", 10, "learned from data version 3")


@pytest.mark.parametrize(
    ("rows", "total", "pico", "neighbors", "expected"),
    [
        (FEW, LearnedBound(100.0, 30), 6 * 10**9, Neighbors.ADD_REMOVE, ((OF_ROWS,), (("orders", "amount", 100.0),))),
        (FEW, LearnedBound(300.0, 30), 6 * 10**9, Neighbors.ADD_REMOVE, ((OF_ROWS,), ())),  # ten rows of 50 are less
        (MANY, LearnedBound(300.0, 30), 6 * 10**9, Neighbors.ADD_REMOVE, ((), (("orders", "amount", 300.0),))),
        (None, LearnedBound(300.0, 30), 6 * 10**9, Neighbors.ADD_REMOVE, ((), (("orders", "amount", 300.0),))),
        (LearnedBound(200, 30), LearnedBound(9e9, 30), 6 * 10**9, Neighbors.ADD_REMOVE, ((OF_ROWS,), ())),
        (LearnedBound(300, 30), LearnedBound(9e9, 30), 6 * 10**9, Neighbors.ADD_REMOVE, ((), ())),
        (
            LearnedBound(300, 30),
            LearnedBound(9e9, 30),
            6 * 10**9,
            Neighbors.REPLACE_ONE,
            ((OF_ROWS,), ()),
        ),
        (LearnedBound(300, 30), LearnedBound(9e9, 30), 6 * 10**7, Neighbors.ADD_REMOVE, ((OF_ROWS,), ())),
    ],
)
def test_what_a_release_uses_follows_from_its_price(
    rows: LearnedBound | None, total: LearnedBound, pico: int, neighbors: Neighbors, expected: Any
) -> None:
    one = LearnedTable(table="orders", allowed=1000, rows=rows, totals=(("amount", 50.0, total),), data_version="3")
    found = usable([one], Privacy(unit="customer", neighbors=neighbors), pico)
    of_rows = tuple((t, n if rows is None else round(rows.value), w) for t, n, w in expected[0])
    assert found == Learned(of_rows, expected[1])
    assert usable([], Privacy(unit="customer"), pico) == Learned()
    pure = Privacy(unit="customer", accounting=Accounting.PURE, delta=0.0, delta_pool=0.0)
    assert usable([one], pure, 10**9).rows == usable([one], Privacy(unit="customer"), 10**6).rows


def test_what_was_learned_is_told_with_its_column() -> None:
    few = LearnedBound(10.0, 30)
    orders = LearnedTable(table="orders", allowed=60, rows=few, totals=(("amount", 5.0, few),), data_version="1")
    tables = [orders, replace(orders, table="items", rows=None, totals=(("qty", 5.0, few),))]
    told = {(t, c): told_of(tables, t, c) for t, c in (("orders", "amount"), ("orders", "status"), ("items", "qty"))}
    assert list(told.values()) == ["10 of 60 rows, sums of size 10", "10 of 60 rows", "sums of size 10"]
    assert told_of(tables, "items", "price") is None
    assert told_of(tables, "users", "age") is None
