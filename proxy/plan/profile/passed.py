"""Which share of the values of each cell of a column passes a condition?

A forecast, which decides about accuracy alone. Within a cell of a range values are taken to be spread evenly; where the
condition is not understood cell by cell, its answer for a value in the middle counts for all.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from datetime import date, datetime
from decimal import Decimal

import numpy as np

from proxy.analysis.evaluate import MISSING, Choice, choices
from proxy.plan.parts.cells import Cells, place_of
from proxy.plan.profile.profile import Doubles
from proxy.sql.algebra.comparisons import HOLDS, with_constant
from proxy.sql.algebra.nodes import Call, ColumnRef, Literal, Member, Scalar, children
from proxy.sqltypes import SqlType, Value

_DAY_S = 86400.0
_MOST_ITEMS = 64  # of a list


def passed(condition: Scalar, column: ColumnRef, cells: Cells) -> Doubles | None:
    """By cell; None where that cannot be told. The condition is about this column alone."""
    if _is_long(condition):
        return None
    if cells.values:
        found = [_passes(condition, column, value) for value in (MISSING, *cells.values)]
        return None if None in found else np.array(found, dtype=np.float64)
    null = _passes(condition, column, MISSING)
    if null is None:
        return None
    ranges = _Ranges(column, cells)
    shares = ranges.passed(condition)
    if shares is None:
        middles = [_passes(condition, column, value) for value in cells.middles()]
        if None in middles:
            return None
        shares = np.array(middles, dtype=np.float64)
    return np.concatenate(([null], shares))


def _is_long(condition: Scalar) -> bool:
    """Whether it holds a list that would take long to be looked at cell by cell."""
    if isinstance(condition, Member) and len(condition.items) > _MOST_ITEMS:
        return True
    return any(map(_is_long, children(condition)))


def _passes(condition: Scalar, column: ColumnRef, value: Choice) -> float | None:
    """1 for what may pass, 0 for what does not, None for what is not known."""
    found = choices(condition, {column: value})
    return None if not found else float(True in found)


class _Ranges:
    """The cells of a column that hold ranges, on the line of its values."""

    def __init__(self, column: ColumnRef, cells: Cells) -> None:
        self._column = column
        self._step = {SqlType.DATE: _DAY_S}.get(column.type, 1.0 if column.type.is_integer else 0.0)
        ends = np.array([place_of(end) for end in cells.ends])
        if self._step:
            ends = np.floor(ends / self._step)
            ends[0] -= 1.0  # the first cell holds its lower end
        self._low, self._width = ends[:-1], np.diff(ends)

    def passed(self, condition: Scalar) -> Doubles | None:
        """The share of each cell; None for what is no comparison with constants."""
        match condition:
            case Literal(bool() as value):
                return np.full(self._low.shape, float(value))
            case Call("and", args):
                return self._together(args, lambda one, other: np.maximum(one + other - 1.0, 0.0))
            case Call("or", args):
                return self._together(args, lambda one, other: np.minimum(one + other, 1.0))
            case Call("not", (inner,)):
                found = self.passed(inner)
                return None if found is None else 1.0 - found
            case Call("is null", (argument,)) if argument == self._column:
                return np.zeros(self._low.shape)
            case Member(argument, items) if argument == self._column:
                parts = tuple(Call("=", (argument, item), SqlType.BOOL) for item in items)
                return self._together(parts, lambda one, other: np.minimum(one + other, 1.0))
            case _:
                by = with_constant(condition)
                is_about_it = by is not None and by.part == self._column and by.operator in HOLDS
                return self._compared(by.operator, by.value) if by is not None and is_about_it else None

    def _together(self, parts: tuple[Scalar, ...], join: Callable[[Doubles, Doubles], Doubles]) -> Doubles | None:
        whole: Doubles | None = None
        for part in parts:
            found = self.passed(part)
            if found is None:
                return None
            whole = found if whole is None else join(whole, found)
        return whole

    def _compared(self, name: str, value: Value) -> Doubles | None:
        place = place_of(value) if isinstance(value, (int, float, Decimal, date, datetime)) else math.nan
        if math.isnan(place):
            return None
        if self._step:
            return self._compared_whole(name, place / self._step)
        up_to = np.clip((place - self._low) / self._width, 0.0, 1.0)
        match name:
            case "<" | "<=":
                return up_to
            case ">" | ">=":
                return 1.0 - up_to
            case _:
                inside = ((self._low < place) & (place <= self._low + self._width)).astype(np.float64)
                return inside if name == "=" else np.ones(self._low.shape)  # one value may be all that a cell has

    def _compared_whole(self, name: str, place: float) -> Doubles:
        """Of whole numbers and days."""
        below, up_to = (
            np.clip((end - self._low) / np.maximum(self._width, 1.0), 0.0, 1.0)
            for end in (math.ceil(place) - 1.0 if math.isfinite(place) else place, np.floor(place))
        )
        found: Mapping[str, Doubles] = {
            "<": below, "<=": up_to, ">": 1.0 - up_to, ">=": 1.0 - below, "=": up_to - below, "<>": 1.0 - up_to + below,
        }  # fmt: skip
        return found[name]
