"""Which share of a unit's rows does WHERE keep, and does it pick rows or units, as far as profiles tell?

A forecast from noisy numbers that were paid for, the policy and the text: never from the data. It decides about
accuracy alone. Conditions on one column are looked at together, cell by cell; those on several columns are taken to be
independent, and what nothing is known of to keep everything.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from proxy.analysis.owned import Owned
from proxy.plan.parts.cells import Cells, cells_of
from proxy.plan.profile.key_groups import groups_of_cells
from proxy.plan.profile.passed import passed
from proxy.plan.profile.profile import ColumnShares, Doubles, TableProfile
from proxy.sql.algebra.nodes import TRUE, Call, ColumnRef, Scalar, Stored, columns_of, conjunction

_TOLD = 5.0  # standard deviations of one share that all units together must exceed
_LEAST_TOLD = 0.1  # of how far shares are from their mean, that they keep whatever their noise
_WARY = 0.5  # standard deviations by which rows of a unit are taken to be more alike than was told
_LEAST = 2.0**-30  # no share is smaller


@dataclass(frozen=True, slots=True)
class KeptShare:
    """What a statement's conditions keep.

    share: of a unit's rows, on average over units. pairs: of the pairs of a unit's rows, both; as much as the square of
    the share where units are alike, as much as the share where all rows of a unit pass together. untold: columns whose
    conditions are taken to keep everything.
    """

    share: float = 1.0
    pairs: float = 1.0
    untold: tuple[str, ...] = ()

    @property
    def stickiness(self) -> float:
        """How much more alike the rows of one unit are than those of several: 0 to 1."""
        spread = self.share * (1.0 - self.share)
        return min(1.0, max(0.0, (self.pairs - self.share**2) / spread)) if spread > 0 else 0.0


EVERYTHING = KeptShare()


@dataclass(frozen=True)
class _Known:
    """Of a column, cut into cells. rows, pairs: shares of the rows of an average unit, and of their pairs, by cell.

    slack: the noise of one share. likeness: 1 where all rows of a unit have one value, 0 where units are alike.
    """

    cells: Cells
    rows: Doubles
    pairs: Doubles
    slack: float
    likeness: float

    @cached_property
    def sizes(self) -> Doubles:
        """About the size of the numbers in each cell."""
        return np.array(tuple(self.cells.sizes()))


class FilterShares:
    """The columns of a block of which profiles tell how their values are spread, and what its WHERE keeps of them."""

    def __init__(self, owned: Owned, profiles: Sequence[TableProfile]) -> None:
        self._owned, self._profiles = owned, {p.table: p for p in profiles}
        self._kept: dict[ColumnRef, Doubles] = {}
        self._columns: dict[ColumnRef, _Known | None] = {}
        self._values: dict[ColumnRef, tuple[float, float]] = {}
        self._together: dict[Scalar, float] = {}
        self.kept = self._look(owned.block.where)

    def kept_with(self, condition: Scalar) -> KeptShare:
        """What WHERE and a condition beside it keep, such as that of FILTER."""
        if condition == TRUE:
            return self.kept
        rest = condition.args if isinstance(condition, Call) and condition.function == "and" else (condition,)
        before, self._kept = self._kept, {}
        found = self._look((*self._owned.block.where, *rest))
        self._kept = before
        return found

    def _look(self, every: Sequence[Scalar]) -> KeptShare:
        by_column, untold = self._by_column(every)
        share = pairs = 1.0
        for column, conditions in by_column.items():
            known = self._known(column)
            found = passed(conjunction(tuple(conditions)), column, known.cells) if known is not None else None
            if known is None or found is None:
                untold[column.name] = None
                continue
            self._kept[column] = found
            one = float(found @ known.rows) + known.slack * float(np.sqrt((found * found).sum()))
            one = min(1.0, max(one, _LEAST))
            share *= one
            pairs *= one * (one + known.likeness * (1.0 - one))
        return KeptShare(share, pairs, tuple(untold))

    def _by_column(self, every: Sequence[Scalar]) -> tuple[dict[ColumnRef, list[Scalar]], dict[str, None]]:
        """Conditions by the only column that each is about, and the columns of all others."""
        by_column: dict[ColumnRef, list[Scalar]] = {}
        untold: dict[str, None] = {}
        for condition in every:
            columns = sorted(columns_of(condition), key=lambda c: (c.scan, c.name))
            if _joins(columns) or self._is_of_units(condition, columns):
                continue
            if len(columns) == 1:
                by_column.setdefault(columns[0], []).append(condition)
            else:
                untold.update((c.name, None) for c in columns)
        return by_column, untold

    def _is_of_units(self, condition: Scalar, columns: Sequence[ColumnRef]) -> bool:
        """Whether it says no more than that there is a unit, which every row of a profile has."""
        match condition:
            case Call("not", (Call("is null", (ColumnRef() as column,)),)):
                found = self._owned.block.scan(column.scan).table.column(column.name)
                return found is None or found.key
            case _:
                return not columns

    def values(self, column: ColumnRef) -> tuple[float, float]:
        """How much larger a column's values are in rows that WHERE keeps than in all, and how large one is in a sum.

        Both relative to the mean of all; the latter is what equal values have whose sums vary as much.
        """
        if column not in self._values:
            self._values[column] = self._values_of(column)
        return self._values[column]

    def _values_of(self, column: ColumnRef) -> tuple[float, float]:
        known = self._known(column)
        if known is None:
            return 1.0, 1.0
        sizes, kept = known.sizes, self._kept.get(column)
        left = known.rows if kept is None else known.rows * kept
        whole, rows, total = float(known.rows @ sizes), float(left.sum()), float(left @ sizes)
        if not (whole > 0.0 and rows > 0.0 and total > 0.0):
            return 1.0, 1.0
        return total / rows / whole, float(left @ (sizes * sizes)) / total / whole

    def together(self, key: Scalar) -> float:
        """The share of the pairs of a unit's rows that are in one group of a key, if WHERE keeps both; 1 if untold.

        Rows of one cell are as likely to have the same value as rows of all cells to be in the same one.
        """
        if key not in self._together:
            self._together[key] = self._together_of(key)
        return self._together[key]

    def _together_of(self, key: Scalar) -> float:
        columns = columns_of(key)
        column = next(iter(columns)) if len(columns) == 1 else None
        known = self._known(column) if column is not None else None
        groups = groups_of_cells(key, column, known.cells) if column is not None and known is not None else None
        if column is None or known is None or groups is None:
            return 1.0
        kept, others = self._kept.get(column, np.ones(len(known.rows))), 1.0 - known.likeness
        rows = kept * known.rows
        pairs = kept * (known.likeness + others * kept) * known.pairs
        same = float((known.likeness + others * groups.within) @ pairs)
        of_groups = rows @ groups.shares
        alone = rows * rows @ (groups.shares * groups.shares).sum(axis=1)  # both rows in one cell
        same += others * float(of_groups @ of_groups - alone)
        every = float(pairs.sum()) + others * float(rows.sum() ** 2 - (rows * rows).sum())
        return min(1.0, same / every) if same > 0 else 1.0

    def _known(self, column: ColumnRef) -> _Known | None:
        if column not in self._columns:
            self._columns[column] = self._found(column)
        return self._columns[column]

    def _found(self, column: ColumnRef) -> _Known | None:
        scan = self._owned.block.scan(column.scan)
        profile = self._profiles.get(scan.table.name)
        found = profile.shares_of(column.name) if profile is not None and isinstance(scan.rows, Stored) else None
        of = scan.table.column(column.name)
        if profile is None or found is None or of is None or cells_of(of).number != len(found.rows):
            return None
        tail = profile.rows.tail
        units = tail.units if profile.rows.is_told else sum(found.rows)
        return _known(found, units, tail.above[0], cells_of(of), is_constant=column.scan in self._owned.constant_scans)


def _joins(columns: Sequence[ColumnRef]) -> bool:
    """Whether a condition is about rows of two tables, as that of a join is."""
    return len({c.scan for c in columns}) > 1


@lru_cache(maxsize=1024)
def _known(of: ColumnShares, units: float, several: float, cells: Cells, *, is_constant: bool) -> _Known | None:
    """Shares of the average unit, or None if there are too few units to tell them from noise.

    units: of any number of rows, each of which adds 1 to all cells together. several: units of more than one row.
    """
    if units <= _TOLD * of.sd:
        return None
    noise = of.sd / units
    rows, slack = _evened(np.array(of.rows) / units, noise)
    if is_constant or several <= _TOLD * of.sd:
        return _Known(cells, rows, rows, slack, 1.0)  # as if all rows of a unit had one value: nothing is lost
    pairs, noise = np.array(of.pairs) / several, of.sd / several
    likeness = _likeness(rows, pairs, noise)
    usual = rows * rows + likeness * rows * (1.0 - rows)  # where the number of a cell is noise, that of all cells tells
    pairs = (usual * usual * pairs + noise * noise * usual) / (usual * usual + noise * noise)
    return _Known(cells, rows, np.clip(pairs, 0.0, 1.0), slack, likeness)


def _evened(noisy: Doubles, noise: float) -> tuple[Doubles, float]:
    """Shares that add up to 1, as far from their mean as stands out of their noise, and what is left of the noise.

    The estimate of James and Stein: many cells that hold about as much tell together that they do.
    """
    mean = float(noisy.mean())
    away = noisy - mean
    square = float(away @ away)
    told = 1.0 - max(0, len(noisy) - 3) * noise * noise / square if square > 0 else 1.0
    told = max(told, _LEAST_TOLD)
    rows = np.maximum(mean + told * away, 0.0)
    whole = float(rows.sum())
    rows = rows / whole if whole > 0 else np.full(len(rows), 1.0 / len(rows))
    return rows, noise * math.sqrt(told)


def _likeness(rows: Doubles, pairs: Doubles, noise: float) -> float:
    """How much more often two rows of a unit share a cell than those of two units do, from 0 to 1.

    Each cell counts as much as it can tell. noise: of the pairs of one cell.
    """
    weights = rows * (1.0 - rows)
    whole = float(weights @ weights)
    found = float(weights @ (pairs - rows * rows)) + _WARY * noise * math.sqrt(whole)
    return min(1.0, max(0.0, found / whole)) if whole > 0 else 1.0
