"""Which parentheses around joins mean nothing?

`FROM (a JOIN b ON ...) JOIN c ON ...` is `FROM a JOIN b ON ... JOIN c ON ...`. Later stages know the second form only,
so blanks are written for the parentheses: every place in the text stays what it was.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot.tokenizer_core import Token, TokenType

from proxy.sql.syntax.parse import Statement, split_statements

_AFTER = frozenset(
    ("WHERE", "GROUP BY", "HAVING", "WINDOW", "ORDER BY", "LIMIT", "OFFSET", "FETCH", "UNION", "INTERSECT", "EXCEPT",
     ",", ")", "JOIN", "INNER", "LEFT", "RIGHT", "FULL", "CROSS", "NATURAL")
)  # fmt: skip
_DEPTHS = {TokenType.L_PAREN: 1, TokenType.R_PAREN: -1}


def without_parentheses(statement: Statement) -> Statement:
    """The statement without such parentheses; itself if there are none. Raises Unsupported."""
    while (pair := _pair(statement.tokens)) is not None:
        text = list(statement.text)
        for place in pair:
            text[place] = " "
        (found,) = split_statements("".join(text))
        statement = Statement(found.text, statement.start, found.tokens)
    return statement


def _pair(tokens: Sequence[Token]) -> tuple[int, int] | None:
    """Where the first pair stands."""
    for position, token in enumerate(tokens[:-2]):
        if token.token_type is TokenType.FROM and tokens[position + 1].token_type is TokenType.L_PAREN:
            last = _closing(tokens, position + 1)
            if last is not None and _is_nothing(tokens, position + 1, last):
                return tokens[position + 1].start, tokens[last].start
    return None


def _closing(tokens: Sequence[Token], opening: int) -> int | None:
    depth = 0
    for position in range(opening, len(tokens)):
        depth += _DEPTHS.get(tokens[position].token_type, 0)
        if depth == 0:
            return position
    return None


def _is_nothing(tokens: Sequence[Token], opening: int, closing: int) -> bool:
    """Whether a join stands in the parentheses, and no name of its own after them."""
    depth, has_join = 0, False
    for token in tokens[opening:closing]:
        depth += _DEPTHS.get(token.token_type, 0)
        has_join |= depth == 1 and token.token_type is TokenType.JOIN
    is_select = tokens[opening + 1].token_type in (TokenType.SELECT, TokenType.WITH, TokenType.VALUES)
    after = tokens[closing + 1 : closing + 2]
    is_unnamed = all(t.token_type is not TokenType.IDENTIFIER and t.text.upper() in _AFTER for t in after)
    return has_join and not is_select and is_unnamed
