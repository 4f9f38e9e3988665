"""When is a noisy variance, correlation or verdict shown, and how far may it be from the exact one?

Every test is of noisy numbers. Intervals are those of the delta method around the raw noisy value, cut to the possible
range. See docs/claims/post-processing.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import assert_never

from proxy.dp.accuracy import half_width_95
from proxy.dp.estimate import Estimate
from proxy.dp.mechanisms import Distribution
from proxy.plan.release_plan import ReleasePlan
from proxy.plan.vector.formulas import divisors, related, relation, spread, squares_of
from proxy.plan.vector.recipes import (
    Computed,
    Linear,
    Relation,
    RelationKind,
    Spread,
    SpreadKind,
    Verdict,
    linear_parts,
)
from proxy.release.figure import Figure

_SEEN = 0.5  # a noisy number of rows from here on is one row rather than none


@dataclass(frozen=True, slots=True)
class Drawn:
    """What the randomization of stored values adds to errors: standard deviations."""

    of_number: float = 0.0
    of_spread: float = 0.0


NOTHING_DRAWN = Drawn()


class FormReader:
    """Reads the linear forms of one recipe from noisy moments."""

    def __init__(self, recipe: Computed, plan: ReleasePlan) -> None:
        used = sorted({i for form in linear_parts(recipe) for i, _ in form.terms})
        self._used = tuple(used)
        self._coefficients = {form: _spread_out(form, self._used) for form in linear_parts(recipe)}
        self._distribution = plan.distribution
        self.sds = tuple(plan.sds[i] for i in used)

    def read(self, form: Linear, vector: list[float]) -> Estimate:
        coefficients = self._coefficients[form]
        return Estimate(math.fsum(c * vector[i] for c, i in zip(coefficients, self._used, strict=True)), coefficients)

    def reach(self, of: Estimate) -> float:
        """Half the width of the 95 % interval."""
        return half_width_95(self._distribution, of.sd(self.sds))

    def is_lost(self, of: Estimate, least: float = 0.0, drawn: float = 0.0) -> bool:
        """Whether a number that must be positive is too small to tell from its noise. drawn: other errors' sd."""
        return of.value <= 0 or of.value < max(least, 2 * math.hypot(of.sd(self.sds), drawn))


def _spread_out(form: Linear, used: tuple[int, ...]) -> tuple[float, ...]:
    coefficients = dict(form.terms)
    return tuple(coefficients.get(i, 0.0) for i in used)


def spread_figure(recipe: Spread, reader: FormReader, vector: list[float], drawn: Drawn = NOTHING_DRAWN) -> Figure:
    """A variance within what its bounds allow, NULL when the noisy number of rows is too small for it.

    One that is estimated may be above that, as an estimated count may be below 0: cut, it would be wrong on average.
    """
    area = recipe.measured.half**2
    number = reader.read(recipe.number, vector)
    is_sum = recipe.kind is SpreadKind.SQUARES
    if reader.is_lost(number, 2.0 if recipe.is_sample else 1.0, drawn.of_number):
        return no_spread(recipe)
    raw = spread(recipe, squares_of(recipe, lambda form, _: reader.read(form, vector)), is_sample=recipe.is_sample)
    most = math.inf
    if not drawn.of_spread:
        most = area * rows_weight(number.value, is_sum=is_sum, is_sample=recipe.is_sample)
    found = _within(raw, reader, 0.0, most, drawn.of_spread)
    return root_of(found) if recipe.kind is SpreadKind.DEVIATION else found


def no_spread(recipe: Spread) -> Figure:
    """NULL, with the interval of all values that it can have."""
    most = _most_anywhere(recipe.measured.half**2, is_sum=recipe.kind is SpreadKind.SQUARES, is_sample=recipe.is_sample)
    return Figure(None, math.inf, 0.0, math.sqrt(most) if recipe.kind is SpreadKind.DEVIATION else most)


def relation_figure(recipe: Relation, reader: FormReader, vector: list[float]) -> Figure:
    """A relation of two measures, NULL when rows, or differences to divide by, are too few to tell from noise."""
    area, is_sum = recipe.y.half * recipe.x.half, recipe.kind is RelationKind.PRODUCTS
    number = reader.read(recipe.number, vector)
    unknown = _most_anywhere(area, is_sum=is_sum, is_sample=recipe.is_sample)
    if reader.is_lost(number, 2.0 if recipe.is_sample else 1.0):
        return _nothing(recipe.kind, unknown)
    of = related(recipe, lambda form, _: reader.read(form, vector))
    if any(reader.is_lost(d) for d in divisors(recipe.kind, of)):
        return _nothing(recipe.kind, unknown)
    raw = relation(recipe, of, is_sample=recipe.is_sample)
    most = area * rows_weight(number.value, is_sum=is_sum, is_sample=recipe.is_sample)
    if recipe.kind is RelationKind.DETERMINATION:
        return _square(_within(raw, reader, -1.0, 1.0))
    return _within(raw, reader, *_range(recipe.kind, most))


def verdict_figure(recipe: Verdict, reader: FormReader, vector: list[float]) -> Figure:
    """1 for true and 0 for false: whether the rows that decide it are told from noise; NULL when no rows are."""
    holding, failing = reader.read(recipe.holding, vector), reader.read(recipe.failing, vector)
    if reader.is_lost(holding.plus(failing), _SEEN):
        return Figure(None, math.inf, -math.inf, math.inf)
    is_decided = not reader.is_lost(failing if recipe.needs_all else holding, _SEEN)
    return Figure(float(is_decided is not recipe.needs_all), math.inf, -math.inf, math.inf)


# --- ranges -----------------------------------------------------------------------------------------------


def rows_weight(number: float, *, is_sum: bool, is_sample: bool) -> float:
    """What a mean product is multiplied with: n for a sum, n / (n - 1) for a sample."""
    if is_sum:
        return number
    return number / (number - 1.0) if is_sample else 1.0


def _most_anywhere(area: float, *, is_sum: bool, is_sample: bool) -> float:
    """The largest value for any number of rows."""
    return math.inf if is_sum else area * (2.0 if is_sample else 1.0)


def _range(kind: RelationKind, most: float) -> tuple[float, float]:
    match kind:
        case RelationKind.PRODUCTS | RelationKind.COVARIANCE:
            return -most, most
        case RelationKind.CORRELATION:
            return -1.0, 1.0
        case RelationKind.DETERMINATION:
            return 0.0, 1.0
        case RelationKind.SLOPE | RelationKind.INTERCEPT:
            return -math.inf, math.inf
        case _ as never:
            assert_never(never)


def _nothing(kind: RelationKind, most: float) -> Figure:
    low, high = _range(kind, most)
    return Figure(None, math.inf, low, high)


def _within(raw: Estimate, reader: FormReader, low: float, high: float, drawn: float = 0.0) -> Figure:
    def cut(value: float) -> float:
        return min(max(value, low), high)

    reach = math.hypot(reader.reach(raw), half_width_95(Distribution.GAUSSIAN, drawn))
    return Figure(cut(raw.value), math.hypot(raw.sd(reader.sds), drawn), cut(raw.value - reach), cut(raw.value + reach))


def root_of(of: Figure) -> Figure:
    """The root of a variance. Its noise grows near 0, but no further than the root of the variance's own."""
    assert of.value is not None
    root = math.sqrt(of.value)
    sd = min(of.sd / (2.0 * root), math.sqrt(of.sd)) if root > 0 else math.sqrt(of.sd)
    return Figure(root, sd, math.sqrt(of.low), math.sqrt(of.high))


def _square(of: Figure) -> Figure:
    """The square of a correlation, whose noise has no first order where the correlation is 0."""
    assert of.value is not None
    low = 0.0 if of.low <= 0.0 <= of.high else min(of.low**2, of.high**2)
    return Figure(
        of.value**2, of.sd * math.hypot(2.0 * of.value, math.sqrt(2.0) * of.sd), low, max(of.low**2, of.high**2)
    )
