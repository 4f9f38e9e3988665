"""What do times made of numbers, and numbers in a constant format, mean?"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from decimal import Decimal
from types import MappingProxyType

from sqlglot import exp

from proxy.sql.algebra.nodes import Case, Literal, Null, Scalar, Span
from proxy.sql.binding.binder import Binder, Rule
from proxy.sql.syntax.refusal import only, refuse
from proxy.sqltypes import SqlType

_PARTS = ("year", "month", "day", "hour", "min", "sec")
_DIGITS = re.compile(r"(FM)?([09]{1,18})", re.IGNORECASE)
_HINT = "Accepted of numbers are digits, like FM00 or 999; format others above: to_char(sum(x), ...)."
_EXACT = (SqlType.INT2, SqlType.INT4, SqlType.INT8, SqlType.NUMERIC)


# --- make_timestamp ------------------------------------------------------------------------------------------------


def _make_timestamp(binder: Binder, node: exp.Expression) -> Scalar:
    only(node, *_PARTS)
    return made_timestamp(binder, node, [node.args[name] for name in _PARTS])


def made_timestamp(binder: Binder, node: exp.Expression, parts: Sequence[exp.Expression]) -> Scalar:
    """A day, and a constant time of day."""
    if len(parts) != len(_PARTS):
        raise refuse(node, "a time is made of a year, month, day, hour, minute and second here")
    day = binder.call(node, "make_date", *(binder.scalar(part) for part in parts[:3]))
    clock = [binder.scalar(part) for part in parts[3:]]
    values = [Decimal(v.value) for v in clock if isinstance(v, Literal) and isinstance(v.value, (int, Decimal))]
    if len(values) < len(clock) or not all(0 <= v < most for v, most in zip(values, (24, 60, 60), strict=True)):
        raise refuse(node, "hour, minute and second are constants here", "Write make_date(y, m, d), and add intervals.")
    span = Span(0, 0, int((values[0] * 3600 + values[1] * 60 + values[2]) * 1_000_000))
    return binder.call(node, "time + interval", binder.convert(node, day, SqlType.TIMESTAMP), span)


# --- to_char -------------------------------------------------------------------------------------------------------


def formatted_number(binder: Binder, node: exp.Expression, value: Scalar, form: str) -> Scalar:
    """to_char(x, 'FM000'): rounded to a whole number, # where there are more digits."""
    found = _DIGITS.fullmatch(form)
    if found is None or value.type not in _EXACT:
        raise refuse(node, f"this format of {value.type.pg_name} is not supported over private rows", _HINT)
    whole = value if value.type.is_integer else binder.call(node, "round", value)
    number = whole if whole.type.is_integer else binder.convert(node, whole, SqlType.INT8)
    size = binder.call(node, "integer abs", number)
    digits, width = _digits(binder, node, size, found[2]), len(found[2]) + 1
    signed = _signed(binder, node, number, digits)
    if found[1]:
        return signed
    return binder.call(node, "lpad", signed, Literal(width, SqlType.INT4), Literal(" ", SqlType.TEXT))


def _digits(binder: Binder, node: exp.Expression, size: Scalar, form: str) -> Scalar:
    """The digits, with zeros before them from the first 0 of the format on."""
    shown = max(len(form) - form.find("0"), 1) if "0" in form else 1
    text = binder.convert(node, size, SqlType.TEXT)
    fits, branches = _below(binder, node, size, len(form)), []
    if shown > 1:
        zeros = binder.call(node, "lpad", text, Literal(shown, SqlType.INT4), Literal("0", SqlType.TEXT))
        branches.append((_below(binder, node, size, shown), zeros))
    if shown < len(form) or shown == 1:
        branches.append((fits, text))
    branches.append((binder.call(node, "not", fits), Literal("#" * len(form), SqlType.TEXT)))
    return Case(tuple(branches), Null(SqlType.TEXT), SqlType.TEXT)


def _below(binder: Binder, node: exp.Expression, size: Scalar, digits: int) -> Scalar:
    return binder.call(node, "<", size, Literal(10**digits, SqlType.INT8))


def _signed(binder: Binder, node: exp.Expression, number: Scalar, digits: Scalar) -> Scalar:
    is_negative = binder.call(node, "<", number, Literal(0, SqlType.INT8))
    sign = Case(((is_negative, Literal("-", SqlType.TEXT)),), Literal("", SqlType.TEXT), SqlType.TEXT)
    return binder.call(node, "||", sign, digits)


RULES: Mapping[type, Rule] = MappingProxyType({exp.TimestampFromParts: _make_timestamp})
