"""What is the value of a scalar of the algebra for one row?

A second, slow definition of every function, written from PostgreSQL's manual and the null and
totality rules; nothing is shared with the renderer. A function that has no value for its arguments
gives NULL, where PostgreSQL raises.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from datetime import date, datetime
from decimal import Decimal
from enum import Enum
from typing import TypeGuard
from zoneinfo import ZoneInfo

from proxy.policy.model import Bounded, Column, Domain, Listed
from proxy.sql.algebra.nodes import Call, Case, ColumnRef, Literal, Member, Null, Scalar, Span
from proxy.sqltypes import Family, SqlType
from tests.oracle import times
from tests.oracle.choices import COMPARISONS, LENIENT
from tests.oracle.functions import compute
from tests.oracle.values import NoValue, Stored, Value, converted, equal, order

Row = Mapping[tuple[int, str], Stored]


class Reading(Enum):
    """How a column's value is seen: NULL outside its domain, clamped to it, or as it is."""

    TEST = "test"
    MEASURE = "measure"
    KEY = "key"


def stored(value: object, kind: SqlType, zone: str) -> Stored:
    """A cell of a table as the oracle computes with it."""
    if value is None or isinstance(value, bool):
        return value
    if kind.family is Family.TIME:
        assert isinstance(value, (date, str))
        return times.moment_of(value, zone if kind is SqlType.TIMESTAMPTZ else "UTC")
    if kind is SqlType.NUMERIC:
        assert isinstance(value, (Decimal, int))
        return Decimal(value)
    if kind.is_number and not kind.is_integer:
        assert isinstance(value, (int, float))
        return float(value)
    assert isinstance(value, (int, float, str))
    return value


class Evaluator:
    """Evaluates scalars of one block. column: the policy's column behind a reference."""

    def __init__(self, column: Callable[[ColumnRef], Column], zone: str) -> None:
        self._column = column
        self._zone = zone

    def passes(self, condition: Scalar, row: Row) -> bool:
        """Whether a row passes a filter: NULL and FALSE do not."""
        return self.value(condition, row, Reading.TEST) is True

    def value(self, scalar: Scalar, row: Row, reading: Reading) -> Value:
        """The value of a scalar for one row."""
        match scalar:
            case ColumnRef():
                return self._read(scalar, row, reading)
            case Literal(value, kind):
                return self.constant(value, kind)
            case Null():
                return None
            case Member(argument, items):
                compared = [self._compared(argument, i, row) for i in items]
                return None if None in compared else 0 in compared
            case Case(branches, otherwise, kind):
                for condition, result in branches:
                    if self.value(condition, row, Reading.TEST) is True:
                        return converted(self.value(result, row, reading), kind)
                return converted(self.value(otherwise, row, reading), kind)
            case Call():
                return self._call(scalar, row, reading)
            case Span():
                raise AssertionError("an interval stands beside a time only")

    def constant(self, value: object, kind: SqlType) -> Value:
        """A literal in the computing type."""
        if isinstance(value, datetime) and value.tzinfo is not None:
            value = value.astimezone(ZoneInfo(self._zone)).replace(tzinfo=None)
        if isinstance(value, date):
            return times.moment_of(value)
        if isinstance(value, int) and not isinstance(value, bool) and (kind.is_integer or not kind.is_number):
            return value if -(2**63) <= value < 2**63 else float(value)
        return float(value) if isinstance(value, (Decimal, int)) and not isinstance(value, bool) else value  # type: ignore[return-value]  # text or float

    # --- columns ----------------------------------------------------------------------------------------

    def raw(self, reference: ColumnRef, row: Row) -> Value:
        """The stored value to compute with; a padded text without its padding."""
        value = row[reference.scan, reference.name]
        if isinstance(value, Decimal):
            return float(value)
        return value.rstrip(" ") if isinstance(value, str) and reference.type is SqlType.BPCHAR else value

    def is_inside(self, reference: ColumnRef, value: Value) -> bool:
        """Whether a value lies in its column's declared domain; NULL never does."""
        return value is not None and in_domain(value, self._column(reference).domain, self, reference.type)

    def _read(self, reference: ColumnRef, row: Row, reading: Reading) -> Value:
        value, column = self.raw(reference, row), self._column(reference)
        if reading is Reading.KEY or not isinstance(column.domain, (Bounded, Listed)):
            return value
        if reading is Reading.TEST or not reference.type.is_number:
            return value if self.is_inside(reference, value) else None
        assert value is None or isinstance(value, (int, float))
        lo, hi = ends(column.domain, reference.type)
        if value is not None and math.isfinite(value):
            return min(max(value, lo), hi)
        return None if column.nullable else middle(column.domain, reference.type)

    # --- calls ------------------------------------------------------------------------------------------

    def _call(self, call: Call, row: Row, reading: Reading) -> Value:
        name = call.function
        inner = Reading.TEST if reading is Reading.KEY or call.type is SqlType.BOOL else reading
        if name == "coalesce":
            for argument in call.args:
                found = converted(self.value(argument, row, inner), call.type)
                if found is not None:
                    return found
            return None
        if name in COMPARISONS:
            found = self._compared(call.args[0], call.args[1], row)
            return None if found is None else COMPARISONS[name](found)
        if any(isinstance(a, Span) for a in call.args):
            return self._shift(call, row, inner)
        values = [self.value(a, row, inner) for a in call.args]
        if name in LENIENT:
            return LENIENT[name](call, values)
        if any(v is None for v in values):
            return None
        try:
            return compute(name, call, values)
        except NoValue:
            return None

    def _compared(self, left: Scalar, right: Scalar, row: Row) -> int | None:
        """-1, 0 or 1; None where a side is NULL. Columns and constants that are no doubles compare exactly."""
        ours, theirs = self.value(left, row, Reading.TEST), self.value(right, row, Reading.TEST)
        if ours is None or theirs is None:
            return None
        if not _is_exact(left) or not _is_exact(right):
            return order(ours, theirs)
        exact, other = (s.value if isinstance(s, Literal) else row[s.scan, s.name] for s in (left, right))
        assert isinstance(exact, (int, Decimal))
        assert isinstance(other, (int, Decimal))
        return (exact > other) - (exact < other)

    def _shift(self, call: Call, row: Row, reading: Reading) -> Value:
        moment, span = self.value(call.args[0], row, reading), call.args[1]
        assert isinstance(span, Span)
        if moment is None:
            return None
        assert isinstance(moment, (int, float))
        sign = 1 if " + " in call.function else -1
        if len(call.args) > 2:
            number = self.value(call.args[2], row, reading)
            if number is None or not math.isfinite(number := float(number)) or abs(number) >= 2**31:
                return None
            sign *= int(number)
        if max(abs(sign * span.months), abs(sign * span.days)) >= 2**31:
            return None
        found = times.shifted(moment, sign * span.months, sign * span.days, sign * span.microseconds)
        return None if isinstance(found, int) and abs(found) >= 2**63 else found


def _is_exact(scalar: Scalar) -> TypeGuard[ColumnRef | Literal]:
    is_double = isinstance(scalar, Literal) and isinstance(scalar.value, float)
    return isinstance(scalar, (ColumnRef, Literal)) and not is_double and (
        scalar.type.is_integer or scalar.type is SqlType.NUMERIC)  # fmt: skip


# --- domains --------------------------------------------------------------------------------------------


def ends(domain: Domain, kind: SqlType) -> tuple[float, float]:
    """Lowest and highest value of a numeric domain, as the column's own type has them."""
    assert isinstance(domain, (Bounded, Listed))
    values = (domain.lo, domain.hi) if isinstance(domain, Bounded) else domain.values
    numbers = [v for v in values if isinstance(v, (int, float, Decimal))]
    if kind.is_integer:
        return math.ceil(min(numbers)), math.floor(max(numbers))
    return float(min(numbers)), float(max(numbers))


def middle(domain: Domain, kind: SqlType) -> float:
    """What stands for NULL in a column declared without."""
    lo, hi = ends(domain, kind)
    return (lo + hi) // 2 if kind.is_integer else lo / 2 + hi / 2


def in_domain(value: Value, domain: Domain, evaluator: Evaluator, kind: SqlType) -> bool:
    match domain:
        case Bounded(lo, hi):
            low, high = evaluator.constant(lo, kind), evaluator.constant(hi, kind)
            return order(low, value) <= 0 and order(value, high) <= 0
        case Listed(values):
            return any(equal(value, evaluator.constant(v, kind)) for v in values)
        case _:
            return True
