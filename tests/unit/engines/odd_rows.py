"""The rows of the shop with what engines easily take differently: twins of texts, edges of types and calendars."""

from __future__ import annotations

import math
from collections.abc import Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from itertools import cycle

from tests.e2e.shop_data import rows_of_tables

Row = tuple[object, ...]

_TEXTS = (
    "Basel", "basel", "BASEL", "Basel ", " Basel", "Ba\u0308sel", "B\u00e4sel", "stra\u00dfe", "STRASSE", "\u0130", "i",
    "", " ", "%", "_", "\\", "it's", "a\tb", "Z\u00fcrich", "Zu\u0308rich", "10", "-0", "2024-02-30", "free", "Free",
    "pro", "paid", "refunded", "c1", "\U0001f600", "north", "new york", None,
)  # fmt: skip
_DAYS = (
    date(1970, 1, 1), date(1969, 12, 31), date(2024, 2, 29), date(2023, 12, 31), date(2024, 12, 30), date(1900, 3, 1),
    date(1582, 10, 10), date(2000, 2, 29), date(2100, 2, 28), date(1, 1, 1), date(9999, 12, 31), None,
)  # fmt: skip
_TIMES = (
    datetime(2024, 3, 31, 0, 59, 59, 999_999), datetime(2024, 3, 31, 1), datetime(2024, 10, 27, 0, 30),
    datetime(2024, 10, 27, 1, 30), datetime(1969, 12, 31, 23, 59, 59, 999_999), datetime(2024, 2, 29, 12, 0, 0, 1),
    datetime(2024, 12, 31, 23, 59, 59), datetime(1900, 1, 1), datetime(2024, 5, 5, 5, 5, 5, 500_000),
    datetime(1, 1, 1), datetime(9999, 12, 31, 23, 59, 59, 999_999), None,
)  # fmt: skip
_FLOATS = (
    0.0, -0.0, 0.1, 0.30000000000000004, -49.5, 49.95, 2.5, -2.5, 3.5, 0.5, 1e15, 9007199254740993.0, -1e-7, 1e-9,
    100.0, 1234567.891, math.nan, 1e300, -1e300, 5e-324, 1e-200, math.inf, -math.inf, None,
)  # fmt: skip
_CENTS = (0, 1, -1, 250, -250, 999_999_999_999, -999_999_999_999, 10_000, 30, 4995)
_DECIMALS = (*(Decimal(cents) / 100 for cents in _CENTS), None)
_REALS = (1.5, 0.1, -0.0, 1.0, 2.0, 1.9921875, None)
_INTEGERS = (0, 1, -1, 2**31 - 1, -(2**31), 18, 30, 77, None)
_SMALL = (0, 1, 3, -1, 32767, -32768, None)
_BIG = (0, 1, -1, 10**7, 2**53 + 1, 2**62, -(2**62), None)
_BOOLEANS = (True, False, None)

#: Values for each column by table; columns that are not named keep what tells rows and units apart.
_ODD: dict[str, dict[int, tuple[object, ...]]] = {
    "users": {
        1: _INTEGERS, 2: _TEXTS, 3: _TEXTS[-10:], 4: _BOOLEANS, 5: _DAYS, 6: _FLOATS, 7: _DECIMALS,
        8: tuple(t and t.replace(tzinfo=UTC) for t in _TIMES), 9: _TEXTS, 10: _TEXTS, 11: _SMALL, 12: _BIG, 13: _REALS,
    },
    "orders": {2: (1, 2, 3, 4, 5, None), 3: _DECIMALS, 4: _TEXTS[-10:], 5: _TIMES, 6: _TEXTS},
    "items": {1: _INTEGERS, 2: ("books", "Books", "music", "tools ", None), 3: _INTEGERS, 4: _FLOATS},
    '"Odd ""Table"': {1: _INTEGERS, 2: _TEXTS},
}  # fmt: skip


def odd_rows() -> Iterator[tuple[str, Iterator[Row]]]:
    """Tables and rows. Some orders are nobody's, and one unit has a tenth of them."""
    for table, rows in rows_of_tables():
        yield table, _replaced(table, rows)


def _replaced(table: str, rows: Iterator[Row]) -> Iterator[Row]:
    values = {place: cycle(_of_own_length(found, place)) for place, found in _ODD.get(table, {}).items()}
    for number, row in enumerate(rows):
        cells = [next(values[place]) if place in values else cell for place, cell in enumerate(row)]
        if table == "orders":
            cells[1] = None if number % 50 == 0 else 7 if number % 10 == 0 else cells[1]
        yield tuple(cells)


def _of_own_length(values: tuple[object, ...], place: int) -> tuple[object, ...]:
    """So that each value of a column meets each of another's."""
    return values + values[: place % 4]
