"""What remains of a private SELECT in the client's own words, once its rows come from an injected relation?

The text of the select list, HAVING, windows, ORDER BY and LIMIT is copied; only the located pieces are
replaced. FROM, WHERE and GROUP BY are dropped: they are below the noise line.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from proxy.sql.render.dialect import quote
from proxy.sql.syntax.locate import TextSpan
from proxy.sql.syntax.refusal import refuse

_AFTER_GROUPS = frozenset(
    (TokenType.HAVING, TokenType.WINDOW, TokenType.ORDER_BY, TokenType.LIMIT, TokenType.OFFSET, TokenType.FETCH)
)


@dataclass(frozen=True, slots=True)
class Edit:
    """Put `text` in the place of `span`, which may be empty."""

    span: TextSpan
    text: str


def unused_name(source: str, kind: str, span: TextSpan) -> str:
    """A quoted name for what stands in the place of a block: of no other block, and not in the client's text."""
    number = 0
    while f"hush_{kind}_{number}" in source:
        number += 1
    return quote(f"hush_{kind}_{number}_{span.start}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Clauses:
    """Where the parts of one SELECT stand. having: its condition, an empty span when there is none.

    items: the end of each select item, in order. having_word: where HAVING begins, else the end of GROUP BY.
    rest: WINDOW, ORDER BY, LIMIT and what follows.
    """

    items: tuple[int, ...]
    selected: TextSpan
    having: TextSpan
    having_word: int
    rest: TextSpan


def find_clauses(select: exp.Select, span: TextSpan, tokens: Sequence[Token]) -> Clauses:
    """Cut a SELECT at its own keywords. tokens: those of the SELECT. Raises Unsupported."""
    outer = outermost(tokens)
    source = next((i for i, t in enumerate(outer) if t.token_type is TokenType.FROM and not _is_operator(outer, i)), 0)
    if not source:
        raise refuse(select, "the FROM clause of this SELECT cannot be found", "Write it without unusual syntax.")
    tail = [t for t in outer[source:] if t.token_type in _AFTER_GROUPS]
    having = next((t for t in tail if t.token_type is TokenType.HAVING), None)
    after = next((t for t in tail if t is not having), None)
    end = span.end if after is None else after.start
    ends = _item_ends(outer[1:source])
    if len(ends) != len(select.expressions) or (having is None) != (select.args.get("having") is None):
        raise refuse(select, "the parts of this SELECT cannot be told apart", "Write it without unusual syntax.")
    return Clauses(
        items=ends,
        selected=TextSpan(tokens[0].start, outer[source].start),
        having=TextSpan(end, end) if having is None else TextSpan(having.end + 1, end),
        having_word=end if having is None else having.start,
        rest=TextSpan(end, span.end),
    )


def outermost(tokens: Sequence[Token]) -> list[Token]:
    """Tokens outside all parentheses; closing ones included."""
    found, depth = [], 0
    for token in tokens:
        if depth == 0 or (depth == 1 and token.token_type is TokenType.R_PAREN):
            found.append(token)
        depth += {TokenType.L_PAREN: 1, TokenType.R_PAREN: -1}.get(token.token_type, 0)
    return found


def _is_operator(outer: Sequence[Token], position: int) -> bool:
    """Whether this FROM belongs to IS [NOT] DISTINCT FROM."""
    return outer[position - 1].token_type is TokenType.DISTINCT


def _item_ends(listed: Sequence[Token]) -> tuple[int, ...]:
    """Ends of the select items: before each comma outside parentheses and brackets, and of the last one."""
    ends, depth, last = [], 0, 0
    for token in listed:
        depth += {TokenType.L_BRACKET: 1, TokenType.R_BRACKET: -1}.get(token.token_type, 0)
        if token.token_type is TokenType.COMMA and not depth:
            ends.append(last)
        last = token.end + 1
    return (*ends, last) if listed else ()


def rewrite(text: str, clauses: Clauses, edits: Sequence[Edit], relation: str) -> str:
    """The SELECT over the injected `relation`, with the edits made; HAVING becomes its WHERE."""
    parts = [_edited(text, clauses.selected, edits), f" FROM {relation}"]
    if clauses.having.start < clauses.having.end:
        parts.append(f" WHERE {_edited(text, clauses.having, edits)}")
    if clauses.rest.start < clauses.rest.end:
        parts.append(f" {_edited(text, clauses.rest, edits)}")
    return "".join(parts)


def _edited(text: str, span: TextSpan, edits: Sequence[Edit]) -> str:
    parts, position = [], span.start
    for edit in sorted(edits, key=lambda e: (e.span.start, e.span.end)):
        if span.start <= edit.span.start and edit.span.end <= span.end:
            assert edit.span.start >= position, "edits do not overlap"
            parts += [text[position : edit.span.start], " ", edit.text, " "]
            position = edit.span.end
    parts.append(text[position : span.end])
    return "".join(parts)
