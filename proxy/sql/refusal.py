"""How is a node refused that has no meaning over private rows?

Closed world: each rule lists the parts of a node it reads, and any other part that is filled in is refused.
"""

from __future__ import annotations

from sqlglot import exp

from proxy.errors import Unsupported
from proxy.sql.parse import position_of
from proxy.sql.words import construct, part

_HINT = "Over private rows: SELECT with aggregates, joins on declared keys, WHERE and GROUP BY."


def refuse(node: exp.Expr, what: str, hint: str = "") -> Unsupported:
    """DP006 for a node, at its position."""
    return Unsupported(what, hint=hint or _HINT, position=position_of(node))


def only(node: exp.Expression, *names: str) -> None:
    """Refuse the node if any part besides `names` is filled in: nothing is silently dropped."""
    for name, value in node.args.items():
        if name not in names and value not in (None, False, []):
            raise refuse(node, f"{construct(node)} with {part(name)} is not supported over private rows")
