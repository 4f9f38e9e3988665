"""Whose row is each row of a block?

Completes foreign-key paths up to the table that holds the unit, checks that private scans meet on
the unit and public ones on declared keys, and refuses uses of the unit's own value.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from proxy.errors import BadGroups, PolicyForbids, UnitNotJoined, Unsupported
from proxy.policy.model import FromPolicy, JoinKey, PublicTable, RowUnit, Table, UnitColumns, UnitVia
from proxy.sql.algebra import Aggregate, AggregateKind, Block, Call, ColumnRef, Scalar, Scan, columns_in_order
from proxy.sql.scope import equality, link
from proxy.sqltypes import SqlType


@dataclass(frozen=True, slots=True)
class UniqueKeys:
    """Columns of tables whose uniqueness the engine has verified for this data version."""

    columns: frozenset[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class EveryRow:
    """Each row is its own unit."""


@dataclass(frozen=True, slots=True)
class UnitOf:
    """The unit is the value of these columns, none of them NULL."""

    columns: tuple[ColumnRef, ...]


UnitIdentity = EveryRow | UnitOf


@dataclass(frozen=True, slots=True, kw_only=True)
class Owned:
    """A block whose rows all have a unit.

    block: with the scans and conditions of completed paths added.
    bounds_from: the most detailed private table, whose contribution bounds apply.
    is_one_row_per_unit: no unit can own two rows of the join.
    constant_scans: scans whose every column is the same in all rows of a unit.
    enforced_constants: columns declared constant per unit, to be enforced in SQL.
    """

    block: Block
    unit: UnitIdentity
    bounds_from: Table
    is_one_row_per_unit: bool
    constant_scans: frozenset[int]
    enforced_constants: frozenset[ColumnRef]


def own(block: Block, tables: Mapping[str, Table], unique: UniqueKeys) -> Owned:
    """Find the unit of the block's rows. Raises UnitNotJoined, PolicyForbids, BadGroups, Unsupported."""
    completed = _complete_paths(block, tables)
    pairs = tuple(p for w in completed.where if (p := link(w)) is not None)
    private = tuple(s for s in completed.scans if not s.table.is_public)
    _check_unit_unused(completed)
    fan_out = _check_public_joins(completed, private, pairs, unique)
    if any(isinstance(s.table.ownership, RowUnit) for s in private):
        return _own_rows(completed, private, fan_out)
    _check_one_unit(completed, private, pairs)
    roots = [s for s in private if isinstance(s.table.ownership, UnitColumns)]
    unit = _unit_columns(roots[0])
    present = tuple(Call("not", (Call("is null", (c,), SqlType.BOOL),), SqlType.BOOL) for c in unit)
    completed = replace(completed, where=(*present, *completed.where))
    owned = Owned(
        block=completed,
        unit=UnitOf(unit),
        bounds_from=max(private, key=lambda s: _detail(s, tables)).table,
        is_one_row_per_unit=all(s.table.unit_unique for s in private) and not fan_out,
        constant_scans=_constant_scans(completed, private, pairs, unique),
        enforced_constants=frozenset(
            ColumnRef(s.number, c.name, c.type) for s in private for c in s.table.columns
            if c.name in s.table.unit_constant),
    )  # fmt: skip
    _check_counted_units(owned)
    return owned


def _own_rows(block: Block, private: tuple[Scan, ...], fan_out: tuple[Scan, ...]) -> Owned:
    if len(private) > 1:
        raise UnitNotJoined(
            f'"{private[0].table.name}" cannot be joined with another private table',
            detail="Each of its rows is a unit of its own, so no two rows share one.",
            hint="Query the tables one at a time, or join public tables.",
        )
    if fan_out:
        raise UnitNotJoined(
            f'joining "{fan_out[0].table.name}" could repeat rows of "{private[0].table.name}"',
            hint="The joined column of the public table must be unique.",
        )
    for aggregate in block.aggregates:
        if aggregate.kind is AggregateKind.COUNT_UNITS:
            raise _not_the_unit(aggregate)
    return Owned(
        block=block,
        unit=EveryRow(),
        bounds_from=private[0].table,
        is_one_row_per_unit=True,
        constant_scans=frozenset(s.number for s in block.scans),
        enforced_constants=frozenset(),
    )


# --- paths ------------------------------------------------------------------------------------------------


def _complete_paths(block: Block, tables: Mapping[str, Table]) -> Block:
    """Join the parents of every path table that the query itself does not join."""
    scans, where = list(block.scans), list(block.where)
    position = 0
    while position < len(scans):
        scan = scans[position]
        position += 1
        if not isinstance(scan.table.ownership, UnitVia):
            continue
        if _parent_scan(scan, scans, where) is None:
            path = scan.table.ownership
            parent = Scan(max(s.number for s in scans) + 1, tables[path.parent])
            scans.append(parent)
            where.append(_equal(_column(scan, path.on), _column(parent, path.parent_key)))
    return replace(block, scans=tuple(scans), where=tuple(where))


def _parent_scan(scan: Scan, scans: list[Scan], where: list[Scalar]) -> Scan | None:
    path = scan.table.ownership
    assert isinstance(path, UnitVia)
    child = _column(scan, path.on)
    for condition in where:
        pair = link(condition)
        if pair is None or child not in pair:
            continue
        other = pair[1] if pair[0] == child else pair[0]
        for candidate in scans:
            is_parent = candidate.number == other.scan and candidate.table.name == path.parent
            if is_parent and other.name == path.parent_key:
                return candidate
    return None


def _column(scan: Scan, name: str) -> ColumnRef:
    column = scan.table.column(name)
    assert column is not None, "the policy was checked to have this column"
    return ColumnRef(scan.number, name, column.type)


def _equal(left: ColumnRef, right: ColumnRef) -> Scalar:
    return Call("=", (left, right), SqlType.BOOL)


def _unit_columns(scan: Scan) -> tuple[ColumnRef, ...]:
    ownership = scan.table.ownership
    assert isinstance(ownership, UnitColumns)
    return tuple(_column(scan, name) for name in ownership.columns)


def _detail(scan: Scan, tables: Mapping[str, Table]) -> tuple[int, int]:
    depth, table = 0, scan.table
    while isinstance(table.ownership, UnitVia):
        depth, table = depth + 1, tables[table.ownership.parent]
    limit = scan.table.rows_per_unit
    return depth, limit.limit if isinstance(limit, FromPolicy) else 1


# --- joins --------------------------------------------------------------------------------------------------

Pairs = tuple[tuple[ColumnRef, ColumnRef], ...]


def _check_one_unit(block: Block, private: tuple[Scan, ...], pairs: Pairs) -> None:
    """All private scans must be linked by equalities of the unit, or of a declared path."""
    group = {s.number: s.number for s in private}

    def find(number: int) -> int:
        while group[number] != number:
            number = group[number]
        return number

    equal = {frozenset(p) for p in pairs}
    scans, where = list(block.scans), list(block.where)
    for scan in private:
        if isinstance(scan.table.ownership, UnitVia):
            parent = _parent_scan(scan, scans, where)
            assert parent is not None, "paths were completed"
            group[find(scan.number)] = find(parent.number)
    roots = [s for s in private if isinstance(s.table.ownership, UnitColumns)]
    for left in roots:
        for right in roots:
            ours, theirs = _unit_columns(left), _unit_columns(right)
            if len(ours) == len(theirs) and all(frozenset(p) in equal for p in zip(ours, theirs, strict=True)):
                group[find(left.number)] = find(right.number)
    strangers = [s for s in private if find(s.number) != find(private[0].number)]
    if strangers:
        first, other = private[0].table, strangers[0].table
        raise UnitNotJoined(
            f'"{first.name}" and "{other.name}" are not joined on the privacy unit',
            hint=f"Join them with {_join_advice(first, other)}.",
        )


def _join_advice(left: Table, right: Table) -> str:
    for child, parent in ((left, right), (right, left)):
        if isinstance(child.ownership, UnitVia) and child.ownership.parent == parent.name:
            return f"{child.name}.{child.ownership.on} = {parent.name}.{child.ownership.parent_key}"
    ours = left.ownership.columns if isinstance(left.ownership, UnitColumns) else ("<unit>",)
    theirs = right.ownership.columns if isinstance(right.ownership, UnitColumns) else ("<unit>",)
    return " AND ".join(f"{left.name}.{a} = {right.name}.{b}" for a, b in zip(ours, theirs, strict=False))


def _check_public_joins(block: Block, private: tuple[Scan, ...], pairs: Pairs, unique: UniqueKeys) -> tuple[Scan, ...]:
    """Every public scan must be reached by a declared key; returns those that may repeat rows."""
    reached = {s.number: s for s in private}
    waiting = [s for s in block.scans if isinstance(s.table.ownership, PublicTable)]
    fan_out: list[Scan] = []
    while waiting:
        found = next(((s, k) for s in waiting if (k := _declared(s, reached, pairs)) is not None), None)
        if found is None:
            raise UnitNotJoined(
                f'public table "{waiting[0].table.name}" is not joined on a declared key',
                hint=f"Join it on one of: {_declared_advice(waiting[0].table, private) or 'no key is declared'}.",
            )
        scan, key = found
        if (scan.table.name, key.ref_column) not in unique.columns:
            fan_out.append(scan)
        reached[scan.number] = scan
        waiting.remove(scan)
    return tuple(fan_out)


def _declared(scan: Scan, reached: Mapping[int, Scan], pairs: Pairs) -> JoinKey | None:
    for pair in pairs:
        for ours, theirs in (pair, pair[::-1]):
            if theirs.scan != scan.number or ours.scan not in reached:
                continue
            for key in reached[ours.scan].table.joins:
                if (key.column, key.table, key.ref_column) == (ours.name, scan.table.name, theirs.name):
                    return key
    return None


def _declared_advice(table: Table, private: tuple[Scan, ...]) -> str:
    return ", ".join(
        f"{s.table.name}.{k.column} = {k.table}.{k.ref_column}"
        for s in private for k in s.table.joins if k.table == table.name
    )  # fmt: skip


def _constant_scans(block: Block, private: tuple[Scan, ...], pairs: Pairs, unique: UniqueKeys) -> frozenset[int]:
    """Scans that show one and the same row to all rows of a unit."""
    constant = {s.number: s for s in private if s.table.unit_unique}
    public = [s for s in block.scans if s.table.is_public]
    changed = True
    while changed:
        changed = False
        for scan in public:
            key = None if scan.number in constant else _declared(scan, constant, pairs)
            if key is not None and (scan.table.name, key.ref_column) in unique.columns:
                constant[scan.number] = scan
                changed = True
    return frozenset(constant)


# --- the unit's own value ---------------------------------------------------------------------------------------


def is_unit_value(block: Block, reference: ColumnRef) -> bool:
    """Whether a column shows the unit itself or a key the policy never shows."""
    table = block.scan(reference.scan).table
    column = table.column(reference.name)
    owned = isinstance(table.ownership, UnitColumns) and reference.name in table.ownership.columns
    return owned or (column is not None and column.key and not table.is_public)


def _check_unit_unused(block: Block) -> None:
    for condition in block.where:
        _check_condition(block, condition)
    for key in block.keys:
        for reference in columns_in_order(key):
            if is_unit_value(block, reference):
                raise BadGroups(
                    f'grouping by "{reference.name}" would show one group per unit',
                    hint="Group by attributes that many units share.",
                )
    for aggregate in block.aggregates:
        _check_condition(block, aggregate.where)
        plain = isinstance(aggregate.argument, ColumnRef) and aggregate.kind in (
            AggregateKind.COUNT, AggregateKind.COUNT_UNITS)  # fmt: skip
        if not plain:
            _check_condition(block, aggregate.argument)


def _check_condition(block: Block, condition: Scalar) -> None:
    pair = equality(condition)
    if pair is not None and is_unit_value(block, pair[0]) == is_unit_value(block, pair[1]):
        return
    for reference in columns_in_order(condition):
        table = block.scan(reference.scan).table
        if is_unit_value(block, reference) and not table.unit_filter_allowed:
            raise PolicyForbids(
                f'"{table.name}"."{reference.name}" identifies the privacy unit and may only be joined or counted',
                hint="Filter by attributes instead, or ask the admin for unit_filter: allow.",
            )


def _check_counted_units(owned: Owned) -> None:
    assert isinstance(owned.unit, UnitOf)
    equal = {c for w in owned.block.where if (p := equality(w)) is not None for c in p}
    for aggregate in owned.block.aggregates:
        if aggregate.kind is not AggregateKind.COUNT_UNITS:
            continue
        argument = aggregate.argument
        is_unit = isinstance(argument, ColumnRef) and (
            argument in owned.unit.columns or (argument in equal and _is_root_unit(owned.block, argument))
        )
        if not is_unit or len(owned.unit.columns) > 1:
            raise _not_the_unit(aggregate)


def _is_root_unit(block: Block, reference: ColumnRef) -> bool:
    ownership = block.scan(reference.scan).table.ownership
    return isinstance(ownership, UnitColumns) and ownership.columns == (reference.name,)


def _not_the_unit(_aggregate: Aggregate) -> Unsupported:
    return Unsupported(
        "COUNT(DISTINCT x) is supported for the privacy unit only",
        hint="Count the unit's key: COUNT(DISTINCT <unit column>).",
    )
