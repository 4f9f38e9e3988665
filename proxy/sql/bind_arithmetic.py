"""What do operators and functions of numbers mean?"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from sqlglot import exp

from proxy.sql.algebra import Literal, Scalar, Span
from proxy.sql.bind_times import scaled, time_arithmetic
from proxy.sql.binder import Binder, Rule
from proxy.sql.constants import Untyped
from proxy.sql.refusal import only, refuse
from proxy.sqltypes import SqlType

_OPERATORS: dict[type[exp.Expression], str] = {
    exp.Add: "+", exp.Sub: "-", exp.Mul: "*", exp.Div: "/", exp.Mod: "%",
}  # fmt: skip
_FUNCTIONS: dict[type[exp.Expression], str] = {
    exp.Abs: "abs", exp.Floor: "floor", exp.Ceil: "ceil", exp.Trunc: "trunc", exp.Sqrt: "sqrt",
}  # fmt: skip


def _operator(binder: Binder, node: exp.Expression) -> Scalar:
    only(node, "this", "expression", "typed", "safe")
    operator = _OPERATORS[type(node)]
    left, right = binder.bind(node.this), binder.bind(node.expression)
    if isinstance(left, Untyped) or isinstance(right, Untyped):
        left, right = binder.united(node, ((left, node.this), (right, node.expression)))
    if operator == "*" and isinstance(left, Span):
        return scaled(node, left, right)
    if operator == "*" and isinstance(right, Span):
        return scaled(node, right, left)
    if left.type.is_time or right.type.is_time:
        return time_arithmetic(binder, node, operator, left, right)
    if left.type.is_integer and right.type.is_integer:
        return binder.call(node, f"integer {operator}", left, right)
    return binder.call(node, operator, left, right)


def _negative(binder: Binder, node: exp.Expression) -> Scalar:
    only(node, "this")
    value = binder.scalar(node.this)
    if isinstance(value, Literal) and isinstance(value.value, float):
        return Literal(-value.value, value.type)
    return binder.call(node, "integer negate" if value.type.is_integer else "negate", value)


def _function(binder: Binder, node: exp.Expression) -> Scalar:
    only(node, "this")
    value = binder.scalar(node.this)
    name = _FUNCTIONS[type(node)]
    return binder.call(node, "integer abs" if name == "abs" and value.type.is_integer else name, value)


def _round(binder: Binder, node: exp.Expression) -> Scalar:
    only(node, "this", "decimals")
    value, digits = binder.scalar(node.this), node.args.get("decimals")
    if digits is None:
        return binder.call(node, "round" if value.type is SqlType.NUMERIC else "round real", value)
    bound = binder.scalar(digits)
    if not isinstance(bound, Literal) or not isinstance(bound.value, int) or not -20 <= bound.value <= 20:
        raise refuse(node, "round takes a constant number of digits from -20 to 20")
    return binder.call(node, "round digits" if bound.value >= 0 else "round tens", value, bound)


RULES: Mapping[type, Rule] = MappingProxyType({
    **dict.fromkeys(_OPERATORS, _operator), exp.Neg: _negative, **dict.fromkeys(_FUNCTIONS, _function),
    exp.Round: _round,
})  # fmt: skip
