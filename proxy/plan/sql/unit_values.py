"""How is an exact aggregate of a unit's own rows spelled, so that it never raises and never depends on their order?

Whole numbers are added as 128-bit integers. Fractions are rounded to a decimal grid first, which keeps them apart from
the order of rows; a double that has few decimals is met exactly.
"""

from __future__ import annotations

import math
from typing import assert_never

from proxy.policy.model import Bounded, Column
from proxy.sql.algebra.nodes import ColumnRef, UnitValue, UnitValueKind
from proxy.sql.render.renderer import Renderer, middle_of, numeric_ends
from proxy.sqltypes import SqlType

_DECIMALS = 12
_EXACT = 2.0**53


def scale_of(value: UnitValue) -> float:
    """Grid units in 1: a power of ten, so that a row stays a whole number that a double holds."""
    largest = max(abs(value.ends[0]), abs(value.ends[1]))
    if value.argument.type.is_integer:
        return 1.0
    return 10.0 ** min(_DECIMALS, math.floor(math.log10(_EXACT / max(largest, 1.0))))


def unit_value(value: UnitValue, column: Column, renderer: Renderer, counted: str, passing: str) -> str:
    """The text of a value over the rows of one unit. counted: FILTER of a count; passing: that of other values."""
    match value.kind:
        case UnitValueKind.COUNT:
            return f"least(count(*){counted}, {value.most}::BIGINT)"
        case UnitValueKind.COUNT_DISTINCT:
            return f"least(count(DISTINCT {renderer.distinct(value.argument)}){passing}, {value.most}::BIGINT)"
        case UnitValueKind.SUM if value.argument.type.is_integer:
            total = f"{renderer.dialect.wide_sum(_row(value, renderer))}{passing}"
            huge = renderer.dialect.huge
            held = f"least(greatest({total}, '{-(2**63)}'::{huge}), '{2**63 - 1}'::{huge})::BIGINT"
            found = f"CASE WHEN {total} IS NOT NULL THEN {held} END"  # least and greatest skip NULLs
            return _clamped(found, column, renderer)
        case UnitValueKind.SUM:
            units = f"{renderer.dialect.wide_sum(_row(value, renderer))}{passing}::{_double_of(renderer)}"
            return _clamped(f"({units} / {renderer.dialect.double(scale_of(value))})", column, renderer)
        case UnitValueKind.AVG:
            row = _row(value, renderer)
            rows = f"nullif(count({row}){passing}, 0)::{_double_of(renderer)}"
            units = f"{renderer.dialect.wide_sum(row)}{passing}::{_double_of(renderer)}"
            return _clamped(f"({units} / {rows} / {renderer.dialect.double(scale_of(value))})", column, renderer)
        case UnitValueKind.MIN | UnitValueKind.MAX:
            text = renderer.measure(value.argument)
            if value.type.is_number and not value.type.is_integer:
                number = renderer.dialect.as_double(text)
                text = f"CASE WHEN {renderer.dialect.finite(number)} THEN {number} + 0e0 END"
            found = f"{value.kind.value}({text}){passing}"
            return _clamped(found, column, renderer) if value.type.is_number else found
        case _ as never:
            assert_never(never)


def _row(value: UnitValue, renderer: Renderer) -> str:
    if value.argument.type.is_integer:
        return f"({renderer.measure(value.argument)})::BIGINT"
    dialect, (lo, hi) = renderer.dialect, value.ends
    number, otherwise = _number(value, renderer)
    inside = f"least(greatest({number}, {dialect.double(lo)}), {dialect.double(hi)})"
    return f"CASE WHEN {dialect.finite(number)} THEN {dialect.rounded(inside, scale_of(value))}{otherwise} END"


def _number(value: UnitValue, renderer: Renderer) -> tuple[str, str]:
    """What is added of a row, and the ELSE of rows without it: a column that is clamped right after needs no clamp of
    its own.
    """
    of, dialect = value.argument, renderer.dialect
    domain = renderer.column(of).domain if isinstance(of, ColumnRef) else None
    if not isinstance(of, ColumnRef) or not isinstance(domain, Bounded) or numeric_ends(domain, of.type) != value.ends:
        return dialect.as_double(renderer.measure(of)), ""
    if renderer.column(of).nullable:
        return renderer.unclamped(of), ""
    middle = dialect.double(float(middle_of(domain, of.type)))
    return renderer.unclamped(of), f" ELSE {dialect.rounded(middle, scale_of(value))}"


def _double_of(renderer: Renderer) -> str:
    return renderer.dialect.types[SqlType.FLOAT8]


def _clamped(text: str, column: Column, renderer: Renderer) -> str:
    """What was inferred of a value is enforced."""
    match column.domain:
        case Bounded(int() | float(), int() | float()) as domain:
            low, high = (renderer.constant(end, column.type) for end in numeric_ends(domain, column.type))
            return f"CASE WHEN {text} IS NOT NULL THEN least(greatest({text}, {low}), {high}) END"
        case _:
            return text
