"""Which characters of a text do substring, left and right take?

Places may be computed, as in substring(x, position('-' IN x) + 1). A place beyond any text is brought to where none is
as long, so that the engines see small numbers only.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from sqlglot import exp

from proxy.sql.algebra.constants import Untyped
from proxy.sql.algebra.nodes import Call, Case, Literal, Null, Scalar
from proxy.sql.binding.binder import Binder, Rule
from proxy.sql.binding.texts.patterns import first_match
from proxy.sql.binding.texts.texts import FARTHEST, constant_integer, part_of
from proxy.sql.syntax.refusal import only, refuse
from proxy.sqltypes import SqlType

_LONGEST = 2**30  # characters of a text


def _substring(binder: Binder, node: exp.Expression) -> Scalar:
    only(node, "this", "start", "length")
    value = binder.scalar(node.this)
    start, length = node.args.get("start"), node.args.get("length")
    if start is None:
        raise refuse(node, "substring needs a start position", "Write substring(x, 2, 3).")
    if length is None and isinstance(binder.bind(start), Untyped):
        return first_match(binder, node, start)
    first = _number(binder, start)
    if length is None:
        return binder.call(node, "substring from", value, _between(binder, node, first, 1))
    count = _number(binder, length)
    if isinstance(count, Literal) and isinstance(count.value, int) and count.value < 0:
        raise refuse(node, "negative substring length is not allowed", "Write substring(x, 2, 3).")
    if isinstance(first, Literal) and isinstance(count, Literal):
        begin, size = constant_integer(binder, start), constant_integer(binder, length)
        return part_of(binder, node, value, max(begin, 1), max(begin + size, 1))
    return _computed(binder, node, value, first, count)


def _computed(binder: Binder, node: exp.Expression, value: Scalar, first: Scalar, count: Scalar) -> Scalar:
    """From one place on, so many characters; places before the text count, and a length below zero has no answer."""
    if isinstance(first, Literal) and isinstance(first.value, int) and first.value >= 1:
        # not below zero: the test beneath may see another default than the measure, whose columns are clamped
        found = binder.call(node, "substring", value, first, _between(binder, node, count, 0))
    else:
        end = _between(binder, node, binder.call(node, "integer +", first, count), 1)
        begin = _between(binder, node, first, 1)
        size = _between(binder, node, binder.call(node, "integer -", end, begin), 0)
        found = binder.call(node, "substring", value, begin, size)
    if isinstance(count, Literal):
        return found
    has_length = binder.call(node, ">=", count, Literal(0, SqlType.INT4))
    return Case(((has_length, found),), Null(SqlType.TEXT), SqlType.TEXT)


def _left(binder: Binder, node: exp.Expression) -> Scalar:
    only(node, "this", "expression")
    value, count = binder.scalar(node.this), _number(binder, node.expression)
    if isinstance(count, Literal) and isinstance(count.value, int) and count.value >= 0:
        return part_of(binder, node, value, 1, count.value + 1)
    return binder.call(node, "left", value, _between(binder, node, count, -FARTHEST))


def _right(binder: Binder, node: exp.Expression) -> Scalar:
    only(node, "this", "expression")
    value, count = binder.scalar(node.this), _number(binder, node.expression)
    return binder.call(node, "right", value, _between(binder, node, count, -FARTHEST))


def _number(binder: Binder, node: exp.Expression) -> Scalar:
    """A whole number, a constant one if it is the length of a constant."""
    if isinstance(node, exp.Length) and isinstance(node.this, exp.Literal):
        return Literal(constant_integer(binder, node), SqlType.INT4)
    found = binder.scalar(node)
    if isinstance(found, Literal):
        return Literal(constant_integer(binder, node), found.type)
    if not found.type.is_integer:
        raise refuse(node, f"a place in a text is a whole number, not {found.type.pg_name}", "Write x::integer.")
    return found


def _between(binder: Binder, node: exp.Expression, number: Scalar, least: int) -> Scalar:
    """The number, or the nearest that is not too small or too large. NULL stays NULL."""
    ends = Literal(least, SqlType.INT4), Literal(FARTHEST, SqlType.INT4)
    if isinstance(number, Literal) and isinstance(number.value, int):
        return Literal(min(max(number.value, least), FARTHEST), SqlType.INT4)
    known = _range(number)
    if known is not None and least <= known[0] and known[1] <= FARTHEST:
        return number
    # not by comparing: where a measure is clamped, a test may see nothing and let the measure through
    nearest = binder.call(node, "least", binder.call(node, "greatest", number, ends[0]), ends[1])
    return Case(((binder.call(node, "is null", number), Null(nearest.type)),), nearest, nearest.type)


def _range(number: Scalar) -> tuple[int, int] | None:
    """Between which numbers a place lies that is found in a text."""
    match number:
        case Literal(int() as value):
            return value, value
        case Call("position" | "length"):
            return 0, _LONGEST
        case Call("integer +" | "integer -" as sign, (left, right)):
            ours, theirs = _range(left), _range(right)
            if ours is None or theirs is None:
                return None
            if sign == "integer +":
                return ours[0] + theirs[0], ours[1] + theirs[1]
            return ours[0] - theirs[1], ours[1] - theirs[0]
        case _:
            return None


RULES: Mapping[type, Rule] = MappingProxyType({exp.Substring: _substring, exp.Left: _left, exp.Right: _right})
