"""Which values can an operator give, if its arguments lie in known domains?

Interval and finite-set rules for the rows of `sql.functions`. Nothing here carries a privacy claim:
every inferred bound is applied again as a clamp or filter in the rendered SQL, so a wrong rule
costs accuracy, never privacy.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import date, datetime, timedelta
from decimal import Decimal

from proxy.policy.model import Bounded, Domain, Listed, Unknown
from proxy.sqltypes import Value

DomainRule = Callable[[tuple[Domain, ...]], Domain]

UNKNOWN = Unknown()
INT64_SAFE = float(2**62)  # a margin of two: interval ends are doubles


def nothing_known(_: tuple[Domain, ...]) -> Domain:
    """The default for a new function: all facts are lost."""
    return UNKNOWN


def booleans(_: tuple[Domain, ...]) -> Domain:
    return Listed((False, True))


def constant(value: Value) -> Domain:
    return Listed((value,))


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


def whole(rule: DomainRule) -> DomainRule:
    """The same rule for integers: ends become ints."""

    def integral(domains: tuple[Domain, ...]) -> Domain:
        result = rule(domains)
        if isinstance(result, Bounded) and isinstance(result.lo, float) and isinstance(result.hi, float):
            return Bounded(math.floor(result.lo), math.ceil(result.hi))
        return result

    return integral


def _corners(operation: Callable[[float, float], float]) -> DomainRule:
    def rule(domains: tuple[Domain, ...]) -> Domain:
        left, right = number_range(domains[0]), number_range(domains[1])
        if left is None or right is None:
            return UNKNOWN
        ends = [operation(x, y) for x in left for y in right]
        return bounded(min(ends), max(ends))

    return rule


add = _corners(lambda x, y: x + y)
subtract = _corners(lambda x, y: x - y)
multiply = _corners(lambda x, y: x * y)


def divide(domains: tuple[Domain, ...]) -> Domain:
    """Quotients, when the divisor keeps away from zero."""
    right = number_range(domains[1])
    if right is None or right[0] <= 0 <= right[1]:
        return UNKNOWN
    return _corners(lambda x, y: x / y)(domains)


def divide_whole(domains: tuple[Domain, ...]) -> Domain:
    """Integer quotients: a divisor of zero gives NULL, any other is at least 1 in size."""
    left = number_range(domains[0])
    if left is None:
        return UNKNOWN
    size = max(abs(left[0]), abs(left[1]))
    exact = whole(divide)(domains)
    return exact if isinstance(exact, Bounded) else bounded(-size, size)


def modulo(domains: tuple[Domain, ...]) -> Domain:
    left, right = number_range(domains[0]), number_range(domains[1])
    if right is None:
        return UNKNOWN
    size = max(abs(right[0]), abs(right[1]))
    lowest = 0.0 if left is not None and left[0] >= 0 else -size
    highest = 0.0 if left is not None and left[1] <= 0 else size
    return bounded(lowest, highest)


def _monotone(function: Callable[[float], float]) -> DomainRule:
    def rule(domains: tuple[Domain, ...]) -> Domain:
        ends = number_range(domains[0])
        return UNKNOWN if ends is None else bounded(function(ends[0]), function(ends[1]))

    return rule


def negate(domains: tuple[Domain, ...]) -> Domain:
    ends = number_range(domains[0])
    return UNKNOWN if ends is None else bounded(-ends[1], -ends[0])


def absolute(domains: tuple[Domain, ...]) -> Domain:
    ends = number_range(domains[0])
    if ends is None:
        return UNKNOWN
    size = max(abs(ends[0]), abs(ends[1]))
    return bounded(0.0 if ends[0] <= 0 <= ends[1] else min(abs(ends[0]), abs(ends[1])), size)


same = _monotone(lambda x: x)
floor = _monotone(lambda x: float(math.floor(x)))
ceil = _monotone(lambda x: float(math.ceil(x)))


def rounded(domains: tuple[Domain, ...]) -> Domain:
    """Rounding to a whole number."""
    ends = number_range(domains[0])
    return UNKNOWN if ends is None else bounded(math.floor(ends[0]), math.ceil(ends[1]))


def rounded_to_digits(domains: tuple[Domain, ...]) -> Domain:
    """Rounding to a constant number of digits, negative ones to tens, hundreds and so on."""
    ends, digits = number_range(domains[0]), number_range(domains[1])
    if ends is None or digits is None:
        return UNKNOWN
    step = 10.0 ** max(0.0, -digits[0])
    return bounded(math.floor(ends[0] / step) * step, math.ceil(ends[1] / step) * step)


def square_root(domains: tuple[Domain, ...]) -> Domain:
    ends = number_range(domains[0])
    if ends is None or ends[1] < 0:
        return UNKNOWN
    return bounded(math.sqrt(max(ends[0], 0.0)), math.sqrt(ends[1]))


def extreme(function: str, domains: tuple[Domain, ...], certain: tuple[Domain, ...]) -> Domain:
    """greatest or least: any argument may be NULL and drop out, except the `certain` ones."""
    ends, fixed = [number_range(d) for d in domains], [number_range(d) for d in certain]
    known, sure = [e for e in ends if e is not None], [e for e in fixed if e is not None]
    if len(known) < len(ends) or not known:
        return UNKNOWN
    lo, hi = min(e[0] for e in known), max(e[1] for e in known)
    if function == "greatest":
        return bounded(max([lo, *(e[0] for e in sure)]), hi)
    return bounded(lo, min([hi, *(e[1] for e in sure)]))


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


def each(function: Callable[[str], str]) -> DomainRule:
    """A text function applied to every value of a finite set."""

    def rule(domains: tuple[Domain, ...]) -> Domain:
        domain = domains[0]
        if not isinstance(domain, Listed) or not all(isinstance(v, str) for v in domain.values):
            return UNKNOWN
        return Listed(tuple(dict.fromkeys(function(str(v)) for v in domain.values)))

    return rule


# --- dates ------------------------------------------------------------------------------------------

_FIXED_FIELDS = {
    "month": (1, 12),
    "day": (1, 31),
    "hour": (0, 23),
    "minute": (0, 59),
    "dow": (0, 6),
    "isodow": (1, 7),
    "doy": (1, 366),
    "quarter": (1, 4),
    "week": (1, 53),
}


def extracted(field: str) -> DomainRule:
    """Values of EXTRACT(field FROM x): fixed ranges, or from the bounds of x for years and epochs."""

    def rule(domains: tuple[Domain, ...]) -> Domain:
        if field in _FIXED_FIELDS:
            return Bounded(*_FIXED_FIELDS[field])
        ends = time_range(domains[0])
        if field == "second":
            return Bounded(0, 60)
        if ends is None:
            return UNKNOWN
        if field in ("year", "isoyear"):
            slack = 1 if field == "isoyear" else 0
            return Bounded(ends[0].year - slack, ends[1].year + slack)
        if field == "epoch":
            origin = datetime(1970, 1, 1)
            return Bounded((ends[0] - origin).total_seconds(), (ends[1] - origin).total_seconds())
        return UNKNOWN

    return rule


def truncate_time(unit: str, value: datetime) -> datetime:
    """PostgreSQL's date_trunc for one timestamp."""
    midnight = value.replace(hour=0, minute=0, second=0, microsecond=0)
    match unit:
        case "year":
            return midnight.replace(month=1, day=1)
        case "quarter":
            return midnight.replace(month=3 * ((value.month - 1) // 3) + 1, day=1)
        case "month":
            return midnight.replace(day=1)
        case "week":
            return midnight - timedelta(days=value.weekday())
        case "day":
            return midnight
        case "hour":
            return value.replace(minute=0, second=0, microsecond=0)
        case "minute":
            return value.replace(second=0, microsecond=0)
        case _:
            return value.replace(microsecond=0)


def next_step(unit: str, value: datetime) -> datetime:
    """The start of the following unit; `value` is itself such a start."""
    match unit:
        case "year":
            return value.replace(year=value.year + 1)
        case "quarter" | "month":
            months = value.month - 1 + (3 if unit == "quarter" else 1)
            return value.replace(year=value.year + months // 12, month=months % 12 + 1)
        case "week":
            return value + timedelta(days=7)
        case "day":
            return value + timedelta(days=1)
        case "hour":
            return value + timedelta(hours=1)
        case "minute":
            return value + timedelta(minutes=1)
        case _:
            return value + timedelta(seconds=1)


TRUNCATION_UNITS = ("second", "minute", "hour", "day", "week", "month", "quarter", "year")
MOST_STEPS = 100_000
_SHORTEST_S = {"second": 1, "minute": 60, "hour": 3600, "day": 86_400, "week": 604_800, "month": 2_419_200,
               "quarter": 7_776_000, "year": 31_536_000}  # fmt: skip


def truncated(unit: str) -> DomainRule:
    """All starts of `unit` between the bounds, when they are few enough to be a public key domain."""

    def rule(domains: tuple[Domain, ...]) -> Domain:
        ends = time_range(domains[0])
        if ends is None:
            return UNKNOWN
        step, last = truncate_time(unit, ends[0]), truncate_time(unit, ends[1])
        if (last - step).total_seconds() / _SHORTEST_S[unit] > MOST_STEPS:
            return Bounded(step, last)
        steps: list[Value] = [step]
        while step < last:  # never past the last start, beyond which there may be no year
            step = next_step(unit, step)
            steps.append(step)
        return Listed(tuple(steps))

    return rule


def to_date(domains: tuple[Domain, ...]) -> Domain:
    domain = domains[0]
    if isinstance(domain, Listed) and all(isinstance(v, date) for v in domain.values):
        return Listed(tuple(dict.fromkeys(as_datetime(v).date() for v in domain.values if isinstance(v, date))))
    ends = time_range(domain)
    return UNKNOWN if ends is None else Bounded(ends[0].date(), ends[1].date())


def to_timestamp(domains: tuple[Domain, ...]) -> Domain:
    domain = domains[0]
    if isinstance(domain, Listed) and all(isinstance(v, date) for v in domain.values):
        return Listed(tuple(as_datetime(v) for v in domain.values if isinstance(v, date)))
    ends = time_range(domain)
    return UNKNOWN if ends is None else Bounded(*ends)
