"""Does a tree hold everything that its text says?

A parser for many dialects may drop a word that PostgreSQL acts on. What is computed privately is read
from the tree alone, so its text is compared with it, and a difference is refused.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from proxy.errors import Unsupported
from proxy.sql.syntax.parse import tokenize

# words that change what is computed, each standing in the text of a tree as often as in what was read
_COUNTED = frozenset(
    ("DISTINCT", "FILTER", "OVER", "WITHIN", "EXCLUDE", "TIES", "ROWS", "RANGE", "GROUPS", "IGNORE", "RESPECT", "ONLY",
     "ESCAPE", "COLLATE", "SYMMETRIC", "ANY", "LATERAL", "ORDINALITY", "TABLESAMPLE", "NATURAL")
)  # fmt: skip

# formats of to_date and to_timestamp as the parser keeps them, and as they are written
TIME_FORMATS = {
    "%Y-%m-%d": "yyyy-mm-dd",
    "%Y-%m-%d %H:%M:%S": "yyyy-mm-dd hh24:mi:ss",
    "%Y-%m-%d %H:%M:%S.%f": "yyyy-mm-dd hh24:mi:ss.us",
}


def check_complete(nodes: Iterable[exp.Expr], tokens: Sequence[Token]) -> None:
    """Raises Unsupported at the first token that the trees read from these tokens do not account for."""
    trees = tuple(nodes)
    _check_numbers(tokens)
    told = {t.start for t in _formats(trees, tokens)}
    literals = Counter(_literals(trees))
    spelled: Counter[str] = Counter()
    if any(t.text.upper() in _COUNTED for t in tokens):
        texts = (tree.sql(dialect="postgres", comments=False) for tree in trees)
        spelled.update(t.text.upper() for text in texts for t in tokenize(text))
    for token in tokens:
        word = token.text.upper()
        if token.token_type in (TokenType.STRING, TokenType.NUMBER) and token.start not in told:
            spelling = _spelling(token, literals)
            literals[spelling] -= 1
            if literals[spelling] < 0:
                raise _lost(token)
        elif word in _COUNTED and token.token_type is not TokenType.IDENTIFIER:
            spelled[word] -= 1
            if spelled[word] < 0:
                raise _lost(token)


def _formats(trees: Iterable[exp.Expr], tokens: Sequence[Token]) -> Iterator[Token]:
    """The formats of to_char and to_date, which the parser turns into another dialect's."""
    for tree in trees:
        for node in tree.find_all(exp.TimeToStr, exp.StrToDate):
            if (found := format_token(node, tokens)) is not None:
                yield found


def format_token(node: exp.Expr, tokens: Sequence[Token]) -> Token | None:
    """The constant that ends a call, as it is written; None if something else does."""
    inside = itertools.dropwhile(lambda t: t.start != node.meta.get("start"), tokens)
    depth, before = 0, [TokenType.NULL, TokenType.NULL]
    last: Token | None = None
    for token in inside:
        depth += {TokenType.L_PAREN: 1, TokenType.R_PAREN: -1}.get(token.token_type, 0)
        if token.token_type is TokenType.R_PAREN and depth == 0:
            return last if before == [TokenType.COMMA, TokenType.STRING] else None
        before, last = [before[1], token.token_type], token
    return None


def _spelling(token: Token, literals: Counter[str]) -> str:
    """How the tree spells this literal; the number .5 is a full stop and 5 in the text."""
    text = token.text.lower()
    return f"0.{text}" if literals[text] <= 0 and literals[f"0.{text}"] > 0 else text


def _lost(token: Token) -> Unsupported:
    return Unsupported(f"{token.text[:40]} is not understood here", position=token.start + 1)


def _literals(trees: Iterable[exp.Expr]) -> list[str]:
    return [_written(n) for tree in trees for n in tree.find_all(exp.Literal, exp.Var)]


def _written(literal: exp.Expr) -> str:
    if isinstance(literal.parent, exp.Bracket) and literal.arg_key == "expressions" and str(literal.this).isdigit():
        return str(int(str(literal.this)) + 1)  # the parser counts elements from 0
    is_format = isinstance(literal.parent, (exp.StrToDate, exp.StrToTime)) and literal.arg_key == "format"
    return TIME_FORMATS.get(str(literal.this), "") if is_format else str(literal.this).lower()


def _check_numbers(tokens: Sequence[Token]) -> None:
    """What PostgreSQL takes for no number, such as 5x or 1__0, the parser takes for a number and a name."""
    for token, after in itertools.pairwise(tokens):
        is_joined = token.end + 1 == after.start and after.text[:1].replace("_", "a").isalnum()
        if token.token_type is TokenType.NUMBER and is_joined:
            raise Unsupported("this number is not understood", hint="Write it in decimal digits.",
                              position=token.start + 1)  # fmt: skip
