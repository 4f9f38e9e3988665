"""What does a column's name say that everybody knows: between which numbers do ages, hours or latitudes lie?

From the name alone, never from rows. A guess is written down as one, and the administrator judges it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from proxy.engines.described import FoundColumn
from proxy.sqltypes import SqlType

_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")


@dataclass(frozen=True, slots=True)
class Guess:
    """low, high: as a policy writes them. what: the kind of number, for people. type: of a column of texts of CSV."""

    low: str
    high: str
    what: str
    type: SqlType


@dataclass(frozen=True, slots=True)
class NoGuess:
    """The name says nothing."""


_INTEGERS = (
    ({"age"}, "0", "120", "an age"),
    ({"year", "yr"}, "1850", "2050", "a year"),
    ({"month"}, "1", "12", "a month"),
    ({"quarter"}, "1", "4", "a quarter"),
    ({"week"}, "1", "53", "a week"),
    ({"weekday", "dow"}, "0", "7", "a day of the week"),
    ({"day"}, "1", "31", "a day of the month"),
    ({"hour"}, "0", "24", "an hour"),
    ({"stars", "rating"}, "0", "10", "a rating"),
)
_FRACTIONS = (
    ({"percent", "pct", "percentage"}, "0", "100", "a percentage"),
    ({"latitude", "lat"}, "-90", "90", "a latitude"),
    ({"longitude", "lon", "lng", "long"}, "-180", "180", "a longitude"),
    ({"weight"}, "0", "500", "a weight"),
    ({"height"}, "0", "300", "a height"),
)
_BIRTHS = {"birth", "born", "birthday", "birthdate", "dob"}
_CATEGORIES = frozenset(
    (
        *("bats", "carrier", "category", "city", "class", "colour", "color", "country", "county", "currency"),
        *("department", "dept", "dest", "destination", "gender", "genre", "hand", "kind", "language", "league", "lg"),
        *("nationality", "occupation", "origin", "plan", "position", "race", "region", "sex", "sort", "state"),
        *("status", "team", "throws", "type"),
    )
)


def guess_of(column: FoundColumn) -> Guess | NoGuess:
    """Bounds that the name tells, as far as the type is one of numbers or times."""
    parts = _parts(column)
    last = parts[-1:] if parts[-1:] != ["id"] else parts[-2:-1]
    if isinstance(column.type, SqlType) and column.type.is_time:
        return Guess("1900-01-01", "2035-12-31", "a birth", column.type) if set(parts) & _BIRTHS else NoGuess()
    if not (column.is_untyped or (isinstance(column.type, SqlType) and column.type.is_number)):
        return NoGuess()
    for rules, kind in ((_INTEGERS, SqlType.INT4), (_FRACTIONS, SqlType.FLOAT8)):
        for words, low, high, what in rules:
            if words.intersection(last):
                return Guess(low, high, what, kind if column.is_untyped else _own(column))
    return NoGuess()


def is_category(column: FoundColumn) -> bool:
    """Whether a text seems to say of which category a row is, as a country or a status, rather than who somebody is."""
    return bool(_CATEGORIES.intersection(_parts(column)))


def _own(column: FoundColumn) -> SqlType:
    assert isinstance(column.type, SqlType)
    return column.type


def _parts(column: FoundColumn) -> list[str]:
    return [part.lower() for part in _PART.findall(column.called or column.name)]
