"""What are the exact histograms of quantiles, by definition?

Plain Python over rows in memory: the cell of each row, how much of a unit counts, and the sums. Public numbers (the
grid, C, how many full groups count) come from the plan.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Collection, Hashable, Mapping
from datetime import datetime
from typing import TypeVar, assert_never

from proxy.analysis.keys import PrivateKey
from proxy.dp.mechanisms import Distribution
from proxy.dp.quantiles import ROW_WEIGHT
from proxy.plan.parts.quantile_grid import Days, Moments, QuantileGrid, Reals, Wholes
from proxy.plan.parts.quantiles import QuantilePart
from proxy.plan.release_plan import ReleasePlan
from proxy.plan.vector.moments import RowCount
from proxy.sql.algebra.nodes import TRUE, ColumnRef
from tests.oracle import times
from tests.oracle.bounded import NORM_UNITS, Key, Oracle
from tests.oracle.rows import Unit
from tests.oracle.scalars import Reading, Row

_LESS = 1.0 - 2.0**-40

Place = TypeVar("Place", bound=Hashable)
Histograms = Mapping[Key, Mapping[int, int]]


def histograms(oracle: Oracle, plan: ReleasePlan, part: QuantilePart, kept: Collection[Key]) -> Histograms:
    """Weights by key and cell. kept: the private parts of keys that were released; of no importance without them."""
    return weighed(held_cells(oracle, plan, part, kept), plan, part.ladder.groups)


def weighed(
    units: Mapping[Unit, Mapping[Key, Counter[Place]]], plan: ReleasePlan, groups: int
) -> Mapping[Key, Mapping[Place, int]]:
    """Weights by key and place of units within their bounds. groups: so many full ones count."""
    found: dict[Key, Counter[Place]] = defaultdict(Counter)
    bounds = plan.analysed.bounds
    for held in units.values():
        shares = [_norm(c.total(), bounds.rows_per_group, plan.distribution) for c in held.values()]
        norm, most = sum(shares), groups * NORM_UNITS
        everywhere = 1.0
        if norm > most:
            everywhere = math.sqrt(most / norm) if plan.distribution is Distribution.GAUSSIAN else most / norm
        for key, cells in held.items():
            rows = cells.total()
            share = (bounds.rows_per_group / rows if rows > bounds.rows_per_group else 1.0) * everywhere
            for cell, n in cells.items():
                found[key][cell] += math.trunc(n * (ROW_WEIGHT * _LESS) * share) if share < 1.0 else n * ROW_WEIGHT
    return found


def _norm(rows: int, limit: int, distribution: Distribution) -> int:
    """A unit's share of a full group, squared or not, in 2^-40, rounded up."""
    if rows >= limit:
        return NORM_UNITS
    if distribution is Distribution.GAUSSIAN:
        return math.ceil(rows * rows * (NORM_UNITS / limit**2))
    return math.ceil(rows * (NORM_UNITS / limit))


def held_cells(
    oracle: Oracle, plan: ReleasePlan, part: QuantilePart, kept: Collection[Key]
) -> Mapping[Unit, Mapping[Key, Counter[int]]]:
    """By unit and key, the number of its rows in each cell."""
    is_private = [isinstance(k, PrivateKey) for k in plan.analysed.keys]
    asked = part.asked
    present = asked.of if plan.analysed.domains.may_be_null(asked.of) else TRUE
    counted = RowCount(asked.where, present)
    held: dict[Unit, dict[Key, Counter[int]]] = defaultdict(lambda: defaultdict(Counter))
    for number, row in enumerate(oracle.rows()):
        key = oracle.key(row)
        private = tuple(k for k, p in zip(key, is_private, strict=True) if p)
        if oracle.uses(counted, row) and (not private or private in kept):
            held[oracle.unit_of(row) or (number,)][key][cell_of(oracle, part, row)] += 1
    return held


def cell_of(oracle: Oracle, part: QuantilePart, row: Row) -> int:
    """The cell that a row is in: that of its clamped value, the middle one for a row without value."""
    of, grid = part.asked.of, part.grid
    if isinstance(of, ColumnRef):
        value = oracle.evaluator.raw(of, row)
    else:
        value = oracle.evaluator.value(of, row, Reading.MEASURE)
    is_real = isinstance(grid, Reals)
    if value is None or (is_real and not math.isfinite(float(value))):
        return grid.cells // 2
    assert isinstance(value, (int, float))
    return _place(value, grid)


def _place(value: float, grid: QuantileGrid) -> int:
    match grid:
        case Wholes(low, high, step):
            return (round(min(max(value, low), high)) - low) // step
        case Reals(low, high, step):
            place = math.floor((max(min(float(value), high), low) - low) / float(step))
            return max(0, min(grid.cells - 1, place))
        case Days(low, high, step):
            first, last = times.moment_of(low), times.moment_of(high)
            return int(min(max(value, first), last) - first) // times.DAY // step
        case Moments(low, high, step):
            assert isinstance(low, datetime)
            first, last = times.moment_of(low), times.moment_of(high)
            return int(min(max(value, first), last) - first) // step
        case _ as never:
            assert_never(never)
