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

_MOST_BUCKETS = 10_000
_FARTHEST_BOUND = 1e15
_OPERATORS: dict[type[exp.Expression], str] = {
    exp.Add: "+", exp.Sub: "-", exp.Mul: "*", exp.Div: "/", exp.Mod: "%",
}  # fmt: skip
_FUNCTIONS: dict[type[exp.Expression], str] = {
    exp.Abs: "abs", exp.Floor: "floor", exp.Ceil: "ceil", exp.Trunc: "trunc", exp.Sqrt: "sqrt", exp.Exp: "exp",
    exp.Ln: "ln", exp.Sign: "sign",
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


def _log(binder: Binder, node: exp.Expression) -> Scalar:
    """log(x) and log10(x), to base 10."""
    only(node, "this", "expression")
    value = node.this
    if node.args.get("expression") is not None:
        base = binder.scalar(node.this)
        if not isinstance(base, Literal) or base.value != 10:
            raise refuse(node, "log is accepted to base 10", "Write log(x), or ln(x) divided by a constant.")
        value = node.expression
    return binder.call(node, "log", binder.scalar(value))


def _power(binder: Binder, node: exp.Expression) -> Scalar:
    only(node, "this", "expression")
    value, exponent = binder.scalar(node.this), binder.scalar(node.expression)
    if not isinstance(exponent, Literal) or not exponent.type.is_number:
        raise refuse(node, "a power needs a constant exponent")
    return binder.call(node, "power", value, exponent)


def _width_bucket(binder: Binder, node: exp.Expression) -> Scalar:
    """width_bucket(x, low, high, count): 1 to count, 0 below low, count + 1 from high on."""
    only(node, "this", "min_value", "max_value", "num_buckets")
    value = binder.scalar(node.this)
    rest = [binder.scalar(node.args[name]) for name in ("min_value", "max_value", "num_buckets")]
    if not all(isinstance(part, Literal) and part.type.is_number for part in rest):
        raise refuse(node, "width_bucket takes constant bounds and a constant count")
    low, high, count = (part.value for part in rest if isinstance(part, Literal))
    is_range = -_FARTHEST_BOUND <= float(str(low)) < float(str(high)) <= _FARTHEST_BOUND
    if not is_range or not isinstance(count, int) or not 0 < count <= _MOST_BUCKETS:
        raise refuse(node, f"width_bucket takes a lower bound, a higher one and 1 to {_MOST_BUCKETS} buckets here")
    name = "width_bucket numeric" if SqlType.NUMERIC in (value.type, *(part.type for part in rest)) else "width_bucket"
    return binder.call(node, name, value, *rest)


RULES: Mapping[type, Rule] = MappingProxyType({
    **dict.fromkeys(_OPERATORS, _operator), exp.Neg: _negative, **dict.fromkeys(_FUNCTIONS, _function),
    exp.Round: _round, exp.Log: _log, exp.Pow: _power, exp.WidthBucket: _width_bucket,
})  # fmt: skip
