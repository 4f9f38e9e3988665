"""What will one release compute, with which noise, at what charge?

Brings analysis, moments, allocation, grid and threshold together. Pure: the plan of a query depends on
its text, parameters, policy and public settings only.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from proxy.analysis.analyse import Analysed, Lowered, analyse
from proxy.analysis.estimated import is_estimated
from proxy.analysis.keys import KeyValue, PublicKey, key_identity, public_product
from proxy.analysis.learned import is_of_one_table
from proxy.analysis.units import UniqueKeys
from proxy.dp.accounting import of_atto_down, of_pico_down
from proxy.dp.mechanisms import Distribution, distribution_of, grid_scale, noise_sd
from proxy.dp.selection import KeyRule, key_rule
from proxy.plan.charge import Cost
from proxy.plan.parts.cut_units import growth, norm_up, weight_beside
from proxy.plan.parts.modes import counted_values
from proxy.plan.parts.part_requests import asked_of
from proxy.plan.parts.parts import Part, identity, plan_part, shares
from proxy.plan.profile.bound_choice import FROM_POLICY, ChosenBound, Situation, centres_of, choose, tells_keys
from proxy.plan.profile.kept import FilterShares
from proxy.plan.profile.learned import noise_of_one
from proxy.plan.profile.left_out import COMPLETE, LeftOut, Untold, left_out
from proxy.plan.profile.profile import TableProfile
from proxy.plan.profile.usual import Usual, usual_of
from proxy.plan.sql.moment_sql import VectorStatement
from proxy.plan.sql.row_sums import most_rows
from proxy.plan.sql.statement import render
from proxy.plan.sql.unit_totals import SumChoice, choices, is_better, possible_totals
from proxy.plan.vector.allocation import Allocation, allocate, with_imposed_bound
from proxy.plan.vector.moments import Moment, MomentVector, RowCount, UnitCount, sorted_vector
from proxy.plan.vector.recipes import moved
from proxy.plan.vector.vector import NO_CENTRES, NO_TOTALS, Centres, Totals, moments_of
from proxy.plan.vector.weighting import Shares, shares_of
from proxy.policy.model import Privacy, Table
from proxy.sql.algebra.nodes import TRUE, Aggregate, Block
from proxy.sql.render.dialect import Dialect
from proxy.sql.render.duckdb.dialect import DUCKDB


@dataclass(frozen=True, slots=True)
class AllKeys:
    """Every key of the public domain is emitted."""


@dataclass(frozen=True, slots=True)
class KeysOfRows:
    """Every key that a row has is emitted, with the public keys beside it: whose keys rows have is public."""


@dataclass(frozen=True, slots=True)
class Threshold:
    """Private keys are kept if moment `moment`, in units, reaches the tau of a rule."""

    moment: int
    rule: KeyRule

    @property
    def tau(self) -> float:
        return self.rule.tau


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanContext:
    """What planning needs besides the block: the policy's facts, the caller's settings, the prices.

    pico: rho or epsilon of this release. atto_for_keys: delta a private-key release may use. shares: how much each
    aggregate matters, () for all alike. may_choose: a bound by the profile; sets are bounded alike. bound: imposed on
    each unit's vector, with weights of 1; 0 where none is. may_count_cut: units of which rows are left out, where
    nothing else tells; of several sets that are bounded together, one counts them for all.
    """

    tables: Mapping[str, Table]
    unique: UniqueKeys
    privacy: Privacy
    lowered: Lowered
    pico: int
    atto_for_keys: int
    salt: str
    shares: Shares = ()
    dialect: Dialect = DUCKDB
    profiles: tuple[TableProfile, ...] = ()
    may_choose: bool = True
    bound: float = 0.0
    may_count_cut: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleasePlan:
    """One release, ready to be charged and computed.

    A vector without moments is neither computed nor charged: its SQL is "" and its scale means nothing.
    parts: what is computed beside the vector; each has its share of `cost`.
    sds: noise standard deviation of each moment, in the moment's own unit.
    sum_choices: sums that a unit's total could bound, with what either way costs.
    public_keys: the product of the public keys' values, emitted for every kept private part.
    usual: what is expected of its groups, None where nothing is told.
    added: cells of a release that are added up for each of the answer's, see `plan.derive`.
    cut_weight: of a unit among those that are cut, or that are whole; 0 where these are not counted.
    whole_rows: the rows of a unit with no more are added up one by one; 0 where the cells of all units are. See
    `plan.sql.row_sums`.
    elects: the mode() whose value is the last key of the cell with the largest number of a group; none where cells are
    shown as they are.
    is_unpromised: nothing it reads is in the dataset's promise, so that no noise is added. See `plan.unpromised`.
    """

    analysed: Analysed
    vector: MomentVector
    allocation: Allocation
    distribution: Distribution
    sensitivity: float
    scale: float
    selection: AllKeys | KeysOfRows | Threshold
    public_keys: tuple[tuple[KeyValue, ...], ...]
    cost: Cost
    sum_choices: tuple[SumChoice, ...]
    sql: str
    parts: tuple[Part, ...]
    salt: str = field(repr=False)
    fingerprint: str
    bound: ChosenBound = FROM_POLICY
    left_out: LeftOut = COMPLETE
    usual: Usual | None = None
    added: int = 1
    agreed: tuple[float, ...] = ()
    cut_weight: float = 0.0
    whole_rows: int = 0
    elects: tuple[Aggregate, ...] = ()
    is_unpromised: bool = False

    @property
    def plans(self) -> tuple[ReleasePlan]:
        """One of each grouping set: here there are none."""
        return (self,)

    @property
    def several(self) -> None:
        """The same as a plan of grouping sets, which it is not."""
        return None

    @property
    def cut_sd(self) -> float:
        """The noise of the number of units that are cut, and of those that are not."""
        return noise_sd(self.distribution, self.scale * self.cut_weight)

    @property
    def stages(self) -> tuple[str, ...]:
        """The SQL of the release in the order in which it is run: of the vector, if it has moments, then of each part.

        That of parts reads kept private keys as parameters: a list for each.
        """
        return (*((self.sql,) if self.vector.moments else ()), *(p.sql for p in self.parts))

    @property
    def key_rules(self) -> tuple[KeyRule, ...]:
        """By which rule private keys are shown; none if all are public."""
        return (self.selection.rule,) if isinstance(self.selection, Threshold) else ()

    def shown(self, sql: str) -> str:
        """The SQL of a stage for people: without the dataset's salt, which stays in the state directory."""
        # it is hexadecimal, and quoted alike by every engine
        return sql.replace(f"'{self.salt}'", "'<salt>'") if self.salt else sql

    @property
    def sds(self) -> tuple[float, ...]:
        """The noise of each moment; `agreed` where it is known better, as of totals that agree with their parts."""
        if self.agreed:
            return self.agreed
        if self.is_unpromised:
            return (0.0,) * len(self.allocation.weights)
        grown = math.sqrt(self.added)
        return tuple(grown * noise_sd(self.distribution, self.scale * w) for w in self.allocation.weights)

    @property
    def units_per_grid(self) -> tuple[float, ...]:
        """What one grid unit of each moment is worth."""
        return tuple(1.0 / (self.scale * w) for w in self.allocation.weights)


def plan_release(block: Block, context: PlanContext) -> ReleasePlan:
    """Plan the release of one block. Raises HushError."""
    analysed = analyse(block, context.tables, context.unique, context.privacy, context.lowered)
    by_value = counted_values(block, analysed, context.privacy)
    if by_value is not None:
        counted = analyse(by_value, context.tables, context.unique, context.privacy, context.lowered)
        plan = replace(plan_analysed(counted, context, NO_TOTALS), elects=block.aggregates)
        return replace(plan, fingerprint=_fingerprint(plan))
    return plan_analysed(analysed, context, possible_totals(analysed, context.lowered.learned))


def plan_analysed(
    analysed: Analysed, context: PlanContext, totals: Totals, of_parts: Analysed | None = None
) -> ReleasePlan:
    """Plan the release of an analysed block. totals: sums that a unit's total may bound. Raises HushError.

    of_parts: the same with the bounds of what is computed beside the vector, if these are others.
    """
    privacy = context.privacy
    distribution = distribution_of(privacy.accounting)
    weighted = shares_of(context.shares, analysed.owned.block.aggregates, privacy.accounting)
    ways = [_allocated(analysed, distribution, t, weighted) for t in ((totals, NO_TOTALS) if totals else (NO_TOTALS,))]
    is_by_total = bool(totals) and is_better(ways[0][:2], ways[1][:2])
    vector, allocation, selecting = ways[0 if is_by_total else -1]
    asked = asked_of(analysed.owned.block.aggregates)
    pico, pico_of_parts = shares(context.pico, len(asked), has_vector=bool(vector.moments))
    factor = privacy.promise.reach
    profile, filters = _profile(analysed, context), FilterShares(analysed.owned, context.profiles)
    public = public_product(analysed.keys, analysed.joints)
    by_choice, chosen, bound = _bounded(ways[-1][:2], analysed, context, pico, weighted, filters, len(public))
    if chosen.is_chosen:
        selecting = _selecting(by_choice, analysed)
        vector, allocation, totals = by_choice, chosen, NO_TOTALS
    groups = analysed.bounds.groups if analysed.private_keys else len(public)
    told = left_out(vector.moments, allocation, bound, analysed, profile, distribution, groups, filters.kept)
    cut_weight = _cut_weight(told, allocation, distribution, context)
    sensitivity = norm_up(allocation.unit_norm, cut_weight, distribution) * factor
    scale = grid_scale(distribution, of_pico_down(pico), sensitivity) if vector.moments else 1.0
    statement = VectorStatement(
        analysed=analysed, moments=vector.moments, allocation=allocation, distribution=distribution, scale=scale,
        salt=context.salt, time_zone=privacy.time_zone, dialect=context.dialect, cut_weight=cut_weight,
    )  # fmt: skip
    selection = _selection(selecting, allocation, distribution, scale, analysed, context)
    is_thresholded = isinstance(selection, Threshold)
    noise_unit = noise_sd(distribution, scale) / allocation.unit_norm if vector.moments else 0.0
    beside = replace(statement, analysed=of_parts or analysed)
    parts = tuple(plan_part(one, beside, p, privacy.promise) for one, p in zip(asked, pico_of_parts, strict=True))
    plan = ReleasePlan(
        analysed=analysed,
        vector=vector,
        allocation=allocation,
        distribution=distribution,
        sensitivity=sensitivity,
        scale=scale,
        selection=selection,
        public_keys=public,
        cost=Cost(context.pico, context.atto_for_keys if is_thresholded else 0),
        sum_choices=choices(totals, analysed.owned.block.aggregates, ways[0][:2], ways[-1][:2], noise_unit),
        sql=render(statement) if vector.moments else "",
        parts=parts,
        salt=context.salt,
        fingerprint="",
        bound=bound,
        left_out=_counted(told, cut_weight, allocation, distribution),
        usual=usual_of(vector, analysed, profile, filters, len(public)),
        cut_weight=cut_weight,
        whole_rows=most_rows(statement) if vector.moments else 0,
    )
    return replace(plan, fingerprint=_fingerprint(plan))


def vector_of(analysed: Analysed, distribution: Distribution) -> MomentVector:
    """The vector of a block whose sums are bounded by rows."""
    return _vector(analysed, distribution, NO_TOTALS)[0]


def statement_of(plan: ReleasePlan, context: PlanContext) -> VectorStatement:
    """What the plan's vector was rendered from."""
    return VectorStatement(
        analysed=plan.analysed, moments=plan.vector.moments, allocation=plan.allocation,
        distribution=plan.distribution, scale=plan.scale, salt=plan.salt,
        time_zone=context.privacy.time_zone, dialect=context.dialect, cut_weight=plan.cut_weight,
    )  # fmt: skip


def with_sql(plan: ReleasePlan, sql: str) -> ReleasePlan:
    """The plan with another statement for its vector, one that looks at the cells of all units."""
    changed = replace(plan, sql=sql, whole_rows=0)
    return replace(changed, fingerprint=_fingerprint(changed))


def _cut_weight(of: LeftOut, allocation: Allocation, distribution: Distribution, context: PlanContext) -> float:
    """Of the units that are cut, and of the others, where nothing else tells how many there are."""
    is_wanted = context.may_count_cut and context.privacy.tell_cut and isinstance(of, Untold)
    return weight_beside(allocation.unit_norm, distribution) if is_wanted and not allocation.is_chosen else 0.0


def _counted(of: LeftOut, weight: float, allocation: Allocation, distribution: Distribution) -> LeftOut:
    """With what it costs that the answer tells of it."""
    if not weight or not isinstance(of, Untold):
        return of
    return replace(of, growth=growth(weight, allocation.unit_norm, distribution))


def _allocated(
    analysed: Analysed, distribution: Distribution, totals: Totals, weighted: Shares
) -> tuple[MomentVector, Allocation, int | None]:
    """The vector with its weights, and the moment that selects private keys."""
    vector, selecting = _vector(analysed, distribution, totals)
    return vector, allocate(vector, analysed.bounds, distribution, selecting, weighted), selecting


def _vector(
    analysed: Analysed, distribution: Distribution, totals: Totals, centres: Centres = NO_CENTRES
) -> tuple[MomentVector, int | None]:
    """The vector, and the moment that selects private keys."""
    vector = moments_of(analysed, pure=distribution is Distribution.LAPLACE, totals=totals, centres=centres)
    return _with_selection(vector, analysed)


def _bounded(
    by_rows: tuple[MomentVector, Allocation], analysed: Analysed, context: PlanContext, pico: int, weighted: Shares,
    filters: FilterShares, groups: int,
) -> tuple[MomentVector, Allocation, ChosenBound]:  # fmt: skip
    """The vector and the allocation with the bound that a profile of the block's table recommends, if there is one."""
    (vector, natural), profile = by_rows, _profile(analysed, context)
    if is_estimated(analysed.owned.block):  # below what one row weighs, it would depend on the row's stored values
        return vector, natural, FROM_POLICY
    if context.bound and context.may_choose and vector.moments and not analysed.private_keys:
        imposed = with_imposed_bound(
            vector.moments, natural, context.bound, distribution_of(context.privacy.accounting)
        )
        return vector, imposed, FROM_POLICY
    is_kept = analysed.bounds.is_fixed or not context.may_choose or not vector.moments
    if profile is None or is_kept or not tells_keys(analysed, profile):
        return vector, natural, FROM_POLICY
    situation = Situation(
        analysed=analysed, profile=profile, filters=filters, distribution=distribution_of(context.privacy.accounting),
        noise=noise_of_one(context.privacy, pico), groups=groups,
        shares=weighted,
    )  # fmt: skip
    centres = centres_of(analysed, profile)
    centred = _vector(analysed, situation.distribution, NO_TOTALS, centres)[0] if centres else vector
    return choose(vector, centred, natural, situation)


def _profile(analysed: Analysed, context: PlanContext) -> TableProfile | None:
    """What is known of the units' rows, if the block's rows are those of one table."""
    name = analysed.owned.bounds_from.name
    return next((p for p in context.profiles if p.table == name and is_of_one_table(analysed.owned)), None)


def _selecting(vector: MomentVector, analysed: Analysed) -> int | None:
    """The unit count that selects private keys, where all keys are private and a unit has several rows."""
    return vector.moments.index(UnitCount(TRUE)) if analysed.private_keys else None


def _with_selection(vector: MomentVector, analysed: Analysed) -> tuple[MomentVector, int | None]:
    """Add the unit count that selects private keys.

    With public keys beside them it is a count of its own for each private part; otherwise, with one row
    per unit, it is the row count.
    """
    is_one_row = analysed.owned.is_one_row_per_unit
    if is_one_row:
        vector = sorted_vector(_one_row_vector(vector))
    if not analysed.private_keys:
        return vector, None
    is_mixed = any(isinstance(k, PublicKey) for k in analysed.keys)
    selecting = RowCount(TRUE, TRUE) if is_one_row and not is_mixed else UnitCount(TRUE, per_part=is_mixed)
    moments = vector.moments if selecting in vector.moments else (*vector.moments, selecting)
    added = sorted_vector(MomentVector(moments, vector.finishes))
    return added, added.moments.index(selecting)


def _one_row_vector(vector: MomentVector) -> MomentVector:
    """Where a unit has one row, counting units and counting rows are one moment."""
    merged: dict[Moment, int] = {}
    place: dict[int, int] = {}
    for index, moment in enumerate(vector.moments):
        same = RowCount(moment.where, TRUE) if isinstance(moment, UnitCount) else moment
        place[index] = merged.setdefault(same, len(merged))
    return MomentVector(tuple(merged), tuple(moved(f, place) for f in vector.finishes))


def _selection(
    selecting: int | None, allocation: Allocation, distribution: Distribution, scale: float, analysed: Analysed,
    context: PlanContext,
) -> AllKeys | Threshold:  # fmt: skip
    if selecting is None:
        return AllKeys()
    weight = allocation.weights[selecting]
    rule = key_rule(
        delta_r=of_atto_down(context.atto_for_keys),
        sigma_n=noise_sd(distribution, scale * weight),
        norm_ratio=allocation.unit_norm / weight,
        keys_per_unit=analysed.bounds.keys,
        group_size=context.privacy.group_size,
        min_units=context.privacy.min_units,
    )
    return Threshold(selecting, rule)


def _fingerprint(plan: ReleasePlan) -> str:
    """Equal for plans that would publish the same noisy numbers."""
    tau = repr(plan.selection.tau) if isinstance(plan.selection, Threshold) else "all"
    keys = [
        [repr(key_identity(v)) for v in k.values] if isinstance(k, PublicKey) else "private" for k in plan.analysed.keys
    ]
    stages = [plan.sql, *(identity(p) for p in plan.parts)]
    keys += [[repr(tuple(map(key_identity, v))) for v in joint.values] for joint in plan.analysed.joints]
    content = [stages, keys, tau, plan.distribution.value, plan.cost.pico, plan.cost.atto]
    content += ["elects"] if plan.elects else []
    return hashlib.sha256(json.dumps(content).encode()).hexdigest()
