"""Into which public cells are the values of a column put, when it is counted which share of a unit's rows they have?

Never the most frequent values: cells follow from what the policy says of the column alone.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from functools import lru_cache
from itertools import pairwise

from proxy.policy.figures import figure
from proxy.policy.model import Bounded, Column, Listed
from proxy.sql.functions.domains.intervals import as_datetime, number_range, time_range
from proxy.sqltypes import SqlType, Value

MOST_CELLS = 64
_OCTAVES = 16  # from the farther end of a range down to the one nearest to 0
_EPOCH = datetime(1970, 1, 1)
_EVEN = 256  # whole numbers of a range no wider than this are cut evenly


@dataclass(frozen=True, slots=True)
class Cells:
    """Cell 0 holds NULL, and what no other cell holds.

    values: those that have a cell each, from 1 on. ends: or ranges, of which cell k holds what is above the end before
    it, up to its own; the first its lower end too.
    """

    values: tuple[Value, ...] = ()
    ends: tuple[Value, ...] = ()

    @property
    def number(self) -> int:
        """How many there are, cell 0 included."""
        return 1 + (len(self.values) if self.values else max(0, len(self.ends) - 1))

    @property
    def are_told(self) -> bool:
        """Whether the policy says enough of the column."""
        return self.number > 1

    def words(self, cell: int) -> str:
        """A cell for people."""
        if not cell:
            return "NULL or other"
        return _word(self.values[cell - 1]) if self.values else f"up to {_word(self.ends[cell])}"

    def middles(self) -> Iterator[Value]:
        """A value in each range."""
        for low, high in pairwise(self.ends):
            match low, high:
                case datetime(), datetime():
                    yield low + (high - low) / 2
                case date(), date():
                    yield low + (high - low + timedelta(days=1)) // 2
                case _:
                    yield (place_of(low) + place_of(high)) / 2.0

    def sizes(self) -> Iterator[float]:
        """About the size of the numbers in each cell; 0 for what are none."""
        yield 0.0
        for value in self.values or self.middles():
            yield abs(float(value)) if isinstance(value, (int, float, Decimal)) else 0.0


def _word(value: Value) -> str:
    return figure(value, 3) if isinstance(value, float) else str(value)


@lru_cache(maxsize=1024)
def cells_of(column: Column) -> Cells:
    """The cells of a column: a function of its type and what the policy says of its values."""
    match column.domain:
        case _ if column.type is SqlType.BOOL:
            return Cells(values=(False, True))
        case Listed(values) if len(values) <= MOST_CELLS:
            return Cells(values=values)
        case Bounded(int() as lo, int() as hi) if column.type.is_integer and 0 <= hi - lo < MOST_CELLS:
            return Cells(values=tuple(range(lo, hi + 1)))
        case Bounded() as domain:
            numbers = number_range(domain)
            if numbers is None:
                return Cells(ends=_ends_of_times(domain, column.type))
            is_range = numbers[0] < numbers[1]
            return Cells(ends=tuple(number_ends(*numbers, is_whole=column.type.is_integer)) if is_range else ())
        case _:
            return Cells()


def number_ends(lo: float, hi: float, *, is_whole: bool) -> Iterator[float]:
    """The ends of cells of a range of numbers, the lowest first.

    Even ones; or by equal factors to both sides of 0 where a range is wide: sizes are seldom spread evenly.
    """
    if lo > 0 or hi < 0 or (is_whole and hi - lo <= _EVEN):
        yield from (lo + (hi - lo) * k / MOST_CELLS for k in range(MOST_CELLS))
        yield hi
        return
    each = MOST_CELLS // ((lo < 0) + (hi > 0))
    parts = [2.0 ** (-_OCTAVES * k / each) for k in range(each)]
    yield from (lo * part for part in parts if lo < 0)
    yield 0.0
    yield from (hi * part for part in reversed(parts) if hi > 0)


def _time_ends(lo: datetime, hi: datetime, *, is_date: bool) -> Iterator[date]:
    """Even ones: whole days of dates, whole seconds of other times."""
    if is_date:
        days = (hi - lo).days
        yield from dict.fromkeys(lo.date() + timedelta(days=days * k // MOST_CELLS) for k in range(MOST_CELLS + 1))
        return
    whole = int((hi - lo).total_seconds())
    starts = (lo + timedelta(seconds=whole * k // MOST_CELLS) for k in range(MOST_CELLS))
    yield from dict.fromkeys((*starts, hi))


def place_of(value: Value) -> float:
    """Where a number or time lies on the line that ranges cut."""
    if isinstance(value, date):
        moment = value.astimezone(UTC) if isinstance(value, datetime) and value.tzinfo is not None else value
        return (as_datetime(moment) - _EPOCH).total_seconds()
    return math.nan if isinstance(value, str) else float(value)


def _ends_of_times(of: Bounded, kind: SqlType) -> tuple[Value, ...]:
    """Ends of instants are instants."""
    if kind is not SqlType.TIMESTAMPTZ:
        times = time_range(of)
        return (
            tuple(_time_ends(*times, is_date=kind is SqlType.DATE)) if times is not None and times[0] < times[1] else ()
        )
    ends = [v.astimezone(UTC) for v in (of.lo, of.hi) if isinstance(v, datetime) and v.tzinfo is not None]
    if len(ends) < 2 or ends[0] >= ends[1]:
        return ()
    return tuple(_time_ends(ends[0], ends[1], is_date=False))
