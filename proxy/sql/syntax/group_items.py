"""Which expressions does a SELECT group by, once numbers are replaced by the items they stand for, or by DISTINCT?"""

from __future__ import annotations

from sqlglot import exp


def group_items(select: exp.Select) -> list[exp.Expression]:
    """What a SELECT groups by, without parentheses; DISTINCT without GROUP BY groups by what it shows."""
    group = select.args.get("group")
    if group is not None:
        return [_meant(node, select) for node in group.expressions]
    return [_inner(item) for item in select.expressions] if select.args.get("distinct") else []


def grouping(select: exp.Select) -> exp.Expression | None:
    """The clause that groups."""
    found = select.args.get("group") or select.args.get("distinct")
    assert found is None or isinstance(found, exp.Expression)
    return found


def _meant(node: exp.Expression, select: exp.Select) -> exp.Expression:
    node = node.this if isinstance(node, exp.Paren) else node
    if not isinstance(node, exp.Literal) or node.args.get("is_string") or not str(node.this).isdigit():
        return node
    if not 1 <= int(str(node.this)) <= len(select.expressions):
        return node
    return _inner(select.expressions[int(str(node.this)) - 1])


def _inner(item: exp.Expression) -> exp.Expression:
    inner = item.this if isinstance(item, exp.Alias) else item
    assert isinstance(inner, exp.Expression)
    return inner
