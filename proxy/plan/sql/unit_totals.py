"""Which sums are bounded by a unit's total rather than by its rows, because the policy knows bounds of the total?

Both ways are planned, and the one with less noise is taken: a public choice. See docs/claims/bounding.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from proxy.analysis.analyse import Analysed
from proxy.analysis.estimated import weighted
from proxy.analysis.learned import NOTHING_LEARNED, Learned
from proxy.plan.vector.allocation import Allocation
from proxy.plan.vector.moments import ROW_UNITS, MomentVector, UnitTotal
from proxy.plan.vector.noise import noise_of
from proxy.plan.vector.vector import Totals, uncentred
from proxy.policy.model import Bounded
from proxy.sql.algebra.nodes import Aggregate, AggregateKind, ColumnRef
from proxy.sql.functions.domains.intervals import number_range

PlannedVector = tuple[MomentVector, Allocation]


@dataclass(frozen=True, slots=True)
class SumChoice:
    """One SUM that could be bounded either way.

    by_total, by_rows: noise sd of each way in the sum's unit, at this charge. is_used: the total is bounded.
    """

    aggregate: Aggregate
    least: float
    most: float
    by_total: float
    by_rows: float
    is_used: bool


def possible_totals(analysed: Analysed, learned: Learned = NOTHING_LEARNED) -> Totals:
    """The sums of columns with `sum_bounds` or learned ones, where these bound more than the rows of a group do."""
    owned = analysed.owned
    private = [s for s in owned.block.scans if not s.table.is_public]
    if owned.is_one_row_per_unit or len(private) != 1:  # a join of private rows repeats them
        return {}
    found = {a: _total(a, analysed, learned) for a in owned.block.aggregates}
    most = analysed.bounds.rows_per_group * ROW_UNITS
    return {a: t for a, t in found.items() if t is not None and 0 < max(-t.least, t.most) < most}


def _total(aggregate: Aggregate, analysed: Analysed, learned: Learned) -> UnitTotal | None:
    """The clipped total of one SUM, by the policy's bounds if it has any.

    The policy bounds all rows of a unit; the sum of some of them, or none, lies between these bounds and 0.
    """
    if aggregate.kind is not AggregateKind.SUM or not isinstance(aggregate.argument, ColumnRef):
        return None
    if weighted(aggregate, analysed.owned.block) is not None:  # clipped, it would be no estimate
        return None
    bounds = analysed.domains.column(aggregate.argument).sum_bounds
    scaled = uncentred(aggregate, analysed)
    if isinstance(bounds, Bounded):
        ends = number_range(bounds)
    else:
        usual = learned.total_of(analysed.owned, aggregate.argument)
        ends = None if usual is None else (usual * min(0.0, _sign(scaled.least)), usual * max(0.0, _sign(scaled.most)))
    if ends is None or scaled.half == 0:
        return None
    units = ROW_UNITS / scaled.half
    return UnitTotal(scaled, math.ceil(min(ends[0], 0.0) * units), math.floor(max(ends[1], 0.0) * units))


def _sign(end: float) -> float:
    return math.copysign(1.0, end) if end else 0.0


def choices(
    totals: Totals,
    aggregates: tuple[Aggregate, ...],
    by_total: PlannedVector,
    by_rows: PlannedVector,
    noise_unit: float,
) -> tuple[SumChoice, ...]:
    """What each way costs, for every SUM that has both. noise_unit: noise of one weighted unit of norm."""
    is_used = is_better(by_total, by_rows)
    sds = [(v, _sds(a, noise_unit)) for v, a in (by_total, by_rows)]
    found = []
    for place, aggregate in enumerate(aggregates):
        if (total := totals.get(aggregate)) is not None:
            least, most = (end * total.scaled.half / ROW_UNITS for end in (total.least, total.most))
            noise, other = (noise_of(v.finishes[place], each) for v, each in sds)
            found.append(SumChoice(aggregate, least, most, noise, other, is_used))
    return tuple(found)


def is_better(ours: PlannedVector, theirs: PlannedVector) -> bool:
    """Whether the noise of all outputs, each relative to the other way's, is less on average."""
    ratios, our_sds, their_sds = [], _sds(ours[1], 1.0), _sds(theirs[1], 1.0)
    for mine, other in zip(ours[0].finishes, theirs[0].finishes, strict=True):
        noise = noise_of(other, their_sds)
        ratios.append(noise_of(mine, our_sds) / noise if noise else 1.0)
    return math.fsum(ratios) < len(ratios)


def _sds(allocation: Allocation, noise_unit: float) -> tuple[float, ...]:
    """Noise of each moment, which is B over its weight but for a factor that all moments share."""
    return tuple(noise_unit * allocation.unit_norm / w for w in allocation.weights)
