"""How much of a unit's bounded contribution goes to each moment, and what bounds follow?

Weights are public and closed-form: they never depend on data. See docs/claims/bounding.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import assert_never

from proxy.analysis.analyse import ContributionBounds
from proxy.analysis.patterns import heaviest_together_up
from proxy.dp.mechanisms import Distribution
from proxy.plan.vector.moments import (
    ROW_UNITS,
    Moment,
    MomentVector,
    UnitCount,
    UnitTotal,
    is_further_part,
    is_linear,
    row_conditions,
    size_in_cell,
)
from proxy.plan.vector.recipes import (
    Apart,
    Count,
    Finish,
    Mean,
    Ranked,
    Relation,
    Spread,
    Total,
    Verdict,
    linear_parts,
    response_of,
)

CELL_REACH = 2.0**10  # a cell keeps so many times a chosen B before its unit's factor is computed
_ROUNDING = 2.0**-40  # of the doubles that norms are made with; far below what the grid leaves room for


@dataclass(frozen=True, slots=True, kw_only=True)
class Allocation:
    """Weights of the moments and the norms they imply, in weighted units.

    row_norm: most that one row can weigh. cell_norm: W, of a unit in one group.
    unit_norm: B, of a unit in all groups after scaling.
    exclusions: pairs of moments, by number, that `row_norm` counts once: no row may be in both.
    is_chosen: B does not follow from bounds of rows and groups. Every unit's norm is computed then, whatever the shape.
    """

    weights: tuple[float, ...]
    row_norm: float
    cell_norm: float
    unit_norm: float
    exclusions: tuple[tuple[int, int], ...]
    is_chosen: bool = False


def allocate(
    vector: MomentVector, bounds: ContributionBounds, distribution: Distribution, threshold_moment: int | None,
    shares: tuple[float, ...],
) -> Allocation:  # fmt: skip
    """Weights by formula, W and B for one joint release. shares: how much each of the vector's recipes matters."""
    weights = _weights(vector, bounds, distribution, shares)
    others = [i for i in range(len(weights)) if i != threshold_moment]
    if threshold_moment is not None:
        weights[threshold_moment] = _threshold_weight(vector.moments, weights, others, bounds, distribution)
    everything = list(range(len(weights)))
    row_norm, excluded = _row_norm(vector.moments, weights, everything, distribution)
    cell_norm = _cell_norm(vector.moments, weights, everything, bounds, distribution, row_norm)
    unit_norm = cell_norm
    if bounds.groups > 1:
        spread = math.sqrt(bounds.groups) if distribution is Distribution.GAUSSIAN else float(bounds.groups)
        unit_norm = cell_norm * spread
        if not any(isinstance(m, UnitCount) for m in vector.moments):
            unit_norm = min(unit_norm, _whole_norm(vector.moments, weights, row_norm * bounds.rows, distribution))
    return Allocation(
        weights=tuple(weights), row_norm=row_norm, cell_norm=cell_norm, unit_norm=unit_norm, exclusions=excluded
    )


def with_chosen_bound(natural: Allocation, weights: tuple[float, ...], unit_norm: float) -> Allocation:
    """An allocation whose B is any positive number, with any positive weights.

    Claim: with `is_chosen`, a statement scales each unit's whole vector to a length of at most B, from the unit's own
    cells, so that nothing rests on how many rows or groups a unit has, or on which conditions a row can meet together.
    Assumes that no moment is a unit's clipped total, and that all unit counts of a group weigh at most 2^10 B together.
    """
    if not (math.isfinite(unit_norm) and unit_norm > 0 and all(math.isfinite(w) and w > 0 for w in weights)):
        raise ValueError(f"a bound and weights are finite and positive: {unit_norm}, {weights}")
    return replace(natural, weights=weights, cell_norm=unit_norm, unit_norm=unit_norm, exclusions=(), is_chosen=True)


def with_imposed_bound(
    moments: tuple[Moment, ...], natural: Allocation, unit_norm: float, distribution: Distribution
) -> Allocation:
    """The allocation with weights of 1 and a B that is known to be what a unit adds at most, or is to be so.

    Claim: as of `with_chosen_bound`, whether it is known or not.
    """
    weights = [1.0] * len(moments)
    every = [i for i, m in enumerate(moments) if is_linear(m)]
    of_row = row_norm_of(moments, weights, every, distribution)
    return with_chosen_bound(replace(natural, row_norm=of_row), tuple(weights), unit_norm)


def is_within_by_cells(
    moments: tuple[Moment, ...], allocation: Allocation, bounds: ContributionBounds, cells: int,
    distribution: Distribution,
) -> bool:  # fmt: skip
    """Whether a unit of at most `cells` cells is never above B, whatever conditions its rows meet together.

    Each coordinate of a cell counts in full, so that nothing rests on which of them one row can reach. A chosen B
    comes without a bound of a cell's rows.
    """
    if allocation.is_chosen:
        return False
    sizes = [
        weight * size_in_cell(moment, bounds.rows_per_group)
        for moment, weight in zip(moments, allocation.weights, strict=True)
        if not is_further_part(moment)
    ]
    if distribution is Distribution.GAUSSIAN:
        return cells * sum(s * s for s in sizes) <= allocation.unit_norm**2 * (1 + _ROUNDING)
    return cells * sum(sizes) <= allocation.unit_norm * (1 + _ROUNDING)


def _weights(
    vector: MomentVector, bounds: ContributionBounds, distribution: Distribution, shares: tuple[float, ...]
) -> list[float]:
    """w^2 proportional to sqrt(v)/c: v the moment's use in the outputs, c the size of a cell's coordinate."""
    sizes = [size_in_cell(m, bounds.rows_per_group) for m in vector.moments]
    if distribution is Distribution.LAPLACE:
        return [1.0 / c for c in sizes]
    uses = uses_of(vector, shares)
    return [math.sqrt(math.sqrt(v) / c) if v > 0 else 1.0 / c for v, c in zip(uses, sizes, strict=True)]


def uses_of(vector: MomentVector, shares: tuple[float, ...]) -> list[float]:
    """Sum over outputs of (share * coefficient / public scale)^2; the parts of a quotient are used alike."""
    uses = [0.0] * len(vector.moments)
    for finish, share in zip(vector.finishes, shares, strict=True):
        for index, coefficient in _scaled_terms(finish):
            uses[index] += (share * coefficient) ** 2
    for finish in vector.finishes:
        parts = response_of(finish).parts
        if parts or not isinstance(finish, (Count, Total)):
            beside = (form for p in parts for form in (p.second, p.first))
            together = {i for i, _ in _scaled_terms(finish)} | {i for form in beside for i, _ in form.terms}
            most = max((uses[i] for i in together), default=0.0)
            for index in together:
                uses[index] = most
    return uses


def _scaled_terms(finish: Finish) -> tuple[tuple[int, float], ...]:
    match finish:
        case Count(number):
            return number.terms
        case Total(value):
            scale = sum(abs(c) for _, c in value.terms) or 1.0
            return tuple((i, c / scale) for i, c in value.terms)
        case Ranked(number=number):
            return number.terms
        case Apart():
            return ()
        case Mean() | Spread() | Relation() | Verdict():
            return tuple((i, 1.0) for i in dict.fromkeys(i for form in linear_parts(finish) for i, _ in form.terms))
        case _ as never:
            assert_never(never)


def _threshold_weight(
    moments: tuple[Moment, ...], weights: list[float], others: list[int], bounds: ContributionBounds,
    distribution: Distribution,
) -> float:  # fmt: skip
    """The unit count that selects keys gets half of W^2 (of W in the 1-norm)."""
    of_row = row_norm_of(moments, weights, others, distribution)
    rest = _cell_norm(moments, weights, others, bounds, distribution, of_row)
    return rest if rest > 0 else 1.0


def row_norm_of(
    moments: tuple[Moment, ...], weights: list[float], chosen: list[int], distribution: Distribution
) -> float:
    """The most that one row weighs in the chosen moments, of which it may only meet some together."""
    return _row_norm(moments, weights, chosen, distribution)[0]


def _row_norm(
    moments: tuple[Moment, ...], weights: list[float], chosen: list[int], distribution: Distribution
) -> tuple[float, tuple[tuple[int, int], ...]]:
    """sup of ||w * phi(row)|| over the patterns of FILTER and NULL that one row can have, and what it excludes."""
    told = {i: c for i, c in row_conditions(moments).items() if i in chosen}
    sizes = [weights[i] ** 2 if distribution is Distribution.GAUSSIAN else weights[i] for i in told]
    heaviest = heaviest_together_up([*told.values()], sizes)
    numbers = [*told]
    excluded = tuple((numbers[first], numbers[second]) for first, second in heaviest.exclusions)
    return (math.sqrt(heaviest.weight) if distribution is Distribution.GAUSSIAN else heaviest.weight), excluded


def _whole_norm(moments: tuple[Moment, ...], weights: list[float], of_rows: float, distribution: Distribution) -> float:
    """Most that a unit within the policy's bounds weighs, in whatever groups it is: of its rows, and of its totals.

    The totals of groups of one sign add up to no more than the bound of that sign.
    """
    weighted = zip(moments, weights, strict=True)
    totals = [w * (m.most - m.least) / ROW_UNITS for m, w in weighted if isinstance(m, UnitTotal)]
    return math.hypot(of_rows, *totals) if distribution is Distribution.GAUSSIAN else of_rows + math.fsum(totals)


def _cell_norm(
    moments: tuple[Moment, ...], weights: list[float], chosen: list[int], bounds: ContributionBounds,
    distribution: Distribution, row_norm: float,
) -> float:  # fmt: skip
    """row_norm: of the chosen moments."""
    rows = bounds.rows_per_group * row_norm
    units = [weights[i] * size_in_cell(moments[i], bounds.rows_per_group) for i in chosen if not is_linear(moments[i])]
    if distribution is Distribution.GAUSSIAN:
        return math.sqrt(rows**2 + sum(w * w for w in units))
    return rows + sum(units)
