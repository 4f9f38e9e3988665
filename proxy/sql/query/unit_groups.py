"""Does a SELECT group by the privacy unit, as far as its names tell?

Only decides whether it may stand below the noise line; the binder then finds out what its names really mean.
"""

from __future__ import annotations

from sqlglot import exp

from proxy.policy.model import UnitColumns
from proxy.sql.relations.scope import Catalog, Ctes
from proxy.sql.syntax.group_items import group_items
from proxy.sql.syntax.names import identifier, table_name
from proxy.sql.syntax.parse import unwrapped


def groups_by_unit(select: exp.Select, catalog: Catalog, ctes: Ctes) -> bool:
    """Whether a grouping expression is a column that holds a unit; SELECT DISTINCT groups by all it shows.

    DISTINCT ON keeps one row of each of its own groups.
    """
    if is_distinct(select):
        return bool(_shown(select, catalog, ctes))
    units, distinct = units_of(select, catalog, ctes), select.args.get("distinct")
    kept = [] if distinct is None or distinct.args.get("on") is None else distinct.args["on"].expressions
    return any(_is_unit(unwrapped(node), units) for node in kept or group_items(select))


def is_distinct(select: exp.Select) -> bool:
    """Whether it asks for different rows of what it reads, and groups by nothing else."""
    found = select.args.get("distinct")
    return found is not None and found.args.get("on") is None and select.args.get("group") is None


def _is_unit(node: exp.Expression, units: frozenset[str]) -> bool:
    if isinstance(node, exp.Coalesce):  # of both sides of a FULL JOIN
        return all(_is_unit(part, units) for part in (node.this, *node.expressions))
    return isinstance(node, exp.Column) and identifier(node.this) in units


def units_of(select: exp.Select, catalog: Catalog, ctes: Ctes) -> frozenset[str]:
    """Names of columns that hold units in what a SELECT reads."""
    clause = select.args.get("from_")
    sources = [] if clause is None else [clause.this, *(j.this for j in select.args.get("joins") or ())]
    return frozenset().union(*(_units_of_source(s, catalog, ctes) for s in sources))


def _units_of_source(node: exp.Expression, catalog: Catalog, ctes: Ctes) -> frozenset[str]:
    if isinstance(node, exp.Table):
        name = table_name(node, catalog.database)
        if name in ctes and node.args.get("db") is None:
            cte = ctes[name]
            return _shown_by(cte.body, catalog, cte.visible)
        table = catalog.tables.get(name)
        ownership = None if table is None else table.ownership
        return frozenset(ownership.columns) if isinstance(ownership, UnitColumns) else frozenset()
    return _shown_by(node.this, catalog, ctes) if isinstance(node, exp.Subquery) else frozenset()


def _shown_by(query: exp.Expression, catalog: Catalog, ctes: Ctes) -> frozenset[str]:
    while isinstance(query, (exp.Subquery, exp.SetOperation)):
        query = query.this  # the first SELECT of a union names its columns
    return _shown(query, catalog, ctes) if isinstance(query, exp.Select) else frozenset()


def _shown(select: exp.Select, catalog: Catalog, ctes: Ctes) -> frozenset[str]:
    """Output columns of a sub-select that hold units."""
    units, found = units_of(select, catalog, ctes), set[str]()
    for item in select.expressions:
        inner = item.this if isinstance(item, exp.Alias) else item
        if isinstance(inner, exp.Star) or (isinstance(inner, exp.Column) and isinstance(inner.this, exp.Star)):
            found |= units
        elif _is_unit(inner, units):
            found.add(identifier(item.args["alias"]) if isinstance(item, exp.Alias) else identifier(inner.this))
    return frozenset(found)
