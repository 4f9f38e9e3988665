"""Can a question be answered from the releases of others, and with how much noise?

From one release, or from two that have its moments together: by adding up cells of a finer grouping over public keys,
by leaving out groups, by changing the order of keys, by other aggregates that follow from the moments, or from one of
several grouping sets. The rows must be the same, apart from conditions that only choose cells, and a unit that the
question would count in full must have been counted in full by the release. See docs/claims/reuse.md.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

from proxy.analysis.estimated import is_estimated
from proxy.errors import HushError
from proxy.plan.release_plan import ReleasePlan, vector_of
from proxy.plan.reuse.expressed import Expressed, NotExpressed
from proxy.plan.reuse.gathered import Gathering, Groups
from proxy.plan.reuse.same_groups import (
    Chosen,
    carried,
    chosen,
    error_ratios,
    moment_conditions,
    placed,
    threshold_ratio,
)
from proxy.plan.sets.sets import Plan
from proxy.plan.vector.moments import Moment, MomentVector, is_linear
from proxy.plan.vector.noise import noise_of
from proxy.plan.vector.recipes import Finish

_ROUNDING = 1.0 - 2.0**-30
Counts = tuple[int, ...]  # of cells that are added up for a group, by source


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseSource:
    """A release that an answer is computed from.

    plan: what was released, and paid, maybe with other grouping sets. of, number: the one of these that is read.
    groups: each key of the answer with those of the cells that add up to it. chosen: in their place where groups are
    private, and known from the release alone.
    """

    plan: Plan
    of: ReleasePlan
    groups: Groups
    number: int | None = None
    chosen: Chosen | None = None

    @property
    def added(self) -> int:
        """The most cells that are added up for one group."""
        return max((len(cells) for _, cells in self.groups), default=1)

    @property
    def is_of_single_cells(self) -> bool:
        """Whether each group is a cell of the release as it is."""
        return all(len(cells) == 1 for _, cells in self.groups)


@dataclass(frozen=True, slots=True, kw_only=True)
class Derived:
    """An answer computed from the releases of other questions.

    shown: how it is finished, with the noise of the group that most cells are added up for. noise: the largest of an
    output, relative to that of a new release.
    """

    sources: tuple[ReleaseSource, ...]
    shown: ReleasePlan
    noise: float

    @property
    def plans(self) -> tuple[Plan, ...]:
        """What must have been released and paid."""
        return tuple(s.plan for s in self.sources)

    @property
    def is_of_a_set(self) -> bool:
        """Whether each group is a cell of one of several grouping sets, as it is."""
        one = self.sources[0]
        return len(self.sources) == 1 and one.number is not None and bool(one.groups) and one.is_of_single_cells

    def counts(self) -> tuple[Counts, ...]:
        """How many cells are added up for each group."""
        return tuple(zip(*([len(cells) for _, cells in s.groups] for s in self.sources), strict=True))

    def shown_of(self, counts: Counts) -> ReleasePlan:
        """How groups of so many cells are finished."""
        return replace(self.shown, added=max(counts), agreed=_sds(self.sources, counts))


def derive(wanted: ReleasePlan, sources: Sequence[Plan], factor: float, if_cheaper: float = 1.0) -> tuple[Derived, ...]:
    """The answers of `wanted` that follow from one of the releases or, if none does, from two; the least noisy first.

    factor: how many times the noise of a fresh release is acceptable. if_cheaper: that of a source which cost less than
    `wanted` would; who asks for more accuracy gets it.
    """
    if _is_own(wanted):
        return ()
    gathering = Gathering(wanted)
    fit = [s for plan in sources for s in _fitting(wanted, plan, gathering) if not _is_own(s.of)]
    found = list(_acceptable(wanted, [(s,) for s in fit], factor, if_cheaper))
    if not found:
        public = [s for s in fit if s.chosen is None and not wanted.parts]
        pairs = [
            p
            for p in combinations(public, 2)
            if p[0].plan.fingerprint != p[1].plan.fingerprint and _count_alike(p[0].of, p[1].of)
        ]
        found = list(_acceptable(wanted, pairs, factor, if_cheaper))
    return tuple(sorted(found, key=lambda d: d.noise))


def _is_own(plan: ReleasePlan) -> bool:
    """Whether no other question reads its cells alike: by weights of stored values, or for their largest number."""
    return is_estimated(plan.analysed.owned.block) or bool(plan.elects)


def _fitting(wanted: ReleasePlan, plan: Plan, gathering: Gathering) -> Iterator[ReleaseSource]:
    """The release, or those of its sets, whose cells make up the groups that are wanted."""
    several = plan.several
    sets: Iterable[tuple[int | None, ReleasePlan]] = ((None, p) for p in plan.plans)
    if several is not None:
        sets = ((n, p) for n, p in enumerate(several.plans) if n not in several.together)
    for number, of in sets:
        groups = _groups(wanted, of, gathering)
        own = chosen(wanted, of)
        if groups or own is not None:
            yield ReleaseSource(plan=plan, of=of, groups=groups, number=number, chosen=own)


def _groups(wanted: ReleasePlan, source: ReleasePlan, gathering: Gathering) -> Groups:
    """The cells that make up the groups, if units count in them as they would in a fresh release."""
    groups = gathering.groups(source)
    added = max((len(cells) for _, cells in groups), default=0)
    return groups if groups and _counts_as_much(wanted, source, added) else ()


def _acceptable(
    wanted: ReleasePlan, several: Sequence[tuple[ReleaseSource, ...]], factor: float, if_cheaper: float
) -> Iterator[Derived]:
    """Those of the answers whose noise is acceptable."""
    for sources in several:
        is_cheaper = min(s.plan.cost.pico for s in sources) < wanted.cost.pico
        found = _derived(wanted, sources)
        if found is not None and found.noise <= (if_cheaper if is_cheaper else factor) / _ROUNDING:
            yield found


def _derived(wanted: ReleasePlan, sources: tuple[ReleaseSource, ...]) -> Derived | None:
    """The answer from the moments of all sources and the parts of the first, None if they do not give it."""
    first = sources[0].of
    parts = carried(wanted, first)
    if parts is None or (parts and not sources[0].is_of_single_cells):
        return None
    moments = tuple(m for s in sources for m in s.of.vector.moments)
    sds = _sds(sources, tuple(s.added for s in sources))
    found = _finishes(wanted, first, moments, sds)
    if found is None:
        return None
    finishes, near = found
    finishes = tuple(placed(f, wanted, first, parts) for f in finishes)
    weights = tuple(w * s.of.scale / first.scale for s in sources for w in s.of.allocation.weights)
    shown = replace(
        wanted, vector=MomentVector(moments, finishes), allocation=replace(first.allocation, weights=weights),
        scale=first.scale, sensitivity=first.sensitivity, sql=first.sql, cost=first.cost, fingerprint=first.fingerprint,
        sum_choices=(), added=max(s.added for s in sources), agreed=sds, parts=first.parts, selection=first.selection,
    )  # fmt: skip
    fresh = [noise_of(f, wanted.sds) for f in wanted.vector.finishes]
    ratios = [_ratio(noise_of(a, sds), b) for a, b in zip(near, fresh, strict=True)]
    noise = max((*ratios, *error_ratios(wanted, first, parts), threshold_ratio(wanted, first)), default=1.0)
    return Derived(sources=sources, shown=shown, noise=noise)


def _ratio(ours: float, fresh: float) -> float:
    """How many times the noise of a new answer; an answer without noise, as of a constant, is derived as it is."""
    if fresh > 0:
        return ours / fresh
    return math.inf if ours > 0 else 0.0


def _sds(sources: Sequence[ReleaseSource], counts: Counts) -> tuple[float, ...]:
    """The noise of each moment; noises of different cells are independent."""
    return tuple(math.sqrt(n) * sd for s, n in zip(sources, counts, strict=True) for sd in s.of.sds)


# --- which rows count -------------------------------------------------------------------------------------


def _counts_as_much(wanted: ReleasePlan, source: ReleasePlan, added: int) -> bool:
    """Whether a unit that a fresh release would count in full was counted in full by the source."""
    ours, theirs = wanted.analysed, source.analysed
    if source.allocation.is_chosen:  # all of a unit's groups are scaled with one factor, whatever they are added up to
        return False
    if theirs.owned.is_one_row_per_unit:
        return True
    if wanted.allocation.is_chosen:  # it counts units of more rows in full
        return False
    bounds = theirs.bounds
    if bounds.rows < ours.bounds.rows or not all(map(is_linear, source.vector.moments)):
        return False
    counts_all_rows = (
        bounds.rows_per_group >= bounds.rows
        and source.allocation.unit_norm >= source.allocation.row_norm * bounds.rows * _ROUNDING
    )
    if counts_all_rows:
        return True
    has_all_groups = bounds.groups >= min(bounds.rows, len(source.public_keys))
    is_same_rows = moment_conditions(source) <= moment_conditions(wanted)
    return added == 1 and bounds.rows_per_group >= ours.bounds.rows_per_group and has_all_groups and is_same_rows


def _count_alike(one: ReleasePlan, other: ReleasePlan) -> bool:
    """Whether every unit counts alike in two releases, also one that is above its bounds: quotients rest on it.

    It has one row, or it is in one group of each, where its rows weigh what C and their number say.
    """
    if one.allocation.is_chosen or other.allocation.is_chosen:
        return False
    ours, theirs = one.analysed, other.analysed
    if ours.owned.is_one_row_per_unit and theirs.owned.is_one_row_per_unit:
        return True
    return (
        ours.has_constant_keys
        and theirs.has_constant_keys
        and ours.bounds.rows_per_group == theirs.bounds.rows_per_group
        and moment_conditions(one) == moment_conditions(other)
    )


# --- which numbers ----------------------------------------------------------------------------------------


def _finishes(
    wanted: ReleasePlan, source: ReleasePlan, moments: tuple[Moment, ...], sds: tuple[float, ...]
) -> tuple[tuple[Finish, ...], tuple[Finish, ...]] | None:
    """The recipes of `wanted` over the moments, and those whose noise is compared; None if they do not give all of its
    aggregates. The bounds of measures are those of the source.
    """
    theirs = source.analysed.owned
    owned = replace(theirs, block=replace(theirs.block, aggregates=wanted.analysed.owned.block.aggregates))
    try:
        vector = vector_of(replace(source.analysed, owned=owned), source.distribution)
        known = Expressed(moments, sds, source.analysed.domains.may_be_null)
        shown = tuple(known.finish(f, vector.moments) for f in vector.finishes)
        return shown, tuple(known.near(f, vector.moments) for f in vector.finishes)
    except (NotExpressed, HushError):
        return None
