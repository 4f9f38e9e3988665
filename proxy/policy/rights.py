"""What of a policy's tables exists for a role?

Tables that it may name, without columns that it may not read, each with the condition on its rows. Whether a condition
can be understood is not known here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from types import MappingProxyType

from proxy.policy.model import JoinKey, Role, Table
from proxy.policy.problems import did_you_mean, one_of


def tables_of(role: Role, tables: Mapping[str, Table]) -> Mapping[str, Table]:
    """The tables as they are for a role.

    Claim (docs/claims/roles.md): of a table of which the role may read some columns all others are hidden, and a table
    with a condition on rows carries it wherever it is named.
    """
    named = {n: t for n, t in tables.items() if not role.tables or n in role.tables}
    return MappingProxyType({
        name: replace(table, rows_where=role.rows[name]) if name in role.rows else table
        for name, table in with_columns(named, role.columns).items()
    })  # fmt: skip


def with_columns(tables: Mapping[str, Table], columns: Mapping[str, tuple[str, ...]]) -> Mapping[str, Table]:
    """The tables without columns beside these, and without joins by what is not shown."""
    if not columns:
        return tables
    shown = {name: _shown(table, columns.get(name)) for name, table in tables.items()}
    return MappingProxyType({name: _joined(table, shown) for name, table in shown.items()})


def column_problems(role: Role, tables: Mapping[str, Table]) -> Iterator[str]:
    """Columns of a role that a policy's tables do not have. Tables of other policies are no matter."""
    for name, columns in role.columns.items():
        known = [c.name for c in tables[name].columns if not c.hidden] if name in tables else list(columns)
        for column in columns:
            if column not in known:
                words = f"there is no column '{column}'{did_you_mean(column, known)}; columns: {one_of(known)}"
                yield f"roles.{role.name}.columns.{name}: {words}"


def _shown(table: Table, columns: tuple[str, ...] | None) -> Table:
    if columns is None:
        return table
    return replace(table, columns=tuple(replace(c, hidden=c.hidden or c.name not in columns) for c in table.columns))


def _joined(table: Table, tables: Mapping[str, Table]) -> Table:
    """The table with the joins whose both ends are shown."""

    def is_shown(key: JoinKey) -> bool:
        ends = (table.column(key.column), tables[key.table].column(key.ref_column) if key.table in tables else None)
        return all(end is not None and not end.hidden for end in ends)

    return replace(
        table,
        joins=tuple(key for key in table.joins if is_shown(key)),
        complete_joins=tuple(key for key in table.complete_joins if is_shown(key)),
    )
