"""About how large are the groups of a release and their values, as far as a profile tells?

A forecast from noisy numbers that were paid for, the policy and the text: never from the data. It decides about words,
and whether a person is asked first. See docs/claims/profile.md.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from proxy.analysis.analyse import Analysed
from proxy.plan.profile.kept import FilterShares
from proxy.plan.profile.profile import Sizes, TableProfile, Tail
from proxy.plan.profile.thinning import mean_size, thinned, whole_of
from proxy.plan.vector.moments import MomentVector, RowCount, ScaledSum
from proxy.plan.vector.recipes import Count, Linear, Mean, Ranked, Relation, Spread, Total
from proxy.sql.algebra.nodes import ColumnRef, Scalar

_MORE_GROUPS = 2.0  # groups there are taken to be, for each that the unit with most groups is in
_LARGEST = np.array([0.6])  # a rank, as of the unit that has most


@dataclass(frozen=True, slots=True)
class Usual:
    """A usual group. units, rows: about so many. sizes: of each aggregate, what its noise is to be compared with.

    Of averages, statistics and ranks that is the number of rows; 0 where nothing is told. groups: about so many.
    """

    units: float
    rows: float
    sizes: tuple[float, ...]
    groups: int


def usual_of(
    vector: MomentVector, analysed: Analysed, profile: TableProfile | None, filters: FilterShares, public: int
) -> Usual | None:
    """What is told of the groups of a block, or None. public: combinations of public keys.

    Claim: a function of the profile and the text.
    """
    if profile is None or not profile.rows.is_told or not public:
        return None
    tail = thinned(profile.rows.tail, filters.kept)
    rows = whole_of(tail, is_whole=True)
    units, groups = tail.units, public
    if analysed.private_keys:
        held = groups_of(analysed.private_keys[0].scalar, analysed, profile)
        if held is None or len(analysed.keys) > 1:
            return None
        groups = max(1, round(_MORE_GROUPS * float(held.tail.sizes_at(_LARGEST)[0])))
        units = (
            min(rows, whole_of(held.tail, is_whole=True) * min(1.0, tail.units / max(held.tail.units, 1.0))) / groups
        )
    rows /= groups
    sizes = tuple(_size(f, vector, analysed, profile, filters, rows, groups) for f in vector.finishes)
    return Usual(min(units, rows), rows, sizes, groups)


def groups_of(key: Scalar, analysed: Analysed, profile: TableProfile) -> Sizes | None:
    """What is known of how many values of a key units have that is a column of the profile's table."""
    if not isinstance(key, ColumnRef) or analysed.owned.block.scan(key.scan).table.name != profile.table:
        return None
    sizes = profile.groups_of(key.name)
    return sizes if sizes is not None and sizes.is_told else None


def sum_known(
    moment: ScaledSum, analysed: Analysed, profile: TableProfile, filters: FilterShares
) -> tuple[float, Tail] | None:
    """What one of a profile's sums is worth in the moment's, and the sums that WHERE leaves, of an uncentred column."""
    return None if moment.middle != 0 else values_known(moment, analysed, profile, filters)


def values_known(
    moment: ScaledSum, analysed: Analysed, profile: TableProfile, filters: FilterShares
) -> tuple[float, Tail] | None:
    """What one of a profile's sums is worth in a moment's, and the sums that WHERE leaves, as if it were uncentred."""
    if not isinstance(moment.of, ColumnRef) or moment.half == 0:
        return None
    if analysed.owned.block.scan(moment.of.scan).table.name != profile.table:
        return None
    found = profile.sum_of(moment.of.name)
    if found is None:
        return None
    largest, sizes = found
    grows, usual = filters.values(moment.of)
    worth = usual * mean_size(sizes.tail, profile.rows.tail)
    return largest / moment.half, thinned(sizes.tail, filters.kept_with(moment.where), worth, grows)


def _size(
    finish: object, vector: MomentVector, analysed: Analysed, profile: TableProfile, filters: FilterShares, rows: float,
    groups: int,
) -> float:  # fmt: skip
    match finish:
        case Count() | Total() if finish.response.parts:
            return rows if isinstance(finish, Count) else 0.0
        case Count(Linear(((index, _), *_))) if isinstance(moment := vector.moments[index], RowCount):
            return whole_of(thinned(profile.rows.tail, filters.kept_with(moment.where)), is_whole=True) / groups
        case Count() | Mean() | Spread() | Relation() | Ranked():
            return rows
        case Total(value):
            return _total(value, vector, analysed, profile, filters) / groups
        case _:
            return 0.0


def _total(
    value: Linear, vector: MomentVector, analysed: Analysed, profile: TableProfile, filters: FilterShares
) -> float:
    """Of all groups together; 0 where not all parts are told."""
    found = 0.0
    for index, factor in value.terms:
        moment = vector.moments[index]
        known = sum_known(moment, analysed, profile, filters) if isinstance(moment, ScaledSum) else None
        if known is None:
            return 0.0
        found += abs(factor) * known[0] * whole_of(known[1], is_whole=False)
    return found
