"""Is each name behind a full stop a column, and not a function of the row before it?

PostgreSQL takes `u.count` for count(u) where u has no such column. A statement of rows would then be an aggregate,
whose answer over an empty table says something false.
"""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp

from proxy.sql.binding.output_names import output_name
from proxy.sql.relations.scope import Catalog
from proxy.sql.syntax.names import identifier, table_name
from proxy.sql.syntax.refusal import refuse

ColumnNames = Mapping[str, frozenset[str]]  # of what FROM names


def check_names(tree: exp.Expression, catalog: Catalog, source: str) -> None:
    """Refuse what may be a function of a row. source: the statement. Raises Unsupported.

    Claim: if it does not, each qualified name of the statement is a column of what stands before it.
    """
    for select in tree.find_all(exp.Select):
        known = _columns(select, catalog, source)
        for node in select.find_all(exp.Column, exp.Dot):
            if node.find_ancestor(exp.Select) is select:
                _check(node, known)


def _check(node: exp.Expression, known: ColumnNames) -> None:
    if isinstance(node, exp.Column):
        row, name = identifier(node.args.get("table")), node.this
        if not row:
            return
    else:
        row, name = _row(node.this), node.expression
    if isinstance(name, exp.Star) or identifier(name) in known.get(row, ()):
        return
    written, of = identifier(name), row or "a value"
    raise refuse(
        node, f'"{written}" is no column of {of}: PostgreSQL takes it for the function {written}({of})',
        "Write a column, or an aggregate as such: SELECT count(*).",
    )  # fmt: skip


def _row(node: exp.Expression) -> str:
    """The row of FROM that parentheses hold, "" for anything else."""
    inner = node.unnest()
    return identifier(inner.this) if isinstance(inner, exp.Column) and inner.args.get("table") is None else ""


def _columns(select: exp.Select, catalog: Catalog, source: str) -> ColumnNames:
    clauses = [select.args.get("from_"), *(select.args.get("joins") or ())]
    found = {}
    for item in (c.this for c in clauses if c is not None):
        alias = item.args.get("alias")
        name = identifier(alias.this) if alias is not None else ""
        named = frozenset(identifier(c) for c in alias.args.get("columns") or ()) if alias is not None else frozenset()
        if isinstance(item, exp.Table):
            table = catalog.tables.get(table_name(item, catalog.database))
            own = frozenset(c.name for c in table.columns if not c.hidden) if table is not None else frozenset()
            found[name or identifier(item.this)] = own | named
        elif isinstance(item, exp.Subquery) and isinstance(item.this, exp.Select):
            found[name] = _outputs(item.this, catalog, source) | named
    return found


def _outputs(select: exp.Select, catalog: Catalog, source: str) -> frozenset[str]:
    """The names of a sub-select's columns."""
    inner, found = _columns(select, catalog, source), set()
    for item in select.expressions:
        if isinstance(item, exp.Star):
            found |= {c for columns in inner.values() for c in columns}
        elif isinstance(item, exp.Column) and isinstance(item.this, exp.Star):
            found |= inner.get(identifier(item.args.get("table")), frozenset())
        else:
            found.add(output_name(item, source))
    return frozenset(found)
