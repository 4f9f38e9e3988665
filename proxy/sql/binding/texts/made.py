"""What do functions mean that put a text together: format, overlay, repeat, chr?"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from types import MappingProxyType

from sqlglot import exp

from proxy.sql.algebra.nodes import Literal, Scalar
from proxy.sql.binding.binder import Binder, Rule
from proxy.sql.binding.texts.patterns import constant_of
from proxy.sql.binding.texts.texts import FARTHEST, constant_integer, joined, part_of, shown
from proxy.sql.syntax.refusal import only, refuse
from proxy.sqltypes import SqlType

_MARKS = re.compile(r"%(?:(?P<place>[1-9][0-9]?)\$)?s|%%|(?P<other>%)|[^%]+")
_FORMAT = "Accepted are %s, %2$s and %%: format('%s-%s', x, y)."
_MOST_REPEATED, _LAST_CHARACTER = 10, 0x10FFFF
_EMPTY = Literal("", SqlType.TEXT)


def _format(binder: Binder, node: exp.Expression) -> Scalar:
    """format('%s-%s', x, y): NULL counts as empty."""
    only(node, "this", "expressions")
    written = constant_of(binder, node, node.this, "the format")
    parts = list(_pieces(binder, node, written))
    return joined(binder, node, parts or [_EMPTY])


def _pieces(binder: Binder, node: exp.Expression, written: str) -> Iterator[Scalar]:
    last = 0
    for mark in _MARKS.finditer(written):
        if mark["other"]:
            raise refuse(node, "this format is not supported over private rows", _FORMAT)
        if not mark[0].endswith("s") or mark[0][0] != "%":
            yield Literal("%" if mark[0] == "%%" else mark[0], SqlType.TEXT)
            continue
        last = int(mark["place"]) if mark["place"] else last + 1
        if last > len(node.expressions):
            raise refuse(node, "too few arguments for format()", _FORMAT)
        value = shown(binder, node, binder.scalar(node.expressions[last - 1]))
        yield value if isinstance(value, Literal) else binder.call(node, "coalesce", value, _EMPTY)


def _overlay(binder: Binder, node: exp.Expression) -> Scalar:
    """overlay(x PLACING 'ab' FROM 2 FOR 1)."""
    only(node, "this", "expression", "from_", "for_")
    value, new = binder.scalar(node.this), binder.scalar(node.expression)
    first, length = constant_integer(binder, node.args["from_"]), node.args.get("for_")
    if length is None and not isinstance(new, Literal):
        raise refuse(node, "overlay needs a length where what is put in is no constant", "Add FOR 3.")
    count = len(str(getattr(new, "value", ""))) if length is None else constant_integer(binder, length)
    if first < 1 or count < 0:
        raise refuse(node, "overlay takes a place from 1 on, and a length",
                     "Write overlay(x PLACING 'ab' FROM 2 FOR 3).")  # fmt: skip
    rest = binder.call(node, "substring from", value, Literal(min(first + count, FARTHEST), SqlType.INT4))
    return joined(binder, node, [part_of(binder, node, value, 1, first), new, rest])


def _bit_length(binder: Binder, node: exp.Expression) -> Scalar:
    only(node, "this")
    octets = binder.call(node, "octet_length", binder.scalar(node.this))
    return binder.call(node, "integer *", octets, Literal(8, SqlType.INT4))


def _repeat(binder: Binder, node: exp.Expression) -> Scalar:
    only(node, "this", "times")
    count = constant_integer(binder, node.args["times"])
    if not 0 < count <= _MOST_REPEATED:
        raise refuse(node, f"repeat takes a constant number from 1 to {_MOST_REPEATED}", "Write rpad('', 20, 'x').")
    return joined(binder, node, [binder.scalar(node.this)] * count)


def _character(binder: Binder, node: exp.Expression) -> Scalar:
    """chr(10), a constant."""
    only(node, "expressions")
    code = constant_integer(binder, node.expressions[0]) if len(node.expressions) == 1 else 0
    if not 0 < code <= _LAST_CHARACTER or 0xD800 <= code < 0xE000:
        raise refuse(node, "chr takes the constant number of a character", "Write chr(10).")
    return Literal(chr(code), SqlType.TEXT)


RULES: Mapping[type, Rule] = MappingProxyType({
    exp.Format: _format, exp.Overlay: _overlay, exp.Repeat: _repeat, exp.Chr: _character,
    exp.BitLength: _bit_length,
})  # fmt: skip
