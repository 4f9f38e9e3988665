"""Which values do ages have, if the times they lie between are in known domains?

The claim of `time_rules` holds here too.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from proxy.policy.model import Bounded, Domain
from proxy.sql.functions.domains.intervals import UNKNOWN, time_range
from proxy.sql.functions.domains.rules import Arguments, DomainRule

_DAY = 86_400_000_000
_MONTH = 30 * _DAY  # where intervals are compared
_LONGEST_REST = 31 * _DAY
_MICROSECOND = timedelta(microseconds=1)
#: The largest value of each field; a year has none.
FIELDS = {"month": 11, "day": 30, "hour": 23, "minute": 59, "microseconds": 59_999_999}


def months_between(end: datetime, start: datetime) -> int:
    """Whole months of age(end, start): the last counts once its day and time of day are reached."""
    if end < start:
        return -months_between(start, end)
    months = (end.year - start.year) * 12 + end.month - start.month
    return months - (_passed(end) < _passed(start))


def _passed(moment: datetime) -> tuple[int, int]:
    """How much of its month is over."""
    return moment.day, (moment - moment.replace(hour=0, minute=0, second=0, microsecond=0)) // _MICROSECOND


def _months(arguments: Arguments) -> tuple[int, int, bool] | None:
    """Fewest and most months, later ends and earlier starts making more of them; and whether none are below zero."""
    end, start = time_range(arguments[0].domain), time_range(arguments[1].domain)
    if end is None or start is None:
        return None
    return months_between(end[0], start[1]), months_between(end[1], start[0]), end[0] >= start[1]


def compared(arguments: Arguments) -> Domain:
    """Microseconds, in months of thirty days and what is left, which is less than 31 days."""
    found = _months(arguments)
    if found is None:
        return UNKNOWN
    fewest, most, is_forward = found
    return Bounded(fewest * _MONTH - (0 if is_forward else _LONGEST_REST), most * _MONTH + _LONGEST_REST)


def _whole_years(months: int) -> int:
    """Rounded toward zero."""
    return months // 12 if months >= 0 else -(-months // 12)


def field(name: str) -> DomainRule:
    """A field of an age, which has the sign of the whole; microseconds include the seconds."""

    def rule(arguments: Arguments) -> Domain:
        found = _months(arguments)
        if found is None:
            return UNKNOWN
        fewest, most, is_forward = found
        if name == "year":
            return Bounded(_whole_years(fewest), _whole_years(most))
        return Bounded(0 if is_forward else -FIELDS[name], FIELDS[name])

    return rule
