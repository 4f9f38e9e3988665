"""Do intervals of sums and averages hold the noise that numbers had before they were stored?

Draws are of whole answers: noise is added to each value and moments get that of the plan. The Laplace noise of k rows
is drawn as the difference of two gamma numbers of shape k, without the clamping of one value in 10,000. Over 4,000
draws a coverage has a standard deviation of 0.34 %, so that one that is 95 % is outside of 93.5 to 96.5 % once in
90,000 checks, and a bias of a tenth of a standard deviation is 6 of its own. For groups, 1,000 draws and 92.5 to 97.5 %
have one false alarm in 3,000. Seeds are fixed, so that a test that passed passes again.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from types import MappingProxyType

import numpy as np
import pytest

from proxy.analysis.evaluate import choices
from proxy.analysis.keys import KeyValue
from proxy.plan.release_plan import PlanContext, ReleasePlan
from proxy.plan.vector.moments import HalfSum, Moment, RowCount, measures_of
from proxy.policy.model import Bounded
from proxy.policy.response import GaussianNoise, LaplaceNoise, Noised
from proxy.release.finish import finish
from proxy.release.noisy import NoisyCell, NoisyCells
from proxy.sql.algebra.nodes import columns_of, conjuncts
from proxy.sql.query.block import BoundBlock, Carries
from tests.unit.plan.survey import PEOPLE, TABLES, of_survey
from tests.unit.release.make import planned_over
from tests.unit.release.test_estimates import Row, chance, passes, where_of, with_interval

DRAWS = 4_000
SEED = 20_261
LAPLACE = LaplaceNoise(Fraction(40), Fraction(0), Fraction(100))
GAUSSIAN = GaussianNoise(Fraction(50), Fraction(0), Fraction(100))
# how many have which pay, smoke, and have which plan
TRUE = ((10.0, False, "free", 1_500), (60.0, False, "pro", 900), (90.0, True, "free", 400), (30.0, True, "pro", 1_200))


def survey(noise: Noised, *, pure: bool) -> PlanContext:
    """The survey whose `size` has this noise: 0 to 100 before it was stored."""
    lo, hi = noise.stored
    columns = tuple(
        replace(c, domain=Bounded(float(lo), float(hi)), randomized=noise) if c.name == "size" else c
        for c in PEOPLE.columns
    )
    tables = MappingProxyType({**TABLES, "people": replace(PEOPLE, columns=columns)})
    return replace(of_survey(pure=pure), tables=tables)


def drawn(noise: Noised, rows: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """The noise of so many rows together."""
    if isinstance(noise, LaplaceNoise):
        scale = float(noise.scale)
        return random.gamma(rows, scale) - random.gamma(rows, scale)
    found: np.ndarray = random.normal(0.0, float(noise.sd) * np.sqrt(rows))
    return found


def of_row(moment: Moment, row: Row, size: float) -> float:
    """What one row that passes adds to a moment, without clamping."""
    if not all(passes(c, row) for c in conjuncts(where_of(moment))):
        return 0.0
    if isinstance(moment, RowCount):
        return 1.0
    (scaled,) = measures_of(moment)
    (column,) = columns_of(scaled.of)
    (value,) = choices(scaled.of, {column: size})
    z = (float(value) - scaled.middle) / scaled.half  # type: ignore[arg-type]
    return (1.0 + moment.sign * z) / 2.0 if isinstance(moment, HalfSum) else z


def exact(plan: ReleasePlan, noise: Noised, draws: int, random: np.random.Generator) -> np.ndarray:
    """The moments of each draw and group over stored rows."""
    keys = plan.public_keys
    found = np.zeros((draws, len(keys), len(plan.sds)))
    names = [k.name for k in plan.analysed.owned.block.keys]  # type: ignore[union-attr]
    for pay, smokes, which, rows in TRUE:
        stored_yes = random.binomial(rows, chance("smokes", smokes, True), draws)
        for stored, many in ((True, stored_yes), (False, rows - stored_yes)):
            total = pay * many + drawn(noise, many, random)
            row: Row = {"smokes": stored, "plan": which}
            for place, key in enumerate(keys):
                if all(row[n] == v for n, v in zip(names, key, strict=True)):
                    for i, moment in enumerate(plan.vector.moments):  # each adds a + b * size for a row
                        a, one = (of_row(moment, row, x) for x in (0.0, 1.0))
                        found[:, place, i] += a * many + (one - a) * total
    return found


def answers(query: str, noise: Noised, *, pure: bool = False, is_noisy: bool = True, draws: int = DRAWS) -> np.ndarray:
    """What is shown: of each draw and group, the number of each column."""
    plan, bound = planned_over(query, survey(noise, pure=pure))
    random = np.random.default_rng(SEED)
    moments, sds = exact(plan, noise, draws, random), np.array(plan.sds)
    shape = moments.shape
    more = random.laplace(0.0, sds / math.sqrt(2.0), shape) if pure else random.normal(0.0, sds, shape)
    grid = np.rint((moments + more * is_noisy) / np.array(plan.units_per_grid))
    shown = plan if is_noisy else replace(plan, agreed=(1e-9,) * len(plan.sds))
    if len(plan.public_keys) == 1:
        return numbers(shown, bound, [()] * draws, grid[:, 0])[:, None]
    return np.array([numbers(shown, bound, plan.public_keys, draw) for draw in grid])  # finished together


def numbers(
    plan: ReleasePlan, bound: BoundBlock, keys: Sequence[tuple[KeyValue, ...]], moments: np.ndarray
) -> np.ndarray:
    columns = tuple(c for c in bound.columns if c.carries is not Carries.KEY)
    cells = tuple(NoisyCell(k, tuple(map(int, m))) for k, m in zip(keys, moments, strict=True))
    release = finish(plan, NoisyCells(cells), columns, nonnegative=True, time_zone="UTC")
    return np.array([[float("nan" if v is None else v) for v in c.values] for c in release.columns]).T


def check(found: np.ndarray, truth: float, *, least: float, most: float) -> None:
    """A coverage may be above `most` where intervals are said to be wider than they need to be: most is 1."""
    value, low, high, sd = found.T
    spread = value.std()
    assert abs(value.mean() - truth) < 0.1 * spread
    assert least <= ((low <= truth) & (truth <= high)).mean() <= most
    if most < 1.0:
        assert sd.mean() == pytest.approx(spread, rel=0.1)
    else:
        assert sd.mean() > 0.95 * spread


def total(*, smokes: bool | None = None, plan: str | None = None) -> tuple[float, float]:
    """The sum of sizes and the number of those who pass."""
    chosen = [(x, n) for x, s, p, n in TRUE if smokes in (None, s) and plan in (None, p)]
    return math.fsum(x * n for x, n in chosen), sum(n for _, n in chosen)


ALL, ROWS = total()
SUM_SMOKERS, SMOKERS = total(smokes=True)
SUM_PRO, PRO = total(plan="pro")


@pytest.mark.parametrize(
    ("noise", "pure", "is_noisy"), [(LAPLACE, False, True), (GAUSSIAN, True, True), (LAPLACE, False, False)]
)
@pytest.mark.parametrize(
    ("aggregate", "truth", "most"),
    [
        ("sum(size)", ALL, 0.965),
        ("avg(size)", ALL / ROWS, 0.965),
        ("avg(2 - size * 4)", 2 - ALL / ROWS * 4, 0.965),
        ("sum(size * 3 + 1) filter (where plan = 'pro')", 3 * SUM_PRO + PRO, 0.965),
        ("sum(size) filter (where smokes)", SUM_SMOKERS, 1.0),
        ("avg(size) filter (where smokes)", SUM_SMOKERS / SMOKERS, 1.0),
    ],
)  # fmt: skip
def test_intervals_hold_the_noise_of_stored_numbers(
    aggregate: str, truth: float, most: float, noise: Noised, pure: bool, is_noisy: bool
) -> None:
    """4,000 draws; bias below a tenth of the standard deviation, coverage 93.5 to 96.5 %.

    With a condition on a randomized column each square is taken for the largest, so that intervals hold more often.
    """
    found = answers(f"select {with_interval(aggregate)} from people", noise, pure=pure, is_noisy=is_noisy)
    check(found[:, 0], truth, least=0.935, most=most)


@pytest.mark.parametrize(
    ("query", "noise", "truth", "most"),
    [
        (f"select plan, {with_interval('sum(size)')} from people group by 1", GAUSSIAN, SUM_PRO, 0.975),
        (f"select plan, {with_interval('avg(size)')} from people group by 1", LAPLACE, SUM_PRO / PRO, 0.975),
        (f"select smokes, {with_interval('sum(size)')} from people group by 1", LAPLACE, SUM_SMOKERS, 1.0),
        (f"select smokes, {with_interval('avg(size)')} from people group by 1", GAUSSIAN, SUM_SMOKERS / SMOKERS, 1.0),
    ],
)  # fmt: skip
def test_intervals_of_groups_hold_the_noise_of_stored_numbers(
    query: str, noise: Noised, truth: float, most: float
) -> None:
    """1,000 draws of whole answers, of which the second group is looked at; coverage 92.5 to 97.5 %."""
    check(answers(query, noise, draws=1_000)[:, 1], truth, least=0.925, most=most)
