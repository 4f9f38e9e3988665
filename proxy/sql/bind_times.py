"""What do times, intervals and their arithmetic mean?"""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType

from sqlglot import exp

from proxy.sql.algebra import Literal, Scalar, Span
from proxy.sql.binder import Binder, Rule
from proxy.sql.parse import position_of
from proxy.sql.refusal import only, refuse
from proxy.sql.spans import parse_span
from proxy.sqltypes import SqlType

_EXTRACTION = re.compile(r"\b(extract|date_part)\s*\(", re.IGNORECASE)  # sqlglot reads both as EXTRACT


def is_date_part(node: exp.Expression, source: str) -> bool:
    """Whether an Extract of the tree was written date_part('field', x), which has another type and name."""
    calls = _EXTRACTION.findall(source[: max(0, position_of(node.expression) - 1)])
    return bool(calls) and calls[-1].lower() == "date_part"


def read_span(node: exp.Expression, text: str, unit: str = "") -> Span:
    """A constant interval. Raises Unsupported."""
    span = parse_span(text, unit)
    if span is None:
        raise refuse(node, "this interval is not understood", "Write it like INTERVAL '3 months'.")
    return span


def time_arithmetic(binder: Binder, node: exp.Expression, operator: str, left: Scalar, right: Scalar) -> Scalar:
    """+ and - where one side is a time."""
    if operator == "+" and not left.type.is_time:
        left, right = right, left
    if isinstance(right, Span):
        return binder.call(node, f"time {operator} interval", left, right)
    if right.type.is_integer:
        return binder.call(node, f"date {operator} integer", left, right)
    return binder.call(node, f"date {operator} date", left, right)


def _now(binder: Binder, node: exp.Expression) -> Scalar:
    only(node)
    return Literal(binder.constants.now, SqlType.TIMESTAMPTZ)


def _today(binder: Binder, node: exp.Expression) -> Scalar:
    only(node)
    return Literal(binder.constants.now.date(), SqlType.DATE)


def _interval(_binder: Binder, node: exp.Expression) -> Scalar:
    only(node, "this", "unit")
    unit = node.args.get("unit")
    text = str(node.this.this) if isinstance(node.this, exp.Literal) else ""
    return read_span(node, text, "" if unit is None else str(unit.this))


def _extract(binder: Binder, node: exp.Expression) -> Scalar:
    only(node, "this", "expression")
    field = str(node.this.this).lower().strip("'")
    result = binder.call(node, f"extract {field}", binder.scalar(node.expression))
    return binder.convert(node, result, SqlType.FLOAT8) if is_date_part(node, binder.source) else result


def _date_trunc(binder: Binder, node: exp.Expression) -> Scalar:
    only(node, "this", "unit")
    unit = str(node.args["unit"].this).lower().strip("'")
    return binder.call(node, f"date_trunc {unit}", binder.scalar(node.this))


RULES: Mapping[type, Rule] = MappingProxyType({
    exp.CurrentTimestamp: _now, exp.CurrentDate: _today, exp.Interval: _interval, exp.Extract: _extract,
    exp.TimestampTrunc: _date_trunc,
})  # fmt: skip
