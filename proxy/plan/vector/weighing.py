"""How is an aggregate over rows that count with weights finished from the moments of its cells?

Rows are told apart by their stored values, see `analysis.estimated`; a row is in one cell, and the estimate is a sum of
the cells' moments, each with the cell's weight. What the randomization of those values adds to the error follows from
the same moments: the variance of an estimate T is that of the sum with squared weights, less T. Noise that a summed
number had before it was stored adds its own variance for each row, times the square of the row's weight. See
docs/claims/local-answers.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations_with_replacement
from operator import attrgetter

from proxy.analysis.estimated import Cell, Weighted
from proxy.analysis.own_noise import NO_NOISE
from proxy.plan.vector.recipes import (
    NOTHING,
    Count,
    Linear,
    Mean,
    Measured,
    ResponseError,
    Spread,
    SpreadKind,
    SpreadOf,
    Total,
    Variance,
)

_COUNT, _VALUE, _SQUARE = attrgetter("count"), attrgetter("value"), attrgetter("square")


@dataclass(frozen=True, slots=True)
class WeighedRows:
    """The moments of one cell: its number of rows and, of a measure, the sums of z and of its squares."""

    number: Linear
    measured: Measured


def summed(cells: Sequence[Cell], forms: Sequence[Linear], weight: Callable[[Cell], float]) -> Linear:
    """The sum of a form over cells, each with its weight."""
    found = NOTHING
    for cell, form in zip(cells, forms, strict=True):
        found = found.plus(form, weight(cell))
    return found


def counted(of: Weighted, numbers: Sequence[Linear]) -> Count:
    """The number of rows."""
    first = summed(of.cells, numbers, lambda c: c.count)
    second = summed(of.cells, numbers, lambda c: c.count * c.count)
    return Count(first, ResponseError((Variance(second, first),), of.row_sd))


def sum_of_constants(of: Weighted, numbers: Sequence[Linear]) -> Total:
    """The sum of a constant for each true value."""
    second = summed(of.cells, numbers, lambda c: c.value * c.value)
    first = summed(of.cells, numbers, lambda c: c.square)
    return Total(summed(of.cells, numbers, lambda c: c.value), 0, ResponseError((Variance(second, first),), of.row_sd))


def sum_of_values(of: Weighted, rows: Sequence[WeighedRows], largest: float) -> Total:
    """The sum of a measure that is at most `largest` away from 0: so each row's variance is taken to be."""
    total = NOTHING
    for cell, one in zip(of.cells, rows, strict=True):
        value = one.number.times(one.measured.middle).plus(one.measured.total, one.measured.half)
        total = total.plus(value, cell.count)
    numbers = [r.number for r in rows]
    spread = _with_own_noise(of, numbers, _squared(of, numbers, largest * largest), of.own.sd)
    return Total(total, 0, ResponseError((spread,), _row_sd(of, largest)))


def sum_of_counts(of: Weighted, numbers: Sequence[Linear]) -> Total:
    """The sum of what a sub-select counts for each unit. numbers: the sum of each cell's counts."""
    found = counted(of, numbers)
    return Total(found.number, 0, found.response)


def mean_of_counts(of: Weighted, units: Linear, numbers: Sequence[Linear]) -> Mean:
    """The average of what a sub-select counts for each unit. units: their number.

    Its ends are those of a unit all of whose rows have the largest weight, or the least.
    """
    total = sum_of_counts(of, numbers)
    weights = [c.count for c in of.cells]
    least, most = of.most * min(weights, default=0.0), of.most * max(weights, default=0.0)
    nothing = Variance(NOTHING, NOTHING)
    response = replace(total.response, parts=(*total.response.parts, nothing, nothing))
    return Mean(units, total.value, 0.0, 1.0, least, most, response)


def mean_of_constants(of: Weighted, numbers: Sequence[Linear]) -> Mean:
    """The average of a constant for each true value.

    It is centred where the noises of total and number are uncorrelated, if those of the moments are alike.
    """
    squares = math.fsum(c.count * c.count for c in of.cells)
    middle = math.fsum(c.count * c.value for c in of.cells) / squares if squares else 0.0
    lo, hi = of.ends
    number = summed(of.cells, numbers, lambda c: c.count)
    total = summed(of.cells, numbers, lambda c: c.value - middle * c.count)
    response = ResponseError(_of_mean(of, numbers, middle), of.row_sd)
    return Mean(number, total, middle, 1.0, lo - middle, hi - middle, response)


def _of_mean(of: Weighted, numbers: Sequence[Linear], middle: float) -> tuple[Variance, ...]:
    """The variance of a sum of constants less their middle, and of that less the average times the number of rows."""

    def value(cell: Cell) -> float:
        return cell.value - middle * cell.count

    return (
        Variance(
            summed(of.cells, numbers, lambda c: value(c) ** 2),
            summed(of.cells, numbers, lambda c: c.square - 2.0 * middle * c.value + middle * middle * c.count),
        ),
        Variance(
            summed(of.cells, numbers, lambda c: -2.0 * value(c) * c.count),
            summed(of.cells, numbers, lambda c: -2.0 * value(c)),
        ),
        _squared(of, numbers, 1.0),
    )


def mean_of_values(of: Weighted, rows: Sequence[WeighedRows], ends: tuple[float, float]) -> Mean:
    """The average of a measure. ends: of z. The square of z is taken to be 1, so that intervals are wide enough."""
    numbers, totals = [r.number for r in rows], [r.measured.total for r in rows]
    measured = rows[0].measured if rows else Measured(NOTHING, NOTHING, 0.0, 0.0)
    number, total = (summed(of.cells, forms, lambda c: c.count) for forms in (numbers, totals))
    spread, crossed = _squared(of, numbers, 1.0), _squared(of, totals, -2.0)
    own_sd = of.own.sd / measured.half if measured.half else 0.0
    parts = (_with_own_noise(of, numbers, spread, own_sd), crossed, spread)
    response = ResponseError(parts, _row_sd(of, measured.half * 2.0))
    return Mean(number, total, measured.middle, measured.half, *ends, response)


def spread_of_constants(kind: SpreadKind, of: Weighted, numbers: Sequence[Linear], *, is_sample: bool) -> Spread:
    """The variance of a constant for each true value."""
    middle, half = of.ends[0] / 2.0 + of.ends[1] / 2.0, of.ends[1] / 2.0 - of.ends[0] / 2.0
    number, total, squares = (summed(of.cells, numbers, weight) for weight in (_COUNT, _VALUE, _SQUARE))
    parts = _of_mean(of, numbers, 0.0) if of.is_of_two else tuple(_of_powers(of, numbers))
    response = ResponseError(parts, _spread_row_sd(kind, half, 2.0 * half * of.row_sd))
    which = SpreadOf.TWO if of.is_of_two else SpreadOf.CONSTANTS
    return Spread(kind, number, Measured(total, squares, middle, half), is_sample, of=which, response=response)


def _of_powers(of: Weighted, numbers: Sequence[Linear]) -> Iterator[Variance]:
    """The covariances of the sums of powers 0, 1 and 2 of constants; those of two powers count twice."""
    for i, j in combinations_with_replacement(range(3), 2):
        second, first = NOTHING, NOTHING
        for cell, number in zip(of.cells, numbers, strict=True):
            second = second.plus(number, cell.powers[i] * cell.powers[j])
            first = first.plus(number, cell.powers[i + j])
        times = 1.0 if i == j else 2.0
        yield Variance(second.times(times), first.times(times))


def spread_of_values(kind: SpreadKind, of: Weighted, rows: Sequence[WeighedRows], *, is_sample: bool) -> Spread:
    """The variance of a measure."""
    half = rows[0].measured.half if rows else 0.0
    middle = rows[0].measured.middle if rows else 0.0
    sums = ([r.number for r in rows], [r.measured.total for r in rows], [r.measured.squares for r in rows])
    number, total, squares = (summed(of.cells, forms, lambda c: c.count) for forms in sums)
    own = of.own.scaled(1.0 / half) if half else NO_NOISE
    # z is at most 2 from its mean, and the square of that at most 4 from the variance
    noise_sd = math.hypot(4.0 * own.sd, own.sd_of_square) * math.hypot(1.0, of.row_sd)
    row_sd = _spread_row_sd(kind, half, half * half * math.hypot(4.0 * of.row_sd, noise_sd))
    response = ResponseError(tuple(_squared(of, forms, 1.0) for forms in sums), row_sd)
    return Spread(kind, number, Measured(total, squares, middle, half), is_sample, own, response=response)


def _spread_row_sd(kind: SpreadKind, half: float, of_variance: float) -> float:
    """What one row adds at most; to a deviation, where values are spread evenly between their bounds."""
    if kind is SpreadKind.DEVIATION:
        return of_variance / (2.0 * half / math.sqrt(3.0)) if half else 0.0
    return of_variance


def _squared(of: Weighted, forms: Sequence[Linear], factor: float) -> Variance:
    second, first = (summed(of.cells, forms, weight) for weight in (lambda c: c.count * c.count, lambda c: c.count))
    return Variance(second.times(factor), first.times(factor))


def _with_own_noise(of: Weighted, numbers: Sequence[Linear], spread: Variance, own_sd: float) -> Variance:
    """A variance with that of the noise of stored numbers; own_sd: of one, in the units of the sum."""
    rows = summed(of.cells, numbers, lambda c: c.count * c.count)
    return Variance(spread.second.plus(rows, own_sd * own_sd), spread.first)


def _row_sd(of: Weighted, largest: float) -> float:
    """What one row of a value of at most `largest` adds at most. A weight's mean square is at most 1 + row_sd^2."""
    return math.hypot(of.row_sd * largest, of.own.sd * math.hypot(1.0, of.row_sd))
