"""How is a node refused that has no meaning over private rows?

Closed world: each rule lists the parts of a node it reads, and any other part that is filled in is refused.
"""

from __future__ import annotations

from sqlglot import exp

from proxy.errors import Unsupported
from proxy.sql.syntax.parse import position_of
from proxy.sql.syntax.words import construct, part

#: What to write where a clause is left over, by its name in the tree.
_INSTEAD = {
    "limit": "Which rows come first is private. Leave LIMIT out here, or write it behind the aggregates.",
    "offset": "Which rows come first is private. Leave OFFSET out here, or write it behind the aggregates.",
    "sample": "Leave TABLESAMPLE out: rows that are left out by chance save no charge and only add to the noise.",
    "locks": "Leave it out: private tables are only read.",
}
_HINT = "Over private rows: SELECT with aggregates, joins on declared keys, WHERE and GROUP BY."


_LONGEST = 200  # characters of a statement that a hint writes out


def _without(node: exp.Expression, *parts: str) -> str:
    """The node's text without some parts; "" if that is long."""
    left = node.copy()
    for name in parts:
        left.set(name, None)
    text = left.sql(dialect="postgres")
    return text if len(text) <= _LONGEST else ""


def _instead(node: exp.Expression, name: str) -> str:
    """What to write where a clause is left over, with what the statement says if that is short."""
    hint = _INSTEAD.get(name, "")
    match name:
        case "limit" | "offset":
            text = _without(node, "limit", "offset", "order")
        case "sample":
            text = _without(node, "sample")
        case _:
            text = ""
    return f"{hint} Here: {text}." if text else hint


def refuse(node: exp.Expr, what: str, hint: str = "") -> Unsupported:
    """DP006 for a node, at its position."""
    return Unsupported(what, hint=hint or _HINT, position=position_of(node))


def only(node: exp.Expression, *names: str) -> None:
    """Refuse the node if any part besides `names` is filled in: nothing is silently dropped."""
    for name, value in node.args.items():
        if name not in names and value not in (None, False, []):
            what = f"{construct(node)} with {part(name)} is not supported over private rows"
            raise refuse(node, what, _instead(node, name))
