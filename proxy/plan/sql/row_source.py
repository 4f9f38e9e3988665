"""Which rows does a private statement read: what stands behind FROM and WHERE?

Also the rows of sub-selects below the noise line: units' own aggregates, windows over their rows, and unions of them.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import assert_never

from proxy.analysis.analyse import Analysed
from proxy.analysis.keys import Key, domain_filters
from proxy.plan.sql.unit_values import unit_value
from proxy.policy.model import Column, UnitColumns, Unknown
from proxy.sql.algebra.describe import spell_frame
from proxy.sql.algebra.links import link
from proxy.sql.algebra.nodes import (
    TRUE,
    Beside,
    Block,
    ColumnRef,
    Grouped,
    Join,
    JoinKind,
    Neighbour,
    Place,
    Placed,
    Scalar,
    Scan,
    Stored,
    UnionRows,
    UnitValue,
    Windowed,
    WindowFrame,
    WindowValue,
    conjuncts,
)
from proxy.sql.render.renderer import Renderer, is_costly
from proxy.sqltypes import SqlType

_HALVES = {JoinKind.SEMI: "EXISTS", JoinKind.ANTI: "NOT EXISTS"}


class RowSource:
    """The rows of one analysed block."""

    def __init__(self, analysed: Analysed, renderer: Renderer) -> None:
        self._a = analysed
        self._renderer = renderer
        self._dialect = renderer.dialect

    def tables(self) -> str:
        """What stands behind FROM."""
        return self._tables(self._a.owned.block)

    def _tables(self, block: Block) -> str:
        joins = [j for j in block.joins if self._dialect.abilities.half_joins or j.kind not in _HALVES]
        if not joins:
            return ", ".join(map(self._scanned, block.scans))
        return "\n  ".join([_side([*map(self._scanned, block.scans)]), *map(self._joined, joins)])

    def _conditions(self, block: Block) -> list[str]:
        """The block's conditions, with those joins that only ask whether there is a row if the engine has none such."""
        conditions = [self._row_condition(w) for w in block.where]
        for join in block.joins:
            if join.kind in _HALVES and not self._dialect.abilities.half_joins:
                on = " AND ".join(map(self._row_condition, join.on)) or "TRUE"
                rows = f"SELECT 1 FROM {', '.join(map(self._scanned, join.scans))} WHERE {on}"
                conditions.append(f"{_HALVES[join.kind]} ({rows})")
        return conditions

    def _joined(self, join: Join) -> str:
        scans = _side([*map(self._scanned, join.scans)])
        return f"{join.kind.value} JOIN {scans} ON {' AND '.join(map(self._row_condition, join.on)) or 'TRUE'}"

    def _scanned(self, scan: Scan) -> str:
        match scan.rows:
            case Stored():
                return f"{self._dialect.relation(scan.table.relation)} AS s{scan.number}"
            case Grouped() as rows:
                return f"(\n{self._grouped(scan, rows)}) AS s{scan.number}"
            case Windowed() as rows:
                return f"(\n{self._windowed(scan, rows)}) AS s{scan.number}"
            case UnionRows() as rows:
                return f"(\n{self._together(scan, rows)}) AS s{scan.number}"
            case _ as never:
                assert_never(never)

    def _grouped(self, scan: Scan, rows: Grouped) -> str:
        """Rows of each unit, with exact aggregates of its own rows."""
        chosen = [f"{self._renderer.identity(c)} AS {self._dialect.quote(name)}" for name, c in rows.unit]
        chosen += [f"{self._renderer.inner_key(k)} AS {self._dialect.quote(name)}" for name, k in rows.keys]
        group = ", ".join(str(i + 1) for i in range(len(chosen)))
        for value in rows.values:
            reference = ColumnRef(scan.number, value.name, value.type)
            counted = self._filter(value.where, value.argument)
            passing = self._filter(value.where, TRUE)
            text = unit_value(value, self._a.domains.column(reference), self._renderer, counted, passing)
            chosen.append(f"{text} AS {self._dialect.quote(value.name)}")
        return f"{self._chosen(chosen, rows.block)}\n  GROUP BY {group}"

    def _windowed(self, scan: Scan, rows: Windowed) -> str:
        """Rows of each unit with window functions over its own rows; passed columns as they are stored."""
        chosen = [f"{self._renderer.stored(c)} AS {self._dialect.quote(name)}" for name, c in rows.passed]
        shared: dict[str, str] = {}  # windows that several functions are over, or one that is written more than once
        for window in rows.windows:
            text = f"({self._window(window, rows.block)})"
            over = shared.setdefault(text, f"w{len(shared)}") if isinstance(window.of, UnitValue) else text
            column = self._a.domains.column(ColumnRef(scan.number, window.name, window.type))
            chosen.append(
                f"{self._window_value(window, column, f' OVER {over}')} AS {self._dialect.quote(window.name)}"
            )
        named = ", ".join(f"{name} AS {text}" for text, name in shared.items())
        return self._chosen(chosen, rows.block) + (f"\n  WINDOW {named}" if named else "")

    def _together(self, scan: Scan, rows: UnionRows) -> str:
        """The rows of each branch, one after the other; columns as they are computed with."""
        owner = scan.table.ownership
        units = owner.columns if isinstance(owner, UnitColumns) else ()
        selects = []
        for branch in rows.branches:
            chosen = [
                f"{self._renderer.identity(c)} AS {self._dialect.quote(n)}"
                for n, c in zip(units, branch.unit, strict=True)
            ]
            chosen += [f"{self._renderer.inner_key(c)} AS {self._dialect.quote(n)}"
                       for n, c in zip(rows.columns, branch.columns, strict=True)]  # fmt: skip
            selects.append(self._chosen(chosen or ["1"], branch.block))
        return "\n  UNION ALL\n".join(selects)

    def _chosen(self, chosen: list[str], block: Block) -> str:
        where = " AND ".join(dict.fromkeys(self._conditions(block))) or "TRUE"
        return f"  SELECT {', '.join(chosen)}\n  FROM {self._tables(block)}\n  WHERE {where}"

    def _window(self, window: WindowValue, block: Block) -> str:
        """PARTITION BY the unit; in an order that is one and the same for any rows that are not alike."""
        keys = [self._renderer.inner_key(k) for k in window.partition]
        order = [f"{self._renderer.inner_key(o.scalar)} {'DESC' if o.is_descending else 'ASC'} NULLS"
                 f" {'FIRST' if o.is_null_first else 'LAST'}" for o in window.order]  # fmt: skip
        if is_told_by_place(window):
            order += [f"{text} ASC NULLS LAST" for c in _columns(block) for text in self._images(c)]
        parted = f"PARTITION BY {', '.join([*map(self._renderer.identity, window.unit), *keys])}"
        ordered = f"{parted} ORDER BY {', '.join(order)}" if order else parted
        if not isinstance(window.frame, WindowFrame):
            return ordered
        frame = spell_frame(window.frame)
        return f"{ordered} {self._dialect.of_peers(frame) if window.frame.by_peers else frame}"

    def _images(self, column: ColumnRef) -> tuple[str, ...]:
        """What tells two values of a column apart wherever they differ: 0 and -0 are in no order."""
        stored = self._renderer.identity(column)
        has_sign = column.type in (SqlType.FLOAT4, SqlType.FLOAT8)
        return (stored, self._dialect.sign_bit(stored)) if has_sign else (stored,)

    def _window_value(self, window: WindowValue, column: Column, over: str) -> str:
        match window.of:
            case Placed(place):
                return f"least({place.value}(){over}, {window.most}::BIGINT)"
            case Beside(row, argument, distance):
                text = self._renderer.stored(argument) if isinstance(argument, ColumnRef) else (
                    f"({self._renderer.measure(argument)})::{self._dialect.types[argument.type]}")  # fmt: skip
                return f"{row.value}({text}{f', {distance}' if row in _AT_A_DISTANCE else ''}){over}"
            case UnitValue() as value:
                counted = self._filter(value.where, value.argument) + over
                passing = self._filter(value.where, TRUE) + over
                return unit_value(value, column, self._renderer, counted, passing)
            case _ as never:
                assert_never(never)

    def where(self, told_later: Collection[ColumnRef] = ()) -> str:
        """The block's conditions, and that public keys lie in their domains. told_later: but for these columns."""
        conditions = self._conditions(self._a.owned.block)
        conditions += self.in_domains((*self._a.keys, *self._a.beside), told_later)
        return " AND ".join(dict.fromkeys(conditions)) or "TRUE"

    def in_domains(self, keys: tuple[Key, ...], told_later: Collection[ColumnRef] = ()) -> list[str]:
        """That the columns of keys lie in their domains. told_later: but for these."""
        conditions = []
        filters = domain_filters(keys, self._a.domains)
        for column, domain, keeps_null in (f for f in filters if f[0] not in told_later):
            inside = self._renderer.in_domain(column, domain)
            raw = self._renderer.stored(column)
            if isinstance(domain, Unknown):
                inside = f"{raw} IS NOT NULL"
            conditions.append(f"({inside} OR {raw} IS NULL)" if keeps_null else f"({inside})")
        return conditions

    def _row_condition(self, condition: Scalar) -> str:
        pair = link(condition)
        if pair is not None:
            side = self._renderer.link if SqlType.NUMERIC in {c.type for c in pair} else self._renderer.identity
            return " = ".join(side(c) for c in pair)
        return self._renderer.condition(condition)

    def _filter(self, where: Scalar, of: Scalar) -> str:
        """The FILTER of an aggregate over a unit's rows that pass `where` and have `of`; nothing for all."""
        tests = [self._renderer.condition(where)] if conjuncts(where) else []
        tests += [presence(of, self._renderer, {})] if of != TRUE else []
        return f" FILTER (WHERE {' AND '.join(tests)})" if tests else ""


def presence(scalar: Scalar, renderer: Renderer, held: Mapping[str, str]) -> str:
    """TRUE or FALSE, never NULL: whether a measure has a value. held: as for `Terms`."""
    plain = isinstance(scalar, ColumnRef) and scalar.type.is_number
    text = renderer.unclamped(scalar) if plain else renderer.measure(scalar)
    number = held.get(renderer.dialect.as_double(text), text) if scalar.type.is_number else text
    if number == text and isinstance(scalar, ColumnRef) and is_costly(scalar, renderer.dialect):
        test = f"coalesce({renderer.has_value(scalar)}, FALSE)"
    elif scalar.type.is_number and not scalar.type.is_integer:
        test = f"coalesce({renderer.dialect.finite(number)}, FALSE)"
    else:
        test = f"({number} IS NOT NULL)"
    return held.get(test, test)


def _columns(block: Block) -> list[ColumnRef]:
    """Every column of a block's rows."""
    scans = (*block.scans, *(s for j in block.joins if j.kind is JoinKind.LEFT for s in j.scans))
    return [ColumnRef(s.number, c.name, c.type) for s in scans for c in s.table.columns]


def _side(scans: list[str]) -> str:
    """Scans as one side of a join; PostgreSQL takes no brackets around a single one."""
    return f"({' CROSS JOIN '.join(scans)})" if len(scans) > 1 else scans[0]


_ALL_ROWS = WindowFrame(None, None)
_AT_A_DISTANCE = (Neighbour.LAG, Neighbour.LEAD, Neighbour.NTH_VALUE)


def is_told_by_place(window: WindowValue) -> bool:
    """Whether rows of equal place in the given order may have other values."""
    match window.of:
        case Placed(place):
            return place is Place.ROW_NUMBER
        case Beside():
            return True
        case UnitValue():
            frame = window.frame
            return isinstance(frame, WindowFrame) and frame != _ALL_ROWS and not frame.by_peers
        case _ as never:
            assert_never(never)
