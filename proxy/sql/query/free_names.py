"""Does a sub-query name columns of the query around it?

Told by names alone: a name that nothing inside of the sub-query has is one of the query around. What cannot be known,
as the columns of a temporary table, counts as inside; the binder finds out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from sqlglot import exp

from proxy.sql.relations.scope import Catalog, Ctes, declare
from proxy.sql.syntax.names import identifier, table_name

_Columns = frozenset[str] | None  # None: not known


def names_outside(query: exp.Expression, catalog: Catalog, ctes: Ctes) -> bool:
    """Whether a column of the query is none of the relations that stand inside of it."""
    return any(map(is_outside(query, catalog, ctes), query.find_all(exp.Column)))


def is_outside(query: exp.Expression, catalog: Catalog, ctes: Ctes) -> Callable[[exp.Column], bool]:
    """Tells of a column of the query whether it is none of the relations that stand inside of it."""
    aliases, names, is_known = set[str](), set[str](), True
    for node in query.find_all(exp.Table, exp.Subquery):
        alias = node.args.get("alias")
        aliases.add(identifier(alias.this) if alias is not None else identifier(node.this))
        columns = columns_of(node, catalog, _visible(node, query, ctes))
        is_known = is_known and columns is not None
        names |= columns or frozenset()
    for select in query.find_all(exp.Select):
        names |= {identifier(item.args["alias"]) for item in select.expressions if isinstance(item, exp.Alias)}
    return lambda column: _is_outside(column, aliases, names, is_known)


def _is_outside(column: exp.Column, aliases: set[str], names: set[str], is_known: bool) -> bool:
    prefix = identifier(column.args.get("table"))
    if prefix:
        return prefix not in aliases
    return is_known and not isinstance(column.this, exp.Star) and identifier(column.this) not in names | aliases


def _visible(node: exp.Expr, query: exp.Expression, ctes: Ctes) -> Ctes:
    """The CTEs that a reference inside a query may mean."""
    found = dict(ctes)
    for around in reversed(list(_around(node, query))):
        clause = around.args.get("with_")
        for cte in () if clause is None else clause.expressions:
            name, meaning = declare(cte, found)
            found[name] = meaning
    return found


def _around(node: exp.Expr, query: exp.Expression) -> Iterator[exp.Expr]:
    while node is not query and node.parent is not None:
        node = node.parent
        yield node


def columns_of(node: exp.Expression, catalog: Catalog, ctes: Ctes) -> _Columns:
    """Names of the columns of a table or sub-select in FROM, or more; None: they cannot be known."""
    alias = node.args.get("alias")
    renamed = alias.args.get("columns") if alias is not None else None
    own = frozenset(identifier(c) for c in renamed or ())
    below = _of_table(node, catalog, ctes) if isinstance(node, exp.Table) else _shown(node, catalog, ctes)
    return None if below is None else own | below


def _of_table(node: exp.Table, catalog: Catalog, ctes: Ctes) -> _Columns:
    name = table_name(node)
    if name in ctes and node.args.get("db") is None:
        cte = ctes[name]
        shown = _shown(cte.body, catalog, cte.visible)
        return None if shown is None else shown | frozenset(cte.columns)
    table = catalog.tables.get(name)
    return None if table is None else frozenset(c.name for c in table.columns)


def _shown(query: exp.Expression, catalog: Catalog, ctes: Ctes) -> _Columns:
    """Names of a query's output columns, or more."""
    while isinstance(query, (exp.Subquery, exp.SetOperation)):
        query = query.this
    if not isinstance(query, exp.Select):
        return None
    found = set[str]()
    for item in query.expressions:
        if isinstance(item, exp.Star) or (isinstance(item, exp.Column) and isinstance(item.this, exp.Star)):
            return _all_of(query, catalog, ctes)
        found.add(identifier(item.args["alias"]) if isinstance(item, exp.Alias) else identifier(item.this))
    return frozenset(found)


def _all_of(select: exp.Select, catalog: Catalog, ctes: Ctes) -> _Columns:
    clause = select.args.get("from_")
    found = frozenset[str]()
    for source in [] if clause is None else [clause.this, *(j.this for j in select.args.get("joins") or ())]:
        if not isinstance(source, (exp.Table, exp.Subquery)):
            return None
        columns = columns_of(source, catalog, ctes)
        if columns is None:
            return None
        found |= columns
    return found | frozenset(identifier(i.args["alias"]) for i in select.expressions if isinstance(i, exp.Alias))
