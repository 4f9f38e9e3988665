"""What do age(x, y) and fields of it mean?

An age has whole months, counted from the earlier time on, and what is left of days and hours. It is no value of its
own: a field is taken of it, or it is compared.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal

from sqlglot import exp

from proxy.sql.algebra import Call, Case, Literal, Null, Scalar, Span
from proxy.sql.binder import Binder
from proxy.sql.refusal import refuse
from proxy.sqltypes import SqlType

DAY, HOUR, MINUTE, SECOND = 86_400_000_000, 3_600_000_000, 60_000_000, 1_000_000
DAYS_OF_MONTH = 30  # where intervals are compared
_MOST_REST = 31 * DAY
_LONGER_YEAR = 5 * DAY + DAY // 4  # by which a year of EXTRACT(epoch) is longer than twelve months
_PARTS = {"day": (DAY, 0), "hour": (HOUR, DAY), "minute": (MINUTE, HOUR)}
_CLOCK = {"second": SECOND, "milliseconds": 1000, "microseconds": 1}


def whole(value: int) -> Literal:
    return Literal(value, SqlType.INT8)


@dataclass(frozen=True, slots=True)
class _Ends:
    """The two times of an age, without zone, and whether the first is the later one."""

    end: Scalar
    start: Scalar
    is_forward: Scalar


def is_age(node: exp.Expression) -> bool:
    """Whether this is age(x) or age(x, y)."""
    return isinstance(node, exp.Anonymous) and str(node.this).lower() == "age"


def field_of_age(binder: Binder, node: exp.Expression, field: str) -> Scalar:
    """EXTRACT(field FROM age(a, b))."""
    ends = _ends(binder, node)
    if field in ("year", "month"):
        months = _signed(binder, node, ends, _months)
        part = binder.call(node, "integer /" if field == "year" else "integer %", months, whole(12))
        return binder.convert(node, part, SqlType.NUMERIC)
    if field == "epoch":
        return _in_seconds(binder, node, _signed(binder, node, ends, _epoch), SECOND)
    rest = _signed(binder, node, ends, _rest)
    if field in _PARTS:
        size, above = _PARTS[field]
        rest = binder.call(node, "integer %", rest, whole(above)) if above else rest
        return binder.convert(node, binder.call(node, "integer /", rest, whole(size)), SqlType.NUMERIC)
    if field not in _CLOCK:
        raise refuse(node, f"{field} is not taken of an age", "Take year, month, day, hour, minute, second or epoch.")
    return _in_seconds(binder, node, binder.call(node, "integer %", rest, whole(MINUTE)), _CLOCK[field])


def _in_seconds(binder: Binder, node: exp.Expression, microseconds: Scalar, size: int) -> Scalar:
    number = binder.convert(node, microseconds, SqlType.NUMERIC)
    return binder.call(node, "/", number, Literal(Decimal(size), SqlType.NUMERIC)) if size > 1 else number


def microseconds_of_age(binder: Binder, node: exp.Expression) -> Scalar:
    """age(a, b) as intervals are compared: months have 30 days, and days 24 hours."""
    return _signed(binder, node, _ends(binder, node), _compared)


def _ends(binder: Binder, node: exp.Expression) -> _Ends:
    """age(x) is counted from the start of today."""
    values = [binder.scalar(part) for part in node.expressions]
    if len(values) == 1:
        values = [Literal(binder.constants.now.date(), SqlType.DATE), *values]
    if len(values) != 2 or not all(v.type.is_time for v in values):
        raise refuse(node, "age takes one or two times")
    end, start = (binder.convert(node, v, SqlType.TIMESTAMP) for v in values)
    return _Ends(end, start, binder.call(node, ">=", end, start))


# --- of a later and an earlier time ------------------------------------------------------------------------------


def _signed(binder: Binder, node: exp.Expression, ends: _Ends, part: _Part) -> Scalar:
    """The part of the time between the two, below zero where the first is the earlier one."""
    forward, back = part(binder, node, ends.end, ends.start), part(binder, node, ends.start, ends.end)
    is_back = binder.call(node, "not", ends.is_forward)
    return _choice((ends.is_forward, forward), (is_back, binder.call(node, "integer negate", back)))


def _choice(*branches: tuple[Scalar, Scalar]) -> Scalar:
    return Case(branches, Null(SqlType.INT8), SqlType.INT8)


def _between(end: Scalar, start: Scalar) -> Scalar:
    """Microseconds."""
    return Call("time - time", (end, start), SqlType.INT8)


def _passed(binder: Binder, node: exp.Expression, value: Scalar) -> Scalar:
    """How much of its month is over."""
    return _between(value, binder.call(node, "date_trunc month", value))


def _months(binder: Binder, node: exp.Expression, end: Scalar, start: Scalar) -> Scalar:
    """Months from start to end. The last counts once its day and time of day are reached."""

    def number(value: Scalar) -> Scalar:
        year, month = (binder.convert(node, binder.call(node, f"extract {f}", value), SqlType.INT8)
                       for f in ("year", "month"))  # fmt: skip
        return binder.call(node, "integer +", binder.call(node, "integer *", year, whole(12)), month)

    total = binder.call(node, "integer -", number(end), number(start))
    return binder.call(node, "integer -", total, _if_early(binder, node, end, start, whole(1)))


def _rest(binder: Binder, node: exp.Expression, end: Scalar, start: Scalar) -> Scalar:
    """Microseconds beyond the months: a month that is not whole is as long as the one of `start`."""
    passed = binder.call(node, "integer -", _passed(binder, node, end), _passed(binder, node, start))
    first = binder.call(node, "date_trunc month", start)
    length = _between(binder.call(node, "time + interval", first, Span(1, 0, 0)), first)
    rest = binder.call(node, "integer +", passed, _if_early(binder, node, end, start, length))
    bounded = binder.call(node, "least", binder.call(node, "greatest", rest, whole(0)), whole(_MOST_REST))
    return _choice((binder.call(node, "not", binder.call(node, "is null", passed)), bounded))


def _if_early(binder: Binder, node: exp.Expression, end: Scalar, start: Scalar, value: Scalar) -> Scalar:
    """The value where the last month is not whole, else 0. NULL is said by what it is added to."""
    is_early = binder.call(node, "<", _passed(binder, node, end), _passed(binder, node, start))
    return Case(((is_early, value),), whole(0), SqlType.INT8)


def _compared(binder: Binder, node: exp.Expression, end: Scalar, start: Scalar) -> Scalar:
    months = binder.call(node, "integer *", _months(binder, node, end, start), whole(DAYS_OF_MONTH * DAY))
    return binder.call(node, "integer +", months, _rest(binder, node, end, start))


def _epoch(binder: Binder, node: exp.Expression, end: Scalar, start: Scalar) -> Scalar:
    years = binder.call(node, "integer /", _months(binder, node, end, start), whole(12))
    longer = binder.call(node, "integer *", years, whole(_LONGER_YEAR))
    return binder.call(node, "integer +", _compared(binder, node, end, start), longer)


_Part = Callable[[Binder, exp.Expression, Scalar, Scalar], Scalar]
