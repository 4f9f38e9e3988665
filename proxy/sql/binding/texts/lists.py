"""What do the parts of string_to_array(x, ',') mean: one of them, and their number?"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from sqlglot import exp

from proxy.sql.algebra.nodes import Case, Literal, Null, Scalar
from proxy.sql.binding.binder import Binder, Rule
from proxy.sql.binding.texts.patterns import LONGEST_PART, constant_of, element_of_match, field
from proxy.sql.functions.texts import LONGEST_JOINED
from proxy.sql.syntax.parse import unwrapped
from proxy.sql.syntax.refusal import only, refuse
from proxy.sqltypes import SqlType

_EMPTY = Literal("", SqlType.TEXT)
_ELEMENTS = "(regexp_match(x, 'pattern'))[1] and (string_to_array(x, ','))[2]"


def _list_of(node: exp.Expression | None) -> exp.StringToArray | None:
    found = None if node is None else unwrapped(node)
    return found if isinstance(found, exp.StringToArray) else None


def _read(binder: Binder, listed: exp.StringToArray) -> tuple[Scalar, str]:
    """The text, and what stands between its parts."""
    only(listed, "this", "expression")
    delimiter = constant_of(binder, listed, listed.expression, "the delimiter")
    if not 0 < len(delimiter) <= LONGEST_PART:
        raise refuse(listed, f"string_to_array takes a constant delimiter of 1 to {LONGEST_PART} characters")
    return binder.scalar(listed.this), delimiter


def _characters_between(binder: Binder, node: exp.Expression, value: Scalar, delimiter: str) -> Scalar:
    """How many characters of the text are delimiters."""
    bounds = Literal(1, SqlType.INT4), Literal(LONGEST_JOINED, SqlType.INT4)
    whole = binder.call(node, "substring", value, *bounds)
    rest = binder.call(node, "replace", value, Literal(delimiter, SqlType.TEXT), _EMPTY)
    return binder.call(node, "integer -", binder.call(node, "length", whole), binder.call(node, "length", rest))


def _element(binder: Binder, node: exp.Expression) -> Scalar:
    """(string_to_array(x, ','))[2], NULL where there are fewer, and (regexp_match(x, pattern))[1]."""
    only(node, "this", "expressions")
    listed = _list_of(node.this)
    if listed is None:
        return element_of_match(binder, node, _ELEMENTS)
    written = str(node.expressions[0]) if len(node.expressions) == 1 else ""
    if not written.isdigit():  # the parser counts from 0
        raise refuse(node, "the number of an array element is a constant", f"Accepted: {_ELEMENTS}.")
    before, (value, delimiter) = int(written), _read(binder, listed)
    found = field(binder, node, value, delimiter, before + 1)
    is_there = binder.call(node, "<>", value, _EMPTY)
    if before:
        least = Literal(before * len(delimiter), SqlType.INT4)
        enough = binder.call(node, ">=", _characters_between(binder, node, value, delimiter), least)
        is_there = binder.call(node, "and", is_there, enough)
    return Case(((is_there, found),), Null(SqlType.TEXT), SqlType.TEXT)


def _size(binder: Binder, node: exp.Expression) -> Scalar:
    """array_length(string_to_array(x, ','), 1), NULL for no part, and cardinality, 0 then."""
    only(node, "this", "expression")
    return counted(binder, node, node.this, node.expression)


def counted(binder: Binder, node: exp.Expression, array: exp.Expression, dimension: exp.Expression | None) -> Scalar:
    """How many parts a text has. dimension: of array_length, which is 1."""
    listed = _list_of(array)
    if listed is None or (dimension is not None and str(dimension) != "1"):
        raise refuse(node, "the size of an array is taken of string_to_array(x, ',') only",
                     "Write array_length(string_to_array(x, ','), 1).")  # fmt: skip
    value, delimiter = _read(binder, listed)
    size, one = Literal(len(delimiter), SqlType.INT4), Literal(1, SqlType.INT4)
    between = binder.call(node, "integer /", _characters_between(binder, node, value, delimiter), size)
    branches = [(binder.call(node, "<>", value, _EMPTY), binder.call(node, "integer +", between, one))]
    if dimension is None:
        branches.append((binder.call(node, "=", value, _EMPTY), Literal(0, SqlType.INT4)))
    return Case(tuple(branches), Null(SqlType.INT4), SqlType.INT4)


RULES: Mapping[type, Rule] = MappingProxyType({exp.Bracket: _element, exp.ArraySize: _size})
