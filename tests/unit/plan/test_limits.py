"""Which bounds of rows does a policy leave to a profile, and which does it keep?"""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType

import pytest

from proxy.analysis.analyse import Lowered
from proxy.errors import MissingBounds
from proxy.plan.profile.bound_choice import FROM_POLICY, FromProfile
from proxy.plan.profile.learned import usable, with_limits, without_limit
from proxy.plan.profile.profile import TableProfile
from proxy.plan.release_plan import PlanContext
from proxy.policy.model import BoundSource, ByProfile, NotGiven, WrittenBound
from tests.unit.plan.shop import ORDERS, TABLES, any_plan, context, plan
from tests.unit.plan.test_profile import PROFILE, ROWS, counted

NONE = NotGiven()


def told(
    rows: BoundSource, *, group: BoundSource = NONE, groups: BoundSource = NONE, lowered: Lowered | None = None
) -> PlanContext:
    """The shop with a profile of its orders, of which the policy says this."""
    allowed = rows.limit if isinstance(rows, WrittenBound) else None
    orders = replace(ORDERS, rows_per_unit=rows, rows_per_group=group, groups_per_unit=groups)
    profile, of = replace(PROFILE, allowed=allowed), context(lowered=lowered or Lowered())
    tables = with_limits({**TABLES, "orders": orders}, (profile,))
    learned = usable((profile,), of.privacy, of.pico)
    return replace(of, tables=tables, profiles=(profile,), lowered=replace(of.lowered, learned=learned))


def test_where_the_policy_gives_none_about_the_largest_unit_of_the_profile_bounds_all() -> None:
    of = told(NONE)
    found = of.tables["orders"].rows_per_unit
    assert isinstance(found, ByProfile)
    assert found.limit >= sorted(ROWS)[-20], "but for a few units"
    assert found.limit <= 4 * max(ROWS)
    assert found.data_version == PROFILE.data_version
    assert without_limit(of.tables) == ()
    for query in ("select var_pop(amount) from orders", "select count(distinct store_id) from orders",
                  "select percentile_disc(0.5) within group (order by amount) from orders",
                  "select count(*) from orders o join items i on i.order_id = o.order_id",
                  "select store_id, count(*) from orders group by 1"):  # fmt: skip
        bounds = plan(query, of).analysed.bounds
        assert 0 < bounds.rows_per_group <= bounds.rows <= max(found.limit, 100)
        assert 0 < bounds.groups <= bounds.rows
        assert bounds.keys <= 1000
    assert (
        'profile of table "orders", data version 7'
        in plan("select var_pop(amount) from orders", of).analysed.bounds.source
    )


def test_without_a_profile_that_tells_it_nothing_is_planned() -> None:
    orders = replace(ORDERS, rows_per_unit=NONE, rows_per_group=NONE, groups_per_unit=NONE)
    silent = TableProfile(table="orders", allowed=None, rows=counted([]), sums=(), data_version="7")
    for profiles in ((), (silent,)):
        tables = with_limits({**TABLES, "orders": orders}, profiles)
        assert without_limit(tables) == ("orders",)
        of = replace(context(), tables=tables, profiles=profiles)
        for query in ("select count(*) from orders",
                      "select max(n) from (select user_id, count(*) as n from orders group by user_id) u",
                      "select count(*), grouping(status) from orders group by rollup (status)"):  # fmt: skip
            with pytest.raises(MissingBounds, match="how many rows one unit may have") as refused:
                any_plan(query, of)
            assert "hushql profile" in str(refused.value.hint)
        assert plan("select count(*) from users", of).analysed.bounds.rows == 1


def test_what_the_policy_gives_is_kept() -> None:
    tables = with_limits(TABLES, (PROFILE,))
    assert tables == TABLES
    assert without_limit(MappingProxyType(TABLES)) == ()


def test_a_ceiling_is_never_exceeded() -> None:
    """Claim of docs/claims/profile.md: no unit counts for more rows than a ceiling says, whatever a profile tells."""
    found = {}
    for ceiling in (False, True):
        of = plan("select count(*) from orders", told(WrittenBound(20, is_ceiling=ceiling)))
        found[ceiling] = of.allocation.unit_norm / of.allocation.row_norm
    assert found[False] > 30.0, "more rows are nearer the truth"
    assert found[True] <= 20.0


def test_a_ceiling_below_what_can_be_chosen_keeps_the_policys_bounds() -> None:
    wide = plan("select avg(amount), count(*) from orders", told(WrittenBound(1, is_ceiling=True)))
    assert wide.allocation.unit_norm <= wide.allocation.row_norm * (1 + 1e-9) * 1.5
    assert plan("select sum(amount) from orders", told(WrittenBound(1, is_ceiling=True))).analysed.bounds.rows == 1


@pytest.mark.parametrize(
    "of",
    [told(WrittenBound(60), group=WrittenBound(10, is_ceiling=True)),
     told(WrittenBound(60), groups=WrittenBound(10, is_ceiling=True)),
     told(WrittenBound(60), lowered=Lowered(rows_per_group=3)), told(WrittenBound(60), lowered=Lowered(groups=3))],
)  # fmt: skip
def test_bounds_of_a_group_that_are_ceilings_or_a_clients_own_are_kept(of: PlanContext) -> None:
    query = "select status, count(*) from orders group by 1"
    assert isinstance(plan(query, told(WrittenBound(60))).bound, FromProfile)
    assert plan(query, of).bound == FROM_POLICY
