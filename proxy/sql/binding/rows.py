"""What do rows of values mean: compared with each other, or counted?"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from sqlglot import exp

from proxy.sql.algebra.nodes import Literal, Scalar, conjunction
from proxy.sql.binding.binder import Binder
from proxy.sql.binding.texts.texts import as_text
from proxy.sql.syntax.refusal import refuse
from proxy.sqltypes import SqlType

RowExpressions = Sequence[exp.Expression]


def row_of(node: exp.Expression | None) -> RowExpressions | None:
    """The values of (x, y) and ROW(x, y); None for all else."""
    match node:
        case exp.Tuple(expressions=values):
            return tuple(values)
        case exp.Anonymous(this=str() as name, expressions=values) if name.lower() == "row":
            return tuple(values)
        case _:
            return None


def compare_rows(
    binder: Binder, node: exp.Expression, operator: str, left: RowExpressions, right: RowExpressions | None
) -> Scalar:
    """Rows are equal where all values are; one is less than another where the first that differs is."""
    pairs = _pairs(binder, node, left, right)
    if operator in ("=", "<>"):
        equal = conjunction(tuple(binder.call(node, "=", *pair) for pair in pairs))
        return binder.negated(node, equal, operator == "<>")
    found = binder.call(node, operator, *pairs[-1])
    for pair in reversed(pairs[:-1]):
        same = binder.call(node, "and", binder.call(node, "=", *pair), found)
        found = binder.call(node, "or", binder.call(node, operator[0], *pair), same)
    return found


def different_rows(binder: Binder, node: exp.Expression, left: RowExpressions, right: RowExpressions | None) -> Scalar:
    """Rows are distinct where any of their values are."""
    tests = (binder.call(node, "is distinct from", *pair) for pair in _pairs(binder, node, left, right))
    return reduce(lambda a, b: binder.call(node, "or", a, b), tests)


def _pairs(
    binder: Binder, node: exp.Expression, left: RowExpressions, right: RowExpressions | None
) -> list[tuple[Scalar, ...]]:
    if right is None or len(left) != len(right) or not left:
        raise refuse(node, "a row is compared with a row of as many values")
    return [binder.together(node, a, b, is_compared=True) for a, b in zip(left, right, strict=True)]


def text_of_row(binder: Binder, node: exp.Expression, row: RowExpressions) -> Scalar:
    """A text that tells rows apart. Each part says how long it is, and a missing one is none: a row that lacks values
    is a value all the same.
    """
    empty, parts = Literal("", SqlType.TEXT), []
    for value in (binder.scalar(part) for part in row):
        text = as_text(binder, node, value)
        length = binder.convert(node, binder.call(node, "length", text), SqlType.TEXT)
        marked = binder.call(node, "||", binder.call(node, "||", length, Literal(":", SqlType.TEXT)), text)
        parts.append(binder.call(node, "||", binder.call(node, "coalesce", marked, empty), Literal(",", SqlType.TEXT)))
    if not parts:
        raise refuse(node, "a row of no values is not counted")
    return reduce(lambda a, b: binder.call(node, "||", a, b), parts)
