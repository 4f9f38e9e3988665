"""Which sub-queries over public tables is the front asked for before the SELECT around them, as for a stage's value?

All of them, but those that a private engine computes as joins: whole conditions EXISTS and IN over plain rows, where IN
compares a declared key.
"""

from __future__ import annotations

from sqlglot import exp

from proxy.sql.binding.subqueries import conditions, membership
from proxy.sql.relations.scope import Catalog
from proxy.sql.syntax.names import identifier, table_name

_PLAIN = ("expressions", "from_", "joins", "where", "with_", "kind", "distinct")


def is_asked_first(query: exp.Expression, catalog: Catalog) -> bool:
    """Whether a sub-query over public tables, inside a SELECT over private rows, is asked for first."""
    if query.find(exp.Table) is None:
        return False  # an expression of constants
    around = query.find_ancestor(exp.Select)
    asked = () if around is None else (membership(c) for c in conditions(around.args.get("where")))
    found = next((a for a in asked if a is not None and a.query is query.unnest()), None)
    if found is None or not _is_plain(found.query):
        return True
    return bool(found.left) and not _is_declared(found.left, found.query, catalog)


def _is_plain(select: exp.Select) -> bool:
    """Whether a SELECT shows rows of its tables as they are."""
    if any(v for name, v in select.args.items() if name not in _PLAIN):
        return False
    return not any(item.find(exp.AggFunc, exp.Window, exp.Query) for item in select.expressions)


def _is_declared(left: tuple[exp.Expression, ...], select: exp.Select, catalog: Catalog) -> bool:
    """Whether some column of an IN is a declared key of a table of the sub-query; its names alone are looked at."""
    named = {table_name(t, catalog.database) for t in select.find_all(exp.Table)}
    pairs = {
        (identifier(node.this), identifier(item.this))
        for node, item in zip(left, select.expressions, strict=False)
        if isinstance(node, exp.Column) and isinstance(item.unalias(), exp.Column)
    }
    keys = (k for t in catalog.tables.values() for k in t.joins if k.table in named or not named & set(catalog.tables))
    return any((k.column, k.ref_column) in pairs for k in keys)
