"""Which unit of time does a word of date_trunc or EXTRACT name?"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

_WORDS = {
    "microseconds": "microsecond us usec usecs usecond useconds",
    "milliseconds": "millisecond ms msec msecs msecond mseconds",
    "second": "s sec secs seconds",
    "minute": "m min mins minutes",
    "hour": "h hr hrs hours",
    "day": "d days",
    "week": "w weeks",
    "month": "mon mons months",
    "quarter": "qtr",
    "year": "y yr yrs years",
    "decade": "dec decs decades",
    "century": "c cent centuries",
    "millennium": "mil mils millennia",
}
_UNITS: Mapping[str, str] = MappingProxyType({word: unit for unit, words in _WORDS.items() for word in words.split()})


def unit_of(word: str) -> str:
    """The unit in the word that the function table has for it; a word that is no unit as it is."""
    plain = word.lower()
    return _UNITS.get(plain, plain)
