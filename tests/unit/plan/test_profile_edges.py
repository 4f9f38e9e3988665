"""What is rare in plans with profiles: declared rows, no room for a bound, averages that are all noise, other types."""

from __future__ import annotations

import math
from dataclasses import replace
from types import MappingProxyType

import numpy as np
import pytest

from proxy.dp.accuracy import sum_widths_95
from proxy.dp.mechanisms import Distribution
from proxy.plan.parts.cells import cells_of
from proxy.plan.profile import bound_choice
from proxy.plan.profile.bound_choice import FROM_POLICY, FromProfile
from proxy.plan.profile.key_groups import groups_of_cells
from proxy.plan.profile.left_out import About
from proxy.plan.profile.profile import TableProfile
from proxy.plan.release_plan import PlanContext, ReleasePlan
from proxy.plan.words.lost import lost_in
from proxy.policy.model import PerKey, RowsPer, WrittenBound
from proxy.sql.algebra.nodes import columns_of
from proxy.sqltypes import SqlType
from tests.unit.plan.shop import ORDERS, TABLES, context, plan
from tests.unit.plan.survey import of_survey
from tests.unit.plan.test_centred import means
from tests.unit.plan.test_profile import PROFILE, PROFILED, counted


def test_two_laplace_noises_of_one_scale_are_as_wide_as_their_law_says() -> None:
    """Beyond t scales, twice exp(-t) (1 + t/2) / 2 of their sums lie."""
    t = sum_widths_95(Distribution.LAPLACE, [1.0, 1.0]) * math.sqrt(2 * 2)
    assert math.exp(-t) * (1 + t / 2) == pytest.approx(0.05, rel=0.01)


def test_no_unit_is_larger_than_what_is_declared() -> None:
    tail = counted([3.0] * 5000 + [40.0] * 3000).tail
    assert tail.units_above(20.0) == pytest.approx(3000, rel=0.1)
    assert tail.within(16.0).units_above(20.0) == 0
    assert tail.within(16.0).units_above(2.0) == pytest.approx(8000, rel=0.1)


def of_declared(rows: int) -> PlanContext:
    """The shop, with a profile, where a person has so many orders of one status, and six without a ceiling."""
    orders = replace(ORDERS, rows_per_unit=WrittenBound(6), rows_per=(RowsPer((PerKey("status"),), rows),))
    return replace(PROFILED, tables=MappingProxyType({**TABLES, "orders": orders}), may_choose=False)


def test_rows_that_are_declared_leave_less_out() -> None:
    query = "select status, count(*) from orders group by status"
    few, many = (plan(query, of_declared(rows)).left_out for rows in (2, 5))
    assert isinstance(few, About)
    assert isinstance(many, About)
    assert few.share <= many.share


def test_a_ceiling_that_leaves_no_room_for_a_bound_keeps_the_policy_s(monkeypatch: pytest.MonkeyPatch) -> None:
    orders = replace(ORDERS, rows_per_unit=WrittenBound(1, is_ceiling=True))
    of = replace(
        context(pure=True), tables=MappingProxyType({**TABLES, "orders": orders}),
        profiles=(replace(PROFILE, allowed=1),),
    )  # fmt: skip
    query = "select count(*) filter (where status = 'paid'), count(*) filter (where status = 'refunded') from orders"
    monkeypatch.setattr(bound_choice, "CELL_REACH", 1.0)  # two cells of a unit are longer than its one row
    assert plan(query, of).bound == FROM_POLICY


def test_an_average_whose_sums_were_not_profiled_gets_a_bound_from_sizes() -> None:
    of = replace(PROFILED, profiles=(replace(PROFILE, means=(means(22.5),), sums=()),))
    assert isinstance(plan("select status, avg(amount) from orders group by status", of).bound, FromProfile)


@pytest.mark.parametrize(("text", "groups"), [("date_trunc('month', made)", 12), ("extract(month from made)", 12)])
def test_cells_of_times_are_shared_among_groups(text: str, groups: int) -> None:
    columns = tuple(replace(c, type=SqlType.TIMESTAMP) if c.name == "made" else c for c in ORDERS.columns)
    orders = replace(ORDERS, columns=columns)
    of = replace(context(), tables=MappingProxyType({**TABLES, "orders": orders}))
    (key,) = plan(f"select {text} as k, count(*) from orders group by 1", of).analysed.keys
    (found,) = columns_of(key.scalar)
    made = orders.column("made")
    assert made is not None
    shared = groups_of_cells(key.scalar, found, cells_of(made))
    assert shared is not None
    assert shared.shares.shape[1] == groups + 1, "and NULL"
    assert np.allclose(shared.shares.sum(axis=1), 1.0)


def of_people() -> PlanContext:
    profile = TableProfile(table="people", allowed=None, rows=counted([1.0] * 9000), sums=(), data_version="7")
    return replace(of_survey(), profiles=(profile,))


def test_estimated_numbers_of_rows_are_about_all_rows() -> None:
    of = planned_people("select count(*) from people where smokes")
    assert of.usual is not None
    assert of.usual.sizes == (of.usual.rows,)


def planned_people(query: str) -> ReleasePlan:
    return plan(query, of_people())


def test_what_helps_against_noise_names_no_condition_where_there_is_none() -> None:
    of = plan("select count(*) from orders", replace(PROFILED, pico=1))
    (said,) = lost_in((of,), context().privacy)
    assert "WHERE" not in said.instead
