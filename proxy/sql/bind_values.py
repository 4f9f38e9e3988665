"""What do names, constants, parameters and casts mean?"""

from __future__ import annotations

import math
from collections.abc import Mapping
from decimal import Decimal, InvalidOperation
from types import MappingProxyType

from sqlglot import exp

from proxy.sql.algebra import Literal, Null, Scalar
from proxy.sql.bind_times import read_span
from proxy.sql.binder import Binder, Bound, Rule
from proxy.sql.constants import Elements, Untyped, coerce_text
from proxy.sql.refusal import only, refuse
from proxy.sqltypes import TYPE_NAMES, SqlType


def _column(binder: Binder, node: exp.Expression) -> Bound:
    assert isinstance(node, exp.Column)
    return binder.resolve(node)


def _literal(_binder: Binder, node: exp.Expression) -> Bound:
    text = str(node.this)
    if node.args.get("is_string"):
        return Untyped(text)
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
    value = parameter(binder, node)
    if isinstance(value, Elements):
        raise refuse(node, "an array parameter is accepted in x = ANY($1) and x <> ALL($1)")
    return value


def parameter(binder: Binder, node: exp.Expression) -> Literal | Null | Elements:
    """The value of $1."""
    only(node, "this")
    digits = str(node.this.this) if isinstance(node.this, exp.Literal) else ""
    if not digits.isdigit():
        raise refuse(node, "the operator @ is not supported over private rows", "Write abs(x).")
    if int(digits) not in binder.constants.parameters:
        raise refuse(
            node,
            f"parameter ${digits} has a type that is not supported over private rows",
            "Pass numbers, texts, booleans, dates and timestamps, and arrays of them to x = ANY($1).",
        )
    return binder.constants.parameters[int(digits)]


def _cast(binder: Binder, node: exp.Expression) -> Scalar:
    only(node, "this", "to")
    wanted = cast_type(node, node.args["to"])
    value = binder.bind(node.this)
    if isinstance(value, Untyped):
        return read_span(node, value.text) if wanted is SqlType.INTERVAL else coerce_text(value.text, wanted, node)
    if isinstance(value, Null):
        return Null(wanted)
    return binder.convert(node, value, wanted)


def cast_type(node: exp.Expression, to: exp.Expression) -> SqlType:
    """The type that a cast names."""
    if to.expressions or to.args.get("nested"):
        raise refuse(node, "a cast takes a plain type name here", "Leave out length and precision.")
    name = to.sql(dialect="postgres").lower()
    if name == "interval":
        return SqlType.INTERVAL
    if name not in TYPE_NAMES:
        raise refuse(node, f"a cast to {name} is not supported", f"Accepted: {', '.join(sorted(TYPE_NAMES))}.")
    return TYPE_NAMES[name]


RULES: Mapping[type, Rule] = MappingProxyType({
    exp.Column: _column, exp.Literal: _literal, exp.Boolean: _boolean, exp.Null: _null, exp.Paren: _paren,
    exp.Parameter: _parameter, exp.Cast: _cast,
})  # fmt: skip
