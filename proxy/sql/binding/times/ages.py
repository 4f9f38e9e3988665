"""What does age(x, y) mean?

An age has whole months, counted from the earlier time on, and what is left of days and hours. It is no value of its
own, as a difference of times is none: a field is taken of it, it is compared, or aggregated.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal

from sqlglot import exp

from proxy.sql.algebra.constants import Untyped
from proxy.sql.algebra.nodes import Call, Literal, Scalar
from proxy.sql.binding.binder import Binder
from proxy.sql.syntax.refusal import refuse
from proxy.sqltypes import SqlType

DAY, HOUR, MINUTE, SECOND = 86_400_000_000, 3_600_000_000, 60_000_000, 1_000_000
DAYS_OF_MONTH = 30  # where intervals are compared
AGE = "age"  # the function's name in the algebra: microseconds, months having thirty days
_LONGER_YEAR = 5 * DAY + DAY // 4  # by which a year of EXTRACT(epoch) is longer than twelve months
_WHOLE = ("year", "month", "day", "hour", "minute")
SECOND_FIELDS = {"second": SECOND, "milliseconds": 1000, "microseconds": 1}


def whole(value: int) -> Literal:
    """A constant that is computed with as a bigint."""
    return Literal(value, SqlType.INT8)


def age(binder: Binder, node: exp.Expression, parts: Sequence[exp.Expression]) -> Scalar:
    """age(x, y); age(x) is counted from the start of today."""
    bounds = [binder.bind(part) for part in parts]
    values = [binder.read(node, b.text, SqlType.TIMESTAMP) if isinstance(b, Untyped) else b for b in bounds]
    if len(values) == 1:
        values = [Literal(binder.constants.local_now(node).date(), SqlType.DATE), *values]
    if len(values) != 2 or not all(v.type.is_time for v in values):
        raise refuse(node, "age takes one or two times")
    return binder.call(node, AGE, *(binder.convert(node, v, SqlType.TIMESTAMP) for v in values))


def field_of_age(binder: Binder, node: exp.Expression, field: str, bound: Call) -> Scalar:
    """EXTRACT(field FROM age(a, b))."""

    def part(name: str) -> Scalar:
        return binder.call(node, f"age {name}", *bound.args)

    if field in _WHOLE:
        return binder.convert(node, part(field), SqlType.NUMERIC)
    if field == "epoch":
        longer = binder.call(node, "integer *", part("year"), whole(_LONGER_YEAR))
        total = binder.call(node, "integer +", replace(bound, type=SqlType.INT8), longer)
        return in_units(binder, node, total, SECOND)
    if field not in SECOND_FIELDS:
        raise refuse(node, f"{field} is not taken of an age", "Take year, month, day, hour, minute, second or epoch.")
    return in_units(binder, node, part("microseconds"), SECOND_FIELDS[field])


def in_units(binder: Binder, node: exp.Expression, microseconds: Scalar, size: int) -> Scalar:
    """A number of microseconds in a larger unit, as a numeric."""
    number = binder.convert(node, microseconds, SqlType.NUMERIC)
    return binder.call(node, "/", number, Literal(Decimal(size), SqlType.NUMERIC)) if size > 1 else number
