"""Which sums and averages of what units have are lost in their noise, and which clamp would help?

From the query, the policy and the charge alone, never from data. A total of a unit may be as large as all its rows
together, at the far end of their bounds; few units have so much, and the noise is as large as the one that might.
"""

from __future__ import annotations

from dataclasses import dataclass

from proxy.analysis.analyse import measure_bounds
from proxy.plan.release_plan import ReleasePlan
from proxy.plan.sets.sets import Plan
from proxy.plan.words.outputs import output_noise
from proxy.policy.figures import figure
from proxy.sql.algebra.nodes import (
    Aggregate,
    AggregateKind,
    Call,
    ColumnRef,
    Grouped,
    UnitValue,
    UnitValueKind,
    columns_of,
)

_MOST_ROWS = 100  # at the end of their bounds, that noise may be worth
_USUAL = 10  # rows that a clamp leaves a unit
_KINDS = frozenset((AggregateKind.SUM, AggregateKind.AVG))


@dataclass(frozen=True, slots=True)
class Wide:
    """what: an aggregate and its noise. instead: the same with a clamp, and how much less noise it has."""

    what: str
    instead: str


def too_wide(plan: Plan, unit: str) -> tuple[Wide, ...]:
    """What is said of each such aggregate."""
    one = plan.plans[0]
    found = []
    for aggregate, noise in zip(one.analysed.owned.block.aggregates, output_noise(one), strict=True):
        value = _total_in(aggregate, one)
        if value is None or aggregate.kind not in _KINDS:
            continue
        row = max(map(abs, value.ends))
        largest = max(map(abs, measure_bounds(aggregate.argument, one.analysed, aggregate.where)))
        if noise.half_width_95 > _MOST_ROWS * row > 0 and largest > _USUAL * row:
            found.append(_wide(aggregate, value, noise.half_width_95 / row, largest / row, unit))
    return tuple(dict.fromkeys(found))


def _total_in(aggregate: Aggregate, plan: ReleasePlan) -> UnitValue | None:
    """The sum of a unit's rows that an aggregate is of."""
    for column in columns_of(aggregate.argument):
        rows = plan.analysed.owned.block.scan(column.scan).rows
        for value in rows.values if isinstance(rows, Grouped) else ():
            if value.name == column.name and value.kind is UnitValueKind.SUM:
                return value
    return None


def _wide(aggregate: Aggregate, value: UnitValue, rows: float, largest: float, unit: str) -> Wide:
    least, most = (_USUAL * end for end in value.ends)
    clamped = f"least({value.name}, {_digits(most)})" if most > 0 else value.name
    clamped = f"greatest({clamped}, {_digits(least)})" if least < 0 else clamped
    of = aggregate.argument
    while isinstance(of, Call) and of.function.startswith("cast "):
        (of,) = of.args
    kind = aggregate.kind.value
    name = f"{kind}({value.name})" if isinstance(of, ColumnRef) else f"{kind}() of {value.name}"
    per_row = " divided by their number" if aggregate.kind is AggregateKind.AVG else ""
    return Wide(
        what=f"the noise of {name} is that of {figure(rows, 2)} rows at the end of their bounds{per_row}:"
             f" {value.name} of one {unit} may be as large as {figure(largest, 3)} such rows",
        instead=f"Where hardly any {unit} has more than {_USUAL} of them, write {clamped}: about"
                f" {figure(largest / _USUAL, 2)} times less noise.",
    )  # fmt: skip


def _digits(number: float) -> str:
    return figure(number, 15).replace(",", "")
