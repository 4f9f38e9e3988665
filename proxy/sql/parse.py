"""What statements does a query string hold, and as which trees?

Tokenises and parses with sqlglot's PostgreSQL dialect. A statement is kept with its exact text and
tokens, so that later stages can splice by position instead of writing it anew. Understanding of
names is not here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import sqlglot
from sqlglot import exp
from sqlglot.dialects.postgres import Postgres
from sqlglot.errors import SqlglotError
from sqlglot.tokenizer_core import Token, TokenType

from proxy.errors import Unsupported

MAX_DEPTH = 200
_DIALECT = "postgres"


class _Words(Postgres):
    """PostgreSQL's tokens, without sqlglot's habit of reading the rest of some statements as one string."""

    class Tokenizer(Postgres.Tokenizer):
        COMMANDS: ClassVar[set[TokenType]] = set()
        COMMAND_PREFIX_TOKENS: ClassVar[set[TokenType]] = set()


_WORDS = _Words()


@dataclass(frozen=True, slots=True)
class Statement:
    """One statement: its text without the semicolon, its offset in the string, its tokens."""

    text: str
    start: int
    tokens: tuple[Token, ...]

    def words(self, count: int) -> tuple[str, ...]:
        """The first tokens in upper case."""
        return tuple(t.text.upper() for t in self.tokens[:count])


def split_statements(text: str) -> tuple[Statement, ...]:
    """Cut a query string at its top-level semicolons. Raises Unsupported when it cannot be tokenised."""
    tokens = tokenize(text)
    depth, first = 0, 0
    found: list[Statement] = []
    for position, token in enumerate(tokens):
        depth += _depth_change(token)
        if depth > MAX_DEPTH:
            raise Unsupported(
                "statement is nested too deeply",
                hint=f"At most {MAX_DEPTH} levels of parentheses are accepted.",
                position=token.start + 1,
            )
        if token.token_type is TokenType.SEMICOLON:
            found += _statement(text, tokens[first:position])
            first = position + 1
    found += _statement(text, tokens[first:])
    return tuple(found)


def tokenize(text: str) -> list[Token]:
    """Tokens of the text with character offsets. Raises Unsupported."""
    try:
        return list(_WORDS.tokenize(text))
    except (SqlglotError, RecursionError, ValueError) as error:
        raise Unsupported(
            "statement names a private table and cannot be read",
            hint="Simplify quoting and parameters; write a space between a parameter and a comma.",
        ) from error


def parse(text: str) -> exp.Expression:
    """The tree of one SELECT-like statement. Raises Unsupported."""
    try:
        trees = sqlglot.parse(text, dialect=_DIALECT)
    except (SqlglotError, RecursionError, ValueError) as error:
        raise Unsupported(
            "statement names a private table and is not understood",
            hint="Write it as SELECT with aggregates, GROUP BY and inner joins.",
        ) from error
    if len(trees) != 1 or not isinstance(trees[0], exp.Expression):
        raise Unsupported("expected one statement")
    _check_depth(trees[0])
    return trees[0]


def _check_depth(tree: exp.Expression) -> None:
    """Later stages descend by recursion. Raises Unsupported."""
    level: list[exp.Expr] = [tree]
    for _ in range(MAX_DEPTH):
        level = [child for node in level for child in node.iter_expressions()]
        if not level:
            return
    raise Unsupported(
        "statement is nested too deeply",
        detail="A chain of operators such as AND or + is one level for each of them.",
        hint=f"At most {MAX_DEPTH} levels are accepted; write x IN (1, 2) for x = 1 OR x = 2.",
    )


def position_of(node: exp.Expr) -> int:
    """1-based character offset of the node's first positioned token, 0 when it has none."""
    starts = [n.meta["start"] for n in node.walk() if "start" in n.meta]
    return min(starts) + 1 if starts else 0


def _depth_change(token: Token) -> int:
    if token.token_type is TokenType.L_PAREN:
        return 1
    return -1 if token.token_type is TokenType.R_PAREN else 0


def _statement(text: str, tokens: list[Token]) -> list[Statement]:
    if not tokens:
        return []
    start, end = tokens[0].start, tokens[-1].end + 1
    shifted = tuple(tokenize(text[start:end])) if start else tuple(tokens)
    return [Statement(text[start:end], start, shifted)]
