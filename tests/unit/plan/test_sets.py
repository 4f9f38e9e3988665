"""Several grouping sets as one release: shares of the charge, bounds, and what can be made consistent."""

from __future__ import annotations

from dataclasses import replace

import pytest

from proxy.analysis.analyse import Lowered
from proxy.errors import BadGroups, PolicyForbids
from proxy.plan.charge import Cost
from proxy.plan.parts.distinct import DistinctPart
from proxy.plan.release_plan import PlanContext, Threshold
from proxy.plan.sets.sets import SetsPlan
from proxy.plan.vector.moments import RowCount, UnitCount, UnitTotal
from proxy.plan.words.explain_sets import explain_plan, output_noises, plan_lines
from proxy.policy.model import Bounded
from tests.unit.plan.shop import any_plan, context, context_with_sums, plan

MONTH = "extract(month from made)"


def sets(grouping: str, *, asked: str = "count(*)", of: PlanContext | None = None, table: str = "orders") -> SetsPlan:
    found = any_plan(f"select {asked} from {table} group by {grouping}", of)
    assert isinstance(found, SetsPlan)
    return found


def bounds(of: SetsPlan) -> list[tuple[int, int, int]]:
    """T, C and G of each set."""
    return [(b.rows, b.rows_per_group, b.groups) for b in (p.analysed.bounds for p in of.plans)]


@pytest.mark.parametrize("pure", [False, True])
def test_each_set_is_released_at_an_equal_share_and_all_are_charged(pure: bool) -> None:
    of = context(pure=pure)
    found = sets("rollup(plan, age)", of=of, table="users")
    assert found.cost == Cost(of.pico, 0)
    shares = [p.cost.pico for p in found.plans]
    assert max(shares) - min(shares) < len(shares)
    alone = plan("select plan, count(*) from users group by plan", replace(of, pico=shares[1]))
    assert found.plans[1].sds == alone.sds
    assert [len(p.public_keys) for p in found.plans] == [1, 2, 224]


def test_sets_with_private_keys_share_the_delta() -> None:
    of = context()
    found = sets("grouping sets ((city), (city, plan), (plan), ())", of=of, table="users")
    assert [s.keys for s in found.sets] == [(), (0,), (1,), (0, 1)]
    thresholded = [isinstance(p.selection, Threshold) for p in found.plans]
    assert thresholded == [False, True, False, True]
    assert [p.cost.atto for p in found.plans] == [of.atto_for_keys // 2 if t else 0 for t in thresholded]
    assert found.cost == Cost(of.pico, of.atto_for_keys)
    assert found.families() == ((0, 2), (1, 3))


def test_too_small_a_charge_for_all_sets_is_refused() -> None:
    with pytest.raises(PolicyForbids):
        sets("rollup(plan, age)", of=replace(context(), pico=2), table="users")


@pytest.mark.parametrize(
    "grouping", ["rollup(plan, age, joined, city, height, weight, born, age + 1, age + 2, age + 3, age + 4)",
                 "grouping sets ((joined, age), (joined, age + 1))"],
)  # fmt: skip
def test_too_many_expressions_or_keys_are_refused(grouping: str) -> None:
    with pytest.raises(BadGroups, match=r"a grouping set has more than|the grouping sets have more than"):
        sets(grouping, table="users")


def test_a_release_is_the_same_however_its_sets_are_written() -> None:
    first = sets(f"rollup(status, {MONTH})")
    second = sets(f"grouping sets ((status, {MONTH}), (), (status), ())")
    assert first.fingerprint == second.fingerprint
    assert (first.shown, second.shown) == ((2, 1, 0), (2, 0, 1, 0))
    assert first.fingerprint != sets("rollup(status)").fingerprint
    assert first.stages == tuple(p.sql for p in first.plans)


def test_sets_that_are_bounded_together_have_all_rows_of_their_parts() -> None:
    """T, C, G of the table are 60, 10, 12: of 3 states a unit has 30 rows in a month, of 13 months 60 in a state."""
    found = sets(f"cube(status, {MONTH})")
    assert [s.keys for s in found.sets] == [(), (0,), (1,), (0, 1)]
    assert found.together == (0, 1, 2, 3)
    assert bounds(found) == [(60, 60, 1), (60, 60, 3), (60, 30, 12), (60, 10, 12)]
    assert bounds(sets("grouping sets ((status), ())")) == [(60, 30, 1), (60, 10, 3)]
    assert bounds(sets("rollup(store_id)")) == [(60, 60, 1), (60, 10, 12)]  # of hidden parts: as if alone
    lowered = sets("rollup(status)", of=context(lowered=Lowered(rows_per_group=4, groups=2)))
    assert bounds(lowered) == [(60, 8, 1), (60, 4, 2)]


def test_what_is_computed_beside_the_vector_keeps_its_own_bounds() -> None:
    found = sets("rollup(status)", asked="count(distinct order_id)")
    alone = [plan("select count(distinct order_id) from orders"),
             plan("select count(distinct order_id) from orders group by status")]  # fmt: skip
    limits = [[p.limits for p in of.parts if isinstance(p, DistinctPart)] for of in (*found.plans, *alone)]
    assert limits[:2] == limits[2:]


def test_rows_outside_the_domain_of_any_key_are_in_no_set() -> None:
    for one in sets("grouping sets ((status), (store_id), ())").plans:
        assert "IN ('paid', 'refunded')" in one.sql


def test_a_sum_is_bounded_alike_in_all_sets() -> None:
    """By the unit's total where that is better in each; if only in some, by rows in all."""
    tight = sets("rollup(status)", asked="sum(amount)", of=context_with_sums(Bounded(0, 2000)))
    assert all(isinstance(m, UnitTotal) for p in tight.plans for m in p.vector.moments)
    mixed = sets("rollup(status)", asked="sum(amount)", of=context_with_sums(Bounded(0, 20000)))
    assert not any(isinstance(m, UnitTotal) for p in mixed.plans for m in p.vector.moments)
    alone = plan("select sum(amount) from orders", context_with_sums(Bounded(0, 20000)))
    assert any(isinstance(m, UnitTotal) for m in alone.vector.moments)


@pytest.mark.parametrize(
    ("table", "asked", "grouping", "expected"),
    [
        ("users", "count(*)", "cube(plan, age)", ((0, 1, 2, 3),)),
        ("users", "count(*)", "rollup(city, plan)", ((1, 2),)),
        ("users", "count(*)", "grouping sets ((city), (plan))", ()),
        ("orders join users using (user_id)", "sum(amount)", "rollup(plan)", ((0, 1),)),
        ("orders join users using (user_id)", "sum(amount)", "rollup(plan, status)", ((0, 1, 2),)),
        ("orders", "sum(amount)", "rollup(status)", ((0, 1),)),
        ("orders", "sum(amount)", "rollup(store_id, status)", ()),
        ("orders", "sum(amount)", "cube(status, store_id)", ((0, 1),)),
        ("orders", "percentile_cont(0.5) within group (order by amount)", "rollup(status)", ((0, 1),)),
        ("census", "count(*)", "rollup(hours)", ((0, 1),)),
    ],
)
def test_sets_are_brought_together_where_a_unit_counts_alike(
    table: str, asked: str, grouping: str, expected: tuple[tuple[int, ...], ...]
) -> None:
    assert sets(grouping, asked=asked, table=table).families() == expected


def test_numbers_of_units_add_up_where_a_unit_is_in_one_group() -> None:
    joined = "orders join users using (user_id)"
    once = sets("rollup(plan)", asked="count(distinct user_id), count(*)", table=joined)
    (family,) = once.families()
    assert once.additive(family) == once.plans[0].vector.moments
    several = sets("rollup(status)", asked="count(distinct user_id), count(*)")
    (family,) = several.families()
    assert [type(m) for m in several.additive(family)] == [RowCount]
    assert "numbers of units stay as they are" in str(explain_plan(several, context().privacy)["consistency"])
    mixed = sets("rollup(city, plan)", asked="count(*)", table="users")
    (family,) = mixed.families()
    assert not any(isinstance(m, UnitCount) for m in mixed.additive(family))


def test_what_is_made_consistent_is_told() -> None:
    of = context()
    found = sets("cube(plan, city)", asked="count(*), count(distinct user_id)", table="users", of=of)
    text = " ".join(" ".join(plan_lines(explain_plan(found, of.privacy))).split())
    assert "Release of 4 grouping sets (discrete_gaussian, add_remove of one customer)" in text
    assert "in equal shares" in text
    assert "totals become the sums of their parts in (), (plan); totals become the sums of their parts in" in text
    assert "numbers of units stay" not in text
    assert text.count("Grouping set (") == 4
    data = explain_plan(found, of.privacy)
    assert isinstance(data["charge"], dict)
    assert data["charge"]["rho"] == 0.01
    outputs = data["outputs"]
    assert isinstance(outputs, list)
    assert [o["set"] for o in outputs[::2]] == ["()", "(plan)", "(city)", "(plan, city)"]
    assert [o.aggregate for o in output_noises(found)][:3] == [
        "count(*) by ()", "count(DISTINCT user_id) by ()", "count(*) by (plan)"
    ]  # fmt: skip
    alone = sets("rollup(store_id, status)", of=context())
    told = explain_plan(alone, of.privacy)["consistency"]
    assert told == "by themselves, for other private keys or other bounds of a unit: (), (store_id), (store_id, status)"
    pure = sets("rollup(status)", of=context(pure=True))
    charge = explain_plan(pure, context(pure=True).privacy)["charge"]
    assert charge == {"epsilon": 0.1, "delta": 0.0}
    single = plan("select count(*) from orders")
    assert [o.aggregate for o in output_noises(single)] == ["count(*)"]
    assert plan_lines(explain_plan(single, of.privacy))[0].startswith("Release (")
