"""What does `TABLE name` stand for?

PostgreSQL reads it as `SELECT * FROM name`, wherever a SELECT may stand. Later stages know SELECTs only, so it is
written out here, and positions in the longer text are translated back.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlglot.tokenizer_core import Token, TokenType

from proxy.sql.syntax.parentheses import without_parentheses
from proxy.sql.syntax.parse import Statement, split_statements

_WORD, _MEANING = "TABLE", "SELECT * FROM"
_GROWTH = len(_MEANING) - len(_WORD)
_BEFORE = frozenset(
    (TokenType.L_PAREN, TokenType.UNION, TokenType.EXCEPT, TokenType.INTERSECT, TokenType.ALL, TokenType.DISTINCT)
)
_NAMES = frozenset((TokenType.VAR, TokenType.IDENTIFIER, TokenType.ONLY))


@dataclass(frozen=True, slots=True)
class WrittenOut:
    """A statement without TABLE commands. starts: where they stood in the client's text."""

    statement: Statement
    starts: tuple[int, ...] = ()

    def original(self, position: int) -> int:
        """The place in the client's text that a 1-based position of the statement stands for; 0 stays 0."""
        offset = position - 1
        for start in self.starts:
            offset = offset if offset <= start else max(start, offset - _GROWTH)
        return offset + 1


def write_out(statement: Statement) -> WrittenOut:
    """The statement with each TABLE command as a SELECT, and no needless parentheses around joins.

    Raises Unsupported when it cannot be tokenised.
    """
    statement = without_parentheses(statement)
    tokens = statement.tokens
    starts = tuple(t.start for i, t in enumerate(tokens) if _is_command(tokens, i))
    if not starts:
        return WrittenOut(statement)
    ends = (0, *(s + len(_WORD) for s in starts))
    pieces = [statement.text[end:start] for end, start in zip(ends, (*starts, len(statement.text)), strict=True)]
    (written,) = split_statements(_MEANING.join(pieces))
    return WrittenOut(written, starts)


def _is_command(tokens: Sequence[Token], position: int) -> bool:
    """Where a query may begin. After a parenthesis the word may also be a column's label, which no name follows."""
    if tokens[position].token_type is not TokenType.TABLE:
        return False
    before = tokens[position - 1].token_type if position else TokenType.L_PAREN
    if before is TokenType.R_PAREN:
        return position + 1 < len(tokens) and tokens[position + 1].token_type in _NAMES
    return before in _BEFORE
