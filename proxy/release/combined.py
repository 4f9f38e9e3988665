"""How far may what is computed of several noisy numbers be from the exact one?

A formula is brought to one fraction whose parts are first-order estimates over all noises of the release: its interval
knows that the denominator is noisy. See docs/claims/post-processing.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import assert_never

from proxy.dp.accuracy import Noisy, half_width_95, ratio_interval
from proxy.dp.estimate import Estimate
from proxy.plan.parts.distinct import DistinctPart
from proxy.plan.release_plan import ReleasePlan
from proxy.plan.vector.formulas import divisors, related, relation, spread, squares_of
from proxy.plan.vector.recipes import (
    Apart,
    Count,
    Linear,
    Mean,
    Relation,
    RelationKind,
    Spread,
    SpreadKind,
    Total,
    response_of,
)
from proxy.release.figure import Figure
from proxy.release.noisy import NoisyCell, NoisyCells
from proxy.sql.query.front.formula import CUT_OFF, Formula, FormulaAggregate, FormulaConstant, Operation, values_in

UNKNOWN = Figure(None, math.inf, -math.inf, math.inf)


@dataclass(frozen=True, slots=True)
class Fraction:
    """over / under, neither of which has been divided."""

    over: Estimate
    under: Estimate


def combined_figures(
    formula: Formula, plan: ReleasePlan, cells: NoisyCells, vectors: Sequence[Sequence[float]]
) -> list[Figure]:
    """The noise of a formula in each cell."""
    if any(response_of(plan.vector.finishes[number]).parts for number in values_in(formula)):
        return [UNKNOWN] * len(cells.cells)  # estimates of one release share the randomization of stored values
    noises = _Noises(plan)
    return [noises.figure(formula, cell, vector) for cell, vector in zip(cells.cells, vectors, strict=True)]


class _Noises:
    """All noises of a release in one order: those of its moments, then those of what is counted apart."""

    def __init__(self, plan: ReleasePlan) -> None:
        self._plan = plan
        finishes = plan.vector.finishes
        self._apart = {
            r: len(plan.sds) + i for i, r in enumerate(dict.fromkeys(f for f in finishes if isinstance(f, Apart)))
        }
        self._sds = (*plan.sds, *(self._part(r).sd for r in self._apart))
        self._reach = half_width_95(plan.distribution, 1.0)

    def figure(self, formula: Formula, cell: NoisyCell, vector: Sequence[float]) -> Figure:
        """An interval of everything where what is divided by cannot be told from 0."""
        try:
            found = self._interval(_Cell(self, cell, vector).read(formula))
        except (ValueError, ZeroDivisionError):  # a root or a quotient of noise
            return UNKNOWN
        return _cut_off(found) if isinstance(formula, Operation) and formula.sign == CUT_OFF else found

    def _interval(self, of: Fraction) -> Figure:
        over, under = of.over, of.under
        crossed = under.scaled(over.value).plus(over, -under.value)
        covariance = math.fsum(x * y * s * s for x, y, s in zip(over.slopes, under.slopes, self._sds, strict=True))
        wide = crossed.sd(self._sds)
        found = ratio_interval(self._noisy(over), self._noisy(under), covariance, wide * wide, self._reach)
        if math.isinf(found.low):
            return UNKNOWN
        return Figure(over.value / under.value, over.over(under).sd(self._sds), found.low, found.high)

    def _noisy(self, of: Estimate) -> Noisy:
        return Noisy(of.value, of.sd(self._sds))

    def check_seen(self, *divisors: Estimate) -> None:
        """Raises ValueError where one of what is divided by cannot be told from 0."""
        if any(d.value <= self._reach * d.sd(self._sds) for d in divisors):
            raise ValueError("noise is divided by")

    def _part(self, recipe: Apart) -> DistinctPart:
        part = self._plan.parts[recipe.part]
        assert isinstance(part, DistinctPart), "what is counted apart is computed by such a part"
        return part

    def constant(self, value: float) -> Estimate:
        return Estimate(value, (0.0,) * len(self._sds))

    def linear(self, form: Linear, vector: Sequence[float]) -> Estimate:
        slopes = [0.0] * len(self._sds)
        for index, coefficient in form.terms:
            slopes[index] += coefficient
        return Estimate(math.fsum(c * vector[i] for i, c in form.terms), tuple(slopes))

    def counted(self, recipe: Apart, cell: NoisyCell) -> Estimate:
        found = self._apart[recipe]
        slopes = tuple(float(i == found) for i in range(len(self._sds)))
        return Estimate(cell.parts[recipe.part][recipe.place] / self._part(recipe).scale, slopes)

    def recipe(self, number: int) -> object:
        return self._plan.vector.finishes[number]


class _Cell:
    """One cell of a release, from which formulas are read."""

    def __init__(self, noises: _Noises, cell: NoisyCell, vector: Sequence[float]) -> None:
        self._noises = noises
        self._cell = cell
        self._vector = vector

    def read(self, formula: Formula) -> Fraction:
        match formula:
            case FormulaConstant(value):
                return self._whole(self._noises.constant(value))
            case FormulaAggregate(number):
                return self._value(number)
            case Operation(sign, left, right):
                return _operation(sign, self.read(left), self.read(right))
            case _ as never:
                assert_never(never)

    def _value(self, number: int) -> Fraction:
        match self._noises.recipe(number):
            case Count(form) | Total(form):
                return self._whole(self._linear(form))
            case Mean(form, total, middle, half):
                rows = self._linear(form)
                return Fraction(self._linear(total).scaled(half).plus(rows, middle), rows)
            case Apart() as recipe:
                return self._whole(self._noises.counted(recipe, self._cell))
            case Spread() as recipe:
                self._noises.check_seen(self._linear(recipe.number))
                found = spread(
                    recipe, squares_of(recipe, lambda form, _: self._linear(form)), is_sample=recipe.is_sample
                )
                return self._whole(found.root() if recipe.kind is SpreadKind.DEVIATION else found)
            case Relation() as recipe:
                of = related(recipe, lambda form, _: self._linear(form))
                self._noises.check_seen(of.number, *divisors(recipe.kind, of))
                found = relation(recipe, of, is_sample=recipe.is_sample)
                return self._whole(found.times(found) if recipe.kind is RelationKind.DETERMINATION else found)
            case _ as other:
                raise AssertionError(f"{other} is in no formula")

    def _linear(self, form: Linear) -> Estimate:
        return self._noises.linear(form, self._vector)

    def _whole(self, of: Estimate) -> Fraction:
        return Fraction(of, self._noises.constant(1.0))


def _operation(sign: str, left: Fraction, right: Fraction) -> Fraction:
    match sign:
        case "*":
            return Fraction(left.over.times(right.over), left.under.times(right.under))
        case "/" | "//":  # what is cut off is so in the end
            return Fraction(left.over.times(right.under), left.under.times(right.over))
        case _ if left.under == right.under:
            return Fraction(left.over.plus(right.over, 1.0 if sign == "+" else -1.0), left.under)
        case _:
            crossed = right.over.times(left.under)
            over = left.over.times(right.under).plus(crossed, 1.0 if sign == "+" else -1.0)
            return Fraction(over, left.under.times(right.under))


def _cut_off(found: Figure) -> Figure:
    """Of what PostgreSQL cuts off towards 0: the order of numbers stays, so an interval holds as well as before."""
    ends = (end if math.isinf(end) else float(math.trunc(end)) for end in (found.low, found.high))
    value = None if found.value is None else float(math.trunc(found.value))
    return Figure(value, found.sd, *ends)
