"""What does to_char of a time mean?

The time is cut to the unit that its format reads, so that a year and a month of bounded times are few texts.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from types import MappingProxyType

from sqlglot import exp

from proxy.sql.algebra.nodes import Literal, Scalar
from proxy.sql.binding.binder import Binder, Rule
from proxy.sql.binding.times.made import formatted_number
from proxy.sql.binding.values import word
from proxy.sql.literals.formats import FormatPiece, finest, pieces_of
from proxy.sql.syntax.complete import format_token
from proxy.sql.syntax.parse import tokenize
from proxy.sql.syntax.refusal import only, refuse
from proxy.sqltypes import SqlType

_FORMATS = "Accepted are patterns like YYYY-MM-DD HH24:MI:SS, Month, Dy, IYYY, IW, Q and AM; put other words in quotes."
_LONGEST_NAME = 9


def _to_char(binder: Binder, node: exp.Expression) -> Scalar:
    only(node, "this", "format")
    value = binder.scalar(node.this)
    form = written_format(binder, node)
    if value.type.is_number:
        return formatted_number(binder, node, value, form)
    if not value.type.is_time:
        raise refuse(node, f"to_char is accepted of times and numbers, not of {value.type.pg_name}")
    try:
        pieces = pieces_of(form)
    except ValueError as error:
        raise refuse(node, f"this format is not supported over private rows: {error}", _FORMATS) from error
    unit = finest([p.unit for p in pieces]) or "year"
    if unit != "microseconds":
        value = binder.call(node, f"date_trunc {unit}", value)
    parts = [_text(binder, node, value, p) for p in pieces]
    return reduce(lambda a, b: binder.call(node, "||", a, b), parts)


def written_format(binder: Binder, node: exp.Expression) -> str:
    """The format that a call ends with, in PostgreSQL's patterns: the parser turns a bare text into another dialect's.

    "" if it has none. Raises Unsupported.
    """
    if node.args.get("format") is None:
        return ""
    token = format_token(node, tokenize(binder.source))
    return word(binder, node, node.args["format"]) if token is None else token.text


def _text(binder: Binder, node: exp.Expression, value: Scalar, piece: FormatPiece) -> Scalar:
    if piece.number:
        return _number(binder, node, value, piece.number)
    found = binder.call(node, "to_char", value, Literal(piece.directives, SqlType.TEXT))
    if piece.case:
        found = binder.call(node, piece.case, found)
    if piece.is_padded:
        found = binder.call(node, "rpad", found, Literal(_LONGEST_NAME, SqlType.INT4), Literal(" ", SqlType.TEXT))
    return found


def _number(binder: Binder, node: exp.Expression, value: Scalar, name: str) -> Scalar:
    """Numbers that have no directive: of the day in the week from Sunday on, of weeks of seven days, of the quarter."""
    field = {"Q": "quarter", "D": "dow", "W": "day", "WW": "doy"}[name]
    number = binder.convert(node, binder.call(node, f"extract {field}", value), SqlType.INT4)
    one, seven = Literal(1, SqlType.INT4), Literal(7, SqlType.INT4)
    if name in ("W", "WW"):
        number = binder.call(node, "integer /", binder.call(node, "integer -", number, one), seven)
    if name != "Q":
        number = binder.call(node, "integer +", number, one)
    text = binder.convert(node, number, SqlType.TEXT)
    if name == "WW":
        text = binder.call(node, "lpad", text, Literal(2, SqlType.INT4), Literal("0", SqlType.TEXT))
    return text


RULES: Mapping[type, Rule] = MappingProxyType({exp.TimeToStr: _to_char})
