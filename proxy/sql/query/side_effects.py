"""Can what the front computes for a statement change anything that the session's next statement could see?

The list is closed. A function of the client's choice may call `set_config`, a type may be a domain of its own with a
CHECK: such a statement is not inert, which costs a turn with the front and nothing else.
"""

from __future__ import annotations

from sqlglot import exp

from proxy.sql.query.split import Split
from proxy.sql.syntax.long_lists import is_listed

_INERT = frozenset(
    {
        exp.Column, exp.Identifier, exp.Star, exp.Literal, exp.Boolean, exp.Null, exp.Alias, exp.Paren, exp.Neg,
        exp.And, exp.Or, exp.Not, exp.Is, exp.Between, exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE,
        exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Mod, exp.Case, exp.If, exp.Coalesce, exp.Nullif, exp.Round,
        exp.Having, exp.Order, exp.Ordered, exp.Limit, exp.Offset,
        exp.Count, exp.Sum, exp.Avg, exp.Filter, exp.Distinct, exp.Where, exp.In, exp.Tuple,
    }
)  # fmt: skip
_BELOW = frozenset({"from", "from_", "joins", "where", "group"})  # parts that the front never sees


def is_inert(query: Split) -> bool:
    """Whether the statement is one aggregate over private rows, with nothing but harmless arithmetic on its results.

    Names longer than PostgreSQL keeps would be remarked on each time they are read.
    """
    if (
        query.system
        or query.stages
        or [id(b.select) for b in query.blocks] != [id(query.root)]
        or query.blocks[0].inner
    ):
        return False
    if query.emptied or not query.text.isascii() or any(_may_be_cut(t.text) for t in query.tokens):
        return False
    return all(type(node) in _INERT for part in _parts(query.root) for node in part.walk())


_LONGEST_NAME = 63


def _may_be_cut(text: str) -> bool:
    return len(text) >= _LONGEST_NAME and not is_listed(text)


def _parts(root: exp.Expression) -> list[exp.Expression]:
    found = [part for name, part in root.args.items() if name not in _BELOW and part]
    return [e for part in found for e in (part if isinstance(part, list) else [part])]
