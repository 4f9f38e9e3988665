"""Which harmless values can stand in a column, as its type and what the policy declares of it allow?

Pure arithmetic on numbers that `made_up` draws. Values come as PostgreSQL's texts.
"""

from __future__ import annotations

import uuid
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal, localcontext

from proxy.policy.model import Bounded, Column, Listed, Unknown
from proxy.sqltypes import SqlType, Value

#: How many values a column has of which nothing is declared.
_WORDS, _NUMBERS, _CENTS, _DAYS = 20, 1000, 100_001, 1461
_FIRST_DAY = datetime(2020, 1, 1)
_DAY_S = 86_400
_STEPS = 100_000  # between the bounds of a number that is not whole
_MOST_DIGITS = 200


def word(value: Value) -> str:
    """A value as PostgreSQL reads it, whatever the session's settings are."""
    match value:
        case bool():
            return str(value).lower()
        case float():
            return repr(value)
        case Decimal():
            return format(value, "f")
        case datetime():
            return value.isoformat(sep=" ")
        case date():
            return value.isoformat()
        case _:
            return str(value)


def any_value(column: Column, number: int) -> str:
    """One of the values that the policy allows. number: from 0, large, alike for all."""
    match column.domain:
        case Listed(values):
            return word(values[number % len(values)])
        case Bounded(lo, hi):
            return word(_between(column.type, lo, hi, number))
        case Unknown():
            return _unlisted(column, number)


def nth_value(column: Column, place: int) -> str | None:
    """The value at a place, from 0, if all values are to be different; None: there are not as many."""
    match column.domain:
        case Listed(values):
            return word(values[place]) if place < len(values) else None
        case Bounded(lo, hi):
            return _nth_between(column.type, lo, hi, place)
        case Unknown():
            return _nth(column, place)


def _between(kind: SqlType, lo: Value, hi: Value, number: int) -> Value:
    match lo, hi:
        case (datetime(), datetime()):
            return lo + timedelta(seconds=number % (int((hi - lo).total_seconds()) + 1))
        case (date(), date()):
            return lo + timedelta(days=number % ((hi - lo).days + 1))
        case (int() | float() | Decimal(), int() | float() | Decimal()):
            return _number_between(kind, lo, hi, number)
        case _:
            raise AssertionError("bounds of a type that has none")


def _nth_between(kind: SqlType, lo: Value, hi: Value, place: int) -> str | None:
    """The value that many days, hours or ones above the low end; no end is passed, nor the end of the calendar."""
    match lo, hi:
        case (datetime(), datetime()) if timedelta(hours=place) <= hi - lo:
            return word(lo + timedelta(hours=place))
        case (date(), date()) if not isinstance(lo, datetime) and timedelta(days=place) <= hi - lo:
            return word(lo + timedelta(days=place))
        case (int(), int()) if kind.is_integer and place <= hi - lo:
            return str(lo + place)
        case _:
            return None


def _number_between(kind: SqlType, lo: int | float | Decimal, hi: int | float | Decimal, number: int) -> Value:
    if kind.is_integer:
        return int(lo) + number % (int(hi) - int(lo) + 1)
    with localcontext() as exact:
        exact.prec = _MOST_DIGITS if kind is SqlType.NUMERIC else 50
        found = Decimal(lo) + (Decimal(hi) - Decimal(lo)) * (number % (_STEPS + 1)) / _STEPS
        if kind is SqlType.NUMERIC:
            return found
    return min(max(float(found), float(lo)), float(hi))


def _unlisted(column: Column, number: int) -> str:
    kind = column.type
    if kind.is_integer:
        return str(1 + number % _NUMBERS)
    if kind.is_number:
        return word(Decimal(number % _CENTS) / 100)
    if kind is SqlType.DATE:
        return word((_FIRST_DAY + timedelta(days=number % _DAYS)).date())
    if kind.is_time:
        return word(_in_zone(kind, _FIRST_DAY + timedelta(seconds=number % (_DAYS * _DAY_S))))
    if kind is SqlType.BOOL:
        return word(bool(number % 2))
    return _text(column, number if kind is SqlType.UUID else number % _WORDS)


def _nth(column: Column, place: int) -> str | None:
    kind = column.type
    if kind.is_number:
        return str(1 + place)
    if kind is SqlType.DATE:
        return word((_FIRST_DAY + timedelta(days=place)).date())
    if kind.is_time:
        return word(_in_zone(kind, _FIRST_DAY + timedelta(hours=place)))
    if kind is SqlType.BOOL:
        return word(bool(place)) if place < 2 else None
    return _text(column, place)


def _text(column: Column, number: int) -> str:
    if column.type is SqlType.UUID:
        return str(uuid.UUID(int=(1 + number) % (1 << 128)))
    name = column.name.lower() if column.case_blind else column.name
    return f"{name} {1 + number}"


def _in_zone(kind: SqlType, moment: datetime) -> datetime:
    return moment.replace(tzinfo=UTC) if kind is SqlType.TIMESTAMPTZ else moment
