"""Which interval does a domain span?

What rules and analyses read from domains; `domain_rules` and `time_rules` make them. An inferred domain may be open to
one side, with an infinite end there. It bounds nothing yet, but may meet the other end later, as in
`least(greatest(x, 0), 100)`.
"""

from __future__ import annotations

import math
from datetime import date, datetime, tzinfo
from decimal import Decimal
from typing import assert_never

from proxy.policy.model import Bounded, Domain, Listed, Unknown
from proxy.sqltypes import Value

RealNumber = int | float | Decimal

UNKNOWN = Unknown()
FIRST, LAST = datetime(1, 1, 1), datetime(9999, 12, 31, 23, 59, 59, 999999)  # infinite ends of times
INT64_SAFE = float(2**62)  # a margin of two: interval ends are doubles


def _values(domain: Domain) -> tuple[Value, ...]:
    """The ends of an interval, or all listed values; none if nothing is known."""
    match domain:
        case Bounded(lo, hi):
            return (lo, hi)
        case Listed(values):
            return values
        case Unknown():
            return ()
        case _ as never:
            assert_never(never)


def number_ends(domain: Domain) -> tuple[RealNumber, RealNumber] | None:
    """[lo, hi] of a numeric domain, as they are written; an end may be infinite. None for other domains."""
    ends = _values(domain)
    numbers = [v for v in ends if isinstance(v, (int, float, Decimal)) and not isinstance(v, bool)]
    if not numbers or len(numbers) != len(ends) or any(math.isnan(n) for n in numbers):
        return None
    return min(numbers), max(numbers)


def number_range(domain: Domain) -> tuple[float, float] | None:
    """[lo, hi] of a numeric domain as doubles; None when unbounded or not numeric."""
    ends = number_ends(domain)
    if ends is None:
        return None
    lo, hi = float(ends[0]), float(ends[1])
    return (lo, hi) if math.isfinite(lo) and math.isfinite(hi) else None


def time_range(domain: Domain) -> tuple[datetime, datetime] | None:
    """[lo, hi] of a date or timestamp domain; None when unbounded or of another family."""
    ends = _values(domain)
    moments = [as_datetime(v) for v in ends if isinstance(v, date)]
    if not moments or len(moments) != len(ends) or FIRST in moments or LAST in moments:
        return None
    return min(moments), max(moments)


def half_open(end: Value, *, is_upper: bool) -> Domain:
    """Everything up to (from) a number or time; the other end is infinite."""
    match end:
        case bool() | str():
            return UNKNOWN
        case int() | float() | Decimal():
            return Bounded(-math.inf, end) if is_upper else Bounded(end, math.inf)
        case date():
            return Bounded(FIRST, end) if is_upper else Bounded(end, LAST)


def closed(domain: Domain) -> Domain:
    """The domain, or nothing where an end of it is infinite: a column is read through what it declares."""
    if isinstance(domain, Bounded) and number_range(domain) is None and time_range(domain) is None:
        return UNKNOWN
    return domain


def as_datetime(value: date) -> datetime:
    """A date's midnight; a datetime without its zone."""
    if isinstance(value, datetime):
        return value if value.tzinfo is None else value.replace(tzinfo=None)
    return datetime(value.year, value.month, value.day)


def local_time(value: datetime, zone: tzinfo) -> datetime:
    """What clocks of a zone show at an instant; the calendar's first or last moment where they show none."""
    if value.tzinfo is None:
        return value
    try:
        return value.astimezone(zone).replace(tzinfo=None)
    except OverflowError:
        return FIRST if value.year <= 1 else LAST


def bounded(lo: float, hi: float) -> Domain:
    """The interval, or nothing when it is not finite."""
    return Bounded(lo, hi) if math.isfinite(lo) and math.isfinite(hi) else UNKNOWN


def between(lo: RealNumber, hi: RealNumber) -> Domain:
    """The interval, of which an end may be infinite; nothing when both are."""
    return UNKNOWN if math.isinf(lo) and math.isinf(hi) else Bounded(lo, hi)


def union(domains: tuple[Domain, ...]) -> Domain:
    """Any of several domains (COALESCE, CASE): finite if all are, else the covering interval."""
    if all(isinstance(d, Listed) for d in domains):
        merged: dict[tuple[type, Value], Value] = {}
        for domain in domains:
            for value in domain.values if isinstance(domain, Listed) else ():
                merged.setdefault((type(value), value), value)
        return Listed(tuple(merged.values()))
    numbers = [number_ends(d) for d in domains]
    known = [n for n in numbers if n is not None]
    if known and len(known) == len(numbers):
        return between(min(n[0] for n in known), max(n[1] for n in known))
    times = [time_range(d) for d in domains]
    moments = [t for t in times if t is not None]
    if moments and len(moments) == len(times):
        return Bounded(min(t[0] for t in moments), max(t[1] for t in moments))
    return UNKNOWN
