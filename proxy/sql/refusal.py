"""How is a node refused that has no meaning over private rows?

Closed world: each rule lists the parts of a node it reads, and any other part that is filled in is refused.
"""

from __future__ import annotations

from sqlglot import exp

from proxy.errors import Unsupported
from proxy.sql.parse import position_of
from proxy.sql.words import construct, part

#: What to write where a clause is left over, by its name in the tree.
_INSTEAD = {
    "limit": "Which rows come first is private. Leave LIMIT out here, or write it behind the aggregates.",
    "offset": "Which rows come first is private. Leave OFFSET out here, or write it behind the aggregates.",
    "sample": "Leave TABLESAMPLE out: rows that are left out by chance save no charge and only add to the noise.",
    "locks": "Leave it out: private tables are only read.",
}
_HINT = "Over private rows: SELECT with aggregates, joins on declared keys, WHERE and GROUP BY."


def refuse(node: exp.Expr, what: str, hint: str = "") -> Unsupported:
    """DP006 for a node, at its position."""
    return Unsupported(what, hint=hint or _HINT, position=position_of(node))


def only(node: exp.Expression, *names: str) -> None:
    """Refuse the node if any part besides `names` is filled in: nothing is silently dropped."""
    for name, value in node.args.items():
        if name not in names and value not in (None, False, []):
            what = f"{construct(node)} with {part(name)} is not supported over private rows"
            raise refuse(node, what, _INSTEAD.get(name, ""))
