"""What do ages, differences of times and times of day mean where they are compared, or a field is taken of them?"""

from __future__ import annotations

from decimal import Decimal

from sqlglot import exp

from proxy.sql.algebra.constants import TimeOfDay, Untyped
from proxy.sql.algebra.nodes import Literal, Scalar
from proxy.sql.binding.binder import Binder, Bound
from proxy.sql.binding.times.ages import whole
from proxy.sql.binding.times.intervals import bind_interval
from proxy.sql.binding.times.spans import Duration, compare_differences, is_difference
from proxy.sql.binding.values import parameter
from proxy.sql.syntax.parse import unwrapped
from proxy.sql.syntax.refusal import only, refuse
from proxy.sqltypes import SqlType

Side = tuple[Bound | Duration, exp.Expression]


def side(binder: Binder, node: exp.Expression) -> Side:
    """One side of a comparison, which may be a difference of times."""
    inner = unwrapped(node)
    if is_time_of_day(binder, inner):
        return time_of_day(binder, inner), node
    return bind_interval(binder, inner), node


def compared(binder: Binder, node: exp.Expression, operator: str, left: Side, right: Side) -> Scalar:
    """A comparison of values, or of differences of times."""
    if is_difference(left[0]) or is_difference(right[0]):
        left, right = _on_the_clock(binder, left, right), _on_the_clock(binder, right, left)
        return compare_differences(binder, node, operator, (left[0], right[0]))
    sides = [(bound, part) for bound, part in (left, right) if not isinstance(bound, Duration)]
    return binder.call(node, operator, *binder.united(node, sides, is_compared=True))


def _on_the_clock(binder: Binder, found: Side, other: Side) -> Side:
    """A constant that is compared with a time of day is one too."""
    is_clock = isinstance(other[0], Duration) and other[0].is_time_of_day
    if is_clock and isinstance(found[0], Untyped):
        return _constant(binder, found[1], found[0].text), found[1]
    return found


def _constant(binder: Binder, node: exp.Expression, text: str) -> Duration:
    return _of(binder.constants.time_of_day(node, text))


def _of(time: TimeOfDay) -> Duration:
    return Duration(whole(time.microseconds), is_time_of_day=True)


def is_time_of_day(binder: Binder, node: exp.Expression) -> bool:
    """Whether this is x::time, TIME '12:00', make_time(12, 0, 0) or a parameter of that type."""
    match node:
        case exp.TimeFromParts():
            return True
        case exp.Parameter():
            return isinstance(parameter(binder, node), TimeOfDay)
        case _:
            return isinstance(node, exp.Cast) and node.args["to"].sql(dialect="postgres").upper() == "TIME"


def time_of_day(binder: Binder, node: exp.Expression) -> Duration:
    """Microseconds since midnight."""
    if isinstance(node, exp.TimeFromParts):
        return _made(binder, node)
    if isinstance(node, exp.Parameter):
        given = parameter(binder, node)
        assert isinstance(given, TimeOfDay), "the caller has looked"
        return _of(given)
    only(node, "this", "to")
    if is_time_of_day(binder, unwrapped(node.this)):
        return time_of_day(binder, unwrapped(node.this))
    value = binder.bind(node.this)
    text = value.text if isinstance(value, Untyped) else value.value if isinstance(value, Literal) else None
    if isinstance(text, str):
        return _constant(binder, node, text)
    if isinstance(value, Untyped) or value.type not in (SqlType.TIMESTAMP, SqlType.TIMESTAMPTZ):
        raise refuse(node, "a time of day is taken of a timestamp")
    return Duration(binder.call(node, "time of day", value), is_time_of_day=True)


def _made(binder: Binder, node: exp.TimeFromParts) -> Duration:
    """make_time(12, 30, 0) of constants."""
    only(node, "hour", "min", "sec")
    clock = [binder.scalar(node.args[name]) for name in ("hour", "min", "sec")]
    numbers = [Decimal(c.value) for c in clock if isinstance(c, Literal) and isinstance(c.value, (int, Decimal))]
    if len(numbers) < len(clock) or not all(0 <= n < most for n, most in zip(numbers, (24, 60, 60), strict=True)):
        raise refuse(node, "make_time takes constants: hours, minutes and seconds", "Write x::time for a timestamp's.")
    hours, minutes, seconds = numbers
    return Duration(whole(int((hours * 3600 + minutes * 60 + seconds) * 1_000_000)), is_time_of_day=True)
