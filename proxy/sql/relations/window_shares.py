"""What do ntile, percent_rank and cume_dist mean over the rows of one unit?

They are made of places and counts, so that no engine need know them, and rows of one unit decide them alone.
"""

from __future__ import annotations

from sqlglot import exp

from proxy.sql.algebra.nodes import Case, Literal, Null, Scalar, is_present
from proxy.sql.binding.binder import Binder
from proxy.sql.syntax.refusal import refuse
from proxy.sqltypes import SqlType

_MOST_TILES = 1000


def _number(value: int) -> Literal:
    return Literal(value, SqlType.INT8)


def tiles_of(node: exp.Expression) -> int:
    """The constant number of ntile(n). Raises Unsupported."""
    part = node.args.get("this")
    text = str(part.this) if isinstance(part, exp.Literal) and not part.args.get("is_string") else ""
    if not text.isdigit() or not 0 < int(text) <= _MOST_TILES:
        raise refuse(node, f"ntile takes a number from 1 to {_MOST_TILES} over private rows", "Write ntile(4).")
    return int(text)


def tile(binder: Binder, node: exp.Expression, place: Scalar, count: Scalar, tiles: int) -> Scalar:
    """The tile of a row: the first tiles have one row more, as many as rows are left over."""

    def call(name: str, *args: Scalar) -> Scalar:
        return binder.call(node, f"integer {name}", *args)

    size, over = call("/", count, _number(tiles)), call("%", count, _number(tiles))
    earlier = call("-", place, _number(1))
    among_larger = call("/", earlier, call("+", size, _number(1)))  # the larger of the two where it is among these
    among_others = call("/", call("-", earlier, over), size)
    before = binder.call(node, "greatest", among_larger, among_others, _number(0))
    known = binder.call(node, "least", call("+", before, _number(1)), _number(tiles))
    return binder.convert(node, known, SqlType.INT4)


def share(binder: Binder, node: exp.Expression, part: Scalar, whole: Scalar) -> Scalar:
    """How much of a whole a part is, from 0 to 1; 0 of nothing."""
    zero, one = Literal(0.0, SqlType.FLOAT8), Literal(1.0, SqlType.FLOAT8)
    sides = (binder.convert(node, number, SqlType.FLOAT8) for number in (part, whole))
    quotient = binder.call(node, "/", *sides)
    return binder.call(node, "coalesce", _between(binder, node, quotient, zero, one), zero)


def _between(binder: Binder, node: exp.Expression, value: Scalar, low: Scalar, high: Scalar) -> Scalar:
    """The value, known to lie between two others."""
    inside = binder.call(node, "least", binder.call(node, "greatest", value, low), high)
    return Case(((is_present(value), inside),), Null(SqlType.FLOAT8), SqlType.FLOAT8)


def less_one(binder: Binder, node: exp.Expression, number: Scalar) -> Scalar:
    return binder.call(node, "integer -", number, _number(1))
