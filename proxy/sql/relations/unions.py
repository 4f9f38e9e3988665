"""What does UNION ALL of private rows stand for: the rows of each branch, each with its own unit?

The rows become a scan of their own. A column that every branch stores is one column of it; what branches compute is
computed from their own columns, told apart by the number of the branch.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sqlglot import exp

from proxy.policy.model import Column, JoinKey, Listed, Ownership, RowUnit, Table, UnitColumns
from proxy.sql.algebra.nodes import (
    Block,
    Branch,
    Call,
    Case,
    ColumnRef,
    Literal,
    Null,
    Scalar,
    Scan,
    UnionRows,
    with_columns,
)
from proxy.sql.algebra.rows import Rows, unused_column
from proxy.sql.binding.binder import Binder
from proxy.sql.functions.signatures import common_type
from proxy.sql.relations.inner_values import stored_type
from proxy.sql.syntax.refusal import only, refuse
from proxy.sqltypes import SqlType

_MOST_BRANCHES = 20
_LONGEST_HINT = 300


def in_instead(query: exp.Expression) -> str:
    """INTERSECT and EXCEPT as IN and NOT IN, with what the statement says if that is short."""
    left, right = query.this.unnest(), query.expression.unnest()
    is_plain = all(isinstance(side, exp.Select) and side.args.get("from_") is not None for side in (left, right))
    if is_plain and len(left.expressions) == len(right.expressions) == 1:
        column = left.expressions[0].unalias().sql(dialect="postgres")
        negated = "" if isinstance(query, exp.Intersect) else "NOT "
        asked = f"{column} {negated}IN ({right.sql(dialect='postgres')})"
        text = left.where(asked, dialect="postgres").sql(dialect="postgres")
        if len(text) <= _LONGEST_HINT:
            return f"Write {text}, and count or aggregate its rows."
    return "Write WHERE x IN (SELECT ...) or NOT IN, with the column x that holds the unit."


def branches_of(query: exp.Expression) -> list[exp.Select]:
    """The SELECTs that a union puts together, in order. Raises Unsupported for anything else.

    Where only different rows of the whole are wanted, it does not matter where rows that are alike go.
    """
    found = list(_branches(query, may_drop=bool(query.args.get("distinct"))))
    if len(found) > _MOST_BRANCHES:
        raise refuse(query, f"more than {_MOST_BRANCHES} SELECTs in one union are not supported")
    return found


def _branches(query: exp.Expression, *, may_drop: bool) -> Iterator[exp.Select]:
    if isinstance(query, exp.Subquery):
        only(query, "this")
        yield from _branches(query.this, may_drop=may_drop)
    elif isinstance(query, exp.Select):
        yield query
    elif not isinstance(query, exp.Union):
        raise refuse(query, f"{query.key.upper()} of private rows is not supported", in_instead(query))
    elif query.args.get("distinct") and not may_drop:
        raise refuse(query, "UNION inside UNION ALL of private rows is not supported", "Write UNION in all places.")
    else:
        only(query, "this", "expression", "distinct")
        for side in (query.this, query.expression):
            yield from _branches(side, may_drop=may_drop)


def together(query: exp.Expression, made: TogetherRows, parts: Sequence[Rows]) -> Rows:
    """The rows of all parts, with the columns that they have in common. Raises Unsupported."""
    widths = {len(rows.columns) for rows in parts}
    if len(widths) > 1:
        raise refuse(query, "each UNION query must have the same number of columns")
    columns = tuple((name, made.column(i, name)) for i, (name, _) in enumerate(parts[0].columns))
    return Rows(scans=(made.scan(),), columns=columns)


@dataclass(frozen=True, slots=True)
class _Held:
    """A column of the scan: what it is in each branch."""

    column: Column
    parts: tuple[ColumnRef | Literal | Null, ...]
    joins: frozenset[tuple[str, str]] = frozenset()


class TogetherRows:
    """The scan that rows of several parts become. number: of it. unit: where that of the first part stands."""

    def __init__(
        self, query: exp.Expression, parts: Sequence[Rows], number: int, binder: Binder, unit: Ownership
    ) -> None:
        self._query = query
        self._parts = parts
        self._number = number
        self._binder = binder
        self._units = unit.columns if isinstance(unit, UnitColumns) else ()
        self._unit_types = self._types_of_unit()
        self._held: dict[tuple[Scalar, ...], _Held] = {}

    def _types_of_unit(self) -> tuple[SqlType, ...]:
        """Those of the first part that has its unit in a table of its own; others are found along paths."""
        for rows in self._parts:
            table = self._root(rows)
            if isinstance(table.ownership, UnitColumns) and len(table.ownership.columns) == len(self._units):
                return tuple(c.type for n in table.ownership.columns if (c := table.column(n)) is not None)
        return (SqlType.INT8,) * len(self._units)

    def _root(self, rows: Rows) -> Table:
        tables = [s.table for s in rows.scans]
        return next((t for t in tables if isinstance(t.ownership, UnitColumns)), tables[0])

    # --- columns --------------------------------------------------------------------------------------------

    def shared(self, parts: tuple[ColumnRef, ...]) -> Scalar:
        """A column that every part stores, called as in the first; a part of the unit is that of the whole."""
        places = {self._place_in_unit(c, rows) for c, rows in zip(parts, self._parts, strict=True)}
        place = places.pop()
        if not places and place is not None:
            return ColumnRef(self._number, self._units[place], self._unit_types[place])
        return self._merged(parts, parts[0].name, parts[0].type)

    def listed(self, scalars: tuple[Literal | Null, ...]) -> Scalar:
        """A column that is another constant in each part."""
        return self._chosen(self._binder.united(self._query, [(s, self._query) for s in scalars]))

    def column(self, index: int, name: str) -> Scalar:
        """One output column, in the type that all branches have in common."""
        found = [rows.columns[index][1] for rows in self._parts]
        place = {self._place_in_unit(s, rows) for s, rows in zip(found, self._parts, strict=True)}
        if len(place) == 1 and (only_place := place.pop()) is not None:
            return ColumnRef(self._number, self._units[only_place], self._unit_types[only_place])
        if any(s.type is SqlType.INTERVAL for s in found):
            raise refuse(self._query, "a difference of times is not a value here", "Write EXTRACT(epoch FROM x - y).")
        united = self._binder.united(self._query, [(s, self._query) for s in found])
        plain = [s for s in united if isinstance(s, ColumnRef)]
        if len(plain) == len(united) and (kind := _stored_as(tuple(c.type for c in plain))) is not None:
            return self._merged(tuple(plain), name, kind)
        return self._chosen(united)

    def _place_in_unit(self, scalar: Scalar, rows: Rows) -> int | None:
        """Which part of its unit a column of a branch is."""
        if isinstance(scalar, ColumnRef):
            for scan in rows.scans:
                if scan.number == scalar.scan and isinstance(scan.table.ownership, UnitColumns):
                    columns = scan.table.ownership.columns
                    return columns.index(scalar.name) if scalar.name in columns else None
        return None

    def held(self, column: ColumnRef, parts: tuple[ColumnRef | Null, ...]) -> Scalar:
        """A column that each part has or lacks, called like `column`."""
        if parts not in self._held:
            joins = [_joins(rows, c) for rows, c in zip(self._parts, parts, strict=True) if isinstance(c, ColumnRef)]
            stored = Column(name=self._unused(column.name), type=stored_type(column.type))
            self._held[parts] = _Held(stored, parts, frozenset.intersection(*joins))
        held = self._held[parts].column
        return self._binder.convert(self._query, ColumnRef(self._number, held.name, held.type), column.type)

    def _merged(self, parts: tuple[ColumnRef, ...], name: str, kind: SqlType) -> Scalar:
        """A column that every branch stores."""
        if parts not in self._held:
            joins = [_joins(rows, c) for rows, c in zip(self._parts, parts, strict=True)]
            column = Column(name=self._unused(name), type=stored_type(kind))
            self._held[parts] = _Held(column, parts, frozenset.intersection(*joins))
        held = self._held[parts].column
        return self._binder.convert(self._query, ColumnRef(self._number, held.name, held.type), kind)

    def _chosen(self, united: tuple[Scalar, ...]) -> Scalar:
        """What each branch computes, from its own columns."""
        found = [with_columns(s, lambda c, i=i: self._of_branch(i, c)) for i, s in enumerate(united)]  # type: ignore[misc]  # i is bound here
        if all(s == found[0] for s in found) and isinstance(found[0], (Literal, Null)):
            return found[0]
        which = self._which()
        tests = [Call("=", (which, Literal(i, SqlType.INT4)), SqlType.BOOL) for i in range(len(found) - 1)]
        wanted = common_type(tuple(s.type for s in united))
        assert wanted is not None, "the binder has united them"
        return Case(tuple(zip(tests, found[:-1], strict=True)), found[-1], wanted)

    def _which(self) -> ColumnRef:
        numbers = tuple(Literal(i, SqlType.INT4) for i in range(len(self._parts)))
        if numbers not in self._held:
            domain = Listed(tuple(range(len(self._parts))))
            column = Column(name=self._unused("branch"), type=SqlType.INT4, domain=domain, nullable=False)
            self._held[numbers] = _Held(column, numbers)
        return ColumnRef(self._number, self._held[numbers].column.name, SqlType.INT4)

    def _of_branch(self, index: int, reference: ColumnRef) -> Scalar:
        """A column of one branch; there is none of it in the others."""
        parts = tuple(reference if i == index else Null(reference.type) for i in range(len(self._parts)))
        if parts not in self._held:
            column = Column(name=self._unused(reference.name), type=stored_type(reference.type))
            self._held[parts] = _Held(column, parts)
        held = self._held[parts].column
        return self._binder.convert(self._query, ColumnRef(self._number, held.name, held.type), reference.type)

    def _unused(self, name: str) -> str:
        return unused_column(name, {*self._units, *(h.column.name for h in self._held.values())})

    # --- the scan -------------------------------------------------------------------------------------------

    def scan(self, *, is_unit_in_one_branch: bool = False) -> Scan:
        held = tuple(self._held.values())
        branches = tuple(
            Branch(Block(scans=r.scans, joins=r.joins, where=r.where, keys=(), aggregates=()), (),
                   tuple(h.parts[i] for h in held))
            for i, r in enumerate(self._parts)
        )  # fmt: skip
        units = tuple(Column(name=n, type=t, key=True) for n, t in zip(self._units, self._unit_types, strict=True))
        table = Table(
            name=" and ".join(dict.fromkeys(s.table.name for r in self._parts for s in r.scans)), relation=(),
            ownership=UnitColumns(self._units) if self._units else RowUnit(),
            joins=tuple(JoinKey(h.column.name, *j) for h in held for j in sorted(h.joins)),
            columns=(*units, *(h.column for h in held)),
        )  # fmt: skip
        names = tuple(h.column.name for h in held)
        return Scan(self._number, table, UnionRows(names, branches, is_unit_in_one_branch))


def _joins(rows: Rows, column: ColumnRef) -> frozenset[tuple[str, str]]:
    """The keys of public tables that a column of a branch may be equated with."""
    return frozenset((j.table, j.ref_column) for s in rows.scans if s.number == column.scan
                     for j in s.table.joins if j.column == column.name)  # fmt: skip


def _stored_as(types: tuple[SqlType, ...]) -> SqlType | None:
    """The type of one column for columns of these types, if they are stored alike."""
    if len(set(types)) == 1:
        return types[0]
    if all(t.is_integer for t in types):
        return SqlType.INT8 if SqlType.INT8 in types else SqlType.INT4
    return SqlType.TEXT if set(types) <= {SqlType.TEXT, SqlType.VARCHAR} else None
