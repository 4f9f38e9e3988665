"""To which calendar window does a day belong, when does the window end, and how many of them has a year?

Days are counted in UTC, by `date.toordinal`. Windows turn at midnight UTC, weeks on Monday.
"""

from __future__ import annotations

from datetime import UTC, date, datetime, time
from typing import assert_never

from proxy.policy.model import Refresh

LONGEST_DAYS = 31


def day_of(at: datetime) -> int:
    """The number of the day in UTC. `at` has a time zone."""
    return at.astimezone(UTC).date().toordinal()


def first_day(refresh: Refresh, day: int) -> int:
    """The first day of the window that holds `day`; 0, before every day, for a lifetime."""
    match refresh:
        case Refresh.LIFETIME:
            return 0
        case Refresh.DAY:
            return day
        case Refresh.WEEK:
            return day - date.fromordinal(day).weekday()
        case Refresh.MONTH:
            return date.fromordinal(day).replace(day=1).toordinal()
        case _ as never:
            assert_never(never)


def window_end(refresh: Refresh, day: int) -> datetime:
    """When the window that holds `day` is over. ValueError for a lifetime, which has no end."""
    first = first_day(refresh, day)
    match refresh:
        case Refresh.LIFETIME:
            raise ValueError("a lifetime has no end")
        case Refresh.DAY:
            return _midnight(first + 1)
        case Refresh.WEEK:
            return _midnight(first + 7)
        case Refresh.MONTH:
            return _midnight(first_day(refresh, first + LONGEST_DAYS))
        case _ as never:
            assert_never(never)


def _midnight(day: int) -> datetime:
    return datetime.combine(date.fromordinal(day), time(), UTC)


def most_in_a_year(refresh: Refresh) -> int:
    """The most windows that a calendar year touches."""
    return {Refresh.LIFETIME: 1, Refresh.DAY: 366, Refresh.WEEK: 54, Refresh.MONTH: 12}[refresh]
