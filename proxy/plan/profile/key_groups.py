"""Into which groups does a key put the values of each cell of a column?

A forecast, which decides about accuracy alone: the key's value is worked out for a few values of each cell.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from functools import lru_cache
from itertools import pairwise

import numpy as np

from proxy.analysis.evaluate import MISSING, Choice, choices
from proxy.plan.parts.cells import Cells, place_of
from proxy.plan.profile.profile import Doubles
from proxy.sql.algebra.nodes import ColumnRef, Scalar, children
from proxy.sqltypes import Value

_POINTS = 3  # of each range
_MORE = 32  # of one range, whose groups are more than points
_GOLDEN = 0.6180339887498949  # of an even sequence that keeps step with no calendar
_MOST_PARTS = 30  # of a key that is worked out


@dataclass(frozen=True, slots=True)
class CellGroups:
    """Of the cells of a column.

    shares: of each cell, by row, what is in each group, by column. within: by cell, the chance of two of its values to
    be in one group, where values are spread evenly.
    """

    shares: Doubles
    within: Doubles


@lru_cache(maxsize=256)
def groups_of_cells(key: Scalar, column: ColumnRef, cells: Cells) -> CellGroups | None:
    """None where that cannot be told. The key is of this column alone."""
    if _parts(key) > _MOST_PARTS:
        return None
    of: dict[Choice, int] = {}
    found = []
    for values in _points(cells):
        groups = _groups(key, column, values)
        if groups is None:
            return None
        found.append([of.setdefault(g, len(of)) for g in groups])
    shares = np.zeros((len(found), len(of)))
    for cell, places in enumerate(found):
        np.add.at(shares[cell], places, 1.0 / len(places))
    within = (shares * shares).sum(axis=1)
    all_differ = np.array([len(places) > 1 and len(set(places)) == len(places) for places in found])
    if all_differ.any():
        within[all_differ] = min(1.0 / _POINTS, _finer(key, column, cells))
    return CellGroups(shares, within)


def _finer(key: Scalar, column: ColumnRef, cells: Cells) -> float:
    """The chance within a range in the middle, by more of its values."""
    middle = (len(cells.ends) - 1) // 2
    groups = _groups(key, column, _spread(cells.ends[middle], cells.ends[middle + 1], _MORE, 0.5))
    return 1.0 if groups is None else sum((n / _MORE) ** 2 for n in Counter(groups).values())


def _groups(key: Scalar, column: ColumnRef, values: Sequence[Choice]) -> list[Choice] | None:
    found = [choices(key, {column: value}) for value in values]
    return None if any(len(g) != 1 for g in found) else [g for (g,) in found]


def _parts(scalar: Scalar) -> int:
    return 1 + sum(map(_parts, children(scalar)))


def _points(cells: Cells) -> Iterator[tuple[Choice, ...]]:
    """Values of each cell, spread over it."""
    yield (MISSING,)
    yield from ((value,) for value in cells.values)
    for number, (low, high) in enumerate(pairwise(cells.ends)):
        yield _spread(low, high, _POINTS, number * _GOLDEN % 1.0)


def _spread(low: Value, high: Value, number: int, start: float) -> tuple[Value, ...]:
    """So many values of a range, each in a part of its own. start: where in its part, as a share of it."""
    return tuple(_between(low, high, (k + (start + k * _GOLDEN) % 1.0) / number) for k in range(number))


def _between(low: Value, high: Value, part: float) -> Value:
    """Above the lower end: a range holds its upper one."""
    match low, high:
        case datetime(), datetime():
            return high - timedelta(seconds=int((high - low).total_seconds() * part))
        case date(), date():
            return high - timedelta(days=int((high - low).days * part))
        case _:
            return place_of(high) - (place_of(high) - place_of(low)) * part
