"""What do the moments and parts of a release compute, in a few words?"""

from __future__ import annotations

from fractions import Fraction
from typing import assert_never

from proxy.dp.brackets import reach_of
from proxy.dp.quantiles import ROW_WEIGHT, is_near_end
from proxy.plan.parts.distinct import DistinctPart
from proxy.plan.parts.modes import ModePart
from proxy.plan.parts.part_requests import Quantiles
from proxy.plan.parts.parts import Part
from proxy.plan.parts.quantile_grid import describe as describe_grid
from proxy.plan.parts.quantiles import QuantilePart
from proxy.plan.vector.moments import (
    ROW_UNITS,
    HalfSum,
    Moment,
    ProductSum,
    QuarterSum,
    RowCount,
    ScaledSum,
    SquareSum,
    UnitCount,
    UnitTotal,
)
from proxy.policy.figures import figure
from proxy.sql.algebra.canonical import in_order
from proxy.sql.algebra.describe import describe_scalar
from proxy.sql.algebra.nodes import TRUE, Scalar


def counted(number: object, noun: str) -> str:
    """A number with its noun: `1 row`, `2 rows`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def describe_moment(moment: Moment) -> str:
    """A moment in a few words."""
    match moment:
        case RowCount(where, of, absent, given):
            return f"number of {_counted(of, given, absent=absent)}{_condition(where)}"
        case ScaledSum(where, given=given):
            return f"sum of {_z(moment)}, each in [-1, 1]{_with(given)}{_condition(where)}"
        case HalfSum(scaled, sign):
            return f"half of count {'plus' if sign > 0 else 'minus'} {describe_moment(scaled)}"
        case QuarterSum(scaled, sign):
            part = {1: "(1 + z)^2/4", -1: "(1 - z)^2/4", 0: "(1 - z^2)/2"}[sign]
            return f"sum of {part}, z = {_z(scaled)}{_with(scaled.given)}{_condition(scaled.where)}"
        case SquareSum(scaled):
            return f"sum of 2 z^2 - 1, z = {_z(scaled)}{_with(scaled.given)}{_condition(scaled.where)}"
        case ProductSum(left, right):
            return f"sum of {_z(left)} times {_z(right)}{_condition(left.where)}"
        case UnitTotal(scaled, least, most):
            ends = f"[{figure(least / ROW_UNITS, 6)}, {figure(most / ROW_UNITS, 6)}]"
            return f"sum of {_z(scaled)} over a unit, clipped to {ends}{_condition(scaled.where)}"
        case UnitCount(where, per_part):
            return f"number of units{' per private key' if per_part else ''}{_condition(where)}"
        case _ as never:
            assert_never(never)


def _counted(of: Scalar, given: Scalar, *, absent: bool) -> str:
    measures = [describe_scalar(s) for s in in_order((of, given)) if s != TRUE]
    if not measures:
        return "rows"
    return f"rows with {' or '.join(measures)} missing" if absent else f"rows with {' and '.join(measures)} present"


def _z(scaled: ScaledSum) -> str:
    return f"({describe_scalar(scaled.of)} - {figure(scaled.middle, 6)})/{figure(scaled.half, 6)}"


def _with(given: Scalar) -> str:
    return "" if given == TRUE else f" with {describe_scalar(given)} present"


def _condition(where: Scalar) -> str:
    return "" if where == TRUE else f" where {describe_scalar(where)}"


def describe_part(part: Part) -> str:
    """What a part of a release computes."""
    match part:
        case QuantilePart(asked=asked):
            return f"{_looked_for(asked)}{_condition(asked.where)}"
        case DistinctPart(asked=asked):
            return f"number of different values of {describe_scalar(asked.of)}{_condition(asked.where)}"
        case ModePart(asked=asked):
            return f"most frequent value of {describe_scalar(asked.of)}{_condition(asked.where)}"
        case _ as never:
            assert_never(never)


def limits_of(part: Part) -> str:
    """How much of a unit counts for a part."""
    match part:
        case QuantilePart():
            return _limits_of_ranks(part)
        case DistinctPart(limits=limits):
            values, groups = counted(limits.values, "value"), counted(limits.groups, "group")
            return f"{values} per unit in a group, {groups}, {limits.in_all} in all"
        case ModePart(poll=poll):
            moved = "up or down alike" if poll.is_monotone else "up and down"
            rows, groups = counted(poll.move, "row"), counted(poll.groups, "full group")
            return f"numbers move by {rows} {moved} in a group, {groups}; {counted(poll.candidates, 'public value')}"
        case _ as never:
            assert_never(never)


def _looked_for(asked: Quantiles) -> str:
    """What is looked for, in a few words."""
    fractions = ", ".join(figure(float(f), 6) for f in asked.fractions)
    return f"{'quantile' if len(asked.fractions) == 1 else 'quantiles'} {fractions} of {describe_scalar(asked.of)}"


def _limits_of_ranks(part: QuantilePart) -> str:
    """What counts, and among which values is looked."""
    ladder = part.ladder
    return (
        f"{counted(ladder.move, 'row')} per unit in a group, {counted(ladder.groups, 'full group')};"
        f" {describe_grid(part.grid)}"
    )


def describe_choice(part: QuantilePart, fraction: Fraction) -> str:
    """How the answer to a quantile comes about."""
    text = "approximate: a public value of the grid, chosen by ranks"
    if is_near_end(fraction):
        text += f", {part.ladder.offset} rows or more from the end; NULL where the noisy count is below that"
    if fraction in part.ladder.bracketed:
        text += f"; interval from cells {-(-reach_of(part.ladder, fraction) // ROW_WEIGHT)} rows before and behind"
    return text


def describe_draw(part: ModePart) -> str:
    """How the answer to a mode comes about."""
    poll = part.poll
    return (
        f"drawn from {counted(poll.candidates, 'public value')}; the chance falls with k rows as"
        f" exp(-{figure(poll.steepness)} k); NULL where the noisy count is below {max(1, poll.least)}{_stored(part)}"
    )


def _stored(part: ModePart) -> str:
    """What the randomization of a column means for its mode."""
    if part.nearer == 1.0:
        return ""
    return (
        f"; rows are counted as they are stored: one more row with a true value is {figure(part.nearer)} of one more"
        " with it stored, on average"
    )
