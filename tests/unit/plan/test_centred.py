"""Are averages released about the value that a profile tells, and by how much may cutting units move them?"""

from __future__ import annotations

import math
from dataclasses import replace

import duckdb
import numpy as np
import pytest

from proxy.plan.profile.bound_choice import FromProfile
from proxy.plan.profile.profile import UnitMeans
from proxy.plan.release_plan import ReleasePlan
from proxy.plan.vector.moments import HalfSum, ScaledSum
from proxy.plan.vector.recipes import Mean
from proxy.policy.model import Accounting
from proxy.release.finish import _figures
from tests.unit.plan.shop import any_plan, context, plan
from tests.unit.plan.test_profile import PROFILE, PROFILED, ROWS, counted

ENDS = tuple(float(e) for e in range(0, 101, 5))
AVERAGE = "select status, avg(amount) from orders group by status"


def means(centre: float, *, sd: float = 1.0, units: float = 900.0) -> UnitMeans:
    """Averages in the three cells about a value."""
    place = next(i for i, e in enumerate(ENDS) if e > centre) - 1
    counts = [0.0] * (len(ENDS) - 1)
    for at, part in ((place - 1, 0.25), (place, 0.5), (place + 1, 0.25)):
        counts[at] = units * part
    return UnitMeans("amount", ENDS, tuple(counts), sd)


def centred(text: str, centre: float = 22.5) -> ReleasePlan:
    return plan(text, replace(PROFILED, profiles=(replace(PROFILE, means=(means(centre),)),)))


def test_averages_of_units_tell_where_they_are_and_how_far_from_it() -> None:
    of = means(22.5)
    assert of.are_told
    assert of.centre == pytest.approx(22.5)
    assert of.spread == pytest.approx(math.sqrt(0.5 * 25 + 25 / 12))
    near, far = of.distances(22.5, np.array([0.5, 0.5]))
    assert near < of.spread < far < 10.0
    assert not means(22.5, sd=1000.0).are_told, "it may all be noise"


def test_few_units_on_either_side_are_taken_to_be_beyond_those_that_are_seen() -> None:
    """What single cells do not show adds up: of 900 units 33 are above the others."""
    noisy = [0.0, 0.0, 0.0, 225.0, 450.0, 225.0, 4.0, 5.0, 3.0, 6.0, 4.0, 5.0, 2.0, 4.0, *([0.0] * 6)]
    parts = np.array([0.99, 0.01])
    alone, all_told = (UnitMeans("amount", ENDS, tuple(c), 3.0) for c in (noisy[:6] + [0.0] * 14, noisy))
    assert alone.distances(22.5, parts)[1] < 10.0
    assert all_told.distances(22.5, parts)[1] > 14.0
    assert all_told.centre > alone.centre
    below = [0.0] * 20
    below[17:20], below[10:17] = [225.0, 450.0, 225.0], [5.0] * 7
    assert UnitMeans("amount", ENDS, tuple(below), 3.0).distances(92.5, parts)[1] > 14.0


def test_units_of_many_rows_may_be_those_of_large_values() -> None:
    """With sums far above rows times the centre, those of most rows are taken to have them: more is expected lost."""
    found = {}
    for times in (0.0225, 0.2):  # of a row's largest value
        sums = (("amount", 1000.0, counted([n * times for n in ROWS], 2.0**-12)),)
        of = plan(AVERAGE, replace(PROFILED, profiles=(replace(PROFILE, sums=sums, means=(means(22.5),)),)))
        assert isinstance(of.bound, FromProfile)
        found[times] = of.bound
    assert found[0.2].rows > 1.5 * found[0.0225].rows


@pytest.mark.parametrize(
    ("ends", "counts", "sd"),
    [
        ((0.0, 1.0), (1.0, 2.0), 1.0),
        ((1.0, 1.0), (1.0,), 1.0),
        ((0.0, 1.0), (1.0,), 0.0),
        ((0.0, math.inf), (1.0,), 1.0),
    ],
)
def test_averages_that_cannot_be_are_refused(ends: tuple[float, ...], counts: tuple[float, ...], sd: float) -> None:
    with pytest.raises(ValueError, match=r"averages|noise"):
        UnitMeans("amount", ends, counts, sd)


def test_an_average_is_released_about_the_centre_within_its_bounds() -> None:
    of = centred(AVERAGE)
    assert isinstance(of.bound, FromProfile)
    (recipe,) = of.vector.finishes
    assert isinstance(recipe, Mean)
    (measure,) = (m for m in of.vector.moments if isinstance(m, ScaledSum))
    assert measure.middle == pytest.approx(22.5)
    assert measure.half == pytest.approx(977.5)
    assert (measure.least, measure.most) == pytest.approx((-22.5 / 977.5, 1.0))
    assert recipe.ends == pytest.approx((0.0, 1000.0))
    weights = dict(zip(of.vector.moments, of.allocation.weights, strict=True))
    assert weights[measure] > 2.0 * min(weights.values()), "units differ little, so a difference weighs much"
    assert of.bound.error < of.bound.by_policy


def test_values_of_all_kinds_of_profiles_stay_within_one() -> None:
    """|z| is at most 1, wherever the centre is said to be."""
    for centre in (7.5, 52.5, 92.5):
        for measure in centred(AVERAGE, centre).vector.moments:
            if isinstance(measure, ScaledSum):
                assert -1.0 <= measure.least <= 0.0 <= measure.most <= 1.0
                assert max(-measure.least, measure.most) == 1.0


@pytest.mark.parametrize(
    "text",
    [
        "select avg(amount), stddev(amount) from orders",
        "select avg(amount + 1) from orders",
        "select status, avg(amount) from orders group by rollup (status)",
    ],
)
def test_what_is_no_plain_average_keeps_the_middle_of_the_bounds(text: str) -> None:
    found = plan_of_first(text)
    middles = {m.middle for m in found.vector.moments if isinstance(m, ScaledSum)}
    assert middles <= {500.0, 501.0}


def plan_of_first(text: str) -> ReleasePlan:
    found = any_plan(text, replace(PROFILED, profiles=(replace(PROFILE, means=(means(22.5),)),)))
    return found if isinstance(found, ReleasePlan) else found.sets[0].plan


def test_a_sum_beside_an_average_is_made_of_the_same_moments() -> None:
    of = centred("select avg(amount), sum(amount), count(*) from orders")
    assert isinstance(of.bound, FromProfile)
    assert len(of.vector.moments) == 3, "rows with an amount, rows without, and the amounts"


def test_pure_averages_are_centred_too() -> None:
    pure = replace(PROFILED, privacy=replace(context().privacy, accounting=Accounting.PURE, delta=0.0, delta_pool=0.0))
    of = plan(AVERAGE, replace(pure, profiles=(replace(PROFILE, means=(means(22.5),)),)))
    halves = [m.scaled for m in of.vector.moments if isinstance(m, HalfSum)]
    assert {h.middle for h in halves} <= {22.5, 500.0}


def test_values_beyond_the_bounds_count_as_the_nearer_bound_in_pure_averages_too() -> None:
    """Far below the centre a value would be as far from it as the farther bound, if its z were kept to 1 alone."""
    pure = replace(PROFILED, privacy=replace(context().privacy, accounting=Accounting.PURE, delta=0.0, delta_pool=0.0))
    known = replace(pure, profiles=(replace(PROFILE, means=(means(22.5),)),), pico=pure.pico // 100)
    of = plan("select avg(amount) from orders", known)
    (low, high) = (m.scaled for m in of.vector.moments if isinstance(m, HalfSum))
    assert low.middle == high.middle == 22.5
    with duckdb.connect() as database:
        database.execute("create table orders (user_id integer, amount numeric(8, 2))")
        database.execute("insert into orders values (1, -500)")
        ((_, *moments),) = database.execute(of.sql).fetchall()
    vector = [m * unit for m, unit in zip(moments, of.units_per_grid, strict=True)]
    (recipe,) = of.vector.finishes
    assert isinstance(recipe, Mean)
    number, total = (sum(c * vector[i] for i, c in form.terms) for form in (recipe.number, recipe.total))
    assert recipe.middle + recipe.half * total / number == pytest.approx(0.0, abs=1e-4), "the lower bound"


def test_intervals_of_averages_hold_what_cutting_may_move() -> None:
    of = centred(AVERAGE)
    assert isinstance(of.bound, FromProfile)
    (recipe,) = of.vector.finishes
    assert isinstance(recipe, Mean)
    moved = of.bound.missing_of(recipe)
    assert 0.0 < moved < 5.0
    vector = [0.0] * len(of.vector.moments)
    vector[dict(recipe.number.terms).popitem()[0]] = 1e6
    wide, narrow = (
        _figures(recipe, p, [vector, vector], nonnegative=True)[0]
        for p in (of, replace(of, bound=replace(of.bound, moved=())))
    )
    assert wide.value == narrow.value == pytest.approx(22.5)
    assert narrow.low - wide.low == pytest.approx(wide.high - narrow.high)
    assert narrow.low - wide.low == pytest.approx(1.5 * moved)
    (nobody, _) = _figures(recipe, of, [[0.0] * len(vector)] * 2, nonnegative=True)
    assert (nobody.value, nobody.low, nobody.high) == (None, *recipe.ends)
