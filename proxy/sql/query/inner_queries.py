"""Which queries stand inside a SELECT, in which part of it, and does it aggregate its own rows?"""

from __future__ import annotations

from itertools import islice

from sqlglot import exp

from proxy.sql.binding.aggregates.aggregates import is_aggregate_call
from proxy.sql.binding.subqueries import membership
from proxy.sql.syntax.group_items import group_items
from proxy.sql.syntax.names import identifier


def sources_of(select: exp.Select) -> list[exp.Expression]:
    """What stands in FROM: tables, sub-queries and joins of them, in order."""
    clause = select.args.get("from_")
    first = [] if clause is None else [clause.this]
    joins = [j.this for j in select.args.get("joins") or ()]
    return [*first, *joins, *(select.args.get("laterals") or ())]


def part_of(query: exp.Expression, select: exp.Select) -> str:
    """The clause of a SELECT in which a sub-query stands."""
    node: exp.Expr = query
    while node.parent is not None and node.parent is not select:
        node = node.parent
    return str(node.arg_key)


def is_asked(query: exp.Select) -> bool:
    """Whether a sub-query is that of EXISTS, IN or their like."""
    node = query.parent
    while isinstance(node, (exp.Subquery, exp.Any, exp.All)):
        node = node.parent
    found = membership(node) if isinstance(node, (exp.Exists, exp.In, exp.EQ, exp.NEQ)) else None
    return found is not None and found.query is query


def is_below_groups(query: exp.Expression, select: exp.Select) -> bool:
    """Whether a sub-query stands in what is aggregated or grouped by."""
    keys = group_items(select)
    named = {identifier(k.this) for k in keys if isinstance(k, exp.Column) and not k.args.get("table")}
    keys += [i.this for i in select.expressions if isinstance(i, exp.Alias) and identifier(i.args["alias"]) in named]
    node: exp.Expr | None = query
    while node is not None and node is not select:
        if any(node is key or node == key for key in keys):
            return True
        node = node.parent
    return is_inside_aggregate(query, select)


def is_inside_aggregate(query: exp.Expression, select: exp.Select) -> bool:
    """Whether a sub-query stands in what an aggregate of the SELECT is of."""
    node: exp.Expr | None = query.parent
    while node is not None and node is not select:
        if isinstance(node, exp.Filter) or is_aggregate_call(node):
            return True
        node = node.parent
    return False


def inner_queries(select: exp.Select, parts: tuple[str, ...] = ()) -> list[exp.Expression]:
    """Outermost queries inside a SELECT's expressions (not its FROM sources or CTEs); those of these parts, if any."""
    if len(list(islice(select.find_all(exp.Query), 2))) < 2:  # itself: most have none, and many parts
        return []
    skipped = {id(s) for s in sources_of(select)} | {id(select.args.get("with_"))}
    found: list[exp.Expression] = []

    def search(node: exp.Expression) -> None:
        for child in node.iter_expressions():
            if id(child) in skipped or (node is select and parts and child.arg_key not in parts):
                continue
            if isinstance(child, exp.Query):
                found.append(child)
            else:
                search(child)

    search(select)
    return found


def is_aggregate(select: exp.Select) -> bool:
    """Whether a SELECT groups or aggregates its own rows."""
    if select.args.get("group") is not None or select.args.get("having") is not None:
        return True
    parts = [*select.expressions, select.args.get("order")]
    return any(part is not None and _has_aggregate(part) for part in parts)


def _has_aggregate(node: exp.Expression) -> bool:
    if isinstance(node, exp.Query):
        return False
    if isinstance(node, exp.Window):
        function = node.this.this if isinstance(node.this, exp.Filter) else node.this
        inner = list(function.iter_expressions()) + [c for c in node.iter_expressions() if c is not node.this]
        return any(_has_aggregate(c) for c in inner)
    if is_aggregate_call(node):
        return True
    return any(_has_aggregate(c) for c in node.iter_expressions())
