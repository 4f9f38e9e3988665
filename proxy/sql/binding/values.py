"""What do names, constants, parameters and casts mean?"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from decimal import Decimal, InvalidOperation
from types import MappingProxyType
from typing import assert_never

from sqlglot import exp

from proxy.errors import Unsupported
from proxy.sql.algebra.constants import ANY_MODIFIER, Elements, Given, TimeOfDay, Unheld, Untyped
from proxy.sql.algebra.nodes import TRUE, Case, Literal, Null, Scalar, Span
from proxy.sql.binding.binder import Binder, Bound, Rule, unknown
from proxy.sql.syntax.long_lists import is_listed
from proxy.sql.syntax.refusal import only, refuse
from proxy.sql.syntax.words import construct
from proxy.sqltypes import TYPE_NAMES, SqlType

_PLAIN = "Leave out length and precision, except in varchar(10) and numeric(10, 2)."
_CLOCK = "Compare it, x::time < '17:30', or write EXTRACT(hour FROM x) or to_char(x, 'HH24:MI')."
_MOST_DIGITS = 15  # that a double holds


def _column(binder: Binder, node: exp.Expression) -> Bound:
    assert isinstance(node, exp.Column)
    return binder.resolve(node)


def _literal(_binder: Binder, node: exp.Expression) -> Bound:
    text = str(node.this)
    if is_listed(text):
        raise refuse(node, "a list of constants is not a value")
    return Untyped(text) if node.args.get("is_string") else _number(node, text)


def constants_of(node: exp.Expression, texts: Sequence[str], is_string: bool) -> list[Bound]:
    """The constants of a long list, which one constant stands for."""
    return [Untyped(text) for text in texts] if is_string else [_number(node, text) for text in texts]


def _number(node: exp.Expression, text: str) -> Literal:
    if text.isdigit() and len(text) <= _MOST_DIGITS:
        return Literal(int(text), SqlType.INT4 if int(text) < 2**31 else SqlType.INT8)
    try:
        number = Decimal(text)
    except InvalidOperation as error:
        raise refuse(node, "this number is not understood") from error
    if not math.isfinite(float(number)):
        raise refuse(node, "this number is too large")
    if not text.isdigit() or number >= 2**63:
        return Literal(number, SqlType.NUMERIC)
    return Literal(int(text), SqlType.INT4 if number < 2**31 else SqlType.INT8)


def _boolean(_binder: Binder, node: exp.Expression) -> Bound:
    return Literal(bool(node.this), SqlType.BOOL)


def _null(_binder: Binder, _node: exp.Expression) -> Bound:
    return Null(SqlType.TEXT)


def _paren(binder: Binder, node: exp.Expression) -> Bound:
    only(node, "this")
    return binder.bind(node.this)


def _parameter(binder: Binder, node: exp.Expression) -> Bound:
    match parameter(binder, node):
        case Elements():
            raise refuse(node, "an array parameter is accepted in x = ANY($1) and x <> ALL($1)")
        case TimeOfDay():
            raise refuse(node, "a time of day is not a value here", _CLOCK)
        case Unheld(reason):
            raise refuse(node, f"the value of this parameter {reason}")
        case (Literal() | Null() | Span()) as value:
            return value
        case _ as never:
            assert_never(never)


def parameter(binder: Binder, node: exp.Expression) -> Given:
    """The value of $1."""
    only(node, "this")
    digits = str(node.this.this) if isinstance(node.this, exp.Literal) else ""
    if not digits.isdigit():
        raise refuse(node, "the operator @ is not supported over private rows", "Write abs(x).")
    found = binder.constants.parameter(int(digits))
    if found is None:
        raise refuse(
            node,
            f"parameter ${digits} has a type that is not supported over private rows",
            "Pass numbers, texts, booleans, dates, times and intervals, and arrays of them to x = ANY($1).",
        )
    return found


def word(binder: Binder, node: exp.Expression, part: exp.Expression) -> str:
    """What a function is told as a text: a unit, a field, a format, or a constant such as $1. Raises Unsupported."""
    if isinstance(part, exp.Var):
        return part.name
    value = binder.scalar(part)
    if not isinstance(value, Literal) or not isinstance(value.value, str):
        raise refuse(node, f"{construct(node)} takes a constant text here", "Write the text itself, or pass it as $1.")
    return value.value


def _cast(binder: Binder, node: exp.Expression) -> Scalar:
    only(node, "this", "to")
    to, value = node.args["to"], binder.bind(node.this)
    if isinstance(value, Untyped) and isinstance(to.this, exp.Interval):
        return binder.constants.span(node, value.text, *_fields(node, to.this.args.get("unit")))
    sizes = _sizes(node, to)
    wanted = cast_type(node, to)
    if isinstance(value, Null):
        return Null(wanted)
    found = binder.read(node, value.text, wanted) if isinstance(value, Untyped) else binder.convert(node, value, wanted)
    return _fitted(binder, node, found, sizes) if sizes else found


def _fields(node: exp.Expression, unit: exp.Expression | None) -> tuple[str, int]:
    """The field of INTERVAL '90' MINUTE, if it is one, and the type's modifier, as PostgreSQL numbers the fields."""
    ends = (unit.this, unit.expression) if isinstance(unit, exp.IntervalSpan) else (unit, unit)
    names = [end.name.upper() if end is not None else "" for end in ends]
    if not all(name in _FIELDS for name in names):
        raise refuse(node, "this interval is not understood", "Write it like INTERVAL '3 months'.")
    order = list(_FIELDS)
    within = order[order.index(names[0]) : order.index(names[1]) + 1]
    modifier = sum(1 << _FIELDS[name] for name in within) << 16 | _ANY_PRECISION
    return names[0] if names[0] == names[1] else "", modifier if within else ANY_MODIFIER


_FIELDS = {"YEAR": 2, "MONTH": 1, "DAY": 3, "HOUR": 10, "MINUTE": 11, "SECOND": 12}
_ANY_PRECISION = 0xFFFF


def _sizes(node: exp.Expression, to: exp.Expression) -> tuple[int, ...]:
    """The length of varchar(10), precision and scale of numeric(10, 2); nothing for a plain type."""
    numbers = tuple(str(p.this.this) for p in to.expressions if isinstance(p, exp.DataTypeParam))
    if len(numbers) < len(to.expressions) or not all(n.isdigit() and len(n) < 9 for n in numbers):
        raise refuse(node, "a cast takes a plain type name here", _PLAIN)
    return tuple(map(int, numbers))


def _fitted(binder: Binder, node: exp.Expression, value: Scalar, sizes: tuple[int, ...]) -> Scalar:
    """A text cut to its length; a number rounded to its digits, NULL where it has too many before the point."""
    if value.type is SqlType.VARCHAR and len(sizes) == 1:
        cut = binder.call(node, "substring", value, Literal(1, SqlType.INT4), Literal(sizes[0], SqlType.INT4))
        return binder.convert(node, cut, SqlType.VARCHAR)
    digits = sizes[1] if len(sizes) > 1 else 0
    if value.type is not SqlType.NUMERIC or not digits <= sizes[0] <= _MOST_DIGITS or not sizes[0]:
        raise refuse(node, "a cast takes a plain type name here", _PLAIN)
    found = binder.call(node, "round digits", value, Literal(digits, SqlType.INT4)) if digits else binder.call(
        node, "round", value)  # fmt: skip
    limit = Literal(Decimal(10) ** (sizes[0] - digits), SqlType.NUMERIC)
    fits = binder.call(node, "<", binder.call(node, "abs", found), limit)
    return found if fits == TRUE else Case(((fits, found),), Null(SqlType.NUMERIC), SqlType.NUMERIC)


def cast_type(node: exp.Expression, to: exp.Expression) -> SqlType:
    """The type that a cast names."""
    if to.args.get("nested"):
        raise refuse(node, "a cast takes a plain type name here", _PLAIN)
    plain = to.copy()
    plain.set("expressions", None)
    name = plain.sql(dialect="postgres").lower()
    if name == "interval":
        return SqlType.INTERVAL
    if name == "time":
        raise refuse(node, "a time of day is not a value here", _CLOCK)
    if name not in TYPE_NAMES:
        raise refuse(node, f"a cast to {name} is not supported", f"Accepted: {', '.join(sorted(TYPE_NAMES))}.")
    return TYPE_NAMES[name]


def _alone(binder: Binder, node: exp.Expression) -> Bound:
    """(SELECT x) of no table, which is x."""
    only(node, "this")
    inner = node.this
    if isinstance(inner, exp.Subquery):
        return binder.bind(inner)
    if not isinstance(inner, exp.Select) or len(inner.expressions) != 1:
        raise unknown(node)
    try:
        only(inner, "expressions")
    except Unsupported:
        raise unknown(node) from None
    item = inner.expressions[0]
    return binder.bind(item.this if isinstance(item, exp.Alias) else item)


def _collated(binder: Binder, node: exp.Expression) -> Scalar:
    """x COLLATE "C", by which all texts are compared here."""
    only(node, "this", "expression")
    value = binder.scalar(node.this)
    if not value.type.is_text or node.expression.name not in ("C", "POSIX", "ucs_basic"):
        raise refuse(node, 'COLLATE is accepted as x COLLATE "C"', "Texts are compared byte by byte.")
    return value


RULES: Mapping[type, Rule] = MappingProxyType({
    exp.Column: _column, exp.Literal: _literal, exp.Boolean: _boolean, exp.Null: _null, exp.Paren: _paren,
    exp.Parameter: _parameter, exp.Cast: _cast, exp.Subquery: _alone, exp.Collate: _collated,
})  # fmt: skip
