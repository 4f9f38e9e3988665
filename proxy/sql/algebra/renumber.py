"""Which rows are the same as others, read once more? All scans have new numbers, those of sub-selects included."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import assert_never

from proxy.sql.algebra.nodes import (
    Beside,
    Block,
    Branch,
    ColumnRef,
    Grouped,
    Join,
    Literal,
    Null,
    Ordered,
    Placed,
    Scalar,
    Scan,
    Stored,
    UnionRows,
    UnitValue,
    Windowed,
    WindowValue,
    with_columns,
)
from proxy.sql.algebra.rows import Rows


class Copies:
    """Copies of rows. fresh: the number of a new scan."""

    def __init__(self, fresh: Callable[[], int]) -> None:
        self._fresh = fresh
        self._numbers: dict[int, int] = {}

    def rows(self, rows: Rows) -> Rows:
        """The same rows, of which none is kept alone."""
        scans, joins = self._scans(rows.scans), self._joins(rows.joins)
        columns = tuple((name, self.scalar(s)) for name, s in rows.columns)
        return Rows(scans=scans, joins=joins, where=self.scalars(rows.where), columns=columns)

    def scalar(self, scalar: Scalar) -> Scalar:
        """A scalar over rows that were copied."""
        return with_columns(scalar, self.column)

    def scalars(self, scalars: tuple[Scalar, ...]) -> tuple[Scalar, ...]:
        return tuple(map(self.scalar, scalars))

    def column(self, column: ColumnRef) -> ColumnRef:
        return replace(column, scan=self._numbers[column.scan])

    # --- scans ----------------------------------------------------------------------------------------------

    def _scans(self, scans: tuple[Scan, ...]) -> tuple[Scan, ...]:
        for scan in scans:
            self._numbers[scan.number] = self._fresh()
        return tuple(Scan(self._numbers[s.number], s.table, self._read(s.rows)) for s in scans)

    def _joins(self, joins: tuple[Join, ...]) -> tuple[Join, ...]:
        found = []
        for join in joins:
            scans = self._scans(join.scans)
            found.append(Join(join.kind, scans, self.scalars(join.on)))
        return tuple(found)

    def _read(self, rows: Stored | Grouped | Windowed | UnionRows) -> Stored | Grouped | Windowed | UnionRows:
        match rows:
            case Stored():
                return rows
            case Grouped():
                block = self._block(rows.block)
                return Grouped(block, tuple((n, self.column(c)) for n, c in rows.unit),
                               tuple((n, self.scalar(k)) for n, k in rows.keys),
                               tuple(map(self._value, rows.values)))  # fmt: skip
            case Windowed():
                block = self._block(rows.block)
                return Windowed(block, tuple((n, self.column(c)) for n, c in rows.passed),
                                tuple(map(self._window, rows.windows)))  # fmt: skip
            case UnionRows():
                return replace(rows, branches=tuple(map(self._branch, rows.branches)))
            case _ as never:
                assert_never(never)

    def _block(self, block: Block) -> Block:
        """That of a sub-select, which has neither keys nor aggregates of its own."""
        scans, joins = self._scans(block.scans), self._joins(block.joins)
        return Block(scans=scans, joins=joins, where=self.scalars(block.where), keys=(), aggregates=())

    def _branch(self, branch: Branch) -> Branch:
        block = self._block(branch.block)
        columns = tuple(c if isinstance(c, (Literal, Null)) else self.column(c) for c in branch.columns)
        return Branch(block, tuple(map(self.column, branch.unit)), columns)

    # --- values ---------------------------------------------------------------------------------------------

    def _value(self, value: UnitValue) -> UnitValue:
        return replace(value, argument=self.scalar(value.argument), where=self.scalar(value.where))

    def _window(self, window: WindowValue) -> WindowValue:
        order = tuple(Ordered(self.scalar(o.scalar), o.is_descending, o.is_null_first) for o in window.order)
        return replace(window, of=self._of(window.of), unit=tuple(map(self.column, window.unit)),
                       partition=self.scalars(window.partition), order=order)  # fmt: skip

    def _of(self, of: Placed | Beside | UnitValue) -> Placed | Beside | UnitValue:
        match of:
            case Placed():
                return of
            case Beside():
                return replace(of, argument=self.scalar(of.argument))
            case UnitValue():
                return self._value(of)
            case _ as never:
                assert_never(never)
