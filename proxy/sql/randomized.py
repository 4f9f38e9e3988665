"""What may a statement say of columns that were randomized before they were stored, and of local tables?

Nothing yet: what is stored is not what is true, so an answer must know how it was randomized. No relation has such a
column, so no expression can read one.
"""

from __future__ import annotations

from collections.abc import Iterable

from sqlglot import exp

from proxy.policy.model import Column, Table
from proxy.sql.algebra import Scan
from proxy.sql.refusal import refuse


def readable_columns(table: Table) -> tuple[Column, ...]:
    """The columns of a scan that expressions may read."""
    return tuple(c for c in table.columns if not c.hidden and not c.is_randomized)


def check_table(node: exp.Expression, table: Table) -> None:
    """Refuse a local table: its rows belong to nobody, and are shown to nobody."""
    if table.is_local:
        raise refuse(node, f'the local table "{table.name}" cannot be asked about yet',
                     "Its rows were randomized before they were stored. Ask about another table.")  # fmt: skip


def check_name(node: exp.Expression, name: str, scans: Iterable[Scan]) -> None:
    """Refuse the name of a randomized column."""
    if any(_randomized(s.table, name) for s in scans):
        raise refuse(node, f'column "{name}" was randomized before it was stored and cannot be asked about yet',
                     "Leave it out: count(*) and the other columns can be asked for.")  # fmt: skip


def check_every(node: exp.Expression, scans: Iterable[Scan]) -> None:
    """Refuse * where a randomized column is among what it stands for."""
    for scan in scans:
        for column in scan.table.columns:
            check_name(node, column.name, (scan,))


def _randomized(table: Table, name: str) -> bool:
    column = table.column(name)
    return column is not None and column.is_randomized and not column.hidden
