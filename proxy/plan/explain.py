"""How is the privacy plan of a release told to the analyst?

Public quantities only: nothing here has seen data. The same facts as lines of text and as JSON.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from itertools import chain
from typing import assert_never

from proxy.analysis.keys import PublicKey
from proxy.dp.accounting import ATTO, PICO
from proxy.dp.accuracy import half_width_95
from proxy.plan.distinct import DistinctPart
from proxy.plan.moments import (
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
    in_order,
    size_in_cell,
)
from proxy.plan.noise import noise_of
from proxy.plan.parts import Part
from proxy.plan.quantiles import QuantilePart, limits_of, name_of, told
from proxy.plan.recipes import (
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
from proxy.plan.release_plan import ReleasePlan, Threshold
from proxy.plan.unit_totals import SumChoice
from proxy.policy.model import Accounting, Neighbors, Privacy
from proxy.sql.algebra import TRUE, Aggregate, AggregateKind, Scalar
from proxy.sql.describe import describe_aggregate, describe_scalar

_EVEN = "noise to first order, for values spread evenly and independently between their bounds"
Stated = Count | Total | Computed | Apart  # with the noise of a number
Json = dict[str, "str | int | float | bool | list[Json] | Json | None"]

_WIDTH = 110  # of a line, where it has a blank to be broken at: psql sets all lines as wide as the longest
_CONTINUED = "  "
_WORD = re.compile(r"""(?:'[^']*(?:'|$)|"[^"]*(?:"|$)|[^\s'"])+""")  # what stands in quotes is one


@dataclass(frozen=True, slots=True)
class OutputNoise:
    """Public accuracy of one aggregate.

    is_per_row: sd and half_width_95 are those of an average times its number of rows, which is not public.
    is_of_ranks: half_width_95 is the number of rows between the wanted rank and that of the answer.
    """

    aggregate: str
    mechanism: str
    bound: str
    sd: float
    half_width_95: float
    is_per_row: bool
    is_of_ranks: bool = False


def output_noise(plan: ReleasePlan) -> tuple[OutputNoise, ...]:
    """One row for each aggregate of the block."""
    mechanism = plan.distribution.value.replace("_", " ")
    found = []
    for aggregate, recipe in zip(plan.analysed.owned.block.aggregates, plan.vector.finishes, strict=True):
        if isinstance(recipe, Ranked):
            found.append(_ranks(aggregate, recipe, plan))
            continue
        sd = _counting(plan.parts[recipe.part]).sd if isinstance(recipe, Apart) else noise_of(recipe, plan.sds)
        reach = half_width_95(plan.distribution, sd) if sd > 0 else 0.0
        text, bound = describe_aggregate(aggregate), _bound(aggregate.kind, recipe, plan)
        found.append(OutputNoise(text, mechanism, bound, sd, reach, _is_per_row(recipe)))
    return tuple(found)


def _ranks(aggregate: Aggregate, recipe: Ranked, plan: ReleasePlan) -> OutputNoise:
    part = plan.parts[recipe.part]
    assert isinstance(part, QuantilePart), "what is ranked is computed by such a part"
    error = part.ladder.rank_error_up(aggregate.fraction, 0.95)
    mechanism, bound = "exponential mechanism", told(part, aggregate.fraction)
    return OutputNoise(describe_aggregate(aggregate), mechanism, bound, math.inf, error, False, is_of_ranks=True)


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
            return _limits(plan.parts[part])
        case Count():
            return "1 per unit" if kind is AggregateKind.COUNT_UNITS else "1 per row"
        case Total(value):
            return f"values clamped; largest weight {max((abs(c) for _, c in value.terms), default=0):g}"
        case Mean(middle=middle, half=half):
            return f"values clamped to {_interval(middle, half)}"
        case Spread(measured=measured):
            return f"values clamped to {_measured(measured)}; {_EVEN}"
        case Relation(y=y, x=x):
            return f"values clamped to {_measured(y)} and {_measured(x)}; {_EVEN}"
        case Verdict(needs_all=needs_all):
            return f"decided by the noisy number of rows where it {'fails' if needs_all else 'holds'}"
        case _ as never:
            assert_never(never)


def _interval(middle: float, half: float) -> str:
    return f"[{middle - half:g}, {middle + half:g}]"


def _measured(of: Measured) -> str:
    return _interval(of.middle, of.half)


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
            ends = f"[{least / ROW_UNITS:g}, {most / ROW_UNITS:g}]"
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
    return f"({describe_scalar(scaled.of)} - {scaled.middle:g})/{scaled.half:g}"


def _with(given: Scalar) -> str:
    return "" if given == TRUE else f" with {describe_scalar(given)} present"


def _condition(where: Scalar) -> str:
    return "" if where == TRUE else f" where {describe_scalar(where)}"


def explain_block(plan: ReleasePlan, privacy: Privacy) -> Json:
    """The plan of one release as data."""
    bounds = plan.analysed.bounds
    pure = privacy.accounting is Accounting.PURE
    moments = zip(plan.vector.moments, plan.allocation.weights, plan.sds, strict=True)
    return {
        "unit": privacy.unit,
        "neighbors": privacy.neighbors.value,
        "mechanism": plan.distribution.value,
        "charge": {
            "epsilon" if pure else "rho": plan.cost.pico / PICO,
            "delta": plan.cost.atto / ATTO,
        },
        "bounds": {
            "max_rows_per_unit": bounds.rows,
            "max_rows_per_group": bounds.rows_per_group,
            "max_groups_per_unit": bounds.groups,
            "max_keys_per_unit": bounds.keys,
            "source": bounds.source,
        },
        "sensitivity": {
            "value": plan.sensitivity,
            "norm": "l1" if pure else "l2",
            "row": plan.allocation.row_norm,
            "group": plan.allocation.cell_norm,
            "unit": plan.allocation.unit_norm,
            "derivation": _derivation(plan, privacy, pure=pure),
        }
        if plan.vector.moments
        else None,
        "keys": [_key(plan, i) for i in range(len(plan.analysed.keys))],
        "threshold": plan.selection.tau if isinstance(plan.selection, Threshold) else None,
        "moments": [{"moment": describe_moment(m), "weight": w, "sd": sd} for m, w, sd in moments],
        "outputs": [
            {
                "aggregate": o.aggregate,
                "bound": o.bound,
                **_accuracy(o),
            }
            for o in output_noise(plan)
        ],
        "sum_bounds": [_choice(c) for c in plan.sum_choices],
        "private_sql": plan.shown(plan.sql),
        "parts": [_part(p, plan, privacy) for p in plan.parts],
    }


def _accuracy(output: OutputNoise) -> Json:
    if output.is_of_ranks:
        return {"rank_error_95": output.half_width_95}
    ending = "_times_rows" if output.is_per_row else ""
    return {f"sd{ending}": output.sd, f"half_width_95{ending}": output.half_width_95}


def _part(part: Part, plan: ReleasePlan, privacy: Privacy) -> Json:
    """What is computed beside the vector, as data."""
    pure = privacy.accounting is Accounting.PURE
    return {
        "part": _name(part),
        "epsilon" if pure else "rho": part.pico / PICO,
        "bound": _limits(part),
        **_noise_of_part(part, pure=pure),
        "private_sql": plan.shown(part.sql),
    }


def _noise_of_part(part: Part, *, pure: bool) -> Json:
    match part:
        case DistinctPart(sensitivity=sensitivity, sd=sd):
            return {"sensitivity": sensitivity, "norm": "l1" if pure else "l2", "sd": sd}
        case QuantilePart(ladder=ladder):
            return {"draws": ladder.levels, "epsilon_of_a_draw": ladder.epsilon}
        case _ as never:
            assert_never(never)


def _name(part: Part) -> str:
    match part:
        case QuantilePart(asked=asked):
            return f"{name_of(asked)}{_condition(asked.where)}"
        case DistinctPart(asked=asked):
            return f"number of different values of {describe_scalar(asked.of)}{_condition(asked.where)}"
        case _ as never:
            assert_never(never)


def _limits(part: Part) -> str:
    match part:
        case QuantilePart():
            return limits_of(part)
        case DistinctPart(limits=limits):
            values, groups = counted(limits.values, "value"), counted(limits.groups, "group")
            return f"{values} per unit in a group, {groups}, {limits.in_all} in all"
        case _ as never:
            assert_never(never)


def _choice(choice: SumChoice) -> Json:
    return {
        "aggregate": describe_aggregate(choice.aggregate),
        "total_within": f"[{choice.least:g}, {choice.most:g}]",
        "sd_by_total": choice.by_total,
        "sd_by_rows": choice.by_rows,
        "used": "total" if choice.is_used else "rows",
    }


def _derivation(plan: ReleasePlan, privacy: Privacy, *, pure: bool) -> str:
    bounds, allocation = plan.analysed.bounds, plan.allocation
    units = [w for m, w in zip(plan.vector.moments, allocation.weights, strict=True) if isinstance(m, UnitCount)]
    parts = []
    if allocation.row_norm > 0:
        parts.append(f"{counted(bounds.rows_per_group, 'row')} in a group, each at most {allocation.row_norm:.4g}")
    if units:
        parts.append(f"{counted(len(units), 'unit count')} of weight {max(units):.4g}")
    totals = [
        w * size_in_cell(m, 0)
        for m, w in zip(plan.vector.moments, allocation.weights, strict=True)
        if isinstance(m, UnitTotal)
    ]
    if totals:
        parts.append(f"{counted(len(totals), 'total')} of at most {max(totals):.4g}")
    text = f"{' and '.join(parts)}, so W = {allocation.cell_norm:.4g}"
    spread = f"{bounds.groups}" if pure else f"sqrt({bounds.groups})"
    text += f"; {counted(bounds.groups, 'group')} and {counted(bounds.rows, 'row')} in all,"
    text += f" so B = {allocation.unit_norm:.4g}, at most {spread} * W"
    if privacy.group_size > 1:
        text += f"; times {privacy.group_size} for the group size"
    return text + ("; times 2 because one unit is replaced" if privacy.neighbors is Neighbors.REPLACE_ONE else "")


def _key(plan: ReleasePlan, number: int) -> Json:
    key = plan.analysed.keys[number]
    if isinstance(key, PublicKey):
        return {"key": describe_scalar(key.scalar), "rule": "public: every value is shown", "values": len(key.values)}
    return {"key": describe_scalar(key.scalar), "rule": "private: shown above the threshold", "values": None}


def explain_lines(block: Json) -> list[str]:
    """The plan of one release as readable lines."""
    return list(chain.from_iterable(_broken(line) for line in _long_lines(block)))


def _broken(line: str) -> list[str]:
    """A line in pieces of at most _WIDTH characters, longer words aside."""
    indent = line[: len(line) - len(line.lstrip())]
    pieces: list[str] = []
    for word in _WORD.findall(line):
        if pieces and len(pieces[-1]) + 1 + len(word) <= _WIDTH:
            pieces[-1] += f" {word}"
        else:
            pieces.append(f"{indent}{_CONTINUED if pieces else ''}{word}")
    return pieces


def _long_lines(block: Json) -> list[str]:
    charge, bounds, sensitivity = block["charge"], block["bounds"], block["sensitivity"]
    assert isinstance(charge, dict)
    assert isinstance(bounds, dict)
    amount = ", ".join(f"{k} {v:.6g}" for k, v in charge.items() if isinstance(v, (int, float)))
    lines = [f"Release ({block['mechanism']}, {block['neighbors']} of one {block['unit']})", f"  Charge: {amount}"]
    lines.append(
        f"  Bounds: {counted(bounds['max_rows_per_unit'], 'row')} per unit, {bounds['max_rows_per_group']} per group,"
        f" {counted(bounds['max_groups_per_unit'], 'group')} ({bounds['source']})"
    )
    if isinstance(sensitivity, dict):
        norm, derivation = sensitivity["norm"], sensitivity["derivation"]
        lines.append(f"  Sensitivity: {sensitivity['value']:.6g} ({norm}): {derivation}")
    lines += [f"  Key {k['key']}: {k['rule']}" + _count(k) for k in _rows(block, "keys")]
    if block["threshold"] is not None:
        lines.append(f"  Threshold: {block['threshold']:.4g} units (noisy)")
    lines += [
        f"  Moment: {m['moment']}; weight {m['weight']:.4g}, noise sd {m['sd']:.4g}" for m in _rows(block, "moments")
    ]
    lines += [f"  Output {o['aggregate']}: {_stated(o)}; {o['bound']}" for o in _rows(block, "outputs")]
    lines += [
        f"  Sum bounds of {c['aggregate']}: noise sd {c['sd_by_total']:.4g} with a unit's total within"
        f" {c['total_within']}, {c['sd_by_rows']:.4g} with its rows bounded; by {c['used']} here"
        for c in _rows(block, "sum_bounds")
    ]
    for part in _rows(block, "parts"):
        share = part["rho"] if "rho" in part else part["epsilon"]
        noise = (
            f"sensitivity {part['sensitivity']:.6g} ({part['norm']}), noise sd {part['sd']:.4g}"
            if "sd" in part
            else f"{counted(part['draws'], 'draw')} of epsilon {part['epsilon_of_a_draw']:.4g}"
        )
        lines.append(f"  Part {part['part']}: {share:.6g} of the charge; {part['bound']}; {noise}")
    for sql in (block["private_sql"], *(p["private_sql"] for p in _rows(block, "parts"))):
        if sql:
            lines.append("  Private SQL:")
            lines += [f"    {line}" for line in str(sql).splitlines()]
    return lines


def _stated(output: Json) -> str:
    """The accuracy of an output."""
    if "rank_error_95" in output:
        return f"rank 95 % within {output['rank_error_95']:.4g} rows"
    if "sd" in output:
        return f"noise sd {output['sd']:.4g}, 95 % within {output['half_width_95']:.4g}"
    return f"noise sd {output['sd_times_rows']:.4g} divided by the number of rows"


def counted(number: object, noun: str) -> str:
    """A number with its noun: `1 row`, `2 rows`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _count(key: Json) -> str:
    return "" if key["values"] is None else f" ({counted(key['values'], 'value')})"


def _rows(block: Json, name: str) -> list[Json]:
    rows = block[name]
    assert isinstance(rows, list)
    return rows
