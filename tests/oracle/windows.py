"""What is a window function over the rows of one unit, by definition?"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from functools import cmp_to_key

from proxy.policy.model import Column
from proxy.sql.algebra.nodes import (
    Beside,
    Block,
    ColumnRef,
    JoinKind,
    Neighbour,
    Place,
    Placed,
    UnitValue,
    WindowFrame,
    WindowValue,
)
from tests.oracle.per_unit import inner_key, unit_value
from tests.oracle.scalars import Evaluator, Reading, Row
from tests.oracle.values import Stored, order

Compare = Callable[[Row, Row], int]


def window_values(
    window: WindowValue, column: Column, block: Block, rows: Sequence[Row], evaluator: Evaluator
) -> Iterator[Stored]:
    """The window's value for each row, in the rows' order."""
    parts: dict[tuple[Stored, ...], list[int]] = {}
    for number, row in enumerate(rows):
        further = [inner_key(evaluator.value(p, row, Reading.KEY), p) for p in window.partition]
        parts.setdefault((*(row[c.scan, c.name] for c in window.unit), *further), []).append(number)
    found: dict[int, Stored] = {}
    compare = _in_order(window, evaluator)
    for numbers in parts.values():
        placed = sorted(numbers, key=cmp_to_key(_by_row(rows, _with_ties(compare, block))))
        for place, number in enumerate(placed):
            found[number] = _value(window, column, [rows[n] for n in placed], place, compare, evaluator)
    yield from (found[n] for n in range(len(rows)))


def _by_row(rows: Sequence[Row], compare: Compare) -> Callable[[int, int], int]:
    return lambda left, right: compare(rows[left], rows[right])


def _in_order(window: WindowValue, evaluator: Evaluator) -> Compare:
    """By the ORDER BY alone: 0 for rows that it calls equal."""

    def compare(left: Row, right: Row) -> int:
        for ordered in window.order:
            a, b = (evaluator.value(ordered.scalar, row, Reading.KEY) for row in (left, right))
            if a is None or b is None:
                found = ((a is None) - (b is None)) * (-1 if ordered.is_null_first else 1)
            else:
                found = order(a, b) * (-1 if ordered.is_descending else 1)
            if found:
                return found
        return 0

    return compare


def _with_ties(compare: Compare, block: Block) -> Compare:
    """The same, with every column of the rows behind it."""
    scans = (*block.scans, *(s for j in block.joins if j.kind is JoinKind.LEFT for s in j.scans))
    columns = [(s.number, c.name) for s in scans for c in s.table.columns]

    def whole(left: Row, right: Row) -> int:
        found = compare(left, right)
        for column in columns:
            found = found or _stored_order(left[column], right[column])
        return found

    return whole


def _stored_order(left: Stored, right: Stored) -> int:
    if left is None or right is None:
        return (left is None) - (right is None)
    if isinstance(left, (str, float)) or isinstance(right, (str, float)):
        return order(left, right)  # type: ignore[arg-type]  # one column, one type
    return (left > right) - (left < right)


def _value(
    window: WindowValue, column: Column, placed: list[Row], place: int, compare: Compare, evaluator: Evaluator
) -> Stored:
    match window.of:
        case Placed(kind):
            return min(_place(kind, placed, place, compare), window.most)
        case Beside(neighbour, argument, distance):
            first, last = _ends(window, place, len(placed))
            other = {Neighbour.LAG: place - distance, Neighbour.LEAD: place + distance, Neighbour.FIRST_VALUE: first,
                     Neighbour.LAST_VALUE: last, Neighbour.NTH_VALUE: first + distance - 1}[neighbour]  # fmt: skip
            is_framed = neighbour not in (Neighbour.LAG, Neighbour.LEAD)
            if not 0 <= other < len(placed) or (is_framed and not first <= other <= last):
                return None
            if isinstance(argument, ColumnRef):
                return placed[other][argument.scan, argument.name]
            return evaluator.value(argument, placed[other], Reading.MEASURE)
        case UnitValue() as value:
            if isinstance(window.frame, WindowFrame) and window.frame.by_peers:
                frame = _groups(window.frame, placed, place, compare)
            elif isinstance(window.frame, WindowFrame):
                first, last = _ends(window, place, len(placed))
                frame = placed[first : max(last + 1, 0)]
            else:
                frame = [row for row in placed if not window.order or compare(row, placed[place]) <= 0]
            return unit_value(value, column, frame, evaluator)


def _groups(frame: WindowFrame, placed: list[Row], place: int, compare: Compare) -> list[Row]:
    """Rows of the groups around that of the row: equal rows are in one."""
    group = [0]
    for before, row in itertools.pairwise(placed):
        group.append(group[-1] + (compare(before, row) != 0))
    first = -len(placed) if frame.start is None else frame.start
    last = len(placed) if frame.end is None else frame.end
    return [row for row, number in zip(placed, group, strict=True) if first <= number - group[place] <= last]


def _ends(window: WindowValue, place: int, count: int) -> tuple[int, int]:
    """The places of the first and last row of a frame; without one, of all rows up to this one."""
    frame = window.frame if isinstance(window.frame, WindowFrame) else WindowFrame(None, 0)
    first = 0 if frame.start is None else max(place + frame.start, 0)
    last = count - 1 if frame.end is None else min(place + frame.end, count - 1)
    return first, last


def _place(kind: Place, placed: list[Row], place: int, compare: Compare) -> int:
    if kind is Place.ROW_NUMBER:
        return place + 1
    before = [row for row in placed if compare(row, placed[place]) < 0]
    if kind is Place.RANK:
        return len(before) + 1
    return 1 + sum(1 for i, row in enumerate(before) if i == 0 or compare(before[i - 1], row) < 0)
