"""Whose row is each row of a block?

Completes foreign-key paths up to the table that holds the unit, checks that private scans meet on
the unit and public ones on declared keys, and refuses uses of the unit's own value.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import replace
from itertools import combinations

from proxy.analysis.inner_rows import with_known_scans
from proxy.analysis.local import check_local, reads_local
from proxy.analysis.meeting import (
    Pairs,
    UniqueKeys,
    check_joins,
    column_of,
    declared_key,
    has_same_unit,
    is_all_of,
    join_hint,
    links,
    unit_advice,
    unit_columns,
)
from proxy.analysis.multiplied import multiplied
from proxy.analysis.owned import EveryRow, Owned, UnitIdentity, UnitOf
from proxy.analysis.unit_uses import check_condition, is_unit_value, shown
from proxy.errors import BadGroups, MissingBounds, UnitNotJoined
from proxy.policy.model import NotGiven, PublicTable, RowUnit, Table, UnitColumns, UnitVia, limit_or
from proxy.sql.algebra.links import equality, link
from proxy.sql.algebra.nodes import (
    Aggregate,
    AggregateKind,
    Block,
    Call,
    ColumnRef,
    JoinKind,
    Scalar,
    Scan,
    Stored,
    columns_of,
    conjunction,
    conjuncts,
    is_present,
)
from proxy.sql.syntax.names import spelled
from proxy.sqltypes import SqlType


def own(block: Block, tables: Mapping[str, Table], unique: UniqueKeys, after: int = 0) -> Owned:
    """Find the unit of the block's rows. after: scans that are added have larger numbers. Raises HushError."""
    if reads_local(block):
        return _own_local(block, unique)
    block = with_known_scans(block, after, lambda inner, last: own(inner, tables, unique, last))
    completed = _complete_paths(block, tables, after)
    pairs = links(completed.where)
    private = tuple(s for s in completed.scans if not s.table.is_public)
    if not private:
        raise UnitNotJoined(f'rows of public table "{completed.scans[0].table.name}" belong to nobody',
                            hint="Aggregate the private table, and join the result to the public one.")  # fmt: skip
    _check_unit_unused(completed)
    added = frozenset(s.number for s in completed.scans) - {s.number for s in block.scans}
    fan_out = _check_public_joins(completed, private, pairs, unique, added)
    met = check_joins(completed, unique, added)
    if any(isinstance(s.table.ownership, RowUnit) for s in private):
        return _own_rows(completed, private, (*fan_out, *met.fan_out))
    _check_one_unit(completed, private, pairs)
    roots = [s for s in private if isinstance(s.table.ownership, UnitColumns)]
    unit = unit_columns(roots[0])
    present = tuple(is_present(c) for c in unit)
    completed = replace(completed, where=(*present, *completed.where))
    everybody = (*private, *met.private)
    owned = Owned(
        block=completed,
        unit=UnitOf(unit),
        bounds_from=max(everybody, key=lambda s: _detail(s, tables)).table,
        is_one_row_per_unit=all(s.table.unit_unique for s in everybody) and not fan_out and not met.fan_out,
        constant_scans=_constant_scans(completed, private, pairs, unique),
        enforced_constants=frozenset(
            ColumnRef(s.number, c.name, c.type) for s in private for c in s.table.columns
            if c.name in s.table.unit_constant),
        repeated=multiplied(completed, unique),
        fan_out=(*fan_out, *met.fan_out),
    )  # fmt: skip
    _check_rows_are_bounded(owned)
    return replace(owned, block=replace(completed, aggregates=tuple(_counted(a, owned) for a in block.aggregates)))


def _check_rows_are_bounded(owned: Owned) -> None:
    """Where a unit may have several rows, the policy or a profile must say how many count."""
    table = owned.bounds_from
    if owned.is_one_row_per_unit or table.unit_unique or not isinstance(table.rows_per_unit, NotGiven):
        return
    raise MissingBounds(
        f'nothing says yet how many rows one unit may have in "{table.name}"',
        detail="The policy leaves it to a profile of the table, and there is none that tells it.",
        hint=f"The admin makes one with hushql profile, or writes a number: max_rows_per_unit at tables.{table.name}.",
    )


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
    return Owned(
        block=block,
        unit=EveryRow(),
        bounds_from=private[0].table,
        is_one_row_per_unit=True,
        constant_scans=frozenset(s.number for s in block.scans),
        enforced_constants=frozenset(),
    )


def _own_local(block: Block, unique: UniqueKeys) -> Owned:
    local = (check_local(block),)
    fan_out = _check_public_joins(block, local, links(block.where), unique, frozenset())
    met = check_joins(block, unique)
    return replace(_own_rows(block, local, (*fan_out, *met.fan_out)), is_local=True)


# --- paths ------------------------------------------------------------------------------------------------


def _complete_paths(block: Block, tables: Mapping[str, Table], after: int) -> Block:
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
            parent = Scan(1 + max(after, *(s.number for s in (*scans, *block.every_scan))), tables[path.parent])
            scans.append(parent)
            where.append(_equal(column_of(scan, path.on), column_of(parent, path.parent_key)))
    return replace(block, scans=tuple(scans), where=tuple(where))


def _parent_scan(scan: Scan, scans: list[Scan], where: list[Scalar]) -> Scan | None:
    path = scan.table.ownership
    assert isinstance(path, UnitVia)
    child = column_of(scan, path.on)
    for condition in where:
        pair = link(condition)
        if pair is None or child not in pair:
            continue
        other = pair[1] if pair[0] == child else pair[0]
        for candidate in scans:
            is_parent = candidate.number == other.scan and is_all_of(candidate, path.parent)
            if is_parent and other.name == path.parent_key:
                return candidate
    return None


def _equal(left: ColumnRef, right: ColumnRef) -> Scalar:
    return Call("=", (left, right), SqlType.BOOL)


def _detail(scan: Scan, tables: Mapping[str, Table]) -> tuple[int, int]:
    depth, table = 0, scan.table
    while isinstance(table.ownership, UnitVia):
        depth, table = depth + 1, tables[table.ownership.parent]
    return depth, limit_or(scan.table.rows_per_unit, 1)


# --- joins --------------------------------------------------------------------------------------------------


def _check_one_unit(block: Block, private: tuple[Scan, ...], pairs: Pairs) -> None:
    """All private scans must be linked by equalities of the unit, or of a declared path."""
    group = {s.number: s.number for s in private}

    def find(number: int) -> int:
        while group[number] != number:
            number = group[number]
        return number

    scans, where = list(block.scans), list(block.where)
    for scan in private:
        if isinstance(scan.table.ownership, UnitVia):
            parent = _parent_scan(scan, scans, where)
            assert parent is not None, "paths were completed"
            group[find(scan.number)] = find(parent.number)
    for left, right in combinations(private, 2):
        if has_same_unit(left, right, pairs):
            group[find(left.number)] = find(right.number)
    strangers = [s for s in private if find(s.number) != find(private[0].number)]
    if strangers:
        first, other = private[0].table, strangers[0].table
        raise UnitNotJoined(
            f'"{first.name}" and "{other.name}" are not joined on the privacy unit',
            hint=f"Join them with {unit_advice(first, other)}.",
        )


def _check_public_joins(
    block: Block, private: tuple[Scan, ...], pairs: Pairs, unique: UniqueKeys, added: Set[int]
) -> tuple[Scan, ...]:
    """Every public scan must be reached by a declared key; returns those that may repeat rows.

    added: scans that the statement does not name, and advice does not either.
    """
    reached = {s.number: s for s in private}
    waiting = [s for s in block.scans if isinstance(s.table.ownership, PublicTable)]
    fan_out: list[Scan] = []
    while waiting:
        found = next(((s, k) for s in waiting if (k := declared_key(s, reached, pairs)) is not None), None)
        if found is None:
            raise UnitNotJoined(
                f'public table "{waiting[0].table.name}" is not joined on a declared key',
                hint=join_hint(waiting[0], private, added, pairs),
            )
        scan, key = found
        if (scan.table.name, key.ref_column) not in unique.columns:
            fan_out.append(scan)
        reached[scan.number] = scan
        waiting.remove(scan)
    return tuple(fan_out)


def _constant_scans(block: Block, private: tuple[Scan, ...], pairs: Pairs, unique: UniqueKeys) -> frozenset[int]:
    """Scans that show one and the same row to all rows of a unit, if any."""
    constant = {s.number: s for s in private if s.table.unit_unique}
    public = [s for s in block.scans if s.table.is_public]
    changed = True
    while changed:
        changed = False
        for scan in public:
            key = None if scan.number in constant else declared_key(scan, constant, pairs)
            if key is not None and (scan.table.name, key.ref_column) in unique.columns:
                constant[scan.number] = scan
                changed = True
    units = {c for s in private if isinstance(s.table.ownership, UnitColumns) for c in unit_columns(s)}
    for join in (j for j in block.joins if j.kind is JoinKind.LEFT):
        (scan,) = join.scans
        key = declared_key(scan, constant, links(join.on))
        is_unique = scan.table.unit_unique or (key is not None and (scan.table.name, key.ref_column) in unique.columns)
        known = {*constant, scan.number}
        if is_unique and all(c.scan in known or c in units for on in join.on for c in columns_of(on)):
            constant[scan.number] = scan
    return frozenset(constant)


# --- the unit's own value ---------------------------------------------------------------------------------------


def _check_unit_unused(block: Block) -> None:
    for condition in block.conditions:
        check_condition(block, condition)
    for key in block.keys:
        for reference in shown(key):
            if is_unit_value(block, reference):
                raise BadGroups(
                    f'grouping by "{reference.name}" would show one group per unit',
                    hint=_shared_instead(block, reference),
                )
    for aggregate in block.aggregates:
        check_condition(block, aggregate.where)
        plain = isinstance(aggregate.argument, ColumnRef) and aggregate.kind in (
            AggregateKind.COUNT, AggregateKind.COUNT_DISTINCT)  # fmt: skip
        for argument in () if plain else aggregate.arguments:
            check_condition(block, argument)


def _shared_instead(block: Block, unit: ColumnRef) -> str:
    """What to write where each group would be of one unit: of a stored table, with its names."""
    scan, column = block.scan(unit.scan), spelled(unit.name)
    hint = "Group by attributes that many units share"
    if not isinstance(scan.rows, Stored):
        return f"{hint}."
    inner = f"SELECT {column}, count(*) AS n FROM {spelled(scan.table.name)} GROUP BY {column}"
    return f"{hint}, or by how much each has: SELECT v.n, count(*) FROM ({inner}) AS v GROUP BY v.n."


def _counted(aggregate: Aggregate, owned: Owned) -> Aggregate:
    """An aggregate with COUNT(DISTINCT unit) made a count of units: those with a row whose unit column is there."""
    assert isinstance(owned.unit, UnitOf)
    argument = aggregate.argument
    if aggregate.kind is not AggregateKind.COUNT_DISTINCT:
        return aggregate
    if isinstance(argument, ColumnRef) and len(owned.unit.columns) == 1:
        units = replace(aggregate, kind=AggregateKind.COUNT_UNITS)
        if argument in owned.unit.columns:
            return units
        equal = {c for w in owned.block.where if (p := equality(w)) is not None for c in p}
        if argument in equal and _is_root_unit(owned.block, argument):
            return units
        if any(s.number == argument.scan for j in owned.block.joins for s in j.scans) and _is_root_unit(
            owned.block, argument
        ):
            where = conjunction((*conjuncts(aggregate.where), is_present(argument)))
            return replace(units, argument=owned.unit.columns[0], where=where)
    return aggregate


def _is_root_unit(block: Block, reference: ColumnRef) -> bool:
    ownership = block.scan(reference.scan).table.ownership
    return isinstance(ownership, UnitColumns) and ownership.columns == (reference.name,)


__all__ = ["EveryRow", "Owned", "UniqueKeys", "UnitIdentity", "UnitOf", "is_unit_value", "own"]
