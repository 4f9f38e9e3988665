"""What does a sub-select with window functions stand for: its rows, and what each is among the rows of its unit?

Every window is partitioned by the unit, so nothing is released and all is exact. The rows become a scan of their own
that passes columns on as they are stored; what the sub-select computes from them is computed from that scan.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from sqlglot import exp

from proxy.policy.model import Column, JoinKey, Table, UnitColumns
from proxy.sql.advice.instead_of_part import shares_instead
from proxy.sql.algebra.describe import describe_window
from proxy.sql.algebra.nodes import (
    TRUE,
    UP_TO_PEERS,
    Beside,
    Block,
    ColumnRef,
    Neighbour,
    Ordered,
    Place,
    Placed,
    Scalar,
    Scan,
    UnitValue,
    UnitValueKind,
    UpToPeers,
    Windowed,
    WindowFrame,
    WindowValue,
    columns_of,
    with_columns,
)
from proxy.sql.algebra.rows import Rows, unused_column
from proxy.sql.binding.binder import Binder
from proxy.sql.binding.rules import RULES
from proxy.sql.relations.frames import frame_of
from proxy.sql.relations.inner_values import KINDS, MakeValue, bind_unit_value, stored_type
from proxy.sql.relations.window_shares import less_one, share, tile, tiles_of
from proxy.sql.syntax.named_windows import windows_of, written_out
from proxy.sql.syntax.names import spelled
from proxy.sql.syntax.parse import unwrapped
from proxy.sql.syntax.refusal import only, refuse
from proxy.sql.syntax.words import construct
from proxy.sqltypes import SqlType

_PLACES: dict[type[exp.Expression], Place] = {
    exp.RowNumber: Place.ROW_NUMBER,
    exp.Rank: Place.RANK,
    exp.DenseRank: Place.DENSE_RANK,
}
_NEIGHBOURS: dict[type[exp.Expression], Neighbour] = {
    exp.Lag: Neighbour.LAG,
    exp.Lead: Neighbour.LEAD,
    exp.FirstValue: Neighbour.FIRST_VALUE,
    exp.LastValue: Neighbour.LAST_VALUE,
    exp.NthValue: Neighbour.NTH_VALUE,
}
_SHARES = frozenset((exp.Ntile, exp.PercentRank, exp.CumeDist))
_FRAMED = frozenset((exp.FirstValue, exp.LastValue, exp.NthValue, *KINDS))
_FARTHEST = 1000
_LONGEST_NAME = 60


def has_window(select: exp.Select) -> bool:
    """Whether a select item calls a window function."""
    return any(isinstance(n, exp.Window) for item in select.expressions for n in item.walk())


def first_of_each(select: exp.Select) -> exp.Window | None:
    """What is 1 for the rows that DISTINCT ON keeps: their place among those with the same values. None without it.

    `SELECT DISTINCT ON (u) u, x FROM t ORDER BY u, d` keeps rows with `row_number() OVER (PARTITION BY u ORDER BY d)`
    = 1. Raises Unsupported.
    """
    distinct, order = select.args.get("distinct"), select.args.get("order")
    if distinct is None or distinct.args.get("on") is None:
        return None
    only(distinct, "on")
    keys = [unwrapped(key) for key in distinct.args["on"].expressions]
    ordered = [] if order is None else list(order.expressions)
    if any(unwrapped(o.this) not in keys for o in ordered[: len(keys)]):
        raise refuse(distinct, "SELECT DISTINCT ON expressions must match initial ORDER BY expressions",
                     "Order by them first, and by what decides behind them.")  # fmt: skip
    rest = exp.Order(expressions=[o.copy() for o in ordered[len(keys) :]])
    return exp.Window(this=exp.RowNumber(), partition_by=[k.copy() for k in keys], order=rest)


class Windows:
    """The scan that the rows of such a sub-select become. number: of that scan.

    rows: as they are once all expressions are bound.
    """

    def __init__(self, select: exp.Select, rows: Callable[[], Rows], binder: Binder, number: int) -> None:
        self._named = windows_of(select)
        self._read_rows = rows
        self._binder = binder
        self._number = number
        self._passed: dict[ColumnRef, str] = {}
        self._windows: list[WindowValue] = []
        self._unit: tuple[ColumnRef, ...] = ()
        self._frame: WindowFrame | UpToPeers = UP_TO_PEERS  # of the window that is being bound

    @property
    def _rows(self) -> Rows:
        return self._read_rows()

    def passed(self, rows: Rows) -> Rows:
        """Rows below as they are seen above: by columns of the scan."""
        return replace(rows, columns=tuple((name, with_columns(s, self._pass)) for name, s in rows.columns))

    def inner(self) -> Binder:
        """A binder for the select list."""
        return Binder(lambda node: with_columns(self._binder.resolve(node), self._pass), self._binder.constants,
                      self._binder.source, {**RULES, exp.Window: self._window})  # fmt: skip

    def _pass(self, reference: ColumnRef) -> Scalar:
        if reference.scan == self._number:
            return reference
        if reference not in self._passed:
            self._passed[reference] = self._unused(reference.name)
        return ColumnRef(self._number, self._passed[reference], reference.type)

    def _unused(self, name: str) -> str:
        return unused_column(name, {*self._passed.values(), *(w.name for w in self._windows)})

    # --- window functions -----------------------------------------------------------------------------------

    def _window(self, _: Binder, written: exp.Expression) -> Scalar:
        node = written_out(written, self._named)
        only(node, "this", "partition_by", "order", "over", "spec")
        partition = [self._binder.scalar(n) for n in node.args.get("partition_by") or ()]
        unit = self._unit_among(partition, node)
        order = node.args.get("order")
        ordered = tuple(self._ordered(n) for n in (() if order is None else order.expressions))
        function = node.this
        called = function.this if isinstance(function, exp.Filter) else function
        given = frame_of(node.args.get("spec"))
        frame = self._frame = given if type(called) in _FRAMED else UP_TO_PEERS  # others look at all rows
        if isinstance(frame, WindowFrame) and frame.by_peers and not (ordered and type(called) in KINDS):
            raise refuse(node, "a frame of groups is for count, sum, avg, min and max over private rows, with ORDER BY",
                         "Write ROWS BETWEEN 2 PRECEDING AND CURRENT ROW.")  # fmt: skip

        def make(value: UnitValue) -> Scalar:
            return self._value(value, value.type, unit, partition, ordered)

        if type(function) in _PLACES:
            only(function)
            placed = Placed(_PLACES[type(function)])
            return self._value(placed, SqlType.INT8, unit, partition, ordered)
        if type(function) in _NEIGHBOURS:
            return self._beside(function, unit, partition, ordered)
        if type(function) in _SHARES:
            return self._share(function, unit, partition, ordered)
        return self._aggregate(function, make)

    def _unit_among(self, partition: Sequence[Scalar], node: exp.Expression) -> tuple[ColumnRef, ...]:
        for scan in self._rows.scans:
            if isinstance(scan.table.ownership, UnitColumns):
                columns = [scan.table.column(c) for c in scan.table.ownership.columns]
                unit = tuple(ColumnRef(scan.number, c.name, c.type) for c in columns if c is not None)
                if set(unit) <= set(partition):
                    self._unit = self._unit or unit
                    return unit
        raise refuse(node, "a window function over private rows must be partitioned by the whole privacy unit",
                     self._instead(node))  # fmt: skip

    def _instead(self, node: exp.Expression) -> str:
        units = (s.table.shown_unit for s in self._rows.scans if s.table.shown_unit)
        unit = ", ".join(map(spelled, next(units, ()))) or "all columns of the unit"
        if isinstance(node.this, exp.Ntile):
            return shares_instead(node)
        return f"Write OVER (PARTITION BY {unit} ...), or put it over groups: sum(count(*)) OVER (ORDER BY ...)."

    def _ordered(self, node: exp.Expression) -> Ordered:
        only(node, "this", "desc", "nulls_first")
        bound = self._binder.scalar(node.this)
        if bound.type is SqlType.INTERVAL:
            raise refuse(node, "ordering by an interval is not supported over private rows", "Order by a time.")
        return Ordered(bound, bool(node.args.get("desc")), bool(node.args.get("nulls_first")))

    def _beside(
        self, node: exp.Expression, unit: tuple[ColumnRef, ...], partition: list[Scalar], order: tuple[Ordered, ...]
    ) -> Scalar:
        only(node, "this", "offset")
        argument = self._binder.scalar(node.this)
        if argument.type is SqlType.INTERVAL:
            raise refuse(node, f"{construct(node)} of an interval is not supported over private rows", "Take a time.")
        if isinstance(node, (exp.LastValue, exp.NthValue)) and self._frame == UP_TO_PEERS:
            raise refuse(node, f"{construct(node).removesuffix('()')} needs a frame over private rows",
                         "Write ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING.")  # fmt: skip
        distance = node.args.get("offset")
        number = 1 if distance is None else self._distance(distance)
        if isinstance(node, exp.NthValue) and (distance is None or not number):
            raise refuse(node, "nth_value takes a number of 1 and more", "Write nth_value(x, 2).")
        kind = argument.type if isinstance(argument, ColumnRef) else stored_type(argument.type)
        beside = Beside(_NEIGHBOURS[type(node)], argument, number)
        return self._binder.convert(node, self._value(beside, kind, unit, partition, order), argument.type)

    def _share(
        self, node: exp.Expression, unit: tuple[ColumnRef, ...], partition: list[Scalar], order: tuple[Ordered, ...]
    ) -> Scalar:
        """Of all rows of the partition."""
        only(node, "this")
        rows = UnitValue("", UnitValueKind.COUNT, TRUE, TRUE, SqlType.INT8)

        def value(of: Placed | UnitValue, within: tuple[Ordered, ...]) -> Scalar:
            return self._value(of, SqlType.INT8, unit, partition, within)

        count = value(rows, ())
        match node:
            case exp.Ntile():
                tiles = tiles_of(node)
                return tile(self._binder, node, value(Placed(Place.ROW_NUMBER), order), count, tiles)
            case exp.PercentRank():
                before, others = (less_one(self._binder, node, n) for n in (value(Placed(Place.RANK), order), count))
                return share(self._binder, node, before, others)
            case _:
                return share(self._binder, node, value(rows, order), count)

    def _distance(self, node: exp.Expression) -> int:
        text = str(node.this) if isinstance(node, exp.Literal) and not node.args.get("is_string") else ""
        if not text.isdigit() or int(text) > _FARTHEST:
            raise refuse(node, f"a distance of rows must be a number from 0 to {_FARTHEST}", "Write lag(x, 2).")
        return int(text)

    def _aggregate(self, node: exp.Expression, make: MakeValue) -> Scalar:
        if any(isinstance(n, exp.Distinct) for n in node.walk()):
            raise refuse(node, "DISTINCT is not implemented for window functions", "Count in a sub-select.")
        call = node.this if isinstance(node, exp.Filter) else node
        if type(call) not in KINDS:
            raise refuse(node, f"{construct(call)} is not supported as a window function over private rows",
                         "Accepted: row_number, rank, dense_rank, ntile, percent_rank, cume_dist, lag, lead,"
                         " first_value, last_value, nth_value, count, sum, avg, min and max.")  # fmt: skip
        return bind_unit_value(node, self._binder, make)

    def _value(
        self, of: Placed | Beside | UnitValue, kind: SqlType, unit: tuple[ColumnRef, ...], partition: Sequence[Scalar],
        order: tuple[Ordered, ...],
    ) -> Scalar:  # fmt: skip
        further = tuple(dict.fromkeys(p for p in partition if p not in unit and columns_of(p)))
        value = WindowValue("", of, unit, further, order, kind, frame=self._frame)
        found = next((w for w in self._windows if replace(w, name="") == value), None)
        if found is None:
            text = describe_window(value)
            short = text if len(text) <= _LONGEST_NAME else f"{text.split('(')[0]}(...) OVER (...)"
            found = replace(value, name=self._unused(short))
            self._windows.append(found)
        return ColumnRef(self._number, found.name, kind)

    # --- the scan -------------------------------------------------------------------------------------------

    def rows(self, columns: tuple[tuple[str, Scalar], ...]) -> Rows:
        """The sub-select's rows. columns: its select list, by columns of the scan."""
        units = [self._pass(c) for c in self._unit]
        used = {*units, *(c for _, s in columns for c in columns_of(s))}
        passed = tuple((n, c) for c, n in self._passed.items() if self._pass(c) in used)
        rows, tables = self._rows, {s.number: s.table for s in self._rows.scans}
        block = Block(scans=rows.scans, joins=rows.joins, where=rows.where, keys=(), aggregates=())
        joins = [JoinKey(name, j.table, j.ref_column) for name, c in passed if c.scan in tables
                 for j in tables[c.scan].joins if j.column == c.name]  # fmt: skip
        table = Table(
            name=" and ".join(dict.fromkeys(t.name for t in tables.values())), relation=(), joins=tuple(joins),
            ownership=UnitColumns(tuple(self._passed[c] for c in self._unit)),
            columns=(*(Column(name=n, type=c.type, key=True) for n, c in passed),
                     *(Column(name=w.name, type=w.type) for w in self._windows)),
        )  # fmt: skip
        return Rows(scans=(Scan(self._number, table, Windowed(block, passed, tuple(self._windows))),), columns=columns)
