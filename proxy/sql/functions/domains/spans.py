"""Which values do differences, multiples and bins of times have, if the times lie in known domains?

The claim of `time_rules` holds here too.
"""

from __future__ import annotations

from datetime import date, datetime, timedelta

from proxy.policy.model import Bounded, Domain, Listed
from proxy.sql.functions.domains.intervals import UNKNOWN, as_datetime, number_range, time_range
from proxy.sql.functions.domains.rules import Arguments, DomainRule
from proxy.sql.functions.domains.times import MOST_STEPS, shifted, truncate_time
from proxy.sqltypes import Value

_EPOCH = datetime(1970, 1, 1)
_MICROSECOND = timedelta(microseconds=1)
_ALMOST_A_DAY = timedelta(days=1, microseconds=-1)


def between(arguments: Arguments) -> Domain:
    """Microseconds from the second time to the first."""
    end, start = time_range(arguments[0].domain), time_range(arguments[1].domain)
    if end is None or start is None:
        return UNKNOWN
    return Bounded((end[0] - start[1]) // _MICROSECOND, (end[1] - start[0]) // _MICROSECOND)


def times_of_day(_: Arguments) -> Domain:
    """Microseconds since midnight."""
    return Bounded(0, 86_399_999_999)


def moved_often(sign: int) -> DomainRule:
    """A time plus or minus so many intervals."""

    def rule(arguments: Arguments) -> Domain:
        ends, span, numbers = time_range(arguments[0].domain), arguments[1].span, number_range(arguments[2].domain)
        if ends is None or numbers is None:
            return UNKNOWN
        first, last = ends
        if span.months:
            first, last = truncate_time("day", first), truncate_time("day", last) + _ALMOST_A_DAY
        try:
            found = [
                shifted(end, *(sign * int(n) * part for part in (span.months, span.days, span.microseconds)))
                for end in (first, last) for n in numbers
            ]  # fmt: skip
        except OverflowError:
            return UNKNOWN
        return Bounded(min(found), max(found)) if _is_one_way(span.months, span.days, span.microseconds) else UNKNOWN

    return rule


def _is_one_way(*parts: int) -> bool:
    """Whether more of an interval always lead further in one direction."""
    return all(p >= 0 for p in parts) or all(p <= 0 for p in parts)


def binned(moment: datetime, stride: int, origin: datetime) -> datetime:
    """PostgreSQL's date_bin for one timestamp. Raises OverflowError."""
    step = timedelta(microseconds=stride)
    return origin + (moment - origin) // step * step


def bins(arguments: Arguments) -> Domain:
    """All starts of bins between the bounds, when they are few enough for public groups."""
    ends, stride, origin = time_range(arguments[0].domain), arguments[1].domain, arguments[2].domain
    match stride, origin:
        case Listed((int() as size,)), Listed((date() as start,)) if ends is not None:
            try:
                first, last = (binned(end, size, as_datetime(start)) for end in ends)
            except OverflowError:
                return UNKNOWN
            step = timedelta(microseconds=size)
            count = (last - first) // step
            if count > MOST_STEPS:
                return Bounded(first, last)
            steps: tuple[Value, ...] = tuple(first + step * n for n in range(count + 1))
            return Listed(steps)
        case _:
            return UNKNOWN


def made_dates(arguments: Arguments) -> Domain:
    """Days of known years."""
    years = number_range(arguments[0].domain)
    if years is None or years[1] < 1 or years[0] > 9999:
        return UNKNOWN
    return Bounded(date(max(int(years[0]), 1), 1, 1), date(min(int(years[1]), 9999), 12, 31))


def after_seconds(arguments: Arguments) -> Domain:
    """Times so many seconds after 1970 began."""
    ends = number_range(arguments[0].domain)
    try:
        return UNKNOWN if ends is None else Bounded(*(_EPOCH + timedelta(seconds=end) for end in ends))
    except OverflowError:
        return UNKNOWN
