"""Are narrower bounds used for the rows they are of, and never above the policy's?"""

from __future__ import annotations

import pytest

from proxy.analysis.analyse import Lowered
from proxy.analysis.learned import Learned
from proxy.plan.vector.moments import ROW_UNITS, UnitTotal
from proxy.policy.model import Bounded
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
