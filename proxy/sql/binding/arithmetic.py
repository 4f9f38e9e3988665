"""What do operators and functions of numbers mean?"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from types import MappingProxyType

from sqlglot import exp

from proxy.sql.algebra.constants import Untyped
from proxy.sql.algebra.nodes import Case, Literal, Null, Scalar, Span
from proxy.sql.binding.binder import Binder, Rule
from proxy.sql.binding.bits import check_alone
from proxy.sql.binding.quantified import elements
from proxy.sql.binding.times.spans import many_spans
from proxy.sql.binding.times.times import scaled, time_arithmetic
from proxy.sql.syntax.refusal import only, refuse
from proxy.sqltypes import SqlType

_BUCKETS = "Write width_bucket(x, 0, 100, 10)."
_MOST_BUCKETS = 10_000
_LOG_10 = re.compile(r"\"?log10\b", re.IGNORECASE)  # sqlglot reads it as log(10, x), which is numeric
_MOST_BOUNDS = 100
_FARTHEST_BOUND = 1e15
_OPERATORS: dict[type[exp.Expression], str] = {
    exp.Add: "+", exp.Sub: "-", exp.Mul: "*", exp.Div: "/", exp.Mod: "%",
}  # fmt: skip
_FUNCTIONS: dict[type[exp.Expression], str] = {
    exp.Abs: "abs", exp.Floor: "floor", exp.Ceil: "ceil", exp.Sqrt: "sqrt", exp.Exp: "exp",
    exp.Ln: "ln", exp.Sign: "sign", exp.Cbrt: "cbrt", exp.Sin: "sin", exp.Cos: "cos", exp.Tan: "tan",
    exp.Asin: "asin", exp.Acos: "acos", exp.Atan: "atan", exp.Degrees: "degrees", exp.Radians: "radians",
}  # fmt: skip


def _operator(binder: Binder, node: exp.Expression) -> Scalar:
    only(node, "this", "expression", "typed", "safe")
    operator = _OPERATORS[type(node)]
    many = many_spans(binder, node, operator) if operator in ("+", "-") else None
    if many is not None:
        return many
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
    name = _FUNCTIONS[type(node)]
    if name in ("sqrt", "cbrt") and "start" not in node.meta:  # |/ x and ||/ x
        check_alone(node, f"{name}(x)")
    value = binder.scalar(node.this)
    return binder.call(node, "integer abs" if name == "abs" and value.type.is_integer else name, value)


def _angle(binder: Binder, node: exp.Expression) -> Scalar:
    """atan2(y, x)."""
    only(node, "this", "expression")
    return binder.call(node, "atan2", binder.scalar(node.this), binder.scalar(node.expression))


def _pi(_binder: Binder, node: exp.Expression) -> Scalar:
    only(node)
    return Literal(math.pi, SqlType.FLOAT8)


def _round(binder: Binder, node: exp.Expression) -> Scalar:
    only(node, "this", "decimals")
    value, digits = binder.scalar(node.this), node.args.get("decimals")
    if digits is None:
        return binder.call(node, "round" if value.type is SqlType.NUMERIC else "round real", value)
    bound = binder.scalar(digits)
    if not isinstance(bound, Literal) or not isinstance(bound.value, int) or not -20 <= bound.value <= 20:
        raise refuse(node, "round takes a constant number of digits from -20 to 20", "Write round(x, 2).")
    return binder.call(node, "round digits" if bound.value >= 0 else "round tens", value, bound)


def _truncate(binder: Binder, node: exp.Expression) -> Scalar:
    only(node, "this", "decimals")
    value, digits = binder.scalar(node.this), node.args.get("decimals")
    if digits is None:
        return binder.call(node, "trunc", value)
    bound = binder.scalar(digits)
    if not isinstance(bound, Literal) or not isinstance(bound.value, int) or not -20 <= bound.value <= 20:
        raise refuse(node, "trunc takes a constant number of digits from -20 to 20", "Write trunc(x, 2).")
    return binder.call(node, "trunc digits" if bound.value >= 0 else "trunc tens", value, bound)


def _log(binder: Binder, node: exp.Expression) -> Scalar:
    """log(x) and log10(x), to base 10; log(b, x) to a constant base, which is numeric."""
    only(node, "this", "expression")
    if node.args.get("expression") is None:
        return binder.call(node, "log", binder.scalar(node.this))
    if _LOG_10.match(binder.source, node.meta.get("start", 0)):
        return binder.call(node, "log", binder.scalar(node.expression))
    base, value = binder.scalar(node.this), binder.scalar(node.expression)
    number = base.value if isinstance(base, Literal) and base.type.is_number else None
    if number is None or not 0 < float(str(number)) < _FARTHEST_BOUND or float(str(number)) == 1:
        raise refuse(node, "log takes a constant base above 0 that is not 1", "Write log(2, x).")
    return binder.call(node, "log of base", base, value)


def _quotient(binder: Binder, node: exp.Expression) -> Scalar:
    """div(x, y): the whole part of a quotient, as numeric."""
    only(node, "this", "expression")
    parts = (binder.convert(node, binder.scalar(p), SqlType.NUMERIC) for p in (node.this, node.expression))
    return binder.call(node, "trunc", binder.call(node, "/", *parts))


def _power(binder: Binder, node: exp.Expression) -> Scalar:
    only(node, "this", "expression")
    value, exponent = binder.scalar(node.this), binder.scalar(node.expression)
    if not isinstance(exponent, Literal) or not exponent.type.is_number:
        raise refuse(node, "a power needs a constant exponent", "Write exp(y * ln(x)) for power(x, y).")
    return binder.call(node, "power", value, exponent)


def _width_bucket(binder: Binder, node: exp.Expression) -> Scalar:
    """width_bucket(x, low, high, count): 1 to count, 0 below low, count + 1 from high on."""
    only(node, "this", "min_value", "max_value", "num_buckets", "threshold")
    value = binder.scalar(node.this)
    if node.args.get("threshold") is not None:
        return _thresholds(binder, node, value)
    rest = [binder.scalar(node.args[name]) for name in ("min_value", "max_value", "num_buckets")]
    if not all(isinstance(part, Literal) and part.type.is_number for part in rest):
        raise refuse(node, "width_bucket takes constant bounds and a constant count", _BUCKETS)
    low, high, count = (part.value for part in rest if isinstance(part, Literal))
    is_range = -_FARTHEST_BOUND <= float(str(low)) < float(str(high)) <= _FARTHEST_BOUND
    if not is_range or not isinstance(count, int) or not 0 < count <= _MOST_BUCKETS:
        raise refuse(node, f"width_bucket takes a lower bound, a higher one and 1 to {_MOST_BUCKETS} buckets here",
                     _BUCKETS)  # fmt: skip
    name = "width_bucket numeric" if SqlType.NUMERIC in (value.type, *(part.type for part in rest)) else "width_bucket"
    return binder.call(node, name, value, *rest)


def _thresholds(binder: Binder, node: exp.Expression, value: Scalar) -> Scalar:
    """width_bucket(x, ARRAY[1, 5, 10]): how many of the ascending bounds x has reached."""
    listed = elements(binder, node, node.args["threshold"], value.type)
    bounds = [binder.united(node, ((value, node), part))[1] for part in listed]
    numbers = [float(str(b.value)) for b in bounds if isinstance(b, Literal) and b.type.is_number]
    if not 0 < len(numbers) == len(listed) <= _MOST_BOUNDS or numbers != sorted(numbers):
        raise refuse(node, f"width_bucket takes an ascending ARRAY of 1 to {_MOST_BOUNDS} constants here",
                     "Write width_bucket(x, ARRAY[1, 5, 10]).")  # fmt: skip
    branches = tuple(
        (binder.call(node, "<", value, bound), Literal(n, SqlType.INT4)) for n, bound in enumerate(bounds)
    )  # fmt: skip
    last = (binder.call(node, ">=", value, bounds[-1]), Literal(len(bounds), SqlType.INT4))
    return Case((*branches, last), Null(SqlType.INT4), SqlType.INT4)


RULES: Mapping[type, Rule] = MappingProxyType({
    **dict.fromkeys(_OPERATORS, _operator), exp.Neg: _negative, **dict.fromkeys(_FUNCTIONS, _function),
    exp.Round: _round, exp.Log: _log, exp.Pow: _power, exp.WidthBucket: _width_bucket,
    exp.Atan2: _angle, exp.Pi: _pi, exp.Trunc: _truncate,
    exp.IntDiv: _quotient,
})  # fmt: skip
