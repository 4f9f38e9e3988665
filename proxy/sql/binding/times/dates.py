"""What do to_date and to_timestamp mean?

PostgreSQL reads texts generously and raises for the rest. Here a text has the shape of the format, with whatever behind
it, or is NULL.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from types import MappingProxyType

from sqlglot import exp

from proxy.sql.advice.instead_of_part import advice
from proxy.sql.algebra.nodes import Case, Literal, Null, Scalar
from proxy.sql.binding.binder import Binder, Rule
from proxy.sql.binding.times.formats import written_format
from proxy.sql.literals.plain_texts import read_plain
from proxy.sql.syntax.refusal import only, refuse
from proxy.sql.syntax.words import construct
from proxy.sqltypes import SqlType, Value

_CONSTANT = "Write DATE '2024-12-31' or TIMESTAMP '2024-12-31 23:59:59'."
_FORMATS = "Accepted are YYYY-MM-DD, DD.MM.YYYY, MM/DD/YYYY, YYYYMMDD, YYYY-MM and their like; or write x::date."
_PARTS = re.compile(r"(?P<part>YYYY|MM|DD)(?P<between>[-/. ]?)", re.IGNORECASE)
_YEAR, _ONE_OR_TWO, _TWO, _BETWEEN = "[0-9][0-9][0-9][0-9]", "[0-9][0-9]?", "[0-9][0-9]", "[^0-9A-Za-z]"
_ONE = Literal(1, SqlType.INT4)


def _date(binder: Binder, node: exp.Expression) -> Scalar:
    """to_date(x, 'DD.MM.YYYY')."""
    only(node, "this", "format")
    value = binder.scalar(node.this)
    form = written_format(binder, node)
    if isinstance(value, Literal) and isinstance(value.value, str) and form.lower() in _SIZES:
        return Literal(_read(node, value.value, form, SqlType.DATE), SqlType.DATE)
    if not value.type.is_text:
        raise refuse(node, f"to_date takes a text, not {value.type.pg_name}", advice(node, binder.source))
    shape = _shape(form)
    if shape is None:
        raise refuse(node, "this format of to_date is not supported over private rows", _FORMATS)
    year, month, day = (_number(binder, node, value, shape, name) for name in ("YYYY", "MM", "DD"))
    whole = Literal(f"^ *{''.join(text for _, text in shape)}([^0-9].*)?$", SqlType.TEXT)
    found = binder.call(node, "make_date", year, month, day)
    return Case(((binder.call(node, "matches", value, whole), found),), Null(SqlType.DATE), SqlType.DATE)


def _shape(written: str) -> Sequence[tuple[str, str]] | None:
    """The parts of a format, each with the pattern it reads; what stands between them is called ""."""
    marks = list(_PARTS.finditer(written))
    names = [mark["part"].upper() for mark in marks]
    separators = [bool(mark["between"]) for mark in marks[:-1]]
    is_whole = "".join(mark[0] for mark in marks) == written and not (marks and marks[-1]["between"])
    if not is_whole or len(set(separators)) > 1 or sorted(names, reverse=True) not in _ACCEPTED:
        return None
    found = list[tuple[str, str]]()
    for number, name in enumerate(names):
        is_open = all(separators) or number == len(names) - 1
        found.append((name, _YEAR if name == "YYYY" else _ONE_OR_TWO if is_open else _TWO))
        if number < len(separators) and separators[number]:
            found.append(("", _BETWEEN))
    return found


_ACCEPTED = (["YYYY"], ["YYYY", "MM"], ["YYYY", "MM", "DD"])


def _number(
    binder: Binder, node: exp.Expression, value: Scalar, shape: Sequence[tuple[str, str]], wanted: str
) -> Scalar:
    """One part of a date; 1 where the format has it not."""
    names = [name for name, _ in shape]
    if wanted not in names:
        return _ONE
    before = "".join(text for _, text in shape[: names.index(wanted)])
    pattern = Literal(f"^ *{before}({shape[names.index(wanted)][1]})", SqlType.TEXT)
    return binder.convert(node, binder.call(node, "extracted", value, pattern, _ONE), SqlType.INT4)


def _timestamp(binder: Binder, node: exp.Expression) -> Scalar:
    """to_timestamp of a constant in the formats that mean what a literal means."""
    only(node, "this", "format")
    value = binder.scalar(node.this)
    if not isinstance(value, Literal):
        raise refuse(node, "to_timestamp with a format takes a constant here",
                     "Write x::timestamp, NULL where the text is none, or to_date(x, 'DD.MM.YYYY').")  # fmt: skip
    form = written_format(binder, node)
    if not isinstance(value.value, str) or form.lower() not in _SIZES:
        raise refuse(node, f"{construct(node)} takes a constant and a common format here", _CONSTANT)
    moment = _read(node, value.value, form, SqlType.TIMESTAMP)
    assert isinstance(moment, datetime)
    return Literal(binder.constants.instant(node, moment), SqlType.TIMESTAMPTZ)


# how many characters a text of each format may have
_SIZES = {"yyyy-mm-dd": (10,), "yyyy-mm-dd hh24:mi:ss": (19,), "yyyy-mm-dd hh24:mi:ss.us": range(21, 27)}


def _read(node: exp.Expression, text: str, form: str, kind: SqlType) -> Value:
    """A text of just the shape of its format; of others PostgreSQL reads what it finds. Raises Unsupported."""
    try:
        value = read_plain(text, kind)
    except ValueError:
        value = None
    if value is None or len(text) not in _SIZES[form.lower()]:
        raise refuse(node, f"'{text[:40]}' has not the shape of this format", _CONSTANT)
    return value


RULES: Mapping[type, Rule] = MappingProxyType({exp.StrToDate: _date, exp.StrToTime: _timestamp})
