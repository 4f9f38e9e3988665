"""Which bound B of a unit's vector promises the smallest error, as far as a profile tells?

Noise grows with B, and what the units above it have more is lost. Both are forecast from noisy numbers that were paid
for, the price, the policy and the text: never from the data. See docs/claims/profile.md.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from proxy.analysis.analyse import Analysed, measure_bounds
from proxy.dp.mechanisms import Distribution
from proxy.plan.profile.kept import EVERYTHING, FilterShares, KeptShare
from proxy.plan.profile.profile import Doubles, TableProfile, UnitMeans
from proxy.plan.profile.thinning import thinned
from proxy.plan.profile.usual import groups_of, sum_known, values_known
from proxy.plan.vector.allocation import CELL_REACH, Allocation, row_norm_of, uses_of, with_chosen_bound
from proxy.plan.vector.moments import (
    HalfSum,
    Moment,
    MomentVector,
    RowCount,
    ScaledSum,
    UnitCount,
    UnitTotal,
    is_linear,
)
from proxy.plan.vector.recipes import Apart, Count, Mean, Total
from proxy.plan.vector.vector import averaged
from proxy.sql.algebra.nodes import TRUE, ColumnRef, Scalar

_GAIN = 0.8  # of the error with the policy's bound, that a chosen one must promise to stay below
_ALIKE = 1.1  # of the least squared error: the largest bound within it is taken, since noise is known and loss is not
_UNEVEN = 1.5  # squared losses of unlike groups, relative to those of groups that lose alike
_STEPS = 4  # bounds that are compared from one to its double
_LEAST_BOUND = 2.0**-60
_FEW = 10.0  # of so many units one has larger cells than the unit count that selects keys is weighted by
_MORE_KEYS = 2.0  # groups there are taken to be, for each that the unit with most groups is in
_PARTS = np.append(2.0 ** (-np.arange(14) / 2.0) * (1.0 - 0.5**0.5), 2.0**-7.0)  # of all units; together they are all
_LEAST_OF_ROWS = 2.0**-20  # a total is taken for no smaller part of the number of rows
_LEAST_OF_LARGEST = 2.0**-40  # a weight is no smaller than this part of the largest, so that norms are doubles


@dataclass(frozen=True, slots=True)
class FromPolicy:
    """B follows from the policy's T, C and G."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FromProfile:
    """B was chosen by expected error.

    rows: what B is worth in rows of the heaviest moment. loss: the share of a sum over all groups that bounding is
    expected to leave out. error: relative to such a sum, noise of all groups and loss together; by_policy: with the
    policy's bound. data_version: of the data that the profile was made from; newer: that of the data now, "" if it
    is the same. kept: what WHERE is taken to keep.
    moved: by how much each average of all groups is expected to be off because units are cut. unseen: so many large
    units the noise of the profile may hide.
    """

    rows: float
    loss: float
    error: float
    by_policy: float
    data_version: str
    newer: str = ""
    kept: KeptShare = EVERYTHING
    moved: tuple[tuple[Mean, float], ...] = ()
    unseen: float = 0.0

    def missing_of(self, mean: Mean) -> float:
        """By how much an average is expected to be off, in its own unit."""
        return dict(self.moved).get(mean, 0.0)


ChosenBound = FromPolicy | FromProfile
FROM_POLICY = FromPolicy()


@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """What a choice depends on beside the vector.

    filters: what profiles tell of conditions and keys. noise: sd of the noise of a bound of 1. groups: that are shown.
    """

    analysed: Analysed
    profile: TableProfile
    filters: FilterShares
    distribution: Distribution
    noise: float
    groups: int
    shares: tuple[float, ...]


def tells_keys(analysed: Analysed, profile: TableProfile) -> bool:
    """Whether the keys are public, or all of them private and the profile tells how many of each units have."""
    if not analysed.private_keys:
        return True
    if analysed.owned.is_one_row_per_unit or len(analysed.private_keys) < len(analysed.keys):
        return False
    return all(groups_of(k.scalar, analysed, profile) is not None for k in analysed.private_keys)


def centres_of(analysed: Analysed, profile: TableProfile) -> Mapping[Scalar, float]:
    """About which values the averages of a block are expected, as far as the profile tells."""
    told = ((measure, _means_of(measure, analysed, profile)) for measure in averaged(analysed.owned.block.aggregates))
    return {measure: means.centre for measure, means in told if means is not None}


def _means_of(measure: Scalar, analysed: Analysed, profile: TableProfile) -> UnitMeans | None:
    """What is known of the averages that units have of a measure that is a column of the profile's table."""
    if not isinstance(measure, ColumnRef) or analysed.owned.block.scan(measure.scan).table.name != profile.table:
        return None
    means = profile.means_of(measure.name)
    return means if means is not None and means.are_told else None


def choose(
    vector: MomentVector, centred: MomentVector, natural: Allocation, situation: Situation
) -> tuple[MomentVector, Allocation, ChosenBound]:
    """The vector and the allocation with the bound that promises the smaller error.

    natural: of `vector`, with the policy's bound. centred: the vector with averages about their centres.
    Claim: a function of the profile, the price, the policy and the text.
    """
    apart = any(isinstance(m, UnitTotal) or (isinstance(m, UnitCount) and m.per_part) for m in centred.moments)
    assert not apart, "no factor reaches clipped totals and the counts of private parts here"
    if not all(isinstance(f, (Count, Total, Mean, Apart)) for f in vector.finishes):
        return vector, natural, FROM_POLICY  # how far a statistic is off cannot be told from sizes
    if not situation.profile.rows.is_told:
        return vector, natural, FROM_POLICY
    units = _Units(situation)
    forecast = _Forecast(centred, situation, units)
    if not forecast.knows_means:
        return vector, natural, FROM_POLICY
    found = forecast.best()
    if found is None:
        return vector, natural, FROM_POLICY
    bound, loss, error = found
    other = forecast if vector is centred else _Forecast(vector, situation, units)
    by_policy = other.error_of(natural)
    if math.sqrt(error) > _GAIN * math.sqrt(by_policy):
        return vector, natural, FROM_POLICY
    weights = forecast.weights
    chosen = with_chosen_bound(replace(natural, row_norm=forecast.row_norm), weights, bound)
    told = FromProfile(rows=bound / max(weights), loss=loss, error=math.sqrt(error), by_policy=math.sqrt(by_policy),
                       data_version=situation.profile.data_version, newer=situation.profile.newer,
                       kept=situation.filters.kept, moved=forecast.moved(loss),
                       unseen=situation.profile.rows.sd)  # fmt: skip
    return centred, chosen, told


@dataclass(frozen=True, slots=True)
class _Deviation:
    """Of units' averages from the middle of a measure. share: of its half. scale: the half relative to the average."""

    share: float
    scale: float


def _terms(of: Count | Total) -> tuple[tuple[int, float], ...]:
    return of.number.terms if isinstance(of, Count) else of.value.terms


class _Units:
    """Sizes of units by rank, of which a forecast is made. steps: how many units each rank stands for."""

    def __init__(self, situation: Situation) -> None:
        self._of = situation
        tail = thinned(situation.profile.rows.tail, situation.filters.kept)
        self.ranks, self.steps, sizes = tail.ranked
        self.rows = np.clip(sizes, 1.0, situation.analysed.bounds.declared.rows or math.inf)
        self.all_rows = float(self.rows @ self.steps)
        self.held = self._held_of_keys()
        self.spread, self.alone = self.spread_of_rows(), np.ones(self.rows.shape)
        self.groups = max(1, situation.groups)
        if situation.analysed.private_keys:  # nothing tells how many there are; of a few units all are not the same
            self.groups = math.ceil(_MORE_KEYS * float(self.held.max()))

    @property
    def usual_cell(self) -> float:
        """Rows in one of its groups of a unit that has more than most."""
        return float(np.interp(self.ranks[0] / _FEW, self.ranks[::-1], (self.rows / self.held)[::-1]))

    def spread_of_rows(self, uneven: float = 1.0, largest: Doubles | float = 0.0) -> Doubles:
        """How long the vector of a unit's rows in all groups is, relative to their number: 1 where they share a group.

        Of several keys that which tells rows apart best. uneven: the mean square of rows' values, relative to their
        mean's: the largest make the vector long. largest: times which a unit has the largest value there is, at least.
        """
        if self._of.analysed.private_keys:
            return np.asarray(np.sqrt(np.minimum(1.0, max(_UNEVEN, uneven) / self.held)))
        together = min((self._of.filters.together(k.scalar) for k in self._of.analysed.keys), default=1.0)
        return np.sqrt(np.minimum(1.0, together + (1.0 - together) / np.maximum(self.rows / uneven, largest)))

    def _held_of_keys(self) -> Doubles:
        """In how many groups units are: of private keys as far as a profile tells, else as many as they have rows."""
        analysed = self._of.analysed
        told = [g for k in analysed.private_keys if (g := groups_of(k.scalar, analysed, self._of.profile)) is not None]
        if not told:
            return self.rows
        most = np.max([sizes.tail.sizes_at(self.ranks) for sizes in told], axis=0)
        return np.asarray(np.clip(np.minimum(most, analysed.bounds.keys), 1.0, self.rows))


class _Forecast:
    """Sizes of units by rank: the same unit is taken to be large in all moments, which is the worst case.

    Those of measures about their middle are a table: how far a unit's average is from it, by parts of all units, is
    taken to be the same at every rank.
    """

    def __init__(self, vector: MomentVector, situation: Situation, units: _Units) -> None:
        self._vector, self._of, self._units, self._rows = vector, situation, units, units.rows
        self._deviations = [self._deviation(m) for m in vector.moments]
        self._all_rows = max(units.all_rows, _LEAST_BOUND)
        self._uses = [self._use_of(i) for i in range(len(vector.moments))]
        self._kappa = _UNEVEN / units.groups if units.groups > 1 else 1.0

    # --- sizes ------------------------------------------------------------------------------------------

    @cached_property
    def _sizes(self) -> list[Doubles]:
        """By moment."""
        return [self._sizes_of(m) for m in self._vector.moments]

    def _sizes_of(self, moment: Moment) -> Doubles:
        """What units have of a moment in all groups together, by rank."""
        if isinstance(moment, UnitCount):
            held = np.minimum(self._units.held, float(self._of.analysed.bounds.groups))
            return held if self._is_laplace else np.sqrt(held)
        of, rows = self._of, self._rows_of(moment)
        known = sum_known(moment, of.analysed, of.profile, of.filters) if isinstance(moment, ScaledSum) else None
        if known is None and isinstance(moment, ScaledSum) and (means := self._means(moment)) is not None:
            away = np.minimum(1.0, means.distances(moment.middle, _PARTS) / moment.half)
            return np.maximum(away[:, None] * rows, self._of_large_units(moment, rows))
        if known is None:
            return rows
        factor, tail = known
        return np.minimum(factor * tail.sizes_at(self._units.ranks), rows)

    def _of_large_units(self, moment: ScaledSum, rows: Doubles) -> Doubles:
        """Sums about a middle if the units of most rows are those of the largest sums; zeros where that is not told."""
        of = self._of
        known = values_known(moment, of.analysed, of.profile, of.filters)
        if known is None or measure_bounds(moment.of, of.analysed)[0] < 0:
            return np.zeros(rows.shape)
        factor, tail = known
        apart = np.abs(factor * tail.sizes_at(self._units.ranks) - rows * moment.middle / moment.half)
        return np.asarray(np.minimum(apart, rows))

    def _rows_of(self, moment: Moment) -> Doubles:
        """How many rows units have that a moment is of: with FILTER fewer than pass WHERE."""
        if not isinstance(moment, (RowCount, ScaledSum)) or moment.where == TRUE:
            return self._rows
        tail = thinned(self._of.profile.rows.tail, self._of.filters.kept_with(moment.where))
        return np.minimum(tail.sizes_at(self._units.ranks), self._rows)

    def _spread_of(self, moment: Moment, sizes: Doubles) -> Doubles:
        """How long units' vectors of a moment are in all groups, relative to their size.

        The squares of values add up to no more than the largest times their sum.
        """
        if not is_linear(moment):
            return self._units.alone
        if not isinstance(moment, ScaledSum) or moment.middle != 0 or not isinstance(moment.of, ColumnRef):
            return self._units.spread
        of = self._of
        known = sum_known(moment, of.analysed, of.profile, of.filters)
        equal = sizes / known[0] if known is not None else 0.0
        return self._units.spread_of_rows(max(1.0, of.filters.values(moment.of)[1]), equal)

    # --- averages ---------------------------------------------------------------------------------------

    @property
    def knows_means(self) -> bool:
        """Whether the profile tells about which value each average is."""
        means = [f for f in self._vector.finishes if isinstance(f, Mean)]
        return all(self._measure(f) is not None for f in means)

    def _measure(self, mean: Mean) -> _Deviation | None:
        """How far an average's measure is from its middle; of a column that is always the same, not at all."""
        found = (self._deviations[i] for i, _ in mean.total.terms)
        return next((d for d in found if d is not None), None)

    def _deviation(self, moment: Moment) -> _Deviation | None:
        """How far units' averages of a measure are from its middle, as far as the profile tells."""
        scaled = moment.scaled if isinstance(moment, HalfSum) else moment
        if not isinstance(scaled, ScaledSum) or (means := self._means(scaled)) is None:
            return None
        away = math.hypot(means.spread, means.centre - scaled.middle)
        return _Deviation(min(1.0, away / scaled.half), scaled.half / max(abs(means.centre), means.spread))

    def _means(self, scaled: ScaledSum) -> UnitMeans | None:
        return _means_of(scaled.of, self._of.analysed, self._of.profile) if scaled.half else None

    def _use_of(self, index: int) -> float:
        """What one unit of a moment is of a result: of a count or sum relative to its total, or of an average."""
        finishes = self._vector.finishes
        plain = any(i == index for f in finishes if isinstance(f, (Count, Total)) for i, _ in _terms(f))
        means = [f for f in finishes if isinstance(f, Mean) and index in dict((*f.number.terms, *f.total.terms))]
        found = [(f, d) for f in means if (d := self._measure(f)) is not None]
        uses = [d.share * d.scale / self._all_rows for f, d in found if index in dict(f.number.terms)]
        if (own := self._deviations[index]) is not None:
            uses.append(own.scale / self._all_rows)
        elif plain or not found:
            uses.append(1.0 / max(self._area(self._sizes[index]), _LEAST_OF_ROWS * max(1.0, self._units.all_rows)))
        return max(uses)

    def _missed(self, weights: Sequence[float], whole: float) -> float:
        """What a weighted unit that is lost is of the results, as a root mean square. whole: what there is of it."""
        every = []
        for finish in self._vector.finishes:
            of = self._measure(finish) if isinstance(finish, Mean) else None
            most = max((weights[i] for i, _ in finish.total.terms), default=1.0) if isinstance(finish, Mean) else 1.0
            every.append(1.0 / whole if of is None else of.scale / (self._all_rows * most))
        return math.sqrt(sum(e * e for e in every) / max(1, len(every)))

    def moved(self, loss: float) -> tuple[tuple[Mean, float], ...]:
        """By how much averages are off, at most, where so large a share of all units' vectors is lost."""
        means = [f for f in self._vector.finishes if isinstance(f, Mean)]
        lost = loss * self._area(self._norms[0]) / self._all_rows if means else 0.0
        return tuple(
            (f, f.half * lost / max((self.weights[i] for i, _ in f.total.terms), default=math.inf)) for f in means
        )

    @property
    def _is_laplace(self) -> bool:
        return self._of.distribution is Distribution.LAPLACE

    def _area(self, sizes: Doubles) -> float:
        """The sum of the sizes of all units."""
        of_ranks = sizes @ self._units.steps
        return float(_PARTS @ of_ranks if sizes.ndim > 1 else of_ranks)

    def _lost(self, sizes: Doubles, bounds: Doubles, spread: Doubles | float = 1.0) -> Doubles:
        """What all units have more than leaves them as long as each bound. spread: their lengths, relative to sizes."""
        over = sizes - (bounds[:, None, None] if sizes.ndim > 1 else bounds[:, None]) / spread
        of_ranks = np.maximum(over, 0.0, out=over) @ self._units.steps
        return np.asarray(of_ranks @ _PARTS if sizes.ndim > 1 else of_ranks)

    # --- weights ----------------------------------------------------------------------------------------

    @cached_property
    def weights(self) -> tuple[float, ...]:
        """w^2 proportional to sqrt(v)/c, as in `allocation`: v relative to the moment's total, c its own best bound."""
        if len(self._vector.moments) == 1:
            return (1.0,)
        uses = uses_of(self._vector, self._of.shares)
        found = []
        for use, of, sizes in zip(uses, self._uses, self._sizes, strict=True):
            size = max(self._least_error(sizes, np.array([of]), of)[0], _LEAST_BOUND)
            found.append(1.0 / size if self._is_laplace or use <= 0 else math.sqrt(math.sqrt(use) * of / size))
        if self._of.analysed.private_keys:
            usual = self._units.usual_cell
            linear = [w for m, w in zip(self._vector.moments, found, strict=True) if is_linear(m)]
            found[self._vector.moments.index(UnitCount(TRUE))] = usual * max(linear, default=1.0)
        largest = max(found)
        return tuple(max(w / largest, _LEAST_OF_LARGEST) for w in found)

    @cached_property
    def row_norm(self) -> float:
        """The most that one row weighs."""
        return self._row_norm_in([i for i, m in enumerate(self._vector.moments) if is_linear(m)])

    def _row_norm_in(self, moments: Sequence[int]) -> float:
        return row_norm_of(self._vector.moments, list(self.weights), list(moments), self._of.distribution)

    # --- errors -----------------------------------------------------------------------------------------

    def best(self) -> tuple[float, float, float] | None:
        """B, the share that is lost, and the squared error, of the outputs that matter together.

        None if a ceiling leaves no room for one.
        """
        weights = self.weights
        counted = [w for m, w in zip(self._vector.moments, weights, strict=True) if not isinstance(m, ScaledSum)]
        least = max(_length_of(counted, is_laplace=self._is_laplace) / CELL_REACH, *counted, _LEAST_BOUND)
        sizes, norms = self._norms
        spread = np.divide(norms, sizes, out=np.ones(sizes.shape), where=norms > 0.0)
        missed = self._missed(weights, max(self._area(sizes), _LEAST_BOUND))
        ceiling = self._of.analysed.bounds.ceiling
        most = ceiling * self.row_norm if ceiling else math.inf
        if most < least:
            return None
        return self._least_error(sizes, self._relative(weights), missed, (least, most), spread)

    def error_of(self, natural: Allocation) -> float:
        """The squared error with the policy's bound, what it loses of rows included."""
        bounds = self._of.analysed.bounds
        whole = natural.unit_norm / natural.row_norm if natural.row_norm > 0 else math.inf  # in rows, all in one group
        cut = self._lost(self._rows, np.array([float(bounds.rows)]))
        shrunk = self._lost(self._rows, np.array([whole]), self._units.spread)
        loss = np.maximum(cut, shrunk) / self._all_rows
        means = [self._measure(f) if isinstance(f, Mean) else None for f in self._vector.finishes]
        missed = math.sqrt(sum(1.0 if d is None else (d.share * d.scale) ** 2 for d in means) / max(1, len(means)))
        relative = self._relative(natural.weights)
        return float(self._squared(np.array([natural.unit_norm]), loss * missed, relative)[0])

    def _relative(self, weights: Sequence[float]) -> Doubles:
        """What a weighted unit of each moment is of what it is used for."""
        return np.asarray(np.array(self._uses) / np.array(weights))

    @cached_property
    def _norms(self) -> tuple[Doubles, Doubles]:
        """The lengths of units' vectors, by rank: as if all rows were in one group, and as they are spread."""
        moments, weights = self._vector.moments, self.weights
        by_rows = [i for i, s in enumerate(self._sizes) if s is self._rows]
        of_row = self._row_norm_in(by_rows) if len(by_rows) > 1 else sum(weights[i] for i in by_rows)
        others = [i for i in range(len(moments)) if i not in by_rows]
        every = [of_row * self._rows, *(weights[i] * self._sizes[i] for i in others)]
        if self._is_laplace:
            return (norms := np.asarray(sum(every))), norms
        spread = [self._units.spread, *(self._spread_of(moments[i], self._sizes[i]) for i in others)]
        return _lengths(every), _lengths([e * s for e, s in zip(every, spread, strict=True)])

    def _least_error(
        self, sizes: Doubles, relative: Doubles, missed: float, within: tuple[float, float] = (_LEAST_BOUND, math.inf),
        spread: Doubles | float = 1.0,
    ) -> tuple[float, float, float]:  # fmt: skip
        """The largest bound whose squared error is about the least, with the share that is lost and that error.

        missed: what one that is lost is of the result. within: the least and the largest bound that may be.
        """
        whole, (least, most) = max(self._area(sizes), _LEAST_BOUND), within
        top = min(max(float((sizes * spread).max()), least), most)
        bottom = max(least, top * 2.0**-24)
        steps = math.ceil(_STEPS * math.log2(top / bottom))
        bounds = np.maximum(bottom, top * 2.0 ** (-np.arange(steps + 1) / _STEPS))
        losses = self._lost(sizes, bounds, spread)
        # what cannot be forecast promises nothing, so that the policy's bound is kept
        errors = np.nan_to_num(self._squared(bounds, losses * missed, relative), nan=math.inf)
        at = int(np.argmax(errors <= _ALIKE * errors.min()))
        return float(bounds[at]), float(losses[at]) / whole, float(errors[at])

    def _squared(self, bounds: Doubles, losses: Doubles, relative: Doubles) -> Doubles:
        """Squared error of all groups, relative to each output's total, on average over the outputs."""
        noise = self._units.groups * float((relative * relative).mean()) * (bounds * self._of.noise) ** 2
        return np.asarray(self._kappa * losses * losses + noise)


def _lengths(every: Sequence[Doubles]) -> Doubles:
    """Of vectors, by their coordinates."""
    return np.asarray(np.sqrt(sum(e * e for e in every)))


def _length_of(sizes: Sequence[float], *, is_laplace: bool) -> float:
    return math.fsum(sizes) if is_laplace else math.hypot(*sizes)
