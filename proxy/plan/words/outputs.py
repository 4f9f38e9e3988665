"""How near is each output to the bounded truth, as far as public numbers tell?"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import assert_never

from proxy.analysis.estimated import key_growth
from proxy.dp.accuracy import half_width_95
from proxy.plan.parts.distinct import DistinctPart
from proxy.plan.parts.modes import ModePart
from proxy.plan.parts.parts import Part
from proxy.plan.parts.quantiles import QuantilePart
from proxy.plan.profile.bound_choice import FromProfile
from proxy.plan.profile.left_out import About
from proxy.plan.release_plan import ReleasePlan
from proxy.plan.vector.noise import noise_of
from proxy.plan.vector.recipes import (
    Apart,
    Computed,
    Count,
    Mean,
    Measured,
    Ranked,
    Relation,
    RelationKind,
    Spread,
    SpreadKind,
    Total,
    Verdict,
)
from proxy.plan.words.describe import describe_choice, describe_draw, limits_of
from proxy.policy.figures import figure
from proxy.sql.algebra.describe import describe_aggregate
from proxy.sql.algebra.nodes import Aggregate, AggregateKind

_EVEN = "noise to first order, for values spread evenly and independently between their bounds"
_Z_05 = 1.6449  # of the normal law, exceeded once in 20 times; rounded up
NO_NOISE = "none: protected when collected"  # in the place of a mechanism, of local tables
Stated = Count | Total | Computed | Apart  # with the noise of a number


@dataclass(frozen=True, slots=True)
class OutputNoise:
    """Public accuracy of one aggregate.

    is_per_row: sd and half_width_95 are those of an average times its number of rows, which is not public.
    is_of_ranks: half_width_95 is the number of rows between the wanted rank and that of the answer; is_of_mode: that by
    which a value falls short of the most frequent which is given in its place with a chance of at most 5 %. missing:
    about what the unit's bounds leave out of the number, or move an average, usual: about its size, as far as a profile
    tells.
    """

    aggregate: str
    mechanism: str
    bound: str
    sd: float
    half_width_95: float
    is_per_row: bool
    is_of_ranks: bool = False
    missing: float = 0.0
    usual: float = 0.0
    is_of_mode: bool = False

    @property
    def is_of_rows(self) -> bool:
        """Whether half_width_95 is a number of rows, and sd means nothing."""
        return self.is_of_ranks or self.is_of_mode


def output_noise(plan: ReleasePlan) -> tuple[OutputNoise, ...]:
    """One row for each aggregate of the block."""
    mechanism, sds = plan.distribution.value.replace("_", " "), plan.sds
    mechanism = NO_NOISE if plan.is_unpromised else mechanism
    if plan.elects:
        return (_elected(plan, mechanism),)
    sds = tuple(sd * key_growth(plan.analysed.owned.block) for sd in sds)
    found, usual = [], plan.usual.sizes if plan.usual is not None else (0.0,) * len(plan.vector.finishes)
    for aggregate, recipe, size in zip(plan.analysed.owned.block.aggregates, plan.vector.finishes, usual, strict=True):
        if isinstance(recipe, Ranked):
            found.append(_chosen(aggregate, recipe, plan))
            continue
        sd = _counting(plan.parts[recipe.part]).sd if isinstance(recipe, Apart) else noise_of(recipe, sds)
        reach = half_width_95(plan.distribution, sd)
        text, bound = describe_aggregate(aggregate), _bound(aggregate.kind, recipe, plan)
        one = OutputNoise(text, mechanism, bound, sd, reach, _is_per_row(recipe), missing=_missing(recipe, size, plan))
        found.append(replace(one, usual=size) if isinstance(recipe, (Count, Total)) else one)
    return tuple(found)


def _elected(plan: ReleasePlan, mechanism: str) -> OutputNoise:
    """Of the value with the largest noisy number: that of another is larger if the difference of two noises is."""
    (recipe,), (aggregate,) = plan.vector.finishes, plan.elects
    assert isinstance(recipe, Count), "rows of each value are counted"
    short = math.ceil(_Z_05 * math.sqrt(2.0) * noise_of(recipe, plan.sds))
    bound = "of values above the threshold the one with the largest noisy number; NULL where there is none"
    return OutputNoise(describe_aggregate(aggregate), mechanism, bound, math.inf, short, False, is_of_mode=True)


def _missing(recipe: Stated, size: float, plan: ReleasePlan) -> float:
    """What bounds are expected to leave out of a number of this size, or to move an average; 0 if not told."""
    match recipe:
        case Count() | Total():
            return size * plan.left_out.share if isinstance(plan.left_out, About) else 0.0
        case Mean():
            return plan.bound.missing_of(recipe) if isinstance(plan.bound, FromProfile) else 0.0
        case _:
            return 0.0


def _chosen(aggregate: Aggregate, recipe: Ranked, plan: ReleasePlan) -> OutputNoise:
    part, text, mechanism = plan.parts[recipe.part], describe_aggregate(aggregate), "exponential mechanism"
    if isinstance(part, ModePart):
        short = part.poll.short_up(0.05)
        return OutputNoise(text, mechanism, describe_draw(part), math.inf, short, False, is_of_mode=True)
    assert isinstance(part, QuantilePart), "what is ranked is computed by such a part"
    error, bound = part.ladder.rank_error_up(aggregate.fraction, 0.95), describe_choice(part, aggregate.fraction)
    return OutputNoise(text, mechanism, bound, math.inf, error, False, is_of_ranks=True)


def _counting(part: Part) -> DistinctPart:
    assert isinstance(part, DistinctPart), "what is counted apart is computed by such a part"
    return part


def _is_per_row(recipe: Stated) -> bool:
    match recipe:
        case Count() | Total() | Verdict() | Apart():
            return False
        case Mean():
            return True
        case Spread(kind):
            return kind is not SpreadKind.SQUARES
        case Relation(kind):
            return kind is not RelationKind.PRODUCTS
        case _ as never:
            assert_never(never)


def _bound(kind: AggregateKind, recipe: Stated, plan: ReleasePlan) -> str:
    match recipe:
        case Apart(part):
            return limits_of(plan.parts[part])
        case Count():
            return "1 per unit" if kind is AggregateKind.COUNT_UNITS else "1 per row"
        case Total(value, sign):
            never = {1: "; never negative", -1: "; never positive", 0: ""}[sign]
            largest = max((abs(c) for _, c in value.terms), default=0)
            return f"values clamped; largest weight {figure(largest, 6)}{never}"
        case Mean():
            lo, hi = recipe.ends
            return f"values clamped to [{figure(lo, 6)}, {figure(hi, 6)}]"
        case Spread(measured=measured):
            return f"values clamped to {_measured(measured)}; {_EVEN}"
        case Relation(y=y, x=x):
            return f"values clamped to {_measured(y)} and {_measured(x)}; {_EVEN}"
        case Verdict(needs_all=needs_all):
            return f"decided by the noisy number of rows where it {'fails' if needs_all else 'holds'}"
        case _ as never:
            assert_never(never)


def _interval(middle: float, half: float) -> str:
    return f"[{figure(middle - half, 6)}, {figure(middle + half, 6)}]"


def _measured(of: Measured) -> str:
    return _interval(of.middle, of.half)
