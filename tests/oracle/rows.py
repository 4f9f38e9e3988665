"""Which rows does a query read, by definition?

Plain Python over rows in memory: scans, sub-selects of each unit's rows, joins and conditions, one row after another.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from proxy.analysis.analyse import Analysed
from proxy.policy.model import UnitColumns, Unknown
from proxy.sql.algebra.links import link
from proxy.sql.algebra.nodes import (
    Block,
    ColumnRef,
    Grouped,
    Join,
    JoinKind,
    Scalar,
    Scan,
    UnionRows,
    Windowed,
    columns_of,
)
from tests.oracle.per_unit import inner_key, unit_value
from tests.oracle.scalars import Evaluator, Reading, Row, stored
from tests.oracle.values import Stored
from tests.oracle.windows import window_values

Tables = Mapping[str, Sequence[Mapping[str, object]]]
Unit = tuple[Stored, ...]
Wide = dict[tuple[int, str], Stored]


class Rows:
    """Reads the rows of one analysed query. tables: rows as {column: cell} by table name; zone: the policy's."""

    def __init__(self, analysed: Analysed, tables: Tables, zone: str, evaluator: Evaluator) -> None:
        self._analysed = analysed
        self._block = analysed.owned.block
        self._tables = tables
        self._zone = zone
        self._evaluator = evaluator
        self._scans: dict[int, list[Wide]] = {}

    def passing(self) -> Iterator[Row]:
        """The joined rows that pass all conditions and whose keys lie in their columns' domains."""
        for row in self._met(list(self._block.joins), self._passing(list(self._block.scans), self._inner(), {})):
            if all(self._holds(w, row) for w in self._block.where) and self._has_inner_keys(row):
                yield row

    def _inner(self) -> list[Scalar]:
        """Equalities of WHERE between scans that are not of a join."""
        numbers = {s.number for s in self._block.scans}
        return [w for w in self._block.where if (p := link(w)) is not None and {c.scan for c in p} <= numbers]

    def _met(self, joins: list[Join], rows: Iterator[Wide]) -> Iterator[Wide]:
        """The rows after each join, in order."""
        for join in joins:
            rows = self._after(join, list(rows))
        return rows

    def _after(self, join: Join, rows: list[Wide]) -> Iterator[Wide]:
        for row in rows:
            links = [c for c in join.on if link(c) is not None]
            found = [w for w in self._passing(list(join.scans), links, row) if all(self._holds(c, w) for c in join.on)]
            missing = {(s.number, c.name): None for s in join.scans for c in s.table.columns}
            match join.kind:
                case JoinKind.LEFT:
                    yield from found or [{**row, **missing}]
                case JoinKind.SEMI:
                    yield from [row] if found else []
                case JoinKind.ANTI:
                    yield from [] if found else [row]

    def _holds(self, condition: Scalar, row: Row) -> bool:
        pair = link(condition)
        return self._evaluator.passes(condition, row) if pair is None else _is_linked(row, *pair)

    def _passing(self, scans: list[Scan], links: list[Scalar], row: Wide) -> Iterator[Wide]:
        """Combinations of a row with one of each scan that meet these equalities."""
        if not scans:
            yield row
            return
        scan = scans[0]
        for own in self._read(scan):
            wider = {**row, **own}
            pairs = [p for w in links if (p := link(w)) is not None]
            if all(_is_linked(wider, a, b) for a, b in pairs if scan.number in (a.scan, b.scan)):
                yield from self._passing(scans[1:], links, wider)

    def _read(self, scan: Scan) -> list[Wide]:
        """The rows of a scan, which are the same beside any other row."""
        if id(scan) not in self._scans:
            self._scans[id(scan)] = list(self._scanned(scan))
        return self._scans[id(scan)]

    def _scanned(self, scan: Scan) -> Iterator[Wide]:
        if isinstance(scan.rows, Grouped):
            yield from self._grouped(scan, scan.rows)
            return
        if isinstance(scan.rows, Windowed):
            yield from self._windowed(scan, scan.rows)
            return
        if isinstance(scan.rows, UnionRows):
            yield from self._together(scan, scan.rows)
            return
        for row in self._tables[scan.table.name]:
            yield {(scan.number, c.name): stored(row[c.name], c.type, self._zone) for c in scan.table.columns}

    def _of_block(self, block: Block) -> Iterator[Wide]:
        """The rows of a block below the outermost one."""
        numbers = {s.number for s in block.scans}
        links = [w for w in block.where if (p := link(w)) is not None and {c.scan for c in p} <= numbers]
        for row in self._met(list(block.joins), self._passing(list(block.scans), links, {})):
            if all(self._holds(w, row) for w in block.where):
                yield row

    def _windowed(self, scan: Scan, inner: Windowed) -> Iterator[Wide]:
        """The rows of a sub-select with what each is among the rows of its unit."""
        rows = list(self._of_block(inner.block))
        found: list[Wide] = [{(scan.number, n): row[c.scan, c.name] for n, c in inner.passed} for row in rows]
        for window in inner.windows:
            column = self._analysed.domains.column(ColumnRef(scan.number, window.name, window.type))
            values = window_values(window, column, inner.block, rows, self._evaluator)
            for wide, value in zip(found, values, strict=True):
                wide[scan.number, window.name] = value
        yield from found

    def _together(self, scan: Scan, inner: UnionRows) -> Iterator[Wide]:
        """The rows of each branch, as they are computed with."""
        owner = scan.table.ownership
        units = owner.columns if isinstance(owner, UnitColumns) else ()
        for branch in inner.branches:
            for row in self._of_block(branch.block):
                found: Wide = {(scan.number, n): row[c.scan, c.name] for n, c in zip(units, branch.unit, strict=True)}
                for name, part in zip(inner.columns, branch.columns, strict=True):
                    found[scan.number, name] = inner_key(self._evaluator.value(part, row, Reading.KEY), part)
                yield found

    def _grouped(self, scan: Scan, inner: Grouped) -> Iterator[Wide]:
        """Rows of each unit of a sub-select, with the values of its own rows."""
        groups = defaultdict[Unit, list[Row]](list)
        for row in self._of_block(inner.block):
            keys = (inner_key(self._evaluator.value(key, row, Reading.KEY), key) for _, key in inner.keys)
            groups[(*(row[c.scan, c.name] for _, c in inner.unit), *keys)].append(row)
        names = [name for name, _ in (*inner.unit, *inner.keys)]
        for group, rows in groups.items():
            found: Wide = {(scan.number, name): part for name, part in zip(names, group, strict=True)}
            for value in inner.values:
                column = self._analysed.domains.column(ColumnRef(scan.number, value.name, value.type))
                found[scan.number, value.name] = unit_value(value, column, rows, self._evaluator)
            yield found

    def _has_inner_keys(self, row: Row) -> bool:
        keys = (*self._analysed.keys, *self._analysed.beside)
        return all(self._is_inner(c, row) for k in keys for c in columns_of(k.scalar))

    def _is_inner(self, reference: ColumnRef, row: Row) -> bool:
        column, value = self._analysed.domains.column(reference), self._evaluator.raw(reference, row)
        if value is None:
            return column.nullable
        return isinstance(column.domain, Unknown) or self._evaluator.is_inside(reference, value)


def _is_linked(row: Row, left: ColumnRef, right: ColumnRef) -> bool:
    ours, theirs = (left.scan, left.name), (right.scan, right.name)
    if ours not in row or theirs not in row:
        return True  # joined later
    return row[ours] is not None and row[theirs] is not None and row[ours] == row[theirs]
