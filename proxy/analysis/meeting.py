"""Which scans may meet along the keys that the policy declares, and whose rows do they then show?"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass

from proxy.errors import UnitNotJoined
from proxy.policy.model import JoinKey, Table, UnitColumns, UnitVia
from proxy.sql.algebra.links import link
from proxy.sql.algebra.nodes import Block, ColumnRef, Join, JoinKind, Scalar, Scan, Stored, columns_of
from proxy.sql.syntax.names import spelled

Pairs = tuple[tuple[ColumnRef, ColumnRef], ...]


@dataclass(frozen=True, slots=True)
class UniqueKeys:
    """Columns of tables whose uniqueness the engine has verified for this data version."""

    columns: frozenset[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Met:
    """What the outer joins of a block add to its rows. fan_out: public scans that may repeat rows."""

    private: tuple[Scan, ...]
    fan_out: tuple[Scan, ...]


def links(conditions: Iterable[Scalar]) -> Pairs:
    """The equalities that may join rows."""
    return tuple(p for c in conditions if (p := link(c)) is not None)


def check_joins(block: Block, unique: UniqueKeys, added: Set[int] = frozenset()) -> Met:
    """Every row of a join must be public, or belong to the unit of the row that it meets. Raises UnitNotJoined.

    Claim: the rows that a row of unit u meets are rows of u and public rows. So all rows of u in the result are a
    function of u's own rows, whoever else is in the database.

    added: scans that the statement does not name, so that what is said of a refusal does not either.
    """
    reached = {s.number: s for s in block.scans}
    private: list[Scan] = []
    fan_out: list[Scan] = []
    for join in block.joins:
        if join.kind is not JoinKind.LEFT and _is_public_question(join):
            continue
        found = _check_join(join, reached, unique, added)
        if join.kind is JoinKind.LEFT:
            reached = {**reached, **{s.number: s for s in join.scans}}
            private += found.private
            fan_out += found.fan_out
    return Met(tuple(private), tuple(fan_out))


def _is_public_question(join: Join) -> bool:
    """Whether a condition asks something of public tables that is the same for all rows."""
    own = {s.number for s in join.scans}
    return all(s.table.is_public for s in join.scans) and all(c.scan in own for on in join.on for c in columns_of(on))


def _check_join(join: Join, before: Mapping[int, Scan], unique: UniqueKeys, added: Set[int]) -> Met:
    pairs, reached, waiting = links(join.on), dict(before), list(join.scans)
    fan_out = []
    while waiting:
        scan = next((s for s in waiting if _is_met(s, reached, pairs)), None)
        if scan is None:
            raise _unmet(waiting[0], tuple(reached.values()), added, pairs)
        key = declared_key(scan, reached, pairs)
        if scan.table.is_public and (key is None or (scan.table.name, key.ref_column) not in unique.columns):
            fan_out.append(scan)
        reached[scan.number] = scan
        waiting.remove(scan)
    return Met(tuple(s for s in join.scans if not s.table.is_public), tuple(fan_out))


def _is_met(scan: Scan, reached: Mapping[int, Scan], pairs: Pairs) -> bool:
    if scan.table.is_public:
        return declared_key(scan, reached, pairs) is not None
    return any(has_same_unit(scan, other, pairs) for other in reached.values())


def has_same_unit(scan: Scan, other: Scan, pairs: Pairs) -> bool:
    """Whether rows of two scans that are equal in these columns belong to one unit.

    They are equal in all columns of the unit, or one is found from the other along its path, whose key is unique, or
    both have one and the same parent row.
    """
    equal = {frozenset(p) for p in pairs}
    match scan.table.ownership, other.table.ownership:
        case UnitColumns(), UnitColumns():
            ours, theirs = unit_columns(scan), unit_columns(other)
            return len(ours) == len(theirs) and all(frozenset(p) in equal for p in zip(ours, theirs, strict=True))
        case UnitVia(), _ if _is_parent(other, scan):
            return frozenset((_child_key(scan), _parent_key(other, scan))) in equal
        case _, UnitVia() if _is_parent(scan, other):
            return frozenset((_child_key(other), _parent_key(scan, other))) in equal
        case UnitVia(ours, _, key), UnitVia(theirs, _, same) if (ours, key) == (theirs, same):
            return frozenset((_child_key(scan), _child_key(other))) in equal
        case _:
            return False


def _is_parent(parent: Scan, child: Scan) -> bool:
    return isinstance(child.table.ownership, UnitVia) and is_all_of(parent, child.table.ownership.parent)


def is_all_of(scan: Scan, table: str) -> bool:
    """Whether a scan is that policy table itself; a sub-select over it has neither its keys nor all its rows."""
    return isinstance(scan.rows, Stored) and scan.table.name == table


def _child_key(child: Scan) -> ColumnRef:
    assert isinstance(child.table.ownership, UnitVia)
    return column_of(child, child.table.ownership.on)


def _parent_key(parent: Scan, child: Scan) -> ColumnRef:
    assert isinstance(child.table.ownership, UnitVia)
    return column_of(parent, child.table.ownership.parent_key)


def _unmet(scan: Scan, others: tuple[Scan, ...], added: Set[int], pairs: Pairs) -> UnitNotJoined:
    if scan.table.is_public:
        return UnitNotJoined(
            f'public table "{scan.table.name}" is not joined on a declared key',
            hint=join_hint(scan, others, added, pairs),
        )
    other = next(s for s in others if not s.table.is_public)
    return UnitNotJoined(
        f'"{other.table.name}" and "{scan.table.name}" are not joined on the privacy unit',
        hint=f"Join them with {unit_advice(other.table, scan.table)}.",
    )


# --- keys ---------------------------------------------------------------------------------------------------


def column_of(scan: Scan, name: str) -> ColumnRef:
    """A reference to the column of that name."""
    column = scan.table.column(name)
    assert column is not None, "the policy was checked to have this column"
    return ColumnRef(scan.number, name, column.type)


def unit_columns(scan: Scan) -> tuple[ColumnRef, ...]:
    """The columns that hold the unit."""
    ownership = scan.table.ownership
    assert isinstance(ownership, UnitColumns)
    return tuple(column_of(scan, name) for name in ownership.columns)


def declared_key(scan: Scan, reached: Mapping[int, Scan], pairs: Pairs) -> JoinKey | None:
    """The declared key on which a public scan is equated with one of these."""
    for pair in pairs:
        for ours, theirs in (pair, pair[::-1]):
            if theirs.scan != scan.number or ours.scan not in reached:
                continue
            for key in reached[ours.scan].table.joins:
                if (key.column, key.table, key.ref_column) == (ours.name, scan.table.name, theirs.name):
                    return key
    return None


def join_hint(scan: Scan, private: tuple[Scan, ...], added: Set[int], pairs: Pairs) -> str:
    """What to write for a public table that is not joined. added: see `declared_advice`. pairs: that are equated."""
    table = scan.table
    found = declared_advice(table, private, added)
    if found:
        return f"Join it on {found}." if ", " not in found else f"Join it on one of: {found}."
    names = " and ".join(dict.fromkeys(spelled(s.table.name) for s in private if s.number not in added))
    return (
        f"The policy's joins name no column of {names or 'a private table'} for {spelled(table.name)}. Aggregate first "
        f"and join the groups: {_groups_joined(scan, private, pairs)}"
    )


def _groups_joined(scan: Scan, private: tuple[Scan, ...], pairs: Pairs) -> str:
    """Groups of a private table with the public one, by the columns that the statement equates."""
    other = spelled(scan.table.name)
    for pair in pairs:
        for ours, theirs in (pair, pair[::-1]):
            of = next((s for s in private if s.number == ours.scan and isinstance(s.rows, Stored)), None)
            if of is not None and theirs.scan == scan.number:
                key, name = spelled(ours.name), spelled(of.table.name)
                groups = f"SELECT {key}, count(*) AS n FROM {name} GROUP BY {key}"
                return f"SELECT * FROM ({groups}) AS g JOIN {other} ON g.{key} = {other}.{spelled(theirs.name)}."
    return f"FROM (SELECT x, count(*) AS n ... GROUP BY x) g JOIN {other} ON ..."


def declared_advice(table: Table, private: tuple[Scan, ...], added: Set[int]) -> str:
    """Conditions that would join a public table. added: scans that the statement does not name."""
    return ", ".join(
        f"{_column_name(s.table.name, k.column)} = {_column_name(k.table, k.ref_column)}"
        for s in private if s.number not in added for k in s.table.joins if k.table == table.name
    )  # fmt: skip


def unit_advice(left: Table, right: Table) -> str:
    """A condition that would join two private tables; of tables that the statement names, and of shown columns."""
    for child, parent in ((left, right), (right, left)):
        if isinstance(child.ownership, UnitVia) and child.ownership.parent == parent.name:
            key, met = child.ownership.on, child.ownership.parent_key
            if child.shows(key) and parent.shows(met):
                return f"{_column_name(child.name, key)} = {_column_name(parent.name, met)}"
    names = ("a", "b") if left.name == right.name else (left.name, right.name)
    pairs = zip(left.shown_unit, right.shown_unit, strict=False)
    found = " AND ".join(f"{_column_name(names[0], a)} = {_column_name(names[1], b)}" for a, b in pairs)
    return (found or "a common key of the unit") + (", a and b being the two" if found and names[0] == "a" else "")


def _column_name(table: str, column: str) -> str:
    return f"{spelled(table)}.{spelled(column)}"
