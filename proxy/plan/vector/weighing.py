"""How is an aggregate over rows that count with weights finished from the moments of its cells?

Rows are told apart by their stored values, see `analysis.estimated`; a row is in one cell, and the estimate is a sum of
the cells' moments, each with the cell's weight. What the randomization of those values adds to the error follows from
the same moments: the variance of an estimate T is that of the sum with squared weights, less T. Noise that a summed
number had before it was stored adds its own variance for each row, times the square of the row's weight. See
docs/claims/local-answers.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from proxy.analysis.estimated import Cell, Weighted
from proxy.plan.vector.recipes import NOTHING, Count, Linear, Mean, Measured, Response, Total, Variance


@dataclass(frozen=True, slots=True)
class Rows:
    """The moments of one cell: its number of rows and, of a measure, the sum of z."""

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
    return Count(first, Response((Variance(second, first),), of.row_sd))


def sum_of_constants(of: Weighted, numbers: Sequence[Linear]) -> Total:
    """The sum of a constant for each true value."""
    second = summed(of.cells, numbers, lambda c: c.value * c.value)
    first = summed(of.cells, numbers, lambda c: c.square)
    return Total(summed(of.cells, numbers, lambda c: c.value), 0, Response((Variance(second, first),), of.row_sd))


def sum_of_values(of: Weighted, rows: Sequence[Rows], largest: float) -> Total:
    """The sum of a measure that is at most `largest` away from 0: so each row's variance is taken to be."""
    total = NOTHING
    for cell, one in zip(of.cells, rows, strict=True):
        value = one.number.times(one.measured.middle).plus(one.measured.total, one.measured.half)
        total = total.plus(value, cell.count)
    numbers = [r.number for r in rows]
    spread = _with_own_noise(of, numbers, _squared(of, numbers, largest * largest), of.own_sd)
    return Total(total, 0, Response((spread,), _row_sd(of, largest)))


def mean_of_constants(of: Weighted, numbers: Sequence[Linear]) -> Mean:
    """The average of a constant for each true value.

    It is centred where the noises of total and number are uncorrelated, if those of the moments are alike.
    """
    squares = math.fsum(c.count * c.count for c in of.cells)
    middle = math.fsum(c.count * c.value for c in of.cells) / squares if squares else 0.0
    lo, hi = of.ends

    def value(cell: Cell) -> float:
        return cell.value - middle * cell.count

    number, total = (summed(of.cells, numbers, w) for w in (lambda c: c.count, value))
    parts = (
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
    return Mean(number, total, middle, 1.0, lo - middle, hi - middle, Response(parts, of.row_sd))


def mean_of_values(of: Weighted, rows: Sequence[Rows], ends: tuple[float, float]) -> Mean:
    """The average of a measure. ends: of z. The square of z is taken to be 1, so that intervals are wide enough."""
    numbers, totals = [r.number for r in rows], [r.measured.total for r in rows]
    measured = rows[0].measured if rows else Measured(NOTHING, NOTHING, 0.0, 0.0)
    number, total = (summed(of.cells, forms, lambda c: c.count) for forms in (numbers, totals))
    spread, crossed = _squared(of, numbers, 1.0), _squared(of, totals, -2.0)
    own_sd = of.own_sd / measured.half if measured.half else 0.0
    parts = (_with_own_noise(of, numbers, spread, own_sd), crossed, spread)
    response = Response(parts, _row_sd(of, measured.half * 2.0))
    return Mean(number, total, measured.middle, measured.half, *ends, response)


def _squared(of: Weighted, forms: Sequence[Linear], factor: float) -> Variance:
    second, first = (summed(of.cells, forms, weight) for weight in (lambda c: c.count * c.count, lambda c: c.count))
    return Variance(second.times(factor), first.times(factor))


def _with_own_noise(of: Weighted, numbers: Sequence[Linear], spread: Variance, own_sd: float) -> Variance:
    """A variance with that of the noise of stored numbers; own_sd: of one, in the units of the sum."""
    rows = summed(of.cells, numbers, lambda c: c.count * c.count)
    return Variance(spread.second.plus(rows, own_sd * own_sd), spread.first)


def _row_sd(of: Weighted, largest: float) -> float:
    """What one row of a value of at most `largest` adds at most. A weight's mean square is at most 1 + row_sd^2."""
    return math.hypot(of.row_sd * largest, of.own_sd * math.hypot(1.0, of.row_sd))
