"""Which time zones may a query name, and what does a clock of one say where another says a known time?"""

from __future__ import annotations

import functools
import re
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from zoneinfo import ZoneInfo, available_timezones

from proxy.policy.model import Bounded, Domain, Listed
from proxy.sql.functions.domains.intervals import UNKNOWN, as_datetime, time_range
from proxy.sql.functions.domains.rules import Argument, Arguments

UNIVERSAL = "UTC"
_UNIVERSAL = ("UTC", "GMT")  # other names without a slash are abbreviations to PostgreSQL: CET is never summer time
_SAME = ("UTC", "GMT", "Etc/UTC", "Etc/GMT", "Etc/UCT", "Etc/Universal", "Etc/Zulu", "Zulu", "UCT", "Universal")
_HOURS = 48  # that are looked at beside a bound: no change of clocks reaches further


def zone_of(text: str) -> str:
    """A zone's name as both engines know it. ValueError for all others."""
    if text.upper() in _UNIVERSAL:
        return UNIVERSAL
    if "/" not in text or text not in _known():
        raise ValueError(text)
    return UNIVERSAL if text in _SAME else text


@functools.cache
def _known() -> frozenset[str]:
    return frozenset(available_timezones())


def clocks_of(name: str) -> tzinfo | None:
    """The clocks of a session by the name that PostgreSQL shows of its time zone; None where only it knows them."""
    plain = _OFFSET.fullmatch(name)
    if plain is not None:  # in POSIX's way, in which what lies east has a minus
        size = timedelta(hours=int(plain["hours"]), minutes=int(plain["minutes"] or 0))
        return timezone(size if plain["sign"] == "-" else -size)
    return ZoneInfo(name) if name in _known() else None


_OFFSET = re.compile(r"(?:<[+-][0-9:]+>|[A-Za-z]{3,6})(?P<sign>[+-]?)(?P<hours>[0-9]{1,2})(?::(?P<minutes>[0-9]{2}))?")


def instant_of(moment: datetime, zone: tzinfo) -> datetime:
    """When clocks show a time, as PostgreSQL has it.

    Where a clock is turned back the later time is meant, where it leaps the one before.
    """
    early, late = (moment.replace(tzinfo=zone, fold=fold) for fold in (0, 1))
    is_leap = (early.utcoffset() or timedelta()) < (late.utcoffset() or timedelta())
    return early if is_leap else late


def are_same(one: tzinfo | None, other: tzinfo | None) -> bool:
    """Whether clocks always show the same; those that are not known never do."""
    return one is not None and (one == other or _key(one) == _key(other))


def _key(zone: tzinfo | None) -> object:
    if isinstance(zone, timezone):
        return zone.utcoffset(None) or UNIVERSAL
    return name_of(zone)


def name_of(zone: tzinfo | None) -> str:
    """The name of the policy's zone."""
    key = zone.key if isinstance(zone, ZoneInfo) else UNIVERSAL
    return UNIVERSAL if key in _SAME else key


def shown(moment: datetime, here: str, there: str) -> datetime:
    """What clocks show there when they show `moment` here. Raises OverflowError."""
    instant = instant_of(moment, ZoneInfo(here)).astimezone(UTC)
    return instant.astimezone(ZoneInfo(there)).replace(tzinfo=None)


def moved_to_zone(arguments: Arguments) -> Domain:
    """Times of known bounds on the clocks of another zone."""
    domain, here, there = arguments[0].domain, _name(arguments[1]), _name(arguments[2])
    ends = time_range(domain)
    if ends is None or not here or not there:
        return UNKNOWN
    try:
        if isinstance(domain, Listed):
            moments = (as_datetime(v) for v in domain.values if isinstance(v, datetime))
            found = tuple(dict.fromkeys(shown(m, here, there) for m in moments))
            return Listed(found) if len(found) == len(domain.values) else UNKNOWN
        return Bounded(_first(ends[0], here, there), _last(ends[1], here, there))
    except OverflowError:
        return UNKNOWN


def _name(argument: Argument) -> str:
    match argument.domain:
        case Listed((str() as name,)):
            return name
        case _:
            return ""


def _first(end: datetime, here: str, there: str) -> datetime:
    """Nothing after `end` here is earlier there."""
    beside = (end + timedelta(hours=n) for n in range(_HOURS + 1))
    return min(end + (shown(m, here, there) - m) for m in beside)


def _last(end: datetime, here: str, there: str) -> datetime:
    beside = (end - timedelta(hours=n) for n in range(_HOURS + 1))
    return max(end + (shown(m, here, there) - m) for m in beside)
