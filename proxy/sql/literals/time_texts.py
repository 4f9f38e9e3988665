"""Which fields and which text has a known time?

Said as the engine says them, whatever the platform's own strftime does: fields of EXTRACT, and to_char's directives.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import datetime
from itertools import product
from types import MappingProxyType

MONTHS = ("January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
          "December")  # fmt: skip
DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_DIRECTIVE = re.compile(r"%(-?[A-Za-z%])")
_MOST_TEXTS = 10_000

_FIELDS: Mapping[str, Callable[[datetime], int]] = MappingProxyType({
    "year": lambda t: t.year, "month": lambda t: t.month, "day": lambda t: t.day, "hour": lambda t: t.hour,
    "minute": lambda t: t.minute, "quarter": lambda t: (t.month + 2) // 3, "isoyear": lambda t: t.isocalendar().year,
    "week": lambda t: t.isocalendar().week, "isodow": lambda t: t.isoweekday(), "dow": lambda t: t.isoweekday() % 7,
    "doy": lambda t: t.timetuple().tm_yday, "decade": lambda t: t.year // 10, "century": lambda t: (t.year + 99) // 100,
    "millennium": lambda t: (t.year + 999) // 1000, "microseconds": lambda t: t.second * 1_000_000 + t.microsecond,
})  # fmt: skip

_SPELLED: Mapping[str, Callable[[datetime], str]] = MappingProxyType({
    "%": lambda _: "%", "Y": lambda t: f"{t.year:04}", "G": lambda t: f"{t.isocalendar().year:04}",
    "y": lambda t: f"{t.year % 100:02}", "m": lambda t: f"{t.month:02}", "-m": lambda t: str(t.month),
    "d": lambda t: f"{t.day:02}", "-d": lambda t: str(t.day), "j": lambda t: f"{_FIELDS['doy'](t):03}",
    "u": lambda t: str(t.isoweekday()), "V": lambda t: f"{t.isocalendar().week:02}", "H": lambda t: f"{t.hour:02}",
    "-H": lambda t: str(t.hour), "I": lambda t: f"{_half(t):02}", "-I": lambda t: str(_half(t)),
    "M": lambda t: f"{t.minute:02}", "-M": lambda t: str(t.minute), "S": lambda t: f"{t.second:02}",
    "-S": lambda t: str(t.second), "g": lambda t: f"{t.microsecond // 1000:03}", "f": lambda t: f"{t.microsecond:06}",
    "B": lambda t: MONTHS[t.month - 1], "b": lambda t: MONTHS[t.month - 1][:3],
    "A": lambda t: DAYS[t.weekday()], "a": lambda t: DAYS[t.weekday()][:3],
    "p": lambda t: "AM" if t.hour < 12 else "PM",
})  # fmt: skip

# times between which each directive takes all its values, where they do not depend on the year
_LEAP = tuple(datetime(2024, month, 1) for month in range(1, 13))
_HOURS = tuple(datetime(2024, 1, 1, hour) for hour in range(24))
_SIXTY = tuple(datetime(2024, 1, 1, 0, n, n) for n in range(60))
_WEEK = tuple(datetime(2024, 1, 1 + day) for day in range(7))
_ALL_OF: Mapping[str, tuple[datetime, ...]] = MappingProxyType({
    **dict.fromkeys(("m", "-m", "B", "b"), _LEAP), **dict.fromkeys(("H", "-H", "I", "-I", "p"), _HOURS),
    **dict.fromkeys(("M", "-M", "S", "-S"), _SIXTY), **dict.fromkeys(("u", "A", "a"), _WEEK),
    **dict.fromkeys(("d", "-d"), tuple(datetime(2024, 1, 1 + day) for day in range(31))),
})  # fmt: skip
_INDEPENDENT = (frozenset("HMS"), frozenset(("-H", "M", "S")))


def field_of(name: str, moment: datetime) -> int:
    return _FIELDS[name](moment)


def _half(moment: datetime) -> int:
    """The hour on a clock of twelve."""
    return (moment.hour + 11) % 12 + 1


def spell(moment: datetime, directives: str) -> str:
    """strftime, but years have four digits and names are English everywhere."""
    return _DIRECTIVE.sub(lambda found: _SPELLED[found[1]](moment), directives)


def _filled(directives: str, texts: Mapping[str, str]) -> str:
    return _DIRECTIVE.sub(lambda found: texts[found[1]], directives)


def every_text(directives: str) -> tuple[str, ...]:
    """All texts that the directives can give, if they are few: one field that comes again, or parts of the day."""
    read = tuple(dict.fromkeys(d for d in _DIRECTIVE.findall(directives) if d != "%"))
    is_known = all(d in _ALL_OF for d in read)
    if not is_known or (len(read) > 1 and not any(frozenset(read) <= s for s in _INDEPENDENT)):
        return ()
    found = []
    for moments in product(*(_ALL_OF[d] for d in read)):
        texts = {d: _SPELLED[d](moment) for d, moment in zip(read, moments, strict=True)}
        found.append(_filled(directives, {**texts, "%": "%"}))
        if len(found) > _MOST_TEXTS:
            return ()
    return tuple(dict.fromkeys(found))
