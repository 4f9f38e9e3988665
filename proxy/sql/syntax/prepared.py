"""What does a statement say that was prepared in SQL, and with which values is it executed?

PREPARE and EXECUTE are taken apart by their tokens. The values come from the front, which has computed the arguments.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Sequence
from dataclasses import dataclass

from sqlglot.tokenizer_core import Token, TokenType

from proxy.errors import Unsupported
from proxy.sql.render.dialect import text_literal
from proxy.sql.syntax.names import token_name
from proxy.sql.syntax.parse import Statement, split_statements
from proxy.wire.lexer import Sort, tokens

_NUMBERS = frozenset(("smallint", "integer", "bigint", "numeric", "real", "double precision"))
_NUMBER = re.compile(r"-?[0-9]+(\.[0-9]+)?(e[+-]?[0-9]+)?")
_BITS = {"real": ("float4send", "!f"), "double precision": ("float8send", "!d")}
_TIMES = frozenset(("date", "timestamp without time zone", "timestamp with time zone"))
_QUERIES = frozenset(("SELECT", "WITH", "VALUES", "TABLE"))


@dataclass(frozen=True, slots=True)
class Execution:
    """EXECUTE of a name with the texts of its arguments. cannot_run: one has a sub-query or a parameter."""

    name: str
    arguments: tuple[str, ...]
    cannot_run: bool


def call_of(statement: Statement) -> Execution:
    """An EXECUTE taken apart. Raises Unsupported."""
    held = statement.tokens
    if len(held) < 2 or (len(held) > 2 and (held[2].text, held[-1].text) != ("(", ")")):
        raise Unsupported("this EXECUTE is not understood", hint="Write it as EXECUTE name(value, ...).")
    arguments, depth, start = [], 0, 3
    for position in range(3, len(held)):
        text = held[position].text if held[position].token_type is not TokenType.IDENTIFIER else ""
        is_end = position == len(held) - 1
        if depth == 0 and (text == "," or is_end):
            arguments.append(statement.text[held[start].start : held[position].start])
            start = position + 1
        depth += {"(": 1, "[": 1, ")": -1, "]": -1}.get(text, 0)
    cannot_run = any(t.token_type is TokenType.PARAMETER or _is_query(t) for t in held[2:])
    return Execution(token_name(held[1]), tuple(a for a in arguments if a.strip()), cannot_run)


def _is_query(token: Token) -> bool:
    return token.text.upper() in _QUERIES and token.token_type is not TokenType.STRING


def prepared_text(source: str, name: str) -> str:
    """What a PREPARE of that name in a query string prepares. Raises Unsupported unless there is one."""
    found = [s for s in split_statements(source) if s.words(1) == ("PREPARE",) and token_name(s.tokens[1]) == name]
    if len(found) != 1:
        raise Unsupported(f'the statement "{name}" is not understood', hint="Prepare it in a statement of its own.")
    (statement,) = found
    depth = 0
    for position, token in enumerate(statement.tokens):
        depth += {"(": 1, ")": -1}.get(token.text, 0)
        if depth == 0 and token.text.upper() == "AS" and position > 1:
            return statement.text[token.end + 1 :].strip()
    raise Unsupported(f'the statement "{name}" is not understood')


def asked_as(value: str, kind: str) -> str:
    """What to ask PostgreSQL for to be told a value of a type as `constant` reads it.

    As a text, numbers would be cut as extra_float_digits says, and a zone's abbreviation can mean another zone.
    """
    if kind in _BITS:
        return f"pg_catalog.encode(pg_catalog.{_BITS[kind][0]}({value}), 'hex')"
    if kind in _TIMES:
        return f"pg_catalog.to_jsonb({value}) OPERATOR(pg_catalog.#>>) '{{}}'::pg_catalog.text[]"
    return f"{value}::pg_catalog.text"


def with_values(text: str, values: Sequence[tuple[str | None, str]]) -> str:
    """The text with its parameters written out: $n is the n-th (value, type), or stays if there is none."""
    parts, position = [], 0
    for token in tokens(text):
        if token.sort is Sort.NUMBER and token.text.startswith("$") and 0 < int(token.text[1:]) <= len(values):
            parts += [text[position : token.start], constant(*values[int(token.text[1:]) - 1])]
            position = token.end
    return "".join((*parts, text[position:]))


def constant(value: str | None, kind: str) -> str:
    """A value of a type, given PostgreSQL's names, as SQL spells it. value: what `asked_as` asked for."""
    if value is None or kind not in _BITS:
        return spelled(value, kind)
    (number,) = struct.unpack(_BITS[kind][1], bytes.fromhex(value))
    return spelled(repr(number), kind)


def spelled(value: str | None, kind: str) -> str:
    """The same of a value's text, as PostgreSQL writes it."""
    if value is None:
        return f"NULL::{kind}"
    if kind == "boolean":
        return value
    if kind in _NUMBERS and _NUMBER.fullmatch(value):
        return f"({value})::{kind}" if value.startswith("-") else f"{value}::{kind}"
    return f"{text_literal(value)}::{kind}"
