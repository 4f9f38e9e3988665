"""Which values can a function of a time give, if the time lies in a known domain?

The claim of `domain_rules` holds here too. What is more, the lists made here become public keys: a value left out is a
group that is not shown.
"""

from __future__ import annotations

import calendar
from datetime import date, datetime, timedelta

from proxy.policy.model import Bounded, Domain, Listed
from proxy.sql.functions.domains.intervals import UNKNOWN, as_datetime, number_range, time_range
from proxy.sql.functions.domains.rules import Arguments, DomainRule
from proxy.sql.literals.time_texts import every_text, field_of
from proxy.sqltypes import Value

_ALMOST_A_DAY = timedelta(days=1, microseconds=-1)
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
_SECONDS = {"second": 60, "milliseconds": 60_000, "microseconds": 60_000_000}
_SPANS = {"decade": 10, "century": 100, "millennium": 1000}


def extracted(field: str) -> DomainRule:
    """Values of EXTRACT(field FROM x): fixed ranges, or from the bounds of x for years and epochs."""

    def rule(arguments: Arguments) -> Domain:
        if field in _FIXED_FIELDS:
            return Bounded(*_FIXED_FIELDS[field])
        ends = time_range(arguments[0].domain)
        if field in _SECONDS:
            return Bounded(0, _SECONDS[field])
        if ends is None:
            return UNKNOWN
        if field in ("year", "isoyear", "decade", "century", "millennium"):
            slack = 1 if field == "isoyear" else 0
            named = "year" if field == "isoyear" else field
            return Bounded(field_of(named, ends[0]) - slack, field_of(named, ends[1]) + slack)
        if field == "epoch":
            origin = datetime(1970, 1, 1)
            return Bounded((ends[0] - origin).total_seconds(), (ends[1] - origin).total_seconds())
        return UNKNOWN

    return rule


def truncate_time(unit: str, value: datetime) -> datetime:
    """PostgreSQL's date_trunc for one timestamp."""
    if unit in _CLOCKS:
        return value - timedelta(microseconds=_microseconds(value) % _CLOCKS[unit])
    midnight = value.replace(hour=0, minute=0, second=0, microsecond=0)
    match unit:
        case "decade":
            return midnight.replace(year=max(value.year - value.year % 10, 1), month=1, day=1)
        case "century" | "millennium":
            return midnight.replace(year=value.year - (value.year - 1) % _SPANS[unit], month=1, day=1)
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
        case _:
            raise ValueError(f"no unit of date_trunc: {unit}")


_CLOCKS = {"microseconds": 1, "milliseconds": 1000, "second": 10**6, "minute": 60 * 10**6, "hour": 3600 * 10**6}


def _microseconds(value: datetime) -> int:
    """Since midnight."""
    return ((value.hour * 60 + value.minute) * 60 + value.second) * 10**6 + value.microsecond


def next_step(unit: str, value: datetime) -> datetime:
    """The start of the following unit; `value` is itself such a start."""
    match unit:
        case "decade" | "century" | "millennium":
            return value.replace(year=value.year - value.year % 10 * (unit == "decade") + _SPANS[unit])
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
        case "second":
            return value + timedelta(seconds=1)
        case _:
            raise ValueError(f"no unit of date_trunc: {unit}")


TRUNCATION_UNITS = ("microseconds", "milliseconds", "second", "minute", "hour", "day", "week", "month", "quarter",
                    "year", "decade", "century", "millennium")  # fmt: skip
MOST_STEPS = 100_000
_SHORTEST_S = {"second": 1, "minute": 60, "hour": 3600, "day": 86_400, "week": 604_800, "month": 2_419_200,
               "quarter": 7_776_000, "year": 31_536_000, **dict.fromkeys(_SPANS, 31_536_000)}  # fmt: skip


def truncated(unit: str) -> DomainRule:
    """All starts of `unit` between the bounds, when they are few enough to be a public key domain."""

    def rule(arguments: Arguments) -> Domain:
        ends, listed = time_range(arguments[0].domain), _times(arguments[0].domain)
        if ends is None:
            return UNKNOWN
        if listed:
            return Listed(tuple(dict.fromkeys(truncate_time(unit, value) for value in listed)))
        step, last = truncate_time(unit, ends[0]), truncate_time(unit, ends[1])
        if unit not in _SHORTEST_S or (last - step).total_seconds() / _SHORTEST_S[unit] > MOST_STEPS:
            return Bounded(step, last)
        steps: list[Value] = [step]
        while step < last:  # never past the last start, beyond which there may be no year
            step = next_step(unit, step)
            steps.append(step)
        return Listed(tuple(steps))

    return rule


def _times(domain: Domain) -> tuple[datetime, ...]:
    """The times of a finite set."""
    values = domain.values if isinstance(domain, Listed) else ()
    return tuple(as_datetime(v) for v in values if isinstance(v, date))


# --- arithmetic -----------------------------------------------------------------------------------------


def shifted(value: datetime, months: int, days: int, microseconds: int) -> datetime:
    """PostgreSQL's sum of a time and an interval: months first, the day held inside the month. Raises OverflowError."""
    year, month = divmod(value.year * 12 + value.month - 1 + months, 12)
    if not 1 <= year <= 9999:
        raise OverflowError(year)
    day = min(value.day, calendar.monthrange(year, month + 1)[1])
    return value.replace(year=year, month=month + 1, day=day) + timedelta(days=days, microseconds=microseconds)


def moved(sign: int) -> DomainRule:
    """A time plus or minus an interval. The last days of a month may meet, so months keep the order of days only."""

    def rule(arguments: Arguments) -> Domain:
        ends, span = time_range(arguments[0].domain), arguments[1].span
        if ends is None:
            return UNKNOWN
        first, last = ends
        if span.months:
            first, last = truncate_time("day", first), truncate_time("day", last) + _ALMOST_A_DAY
        try:
            return Bounded(*(shifted(e, sign * span.months, sign * span.days, sign * span.microseconds)
                             for e in (first, last)))  # fmt: skip
        except OverflowError:
            return UNKNOWN

    return rule


def moved_by_days(sign: int) -> DomainRule:
    """A date plus or minus a number of days."""

    def rule(arguments: Arguments) -> Domain:
        ends, days = time_range(arguments[0].domain), number_range(arguments[1].domain)
        if ends is None or days is None:
            return UNKNOWN
        least, most = sorted(sign * d for d in days)
        try:
            return Bounded((ends[0] + timedelta(days=least)).date(), (ends[1] + timedelta(days=most)).date())
        except OverflowError:
            return UNKNOWN

    return rule


def days_between(arguments: Arguments) -> Domain:
    """The days from the second date to the first."""
    end, start = time_range(arguments[0].domain), time_range(arguments[1].domain)
    if end is None or start is None:
        return UNKNOWN
    return Bounded((end[0] - start[1]).days, (end[1] - start[0]).days)


def formatted(arguments: Arguments) -> Domain:
    """Texts of a constant format, where they are the same for all years."""
    match arguments[1].domain:
        case Listed((str() as directives,)):
            texts = every_text(directives)
            return Listed(texts) if texts else UNKNOWN
        case _:
            return UNKNOWN


def to_date(arguments: Arguments) -> Domain:
    domain = arguments[0].domain
    if isinstance(domain, Listed) and all(isinstance(v, date) for v in domain.values):
        return Listed(tuple(dict.fromkeys(as_datetime(v).date() for v in domain.values if isinstance(v, date))))
    ends = time_range(domain)
    return UNKNOWN if ends is None else Bounded(ends[0].date(), ends[1].date())


def to_timestamp(arguments: Arguments) -> Domain:
    domain = arguments[0].domain
    if isinstance(domain, Listed) and all(isinstance(v, date) for v in domain.values):
        return Listed(tuple(as_datetime(v) for v in domain.values if isinstance(v, date)))
    ends = time_range(domain)
    return UNKNOWN if ends is None else Bounded(*ends)
