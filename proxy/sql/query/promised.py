"""Which names in a query are those of tables that the dataset's promise is about, and which tables show their rows?

Told from names alone, before anything is bound: what is planned is looked at again in `analysis.local`.
"""

from __future__ import annotations

from collections.abc import Set

from sqlglot import exp

from proxy.sql.relations.scope import Catalog, Ctes
from proxy.sql.syntax.names import identifier, table_name


def shows_rows(tree: exp.Expression, catalog: Catalog) -> bool:
    """Whether each table that is named shows its rows as they are stored, wherever it is named.

    Claim (docs/claims/local-tables.md): then the front, which holds the rows of such tables and of no others, may
    answer.
    """
    tables = (catalog.tables.get(table_name(node, catalog.database)) for node in tree.find_all(exp.Table))
    return all(table is None or table.shows_rows for table in tables)


def reads_promised(query: exp.Expression, ctes: Ctes, catalog: Catalog, apart: Set[int] = frozenset()) -> bool:
    """Whether a name in a query, or in a CTE that it names, is that of a table of the promise.

    apart: parts, by `id()`, that are not looked at.
    """
    for node in query.walk(prune=lambda part: id(part) in apart):
        if not isinstance(node, exp.Table) or id(node) in apart:
            continue
        name = identifier(node.this)
        if name in ctes and node.args.get("db") is None:
            if reads_promised(ctes[name].body, ctes[name].visible, catalog):
                return True
            continue
        table = catalog.tables.get(table_name(node, catalog.database))
        if table is not None and table.is_promised:
            return True
    return False
