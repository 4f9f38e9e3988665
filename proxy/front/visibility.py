"""Which logins may share a server?

PostgreSQL's catalogues list every relation and column of a database whatever the grants, and every database and
role of a server. Logins that may see different tables or columns therefore get different servers; so do those whose
sessions begin with different settings, which a server keeps for all of them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from proxy.errors import PolicyError
from proxy.policy.model import (
    Column,
    LocalTable,
    Policy,
    PublicTable,
    Role,
    RowUnit,
    Table,
    UnitColumns,
    UnitVia,
    Users,
)
from proxy.policy.rights import with_columns
from proxy.sqltypes import SqlType


@dataclass(frozen=True, slots=True)
class Visibility:
    """The tables that exist for a group of logins, in the policy's order.

    columns: what exists of those of which not all does. settings: what sessions begin with instead of the usual.
    """

    tables: tuple[str, ...]
    columns: tuple[tuple[str, tuple[str, ...]], ...] = ()
    settings: tuple[tuple[str, str], ...] = ()

    def shown_rows(self, policy: Policy) -> frozenset[tuple[str, str]]:
        """Tables and columns of which rows are stored in a server of these logins."""
        tables = self.shown(policy).tables
        found = (tables[name] for name in self.tables if tables[name].shows_rows)
        return frozenset((table.name, column.name) for table in found for column in visible_columns(table))

    def shown(self, policy: Policy) -> Policy:
        """The policy that their server is made from: no column in it is one that they may not read."""
        named = {name: policy.tables[name] for name in self.tables}
        return replace(policy, tables=with_columns(named, dict(self.columns))) if self.columns else policy


def group_logins(policy: Policy, users: Users) -> dict[Visibility, tuple[str, ...]]:
    """Every visibility that a login has, with its logins. All tables, for nobody, if there is no login.

    Those of roles that groups from outside give are there before anybody has them: a login waits for no server.
    """
    groups: dict[Visibility, list[str]] = {_visibility(policy, role): [] for role in users.roles_of_guests}
    for login in users.everyone.values():
        role = users.roles.get(login.role)
        if role is None:
            raise PolicyError(f'login "{login.name}" has the role "{login.role}", which does not exist')
        visible = _visibility(policy, role)
        groups.setdefault(visible, []).append(login.name)
    if not groups:
        return {Visibility(tuple(policy.tables)): ()}
    return {visible: tuple(logins) for visible, logins in groups.items()}


def _visibility(policy: Policy, role: Role) -> Visibility:
    tables = tuple(name for name in policy.tables if not role.tables or name in role.tables)
    columns = tuple((name, tuple(sorted(role.columns[name]))) for name in tables if name in role.columns)
    return Visibility(tables, columns, tuple(sorted(role.settings.items())))


def visible_columns(table: Table) -> tuple[Column, ...]:
    """The columns that clients may name, in the policy's order."""
    return tuple(c for c in table.columns if not c.hidden)


# --- constraints, as metadata for clients ---------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ShownForeignKey:
    """A foreign key from one column to another table's unique column."""

    column: str
    table: str
    ref_column: str


def primary_key(policy: Policy, visible: Visibility, table: Table) -> tuple[str, ...]:
    """The columns declared to identify a row, () if there are none that clients may see.

    One row per unit makes the unit a key; else a column that other tables find their unit by is one.
    """
    shown = {c.name for c in visible_columns(table)}
    unit = _unique_unit(table)
    if unit:
        return unit if shown.issuperset(unit) else ()
    parent_keys = sorted(_parent_keys(policy, visible, table) & shown)
    return tuple(parent_keys[:1])


def unique_keys(policy: Policy, visible: Visibility, table: Table) -> tuple[str, ...]:
    """Single columns that are unique besides the primary key."""
    shown = {c.name for c in visible_columns(table)}
    primary = primary_key(policy, visible, table)
    return tuple(sorted(k for k in _parent_keys(policy, visible, table) & shown if (k,) != primary))


def references(policy: Policy, visible: Visibility, table: Table) -> tuple[ShownForeignKey, ...]:
    """Foreign keys of `table` whose both ends are visible and whose target is unique."""
    wanted = [ShownForeignKey(j.column, j.table, j.ref_column) for j in table.joins]
    match table.ownership:
        case UnitVia(parent=parent, on=on, parent_key=key):
            wanted.append(ShownForeignKey(on, parent, key))
        case PublicTable() | RowUnit() | UnitColumns() | LocalTable():
            pass
    kept = dict.fromkeys(r for r in wanted if _is_possible(policy, visible, table, r))
    return tuple(kept)


def _unique_unit(table: Table) -> tuple[str, ...]:
    if table.unit_unique and isinstance(table.ownership, UnitColumns):
        return table.ownership.columns
    return ()


def _parent_keys(policy: Policy, visible: Visibility, table: Table) -> set[str]:
    """Columns by which visible children find their unit in this table."""
    children = (policy.tables[name].ownership for name in visible.tables)
    return {c.parent_key for c in children if isinstance(c, UnitVia) and c.parent == table.name}


def _is_possible(policy: Policy, visible: Visibility, table: Table, reference: ShownForeignKey) -> bool:
    if reference.table not in visible.tables:
        return False
    target = policy.tables[reference.table]
    if not (target.is_promised and table.is_promised):  # rows of public and local tables are real and need not obey
        return False
    here = next((c for c in visible_columns(table) if c.name == reference.column), None)
    there = next((c for c in visible_columns(target) if c.name == reference.ref_column), None)
    if here is None or there is None or not _comparable(here.type, there.type):
        return False
    unique = (primary_key(policy, visible, target), *((k,) for k in unique_keys(policy, visible, target)))
    return (reference.ref_column,) in unique


def _comparable(left: SqlType, right: SqlType) -> bool:
    """Whether PostgreSQL accepts a foreign key between the two types."""
    texts = (SqlType.TEXT, SqlType.VARCHAR)
    return left is right or (left.is_integer and right.is_integer) or (left in texts and right in texts)
