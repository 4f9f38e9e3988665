"""What do differences of times, multiples of intervals and bins of time mean?

A difference is a number of microseconds, of which a field is taken, or which is compared.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TypeGuard

from sqlglot import exp

from proxy.sql.algebra.constants import Untyped
from proxy.sql.algebra.nodes import Call, Literal, Scalar, Span
from proxy.sql.binding.binder import Binder, Bound, Rule
from proxy.sql.binding.times.ages import (
    AGE,
    DAY,
    DAYS_OF_MONTH,
    HOUR,
    MINUTE,
    SECOND,
    SECOND_FIELDS,
    field_of_age,
    in_units,
    whole,
)
from proxy.sql.binding.times.zones import policy_zone
from proxy.sql.conditions.whole import is_whole
from proxy.sql.functions.domains.zones import UNIVERSAL
from proxy.sql.syntax.parse import is_interval, unwrapped
from proxy.sql.syntax.refusal import only, refuse
from proxy.sqltypes import SqlType

_FIELDS = {"day": (DAY, 0), "hour": (HOUR, DAY), "minute": (MINUTE, HOUR)}
MADE = "interval"  # the function's name in the algebra: an interval of so many microseconds, made of others


def _is_interval(node: exp.Expression) -> bool:
    inner = unwrapped(node)
    return isinstance(inner, exp.Cast) and is_interval(inner.args["to"])


# --- differences -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Duration:
    """A time between times, or a time of day, that is no value of its own: a number of microseconds."""

    microseconds: Scalar
    is_time_of_day: bool = False


def is_difference(bound: Bound | Duration) -> TypeGuard[Call | Duration]:
    """Whether this is a difference of two times."""
    return isinstance(bound, Duration) or (isinstance(bound, Call) and bound.type is SqlType.INTERVAL)


def microseconds(binder: Binder, node: exp.Expression, bound: Bound | Duration) -> Scalar | None:
    """Of a difference, or of the constant interval it is compared with: months have 30 days, and days 24 hours."""
    if isinstance(bound, Duration):
        return bound.microseconds
    if isinstance(bound, Call) and bound.type is SqlType.INTERVAL:
        return length_of(bound)
    span = binder.constants.span(node, bound.text) if isinstance(bound, Untyped) else bound
    if not isinstance(span, Span):
        return None
    total = (span.months * DAYS_OF_MONTH + span.days) * DAY + span.microseconds
    return whole(total) if abs(total) < 2**62 else None


def length_of(interval: Call) -> Scalar:
    """Of a difference, an age or what is made of them."""
    return replace(interval, type=SqlType.INT8)


def compare_differences(
    binder: Binder, node: exp.Expression, operator: str, sides: tuple[Bound | Duration, Bound | Duration]
) -> Scalar:
    """A comparison with a difference of times on one side."""
    left, right = (microseconds(binder, node, side) for side in sides)
    if left is None or right is None:
        raise refuse(node, "a difference of times is compared with a constant interval, or another difference")
    return binder.call(node, operator, left, right)


def field_of_difference(binder: Binder, node: exp.Expression, field: str, bound: Call | Duration) -> Scalar:
    """EXTRACT(field FROM a - b)."""
    if isinstance(bound, Call) and bound.function == AGE:
        return field_of_age(binder, node, field, bound)
    total = microseconds(binder, node, bound)
    assert total is not None, "the caller has looked"
    if isinstance(bound, Call) and bound.function == MADE and field != "epoch":
        raise refuse(node, f"{field} is not taken of an interval that is made of others", "Take epoch.")
    if field in _FIELDS:
        size, above = _FIELDS[field]
        rest = binder.call(node, "integer %", total, whole(above)) if above else total
        return binder.convert(node, binder.call(node, "integer /", rest, whole(size)), SqlType.NUMERIC)
    if field not in (*SECOND_FIELDS, "epoch"):
        raise refuse(node, f"{field} is not taken of a difference of times", "Use epoch, day, hour, minute or second.")
    rest = total if field == "epoch" else binder.call(node, "integer %", total, whole(MINUTE))
    return in_units(binder, node, rest, SECOND_FIELDS.get(field, SECOND))


# --- multiples and bins ------------------------------------------------------------------------------------------


def difference(binder: Binder, node: exp.Expression, left: Scalar, right: Scalar) -> Scalar:
    """Two times of which one is no date, as an interval; what stands around it makes a number of it."""
    kinds = {left.type, right.type}
    if SqlType.TIMESTAMPTZ in kinds and len(kinds) > 1 and binder.constants.is_elsewhere:
        raise refuse(node, "an instant and a time without a zone are subtracted in the policy's time zone only",
                     binder.constants.at_home())  # fmt: skip
    if SqlType.TIMESTAMPTZ in kinds and policy_zone(binder) != UNIVERSAL:
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
    span = binder.constants.span(node, stride.text) if isinstance(stride, Untyped) else stride
    if not isinstance(span, Span) or span.months or not 0 < span.days * DAY + span.microseconds < 2**53:
        raise refuse(node, "date_bin takes a constant interval of days, hours, minutes or seconds")
    if value.type not in (SqlType.TIMESTAMP, SqlType.TIMESTAMPTZ):
        raise refuse(node, "date_bin takes a timestamp")
    if value.type is SqlType.TIMESTAMPTZ and policy_zone(binder) != UNIVERSAL:
        raise refuse(node, "instants are put into bins where the policy's time zone is UTC")
    start = binder.read(node, origin.name, value.type) if isinstance(origin, exp.Var) else binder.scalar(origin)
    if not isinstance(start, Literal) or not start.type.is_time:
        raise refuse(node, "date_bin takes a constant origin", "Write TIMESTAMP '2024-01-01'.")
    start = binder.convert(node, start, value.type)
    return binder.call(node, "date_bin", value, whole(span.days * DAY + span.microseconds), start)


RULES: Mapping[type, Rule] = MappingProxyType({exp.DateBin: _bins})
