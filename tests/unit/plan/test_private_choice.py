"""Is a bound chosen for private keys too, and does the threshold follow from what was chosen?"""

from __future__ import annotations

import math
from dataclasses import replace

import duckdb
import pytest

from proxy.dp.selection import threshold
from proxy.plan.profile.bound_choice import FromPolicy, FromProfile
from proxy.plan.release_plan import ReleasePlan, Threshold
from proxy.plan.vector.moments import UnitCount
from proxy.sql.algebra.nodes import TRUE
from tests.unit.plan.shop import plan
from tests.unit.plan.test_profile import PROFILE, PROFILED, ROWS, counted

STORES = "select store_id, count(*) from orders group by store_id"
TOLD = replace(PROFILE, groups=(("store_id", counted([max(1.0, n / 3.0) for n in ROWS])),))
MOST = 1000  # keys of a unit
OF = replace(PROFILED, profiles=(TOLD,))


@pytest.fixture(scope="module")
def chosen() -> ReleasePlan:
    of = plan(STORES, OF)
    assert isinstance(of.bound, FromProfile)
    return of


def test_the_threshold_follows_from_the_chosen_bound(chosen: ReleasePlan) -> None:
    """Claim of `threshold`: norm_ratio is B over the weight of the unit count that is compared, K what is cut to."""
    assert isinstance(chosen.selection, Threshold)
    rule, at = chosen.selection.rule, chosen.selection.moment
    assert chosen.vector.moments[at] == UnitCount(TRUE)
    weight = chosen.allocation.weights[at]
    assert rule.norm_ratio == pytest.approx(chosen.allocation.unit_norm / weight)
    assert rule.keys_per_unit == chosen.analysed.bounds.keys == MOST
    assert rule.sigma_n == pytest.approx(chosen.sds[at], rel=1e-9)
    wanted = threshold(delta_r=OF.atto_for_keys / 1e18, sigma_n=rule.sigma_n, norm_ratio=rule.norm_ratio,
                       keys_per_unit=MOST, group_size=OF.privacy.group_size)  # fmt: skip
    assert rule.tau == pytest.approx(wanted, rel=1e-9)


@pytest.mark.parametrize("keys", [1, 2, 7, 40, 1200])
@pytest.mark.parametrize("rows", [1, 30, 500])
def test_a_unit_adds_no_more_to_its_keys_than_the_threshold_reckons_with(
    chosen: ReleasePlan, keys: int, rows: int
) -> None:
    assert isinstance(chosen.selection, Threshold)
    rule, at = chosen.selection.rule, chosen.selection.moment
    with duckdb.connect() as database:
        database.execute("create table orders (user_id integer, order_id bigint, store_id integer)")
        database.execute(f"insert into orders select 1, range, range % {keys} from range({rows * keys})")
        found = database.execute(chosen.sql).fetchall()
    held = len(found)
    assert held == min(keys, MOST)
    counts = [row[2 + at] * chosen.units_per_grid[at] for row in found]
    assert 0 < max(counts) <= min(1.0, rule.norm_ratio / math.sqrt(held)) * (1 + 1e-9)
    weights = [w * u for w, u in zip(chosen.allocation.weights, chosen.units_per_grid, strict=True)]
    length = math.hypot(*(row[2 + i] * w for row in found for i, w in enumerate(weights)))
    assert length <= chosen.allocation.unit_norm * (1 + 1e-9)


@pytest.mark.parametrize(
    "text",
    [
        "select store_id, status, count(*) from orders group by store_id, status",
        "select store_id, order_id, count(*) from orders group by store_id, order_id",
        "select store_id + 1, count(*) from orders group by 1",
    ],
)
def test_keys_that_a_profile_says_nothing_of_keep_the_policys_bounds(text: str) -> None:
    assert isinstance(plan(text, OF).bound, FromPolicy)
