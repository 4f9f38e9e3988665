"""Which value of a column's type does a scalar of the file stand for?

Every value comes back canonical, so that equal values compare equal: trimmed decimals, no negative zero,
lower-case UUIDs, padding of char(n) removed.
"""

from __future__ import annotations

import math
import re
import uuid
from datetime import UTC, date, datetime, time, tzinfo
from decimal import Decimal

from proxy.policy.tree import Real
from proxy.sqltypes import SqlType, Value

_INTEGER_BITS = {SqlType.INT2: 15, SqlType.INT4: 31, SqlType.INT8: 63}
_LARGEST_REAL = 3.4028234663852886e38
_NUMERIC_DIGITS = 38
_LAST_MOMENT = time(23, 59, 59, 999999)
_LONGEST_TEXT = 10_000
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
_MOMENT = re.compile(r"\d{4}-\d{2}-\d{2}[Tt ]\d{1,2}:\d{2}(:\d{2}(\.\d{1,6})?)?( *([Zz]|[-+]\d{2}(:?\d{2})?))?")


class WrongValue(ValueError):
    """The scalar is no value of the type; the text says what would be, without the value."""


def read_value(raw: object, kind: SqlType, zone: tzinfo = UTC, *, ends_day: bool = False) -> Value:
    """The canonical value, or WrongValue.

    zone: what a timestamptz without an offset is in. ends_day: a date stands for its last moment
    where a timestamp is wanted, so that an upper bound includes the day that is written.
    """
    if kind is SqlType.BOOL:
        return _boolean(raw)
    if kind.is_integer:
        return _integer(raw, kind)
    if kind is SqlType.NUMERIC:
        return _numeric(raw)
    if kind in (SqlType.FLOAT4, SqlType.FLOAT8):
        return _floating(raw, kind)
    if kind is SqlType.DATE:
        return _date(raw)
    if kind in (SqlType.TIMESTAMP, SqlType.TIMESTAMPTZ):
        return _moment(raw, kind, zone, ends_day=ends_day)
    if kind is SqlType.UUID:
        return _uuid(raw)
    return _text(raw, kind)


def _boolean(raw: object) -> bool:
    if not isinstance(raw, bool):
        raise WrongValue("expected true or false")
    return raw


def _integer(raw: object, kind: SqlType) -> int:
    if isinstance(raw, bool) or not isinstance(raw, int):
        raise WrongValue("expected a whole number")
    if not -(1 << _INTEGER_BITS[kind]) <= raw < 1 << _INTEGER_BITS[kind]:
        raise WrongValue(f"out of range for type {kind.pg_name}")
    return raw


def _numeric(raw: object) -> int | Decimal:
    """Whole numbers as int, others as a Decimal without trailing zeros."""
    if isinstance(raw, bool) or not isinstance(raw, int | Real):
        raise WrongValue("expected a number")
    if isinstance(raw, Real) and not math.isfinite(raw):
        raise WrongValue("expected a finite number")
    number = Decimal(raw.text if isinstance(raw, Real) else raw)
    _, digits, exponent = number.as_tuple()
    if not isinstance(exponent, int) or len(digits) + abs(exponent) > _NUMERIC_DIGITS:
        raise WrongValue(f"expected a number of at most {_NUMERIC_DIGITS} digits")
    if number == int(number):
        return int(number)
    return Decimal(str(number).rstrip("0")) if "E" not in str(number) else number.normalize()


def _floating(raw: object, kind: SqlType) -> float:
    if isinstance(raw, bool) or not isinstance(raw, int | Real):
        raise WrongValue("expected a number")
    try:
        number = float(raw)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise WrongValue("expected a finite number")
    if kind is SqlType.FLOAT4 and abs(number) > _LARGEST_REAL:
        raise WrongValue("out of range for type real")
    return number + 0.0


def _date(raw: object) -> date:
    if not isinstance(raw, str) or not _DATE.fullmatch(raw):
        raise WrongValue("expected a date as 2024-12-31")
    try:
        return date.fromisoformat(raw)
    except ValueError:
        raise WrongValue("expected a date of the calendar, as 2024-12-31") from None


def _moment(raw: object, kind: SqlType, zone: tzinfo, *, ends_day: bool) -> datetime:
    if not isinstance(raw, str) or not (_DATE.fullmatch(raw) or _MOMENT.fullmatch(raw)):
        raise WrongValue("expected a date or time as 2024-12-31 or 2024-12-31 18:00:00")
    try:
        if _DATE.fullmatch(raw):
            moment = datetime.combine(date.fromisoformat(raw), _LAST_MOMENT if ends_day else time())
        else:
            moment = datetime.fromisoformat(re.sub(r"[Tt ](\d):", r" 0\1:", raw, count=1).replace(" +", "+"))
    except ValueError:
        raise WrongValue("expected a time of the calendar, as 2024-12-31 18:00:00") from None
    if kind is SqlType.TIMESTAMP:
        if moment.tzinfo is not None:
            raise WrongValue("expected a time without a zone, as the column's type is timestamp")
        return moment
    return _in_utc(moment if moment.tzinfo is not None else moment.replace(tzinfo=zone))


def _in_utc(moment: datetime) -> datetime:
    try:
        return moment.astimezone(UTC)
    except OverflowError:
        raise WrongValue("expected a time between the years 1 and 9999 in UTC") from None


def _uuid(raw: object) -> str:
    if not isinstance(raw, str):
        raise WrongValue("expected a UUID in quotes")
    try:
        return str(uuid.UUID(raw))
    except ValueError:
        raise WrongValue("expected a UUID as 9f0c1e5a-7c1d-4b0e-8a64-0d5f2f7a1b11") from None


def _text(raw: object, kind: SqlType) -> str:
    if not isinstance(raw, str):
        raise WrongValue("expected text; put it in quotes")
    if "\0" in raw:
        raise WrongValue("expected text without NUL characters")
    if len(raw) > _LONGEST_TEXT:
        raise WrongValue(f"expected text of at most {_LONGEST_TEXT} characters")
    return raw.rstrip(" ") if kind is SqlType.BPCHAR else raw


# --- durations ------------------------------------------------------------------------------------

_UNITS_S = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0, "d": 86400.0}
_DURATION = re.compile(r"(\d+(?:\.\d+)?) *(us|ms|s|min|h|d)")


def read_duration_s(raw: object) -> float:
    """Seconds of `10ms`, `60s`, `5min`, `1h`, `1d` or 0; WrongValue otherwise."""
    if raw == 0 and not isinstance(raw, bool):
        return 0.0
    found = _DURATION.fullmatch(raw) if isinstance(raw, str) else None
    if found is None or len(found[1]) > 12:
        raise WrongValue("expected a time with its unit, as 10ms, 60s, 5min, 1h, or 0")
    return float(found[1]) * _UNITS_S[found[2]]
