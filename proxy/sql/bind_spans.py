"""What do differences of times, multiples of intervals and bins of time mean?

A difference is a number of microseconds, of which a field is taken, or which is compared.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from decimal import Decimal
from types import MappingProxyType

from sqlglot import exp

from proxy.sql.algebra import Call, Case, Literal, Null, Scalar, Span
from proxy.sql.bind_calls import arguments
from proxy.sql.bind_zones import policy_zone
from proxy.sql.binder import Binder, Bound, Rule
from proxy.sql.constants import Untyped, coerce_text
from proxy.sql.refusal import only, refuse
from proxy.sql.spans import parse_span
from proxy.sql.whole import is_whole
from proxy.sql.zones import UNIVERSAL
from proxy.sqltypes import SqlType

_DAY, _HOUR, _MINUTE, _SECOND = 86_400_000_000, 3_600_000_000, 60_000_000, 1_000_000
_DAYS_OF_MONTH = 30  # where intervals are compared
_FIELDS = {"day": (_DAY, 0), "hour": (_HOUR, _DAY), "minute": (_MINUTE, _HOUR)}
_SECONDS = {"second": _SECOND, "milliseconds": 1000, "microseconds": 1}


def unwrapped(node: exp.Expression) -> exp.Expression:
    """The node without parentheses around it."""
    while isinstance(node, exp.Paren):
        node = node.this
    return node


def _is_interval(node: exp.Expression) -> bool:
    inner = unwrapped(node)
    is_cast = isinstance(inner, exp.Cast) and inner.args["to"].sql(dialect="postgres").lower() == "interval"
    return is_cast or isinstance(inner, exp.Interval)


def _integer(value: int) -> Literal:
    return Literal(value, SqlType.INT8)


# --- differences -----------------------------------------------------------------------------------------------


def is_difference(bound: Bound) -> bool:
    """Whether this is a difference of two times."""
    return isinstance(bound, Call) and bound.type is SqlType.INTERVAL


def _microseconds(bound: Bound) -> Scalar | None:
    """Of a difference, or of the constant interval it is compared with: months have 30 days, and days 24 hours."""
    if isinstance(bound, Call) and is_difference(bound):
        return replace(bound, type=SqlType.INT8)
    span = parse_span(bound.text, "") if isinstance(bound, Untyped) else bound
    if not isinstance(span, Span):
        return None
    total = (span.months * _DAYS_OF_MONTH + span.days) * _DAY + span.microseconds
    return _integer(total) if abs(total) < 2**62 else None


def compare_differences(binder: Binder, node: exp.Expression, operator: str, sides: tuple[Bound, Bound]) -> Scalar:
    """A comparison with a difference of times on one side."""
    left, right = (_microseconds(side) for side in sides)
    if left is None or right is None:
        raise refuse(node, "a difference of times is compared with a constant interval, or another difference")
    return binder.call(node, operator, left, right)


def field_of_difference(binder: Binder, node: exp.Expression, field: str, bound: Bound) -> Scalar:
    """EXTRACT(field FROM a - b)."""
    total = _microseconds(bound)
    assert total is not None, "the caller has looked"
    if field in _FIELDS:
        size, above = _FIELDS[field]
        rest = binder.call(node, "integer %", total, _integer(above)) if above else total
        return binder.convert(node, binder.call(node, "integer /", rest, _integer(size)), SqlType.NUMERIC)
    if field not in (*_SECONDS, "epoch"):
        raise refuse(node, f"{field} is not taken of a difference of times", "Use epoch, day, hour, minute or second.")
    rest = total if field == "epoch" else binder.call(node, "integer %", total, _integer(_MINUTE))
    number, size = binder.convert(node, rest, SqlType.NUMERIC), _SECONDS.get(field, _SECOND)
    return binder.call(node, "/", number, Literal(Decimal(size), SqlType.NUMERIC)) if size > 1 else number


# --- ages ------------------------------------------------------------------------------------------------------


def is_age(node: exp.Expression) -> bool:
    """Whether this is age(x) or age(x, y)."""
    return isinstance(node, exp.Anonymous) and str(node.this).lower() == "age"


def field_of_age(binder: Binder, node: exp.Expression, field: str) -> Scalar:
    """Whole years of age(a, b), or the months beyond them."""
    if field not in ("year", "month"):
        raise refuse(node, f"{field} is not taken of an age", "Take year or month, or EXTRACT(day FROM x - y).")
    end, start = _ends(binder, node)
    forward, back = _months(binder, node, end, start), _months(binder, node, start, end)
    is_forward = binder.call(node, ">=", end, start)
    total = Case(
        ((is_forward, forward), (binder.call(node, "not", is_forward), binder.call(node, "integer negate", back))),
        Null(SqlType.INT8), SqlType.INT8,
    )  # fmt: skip
    part = binder.call(node, "integer /" if field == "year" else "integer %", total, _integer(12))
    return binder.convert(node, part, SqlType.NUMERIC)


def _ends(binder: Binder, node: exp.Expression) -> tuple[Scalar, Scalar]:
    """Both as times without zone; age(x) is counted from the start of today."""
    if len(node.expressions) == 1:
        today = Literal(binder.constants.now.date(), SqlType.DATE)
        values: list[Scalar] = [today, *arguments(binder, node, node.expressions, 1)]
    else:
        values = arguments(binder, node, node.expressions, 2)
    if not all(v.type.is_time for v in values):
        raise refuse(node, "age takes one or two times")
    end, start = (binder.convert(node, v, SqlType.TIMESTAMP) for v in values)
    return end, start


def _months(binder: Binder, node: exp.Expression, end: Scalar, start: Scalar) -> Scalar:
    """Months from start to end. The last counts once its day and time of day are reached."""

    def number(value: Scalar) -> Scalar:
        year, month = (binder.convert(node, binder.call(node, f"extract {f}", value), SqlType.INT8)
                       for f in ("year", "month"))  # fmt: skip
        return binder.call(node, "integer +", binder.call(node, "integer *", year, _integer(12)), month)

    def passed(value: Scalar) -> Scalar:
        return binder.call(node, "time - time", value, binder.call(node, "date_trunc month", value))

    total = binder.call(node, "integer -", number(end), number(start))
    is_early = binder.call(node, "<", passed(end), passed(start))
    less = binder.call(node, "integer -", total, _integer(1))
    return Case(((is_early, less), (binder.call(node, "not", is_early), total)), Null(SqlType.INT8), SqlType.INT8)


# --- multiples and bins ------------------------------------------------------------------------------------------


def difference(binder: Binder, node: exp.Expression, left: Scalar, right: Scalar) -> Scalar:
    """Two times of which one is no date, as an interval; what stands around it makes a number of it."""
    if SqlType.TIMESTAMPTZ in (left.type, right.type) and policy_zone(binder) != UNIVERSAL:
        raise refuse(node, "instants are subtracted where the policy's time zone is UTC", "Subtract dates: x::date.")
    ends = (binder.convert(node, v, SqlType.TIMESTAMP) if v.type is SqlType.DATE else v for v in (left, right))
    return binder.call(node, "time - time", *ends)


def many_spans(binder: Binder, node: exp.Expression, operator: str) -> Scalar | None:
    """time + number * INTERVAL '5 minutes', the number being no constant; None if no such thing stands there."""
    times, product = node.this, unwrapped(node.expression)
    if operator == "+" and not isinstance(product, exp.Mul):
        times, product = node.expression, unwrapped(node.this)
    if not isinstance(product, exp.Mul):
        return None
    sides = (product.this, product.expression)
    if not any(_is_interval(side) for side in sides):  # looked at first: what is bound twice doubles with every level
        return None
    span, number = (binder.scalar(side) for side in sorted(sides, key=_is_interval, reverse=True))
    if not isinstance(span, Span) or isinstance(number, Literal):
        return None
    if not number.type.is_number or not is_whole(number):
        raise refuse(node, "an interval is multiplied by whole numbers only", "Write floor(x), or x::integer.")
    return binder.call(node, f"time {operator} intervals", binder.scalar(times), span, number)


def _bins(binder: Binder, node: exp.Expression) -> Scalar:
    """date_bin('15 minutes', x, TIMESTAMP '2024-01-01')."""
    only(node, "this", "expression", "unit")
    stride, value, origin = binder.bind(node.this), binder.scalar(node.expression), node.args["unit"]
    span = parse_span(stride.text, "") if isinstance(stride, Untyped) else stride
    if not isinstance(span, Span) or span.months or not 0 < span.days * _DAY + span.microseconds < 2**53:
        raise refuse(node, "date_bin takes a constant interval of days, hours, minutes or seconds")
    if value.type not in (SqlType.TIMESTAMP, SqlType.TIMESTAMPTZ):
        raise refuse(node, "date_bin takes a timestamp")
    if value.type is SqlType.TIMESTAMPTZ and policy_zone(binder) != UNIVERSAL:
        raise refuse(node, "instants are put into bins where the policy's time zone is UTC")
    start = coerce_text(str(origin.this), value.type, node) if isinstance(origin, exp.Var) else binder.scalar(origin)
    if not isinstance(start, Literal) or not start.type.is_time:
        raise refuse(node, "date_bin takes a constant origin", "Write TIMESTAMP '2024-01-01'.")
    start = binder.convert(node, start, value.type)
    return binder.call(node, "date_bin", value, _integer(span.days * _DAY + span.microseconds), start)


RULES: Mapping[type, Rule] = MappingProxyType({exp.DateBin: _bins})
