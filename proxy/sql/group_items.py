"""Which expressions does a SELECT group by, once numbers are replaced by the items they stand for?"""

from __future__ import annotations

from sqlglot import exp


def group_items(select: exp.Select) -> list[exp.Expression]:
    """What a SELECT groups by, without parentheses."""
    group = select.args.get("group")
    return [] if group is None else [_meant(node, select) for node in group.expressions]


def _meant(node: exp.Expression, select: exp.Select) -> exp.Expression:
    node = node.this if isinstance(node, exp.Paren) else node
    if not isinstance(node, exp.Literal) or node.args.get("is_string") or not str(node.this).isdigit():
        return node
    if not 1 <= int(str(node.this)) <= len(select.expressions):
        return node
    item = select.expressions[int(str(node.this)) - 1]
    inner = item.this if isinstance(item, exp.Alias) else item
    assert isinstance(inner, exp.Expression)
    return inner
