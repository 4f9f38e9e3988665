"""What do times, intervals and their arithmetic mean?"""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType

from sqlglot import exp

from proxy.errors import HushError, UnknownUnit
from proxy.sql.algebra.constants import Untyped
from proxy.sql.algebra.nodes import Literal, Scalar, Span
from proxy.sql.binding.binder import Binder, Rule
from proxy.sql.binding.times.durations import is_time_of_day, time_of_day
from proxy.sql.binding.times.intervals import bind_interval
from proxy.sql.binding.times.spans import difference, field_of_difference, is_difference
from proxy.sql.binding.times.zones import policy_zone, truncated_there, universal
from proxy.sql.binding.values import word
from proxy.sql.functions.domains.times import TRUNCATION_UNITS
from proxy.sql.functions.domains.zones import UNIVERSAL
from proxy.sql.functions.table import FUNCTIONS
from proxy.sql.literals.interval_texts import times
from proxy.sql.literals.unit_words import unit_of
from proxy.sql.syntax.parse import position_of, unwrapped
from proxy.sql.syntax.refusal import only, refuse
from proxy.sqltypes import SqlType

_FIELDS = (
    "Accepted: year, isoyear, quarter, month, week, day, dow, isodow, doy, hour, minute, second, milliseconds, "
    "microseconds, epoch, decade, century and millennium."
)
_UNITS = f"Accepted: {', '.join(TRUNCATION_UNITS)}."
_OF_POSTGRES = frozenset({"julian", "timezone", "timezone_hour", "timezone_minute"})  # and has no meaning here
_LONGEST_UNIT = 30  # that a message repeats
_EXTRACTION = re.compile(r"\b(extract|date_part)\s*\(", re.IGNORECASE)  # sqlglot reads both as EXTRACT


def is_date_part(node: exp.Expression, source: str) -> bool:
    """Whether an Extract of the tree was written date_part('field', x), which has another type and name."""
    calls = _EXTRACTION.findall(source[: max(0, position_of(node.expression) - 1)])
    return bool(calls) and calls[-1].lower() == "date_part"


def time_arithmetic(binder: Binder, node: exp.Expression, operator: str, left: Scalar, right: Scalar) -> Scalar:
    """+ and - where one side is a time."""
    if operator == "+" and not left.type.is_time:
        left, right = right, left
    if isinstance(right, Span):
        return binder.call(node, f"time {operator} interval", left, right)
    if right.type.is_integer:
        return binder.call(node, f"date {operator} integer", left, right)
    if operator == "-" and left.type.is_time and right.type.is_time and {left.type, right.type} != {SqlType.DATE}:
        return difference(binder, node, left, right)
    return binder.call(node, f"date {operator} date", left, right)


def _now(binder: Binder, node: exp.Expression) -> Scalar:
    only(node)
    return Literal(binder.constants.now(), SqlType.TIMESTAMPTZ)


def _today(binder: Binder, node: exp.Expression) -> Scalar:
    only(node)
    return Literal(binder.constants.local_now(node).date(), SqlType.DATE)


_PARTS = {"year": 12, "month": 1, "week": 7, "day": 1, "hour": 3_600_000_000, "minute": 60_000_000,
          "second": 1_000_000}  # fmt: skip


def _make_interval(binder: Binder, node: exp.Expression) -> Scalar:
    """make_interval(days => 3) of whole constants."""
    only(node, *_PARTS)
    sizes = dict.fromkeys(("months", "days", "microseconds"), 0)
    for name, part in node.args.items():
        if part is not None:
            value = binder.scalar(part.expression if isinstance(part, exp.Kwarg) else part)
            if not isinstance(value, Literal) or not isinstance(value.value, int) or abs(value.value) > 10**6:
                raise refuse(node, "make_interval takes small whole constants",
                             "Write INTERVAL '3 months', or x * INTERVAL '1 month'.")  # fmt: skip
            kind = "months" if name in ("year", "month") else "days" if name in ("week", "day") else "microseconds"
            sizes[kind] += value.value * _PARTS[name]
    return Span(sizes["months"], sizes["days"], sizes["microseconds"])


def _local_now(binder: Binder, node: exp.Expression) -> Scalar:
    only(node)
    return Literal(binder.constants.local_now(node), SqlType.TIMESTAMP)


def _date(binder: Binder, node: exp.Expression) -> Scalar:
    """date(x) is x::date."""
    only(node, "this")
    value = binder.bind(node.this)
    if isinstance(value, Untyped):
        return binder.read(node, value.text, SqlType.DATE)
    return binder.convert(node, value, SqlType.DATE)


def _extract(binder: Binder, node: exp.Expression) -> Scalar:
    only(node, "this", "expression")
    field = unit_of(word(binder, node, node.this))
    result = _field(binder, node, field, unwrapped(node.expression))
    return binder.convert(node, result, SqlType.FLOAT8) if is_date_part(node, binder.source) else result


def _field(binder: Binder, node: exp.Expression, field: str, part: exp.Expression) -> Scalar:
    if is_time_of_day(binder, part):
        return field_of_difference(binder, node, field, time_of_day(binder, part))
    bound = bind_interval(binder, part)
    if is_difference(bound):
        return field_of_difference(binder, node, field, bound)
    if isinstance(bound, Untyped):
        raise refuse(node, "EXTRACT takes a date or a timestamp here", "Write DATE '2024-12-31'.")
    if field == "epoch" and bound.type is SqlType.TIMESTAMPTZ and policy_zone(binder) != UNIVERSAL:
        bound = universal(binder, node, bound)
    if f"extract {field}" not in FUNCTIONS:
        raise _not_taken(node, field, f"{field} is not a field that is taken of a time here", _FIELDS)
    return binder.call(node, f"extract {field}", bound)


def _date_trunc(binder: Binder, node: exp.Expression) -> Scalar:
    only(node, "this", "unit", "zone")
    unit = unit_of(word(binder, node, node.args["unit"]))
    if f"date_trunc {unit}" not in FUNCTIONS:
        raise _not_taken(node, unit, f"{unit} is not a unit that a time is cut to here", _UNITS)
    if node.args.get("zone") is not None:
        return truncated_there(binder, node, unit)
    return binder.call(node, f"date_trunc {unit}", binder.scalar(node.this))


def _not_taken(node: exp.Expression, unit: str, what: str, hint: str) -> HushError:
    """DP006 for a unit that PostgreSQL has, what PostgreSQL says for all others."""
    if unit in _OF_POSTGRES or f"date_trunc {unit}" in FUNCTIONS or f"extract {unit}" in FUNCTIONS:
        return refuse(node, what, hint)
    return UnknownUnit(f'unit "{unit[:_LONGEST_UNIT]}" not recognized', hint=hint, position=position_of(node))


def scaled(node: exp.Expression, span: Span, factor: Scalar) -> Span:
    """A constant interval times a whole number. Raises Unsupported."""
    number = factor.value if isinstance(factor, Literal) else None
    found = times(span, number) if isinstance(number, int) and not isinstance(number, bool) else None
    if found is None:
        raise refuse(node, "an interval may be multiplied by a whole number only", "Write INTERVAL '3 months'.")
    return found


RULES: Mapping[type, Rule] = MappingProxyType({
    exp.CurrentTimestamp: _now, exp.CurrentDate: _today, exp.Extract: _extract,
    exp.TimestampTrunc: _date_trunc, exp.Localtimestamp: _local_now, exp.Date: _date, exp.MakeInterval: _make_interval,
})  # fmt: skip
