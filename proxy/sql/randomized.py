"""Which tables may a statement not read because of how their rows came about?

Columns that were randomized before they were stored are read like others; where they may stand: `measured`.
"""

from __future__ import annotations

from sqlglot import exp

from proxy.policy.model import Table
from proxy.sql.refusal import refuse


def check_table(node: exp.Expression, table: Table) -> None:
    """Refuse a local table: its rows belong to nobody, and are shown to nobody."""
    if table.is_local:
        raise refuse(node, f'the local table "{table.name}" cannot be asked about yet',
                     "Its rows were randomized before they were stored. Ask about another table.")  # fmt: skip
