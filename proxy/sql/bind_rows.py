"""What does the comparison of two rows of values mean?"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from proxy.sql.algebra import Scalar, conjunction
from proxy.sql.binder import Binder
from proxy.sql.refusal import refuse

Row = Sequence[exp.Expression]


def row_of(node: exp.Expression | None) -> Row | None:
    """The values of (x, y) and ROW(x, y); None for all else."""
    match node:
        case exp.Tuple(expressions=values):
            return tuple(values)
        case exp.Anonymous(this=str() as name, expressions=values) if name.lower() == "row":
            return tuple(values)
        case _:
            return None


def compare_rows(binder: Binder, node: exp.Expression, operator: str, left: Row, right: Row | None) -> Scalar:
    """Rows are equal where all values are; one is less than another where the first that differs is."""
    if right is None or len(left) != len(right) or not left:
        raise refuse(node, "a row is compared with a row of as many values")
    pairs = [binder.together(node, a, b) for a, b in zip(left, right, strict=True)]
    if operator in ("=", "<>"):
        equal = conjunction(tuple(binder.call(node, "=", *pair) for pair in pairs))
        return binder.negated(node, equal, operator == "<>")
    found = binder.call(node, operator, *pairs[-1])
    for pair in reversed(pairs[:-1]):
        same = binder.call(node, "and", binder.call(node, "=", *pair), found)
        found = binder.call(node, "or", binder.call(node, operator[0], *pair), same)
    return found
