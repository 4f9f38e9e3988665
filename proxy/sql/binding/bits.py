"""What do the operators of bits mean, and where may an operator stand before its number?"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from sqlglot import exp

from proxy.sql.algebra.nodes import Literal, Scalar
from proxy.sql.binding.binder import Binder, Rule
from proxy.sql.syntax.refusal import only, refuse
from proxy.sqltypes import SqlType

_OPERATORS: dict[type[exp.Expression], str] = {exp.BitwiseAnd: "&", exp.BitwiseOr: "|", exp.BitwiseXor: "#"}
_BITS = {SqlType.INT2: 16, SqlType.INT4: 32, SqlType.INT8: 64}
_BESIDE = (exp.DPipe, exp.BitwiseAnd, exp.BitwiseOr, exp.BitwiseXor, exp.BitwiseLeftShift, exp.BitwiseRightShift)
_ARITHMETIC = (exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Mod, exp.Pow)


def check_alone(node: exp.Expression, instead: str) -> None:
    """PostgreSQL applies |/ and ~ after arithmetic, the parser before it. Raises Unsupported where the two differ."""
    if isinstance(node.parent, _ARITHMETIC):
        raise refuse(node, "an operator before its number is not read beside arithmetic", f"Write {instead}.")


def check_bracketed(node: exp.Expression) -> None:
    """PostgreSQL reads x ~ 'a' || 'b' as (x ~ 'a') || 'b', the parser does not. Raises Unsupported."""
    if "start" not in node.meta and not isinstance(node, exp.SimilarTo) and isinstance(node.expression, _BESIDE):
        raise refuse(node, "a pattern that is put together stands in parentheses", "Write x ~ ('a' || 'b').")


def _operator(binder: Binder, node: exp.Expression) -> Scalar:
    only(node, "this", "expression")
    sides = (binder.scalar(side) for side in (node.this, node.expression))
    return binder.call(node, f"integer {_OPERATORS[type(node)]}", *sides)


def _not(binder: Binder, node: exp.Expression) -> Scalar:
    """~x, which is -1 - x."""
    only(node, "this")
    check_alone(node, "-1 - x")
    value = binder.scalar(node.this)
    return binder.call(node, "integer -", Literal(-1, SqlType.INT2), value)


def _shifted(binder: Binder, node: exp.Expression) -> Scalar:
    only(node, "this", "expression")
    value, places = binder.scalar(node.this), binder.scalar(node.expression)
    most = _BITS.get(value.type, 0)
    number = places.value if isinstance(places, Literal) else None
    if not isinstance(number, int) or not 0 <= number < most:
        raise refuse(node, ">> takes an integer and a constant below its number of bits", "Write x >> 3.")
    return binder.call(node, "integer >>", value, places)


def _shifted_left(_binder: Binder, node: exp.Expression) -> Scalar:
    raise refuse(node, "the operator << is not supported over private rows", "Multiply: x * 8 for x << 3.")


RULES: Mapping[type, Rule] = MappingProxyType({
    **dict.fromkeys(_OPERATORS, _operator), exp.BitwiseNot: _not, exp.BitwiseRightShift: _shifted,
    exp.BitwiseLeftShift: _shifted_left,
})  # fmt: skip
