"""What do noisy numbers of units by size say, and which bound is chosen from them?"""

from __future__ import annotations

import math
import random
from dataclasses import replace

import numpy as np
import pytest

from proxy.analysis.learned import Learned
from proxy.plan.profile.bound_choice import FROM_POLICY, FromProfile
from proxy.plan.profile.learned import best_edge, noise_of_one, told_of, usable
from proxy.plan.profile.profile import BUCKETS, Sizes, TableProfile, edges
from proxy.plan.reuse.derive import _count_alike, _counts_as_much
from proxy.plan.sets.sets import SetsPlan
from proxy.plan.vector.moments import RowCount, UnitCount
from proxy.plan.words.explain_sets import explain_plan, plan_lines
from proxy.policy.model import Accounting, Neighbors, Privacy
from tests.unit.plan.shop import any_plan, context, plan

SD = 8.0


def counted(sizes: list[float], least: float = 1.0, *, seed: int = 1, sd: float = SD) -> Sizes:
    """Units by size, with noise from a fixed stream."""
    rng, found = random.Random(seed), [0] * BUCKETS
    for place in np.searchsorted(np.array(edges(least)), np.array(sizes)):
        found[place] += 1
    return Sizes(least, tuple(n + rng.gauss(0.0, sd) for n in found), sd)


def skewed(units: int, seed: int = 5) -> list[float]:
    """Sizes like those of orders: most are small, few are large."""
    rng = random.Random(seed)
    return [float(max(1, round(rng.lognormvariate(1.6, 1.1)))) for _ in range(units)]


ROWS = skewed(40_000)
PROFILE = TableProfile(
    table="orders", allowed=60, rows=counted(ROWS), data_version="7",
    sums=(("amount", 1000.0, counted([n * 0.05 for n in ROWS], 2.0**-12)),),
)  # fmt: skip
PROFILED = replace(context(), profiles=(PROFILE,))


@pytest.mark.parametrize(
    ("least", "counts", "sd"),
    [(1.0, 3, 1.0), (0.0, BUCKETS, 1.0), (1.0, BUCKETS, 0.0), (math.inf, BUCKETS, 1.0), (1.0, BUCKETS, math.nan)],
)
def test_sizes_that_cannot_be_are_refused(least: float, counts: int, sd: float) -> None:
    with pytest.raises(ValueError):
        Sizes(least, (0.0,) * counts, sd)


@pytest.mark.parametrize("seed", range(5))
def test_the_tail_is_about_the_number_of_units_above_each_edge(seed: int) -> None:
    tail = counted(ROWS, seed=seed).tail
    assert tail.units == pytest.approx(len(ROWS), rel=0.01)
    assert list(tail.above) == sorted(tail.above, reverse=True)
    for edge, above in zip(tail.edges, tail.above, strict=True):
        true = sum(n > edge for n in ROWS)
        if true > 40 * SD:
            assert above == pytest.approx(true, rel=0.1)
    lost, beyond = (
        sum(max(0.0, n - 100.0) for n in sizes)
        for sizes in (ROWS, [float(x) for x in tail.sizes_at(_ranks(tail.units))])
    )
    assert beyond == pytest.approx(lost, rel=2.0), "what is beyond is a guess, and not far off"


def _ranks(units: float) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    return np.arange(0.5, units)


@pytest.mark.parametrize("seed", range(20))
def test_noise_alone_makes_no_units(seed: int) -> None:
    tail = counted([], seed=seed).tail
    assert not any(tail.above)
    assert tail.units < 10 * SD


def test_few_units_of_one_size_have_no_tail() -> None:
    tail = counted([4.0] * 1000).tail
    assert tail.above[10] < 4 * SD
    assert max(tail.above[24:]) == 0.0


@pytest.mark.parametrize(
    ("numbers", "sd", "beyond"),
    [
        ([245, 429, 388, 353, 260, 452, 538, 333, 72, 153, 11, 4, -7, -12, 3, -11, 15], 14.0, 46.0),
        ([484, 503, 460, 516, 411, 416, 377, 319, 257, 177, 101, 40, -37, -2, -13, 22, -9], 13.0, 39.0),
    ],
)
def test_units_behind_the_last_bucket_that_was_seen_are_not_forgotten(
    numbers: list[float], sd: float, beyond: float
) -> None:
    """Sums of distances of planes, of runs of players, as once drawn. beyond: so many units there are."""
    last = max(j for j, n in enumerate(numbers) if n > 4 * sd)
    tail = Sizes(1.0, (*numbers, *([0.0] * (BUCKETS - len(numbers)))), sd).tail
    assert tail.seen == last
    assert beyond / 4 < tail.above[last] < 3 * beyond


def test_a_second_hill_far_away_is_seen() -> None:
    tail = counted([1.0] * 20_000 + [300.0] * 2_000).tail
    assert tail.above[14] == pytest.approx(2_000, rel=0.05), "above 128"
    assert tail.above[18] < 100, "above 512"


@pytest.mark.parametrize(
    ("query", "least", "most"),
    [
        ("select count(*) from orders", 60, 400),
        ("select status, count(*) from orders group by status", 60, 400),
        ("select sum(amount) from orders", 3, 20),
        ("select status, sum(amount), count(*) from orders group by status", 3, 400),
    ],
)
def test_a_bound_is_chosen_that_leaves_little_out(query: str, least: float, most: float) -> None:
    of = plan(query, PROFILED)
    assert isinstance(of.bound, FromProfile)
    assert least <= of.bound.rows <= most
    assert of.bound.loss < 0.05
    assert of.bound.error < 0.8 * of.bound.by_policy
    assert of.allocation.is_chosen
    assert "heavy" in of.sql or "AS f" in of.sql
    lines = " ".join(" ".join(plan_lines(explain_plan(of, PROFILED.privacy))).split())
    assert "by the profile of data version 7" in lines
    assert "chosen; what a unit has is scaled down to it" in lines


def test_a_smaller_price_chooses_a_smaller_bound() -> None:
    chosen = []
    for pico in (10**8, 10**9, 10**10, 10**11):
        of = plan("select sum(amount) from orders", replace(PROFILED, pico=pico))
        chosen.append(of.allocation.unit_norm / max(of.allocation.weights))
    assert chosen == sorted(chosen)
    assert chosen[0] < chosen[-1] / 2


@pytest.mark.parametrize(
    "query",
    [
        "select avg(amount) from orders",
        "select order_id, count(*) from orders group by order_id",
        "select status, made, count(*) from orders group by status, made",
        "select count(*) from orders a join orders b using (user_id)",
        "select count(*) from items",
        "select count(*) from users",
        "select min(amount) from orders",
    ],
)
def test_what_a_profile_says_nothing_of_keeps_the_policys_bounds(query: str) -> None:
    of = plan(query, PROFILED)
    assert of.bound == FROM_POLICY
    assert not of.allocation.is_chosen


def test_grouping_sets_keep_the_policys_bounds() -> None:
    found = any_plan("select status, count(*) from orders group by rollup (status)", PROFILED)
    assert isinstance(found, SetsPlan)
    assert {p.bound for p in found.plans} == {FROM_POLICY}


@pytest.mark.parametrize("accounting", [Accounting.ZCDP, Accounting.PURE])
def test_a_profile_of_nobody_changes_nothing(accounting: Accounting) -> None:
    nobody = replace(PROFILE, rows=counted([]), sums=())
    of = replace(context(pure=accounting is Accounting.PURE), profiles=(nobody,))
    assert plan("select count(*) from orders", of).bound == FROM_POLICY


def test_the_price_and_the_profile_decide_alone() -> None:
    """Two plans of one text are one; the profile is part of what it rests on, and no engine is asked."""
    first, second = (plan("select sum(amount) from orders", PROFILED) for _ in range(2))
    assert first.fingerprint == second.fingerprint
    other = replace(PROFILED, profiles=(replace(PROFILE, rows=counted(ROWS[:4000]), sums=()),))
    assert plan("select sum(amount) from orders", other).fingerprint != first.fingerprint


# --- what is not bounded by a chosen B --------------------------------------------------------------------------


def test_a_narrower_bound_is_used_where_it_promises_less_error() -> None:
    hills = counted([4.0] * 3000 + [300.0] * 300)
    assert best_edge(hills, 1000.0, 1e6) <= 6.0, "noise of a million rows hides what three hundred units lose"
    assert best_edge(hills, 1000.0, 0.1) >= 256.0
    assert best_edge(hills, 5.0, 100.0) == 5.0, "never above what the policy allows"
    assert best_edge(counted([]), 1000.0, 9.0) == 1000.0


def test_what_a_release_uses_follows_from_its_price() -> None:
    privacy = Privacy(unit="customer")
    rows = [usable([replace(PROFILE, allowed=5000)], privacy, pico).rows for pico in (10**7, 10**9, 10**12)]
    sizes = [most for ((_, most, words),) in rows if words == "by the profile of data version 7"]
    assert sizes == sorted(sizes)
    assert len(sizes) == 3
    assert usable([], privacy, 10**9) == Learned()
    assert noise_of_one(Privacy(unit="customer", neighbors=Neighbors.REPLACE_ONE), 10**9) == pytest.approx(
        2 * noise_of_one(privacy, 10**9)
    )


def test_what_is_known_is_told_with_its_column() -> None:
    words = told_of([PROFILE], "orders", "amount")
    assert words is not None
    assert words.startswith("99 of 100 units have at most ")
    assert ", 99 of 100 units have sums of size " in words
    assert told_of([PROFILE], "orders", "status") == words.split(", ")[0]
    assert told_of([replace(PROFILE, allowed=1, sums=())], "orders", "amount") is None
    assert told_of([PROFILE], "users", "age") is None


# --- what a choice meets ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("is_pure", [False, True])
@pytest.mark.parametrize(
    "query",
    [
        "select status, count(distinct user_id) from orders group by status",
        "select status, count(distinct user_id), sum(amount) from orders group by status",
        "select count(distinct user_id), count(*), min(amount) from orders",
        "select sum(t.age) from orders join users t using (user_id)",
        "select sum(hours) from census",
    ],
)
def test_other_moments_are_planned_beside_a_profile(query: str, is_pure: bool) -> None:
    census = TableProfile(table="census", allowed=1, rows=counted([1.0] * 9000), sums=(), data_version="7")
    of = plan(query, replace(context(pure=is_pure), profiles=(PROFILE, census)))
    assert of.allocation.unit_norm > 0
    assert of.allocation.is_chosen == (of.bound != FROM_POLICY)


def test_a_column_that_was_profiled_already_narrow_gets_no_bound() -> None:
    narrow = replace(PROFILE, allowed=1, sums=(("amount", 1000.0, counted([1.0] * 9000, 2.0**-12)),))
    assert usable([narrow], Privacy(unit="customer"), 10**10) == Learned()


def test_numbers_that_bend_upwards_are_followed_by_a_straight_line() -> None:
    counts = [0.0] * BUCKETS
    counts[3:9] = [60_000.0, 12_000.0, 4_000.0, 2_000.0, 1_500.0, 1_400.0]
    tail = Sizes(1.0, tuple(counts), 1.0).tail
    assert list(tail.above) == sorted(tail.above, reverse=True)
    assert tail.above[20] < tail.above[8]


def test_answers_are_not_derived_where_a_bound_was_chosen() -> None:
    chosen = plan("select status, sum(amount) from orders group by status", PROFILED)
    natural = plan("select status, sum(amount) from orders group by status")
    assert chosen.allocation.is_chosen
    assert not _counts_as_much(natural, chosen, 1)
    assert not _counts_as_much(chosen, natural, 1)
    assert not _count_alike(chosen, natural)


@pytest.mark.parametrize("query", [
    "select count(*) from orders", "select count(*), sum(amount) from orders",
    "select status, count(distinct user_id) from orders group by status",
    "select count(distinct user_id) filter (where amount > 3), count(distinct user_id), sum(amount) from orders",
])  # fmt: skip
@pytest.mark.parametrize("pure", [False, True])
def test_a_bound_holds_a_row_that_is_counted_however_dear_noise_is(query: str, pure: bool) -> None:
    """Numbers of units are not cut before a unit's factor is computed, and are at most 2^10 times as long as it."""
    found = 0
    for pico in (10**3, 10**5, 10**7, 10**9):
        of = plan(query, replace(context(pure=pure), profiles=(PROFILE,), pico=pico))
        counted = [w for m, w in zip(of.vector.moments, of.allocation.weights, strict=True)
                   if isinstance(m, (RowCount, UnitCount))]  # fmt: skip
        units = [w for m, w in zip(of.vector.moments, of.allocation.weights, strict=True) if isinstance(m, UnitCount)]
        if of.allocation.is_chosen:
            found += 1
            assert of.allocation.unit_norm >= max(counted, default=0.0)
            assert of.allocation.unit_norm * 2**10 >= (math.fsum(units) if pure else math.hypot(*units))
    assert found
