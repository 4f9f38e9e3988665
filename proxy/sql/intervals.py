"""Which interval does a domain span?

What rules and analyses read from domains; `domain_rules` and `time_rules` make them.
"""

from __future__ import annotations

import math
from datetime import date, datetime
from decimal import Decimal

from proxy.policy.model import Bounded, Domain, Listed, Unknown
from proxy.sqltypes import Value

UNKNOWN = Unknown()
INT64_SAFE = float(2**62)  # a margin of two: interval ends are doubles


def number_range(domain: Domain) -> tuple[float, float] | None:
    """[lo, hi] of a numeric domain as doubles; None when unbounded or not numeric."""
    match domain:
        case Bounded(lo, hi):
            ends: tuple[Value, ...] = (lo, hi)
        case Listed(values) if values:
            ends = values
        case _:
            return None
    numbers = [float(v) for v in ends if isinstance(v, (int, float, Decimal)) and not isinstance(v, bool)]
    if len(numbers) != len(ends) or not all(map(math.isfinite, numbers)):
        return None
    return min(numbers), max(numbers)


def time_range(domain: Domain) -> tuple[datetime, datetime] | None:
    """[lo, hi] of a date or timestamp domain; None when unbounded or of another family."""
    match domain:
        case Bounded(lo, hi):
            ends: tuple[Value, ...] = (lo, hi)
        case Listed(values) if values:
            ends = values
        case _:
            return None
    moments = [as_datetime(v) for v in ends if isinstance(v, date)]
    return (min(moments), max(moments)) if len(moments) == len(ends) else None


def as_datetime(value: date) -> datetime:
    """A date's midnight; a datetime without its zone."""
    if isinstance(value, datetime):
        return value.replace(tzinfo=None)
    return datetime(value.year, value.month, value.day)


def bounded(lo: float, hi: float) -> Domain:
    """The interval, or nothing when it is not finite."""
    return Bounded(lo, hi) if math.isfinite(lo) and math.isfinite(hi) else UNKNOWN


def union(domains: tuple[Domain, ...]) -> Domain:
    """Any of several domains (COALESCE, CASE): finite if all are, else the covering interval."""
    if all(isinstance(d, Listed) for d in domains):
        merged: dict[tuple[type, Value], Value] = {}
        for domain in domains:
            for value in domain.values if isinstance(domain, Listed) else ():
                merged.setdefault((type(value), value), value)
        return Listed(tuple(merged.values()))
    numbers = [number_range(d) for d in domains]
    known = [n for n in numbers if n is not None]
    if known and len(known) == len(numbers):
        return bounded(min(n[0] for n in known), max(n[1] for n in known))
    times = [time_range(d) for d in domains]
    moments = [t for t in times if t is not None]
    if moments and len(moments) == len(times):
        return Bounded(min(t[0] for t in moments), max(t[1] for t in moments))
    return UNKNOWN
