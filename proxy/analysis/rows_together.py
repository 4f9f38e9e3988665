"""What is known of the rows that UNION ALL puts together: whose they are, their domains, and how many a unit has?"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from proxy.analysis.domains import Domains
from proxy.analysis.owned import EveryRow, Owned, UnitOf
from proxy.analysis.unit_uses import is_unit_value
from proxy.errors import UnitNotJoined
from proxy.policy.model import BoundSource, Column, RowUnit, UnitColumns, WrittenBound, limit_or
from proxy.sql.algebra.nodes import Call, Case, ColumnRef, Literal, Null, Scalar, Scan, UnionRows
from proxy.sql.functions.domains.intervals import union
from proxy.sqltypes import SqlType

_TEXTS = frozenset((SqlType.TEXT, SqlType.VARCHAR))


def known_together(scan: Scan, rows: UnionRows, owned: tuple[Owned, ...]) -> Scan:
    """Claim: each row is a row of one branch, with the unit it has there; a unit has at most the sum of what it has in
    the branches, or as the most it has in one of them, if it has rows in one only. What is declared of a column is what
    is declared of it in any branch.
    """
    units = [_unit(o) for o in owned]
    types = _types_of_units(units)
    _check_row_units(owned)
    branches = tuple(replace(b, block=o.block, unit=u) for b, o, u in zip(rows.branches, owned, units, strict=True))
    known = {}
    for index, name in enumerate(rows.columns):
        column = scan.table.column(name)
        assert column is not None, "the binder gave each column its name"
        known[name] = _column(column, tuple(b.columns[index] for b in branches), owned)
    ownership = scan.table.ownership
    if isinstance(ownership, UnitColumns):
        known |= {n: Column(name=n, type=t, key=True) for n, t in zip(ownership.columns, types, strict=True)}
    whole = max if rows.is_unit_in_one_branch else sum
    table = replace(
        scan.table, columns=tuple(known[c.name] for c in scan.table.columns),
        unit_unique=rows.is_unit_in_one_branch and all(o.is_one_row_per_unit for o in owned),
        rows_per_unit=WrittenBound(whole(map(_rows, owned))),
        rows_per_group=WrittenBound(whole(_limited(o, o.bounds_from.rows_per_group) for o in owned)),
        groups_per_unit=WrittenBound(whole(_limited(o, o.bounds_from.groups_per_unit) for o in owned)),
        keys_per_unit=whole(1 if o.is_one_row_per_unit else o.bounds_from.keys_per_unit for o in owned),
    )  # fmt: skip
    most = max(_limited(o, o.bounds_from.rows_per_group) for o in owned)
    rows = replace(rows, branches=branches, most_in_branch=most,
                   is_one_row_in_branch=all(o.is_one_row_per_unit for o in owned))  # fmt: skip
    return replace(scan, table=table, rows=rows)


def in_one_branch(owned: Owned, keys: Iterable[Scalar]) -> int:
    """The most rows that a unit has in one group, where a key tells the branches apart; 0 where none does.

    A clip as all such bounds: were it too small, rows would count less, and nothing else.
    """
    scan = next((s for s in owned.block.scans if s.table is owned.bounds_from), None)
    if scan is None or not isinstance(scan.rows, UnionRows):
        return 0
    found = (k for k in keys if _tells_apart(k, scan.number, scan.rows))
    return scan.rows.most_in_branch if any(True for _ in found) else 0


def _tells_apart(key: Scalar, number: int, rows: UnionRows) -> bool:
    """Whether a key is another constant in each branch."""
    match key:
        case ColumnRef(scan=scan, name=name) if scan == number and name in rows.columns:
            at = rows.columns.index(name)
            found: list[Scalar] = [b.columns[at] for b in rows.branches]
        case Case(branches=cases, otherwise=otherwise):
            told = {_branch_of(test, number, rows) for test, _ in cases}
            if None in told or len(told) < len(rows.branches) - 1:
                return False
            found = [value for _, value in cases] + [otherwise]
        case _:
            return False
    return all(isinstance(f, Literal) for f in found) and len(set(found)) == len(found)


def _branch_of(test: Scalar, number: int, rows: UnionRows) -> int | None:
    """The branch that a condition asks for, `branch = 2`."""
    match test:
        case Call("=", (ColumnRef() as column, Literal(int() as asked))) if column.scan == number:
            at = rows.columns.index(column.name) if column.name in rows.columns else -1
            numbers = [b.columns[at] for b in rows.branches]
            is_number = at >= 0 and numbers == [Literal(i, SqlType.INT4) for i in range(len(numbers))]
            return asked if is_number else None
        case _:
            return None


# --- units ----------------------------------------------------------------------------------------------------


def _unit(owned: Owned) -> tuple[ColumnRef, ...]:
    return owned.unit.columns if isinstance(owned.unit, UnitOf) else ()


def _types_of_units(units: list[tuple[ColumnRef, ...]]) -> tuple[SqlType, ...]:
    """The unit's types, the same in all branches: the engine must not change a unit to make it fit."""
    if len({len(u) for u in units}) > 1:
        raise _other_units()
    found = []
    for parts in zip(*units, strict=True):
        types = {c.type for c in parts}
        if all(t.is_integer for t in types):
            found.append(parts[0].type if len(types) == 1 else SqlType.INT8)
        elif (len(types) == 1 or types <= _TEXTS) and SqlType.NUMERIC not in types:
            found.append(parts[0].type)
        else:
            raise _other_units()
    return tuple(found)


def _other_units() -> UnitNotJoined:
    return UnitNotJoined("the SELECTs of this UNION ALL have units of different types",
                         hint="Aggregate each table by itself and add the aggregates.")  # fmt: skip


def _check_row_units(owned: tuple[Owned, ...]) -> None:
    """Where each row is a unit, none may come twice."""
    if not any(isinstance(o.unit, EveryRow) for o in owned):
        return
    read = [s.table.relation for o in owned for s in o.block.every_scan if isinstance(s.table.ownership, RowUnit)
            and s.table.relation]  # fmt: skip
    if len(set(read)) < len(read):
        raise UnitNotJoined("a table whose rows are units of their own stands twice in this UNION ALL",
                            hint="Read it once, with OR between the conditions.")  # fmt: skip


# --- bounds ---------------------------------------------------------------------------------------------------


def _rows(owned: Owned) -> int:
    return 1 if owned.is_one_row_per_unit else limit_or(owned.bounds_from.rows_per_unit, 1)


def _limited(owned: Owned, limit: BoundSource) -> int:
    most = _rows(owned)
    return min(most, limit_or(limit, most))


# --- columns --------------------------------------------------------------------------------------------------


def _column(column: Column, parts: tuple[ColumnRef | Literal | Null, ...], owned: tuple[Owned, ...]) -> Column:
    read = [(p, o) for p, o in zip(parts, owned, strict=True) if isinstance(p, ColumnRef)]
    if not read:
        return column
    sources = [Domains(o.block).column(p) for p, o in read]
    is_key = any(s.key or is_unit_value(o.block, p) for s, (p, o) in zip(sources, read, strict=True))
    return replace(
        column, domain=union(tuple(s.domain for s in sources)), key=is_key,
        nullable=len(read) < len(parts) or any(s.nullable for s in sources),
        case_blind=any(s.case_blind for s in sources),
    )  # fmt: skip
