"""What statements does a query string hold, and as which trees?

Tokenises and parses with sqlglot's PostgreSQL dialect. A statement is kept with its exact text and
tokens, so that later stages can splice by position instead of writing it anew. Understanding of
names is not here.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import ClassVar

from sqlglot import exp
from sqlglot.dialects.postgres import Postgres
from sqlglot.errors import SqlglotError
from sqlglot.tokenizer_core import Token, TokenType

from proxy.errors import Unsupported
from proxy.sql.syntax.chains import flattened
from proxy.sql.syntax.escapes import PlacedConstant, masked
from proxy.wire import lexer

MAX_DEPTH = 200
MOST_BRACKETS = 8  # nested; the parser's time doubles with each


class _Words(Postgres):
    """PostgreSQL's tokens, without sqlglot's habit of reading the rest of some statements as one string.

    Without its strings, too: `escapes` reads those that are not plain, and `$1,$2` are two parameters.
    """

    class Tokenizer(Postgres.Tokenizer):
        COMMANDS: ClassVar[set[TokenType]] = set()
        COMMAND_PREFIX_TOKENS: ClassVar[set[TokenType]] = set()
        HEREDOC_STRINGS: ClassVar[list[str | tuple[str, str]]] = []
        SINGLE_TOKENS: ClassVar[dict[str, TokenType]] = {**Postgres.Tokenizer.SINGLE_TOKENS, "$": TokenType.PARAMETER}


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


NO_STATEMENT = Statement("", 0, ())


def split_statements(text: str) -> tuple[Statement, ...]:
    """Cut a query string at its top-level semicolons. Raises Unsupported when it cannot be tokenised."""
    tokens = tokenize(text)
    depth, brackets, first = 0, 0, 0
    found: list[Statement] = []
    for position, token in enumerate(tokens):
        kind = token.token_type
        if kind is TokenType.L_PAREN:
            depth += 1
        elif kind is TokenType.R_PAREN:
            depth -= 1
        elif kind is TokenType.L_BRACKET:
            brackets += 1
        elif kind is TokenType.R_BRACKET:
            brackets -= 1
        elif kind is TokenType.SEMICOLON:
            found += _statement(text, tokens[first:position])
            first = position + 1
        if depth > MAX_DEPTH or brackets > MOST_BRACKETS:
            raise Unsupported(
                "statement is nested too deeply",
                hint=f"At most {MAX_DEPTH} levels of parentheses and {MOST_BRACKETS} of brackets are accepted.",
                position=token.start + 1,
            )
    found += _statement(text, tokens[first:])
    return tuple(found)


def tokenize(text: str) -> list[Token]:
    """Tokens of the text with character offsets, where PostgreSQL sees them too. Raises Unsupported."""
    try:
        plain, constants = masked(text)
        found = list(_WORDS.tokenize(plain))
    except (SqlglotError, RecursionError, ValueError) as error:
        raise Unsupported(_UNREADABLE, hint=_SIMPLER_QUOTES) from error
    _check_same_tokens(plain, found)
    return [_valued(t, constants[t.start]) if t.start in constants else t for t in found] if constants else found


def _valued(token: Token, found: PlacedConstant) -> Token:
    kind = TokenType.NUMBER if found.is_number else TokenType.STRING
    return Token(kind, found.value, token.line, token.col, found.start, found.end - 1, token.comments)


_UNREADABLE = "statement names a private table and cannot be read"
_SIMPLER_QUOTES = "Simplify quoting and comments."
_QUOTED = frozenset((lexer.Sort.STRING, lexer.Sort.NAME, lexer.Sort.ESCAPED_NAME))


#: What a text has none of in which strings begin and end at single quotes alone, and every space is one.
_ELABORATE = re.compile(r"""[^\x20-\x7e\t\n\r]|["\\$]|--|/\*|'[ \t]*+[\n\r][ \t\n\r]*+'""")
_STRING = re.compile(r"'[^']*+(?:''[^']*+)*+'")


def _has_same_tokens(text: str, found: Sequence[Token]) -> bool:
    """Whether a text is so simple that this can be said at once: only spaces between tokens, and the same strings."""
    if _ELABORATE.search(text) or text.count("'") % 2:
        return False
    ends, after = dict[int, int](), 0
    for token in found:
        start = token.start
        if start != after and not text[after:start].isspace():
            return False
        after = token.end + 1
        ends[start] = after
    if text[after:].strip():
        return False
    strings = [match.span() for match in _STRING.finditer(text)]
    return all(ends.get(start) == end and not _is_prefix(text[start - 1]) for start, end in strings)


def _is_prefix(character: str) -> bool:
    """Whether a quote behind it may belong to more than a plain string."""
    return character.isalpha() or character == "&"


def _check_same_tokens(text: str, found: list[Token]) -> None:
    """Strings, quoted names and comments must stand where PostgreSQL's scanner sees them. Raises Unsupported."""
    if _has_same_tokens(text, found):
        return
    position = 0
    for theirs in lexer.tokens(text):
        while position < len(found) and found[position].end < theirs.start:
            position += 1
        ours = found[position] if position < len(found) else None
        is_same = ours is not None and ours.start <= theirs.start <= ours.end
        if is_same and theirs.sort in _QUOTED:
            is_same = (ours.start, ours.end + 1) == (theirs.start, theirs.end)  # type: ignore[union-attr]  # not None
        if not is_same:
            raise Unsupported(_UNREADABLE, hint=_SIMPLER_QUOTES, position=theirs.start + 1)


def parse(text: str) -> exp.Expression:
    """The tree of one SELECT-like statement. Raises Unsupported."""
    return _tree(tokenize(text), text)


def parse_statement(statement: Statement) -> exp.Expression:
    """The tree of a statement that was cut into tokens already. Raises Unsupported."""
    return _tree(list(statement.tokens), statement.text)


def parse_item(tokens: Sequence[Token], text: str) -> exp.Expression:
    """The tree of SELECT and what these tokens of a statement say. Raises Unsupported."""
    return _tree([_SELECT, *tokens], text)


_SELECT = Token(TokenType.SELECT, "SELECT", 1, 0, 0, 0, [])


def _tree(tokens: list[Token], text: str) -> exp.Expression:
    try:
        trees = _WORDS.parser().parse(_with_casts(tokens), text)
    except (SqlglotError, RecursionError, ValueError) as error:
        raise Unsupported(
            "statement names a private table and is not understood",
            hint="Write it as SELECT with aggregates, GROUP BY and inner joins.",
        ) from error
    if len(trees) != 1 or not isinstance(trees[0], exp.Expression):
        raise Unsupported("expected one statement")
    flattened(trees[0])
    _check_depth(trees[0])
    if _INVENTED not in text:
        _restore_values(trees[0])
    return trees[0]


_FIELDS = frozenset(("YEAR", "MONTH", "DAY", "HOUR", "MINUTE", "SECOND"))


def _with_casts(tokens: Sequence[Token]) -> list[Token]:
    """INTERVAL '1-2' YEAR TO MONTH as CAST('1-2' AS INTERVAL YEAR TO MONTH), which it is.

    The parser keeps one number of the text alone, and takes words for fields that PostgreSQL takes for names.
    """
    if not any(t.token_type is TokenType.INTERVAL for t in tokens):
        return list(tokens)
    found, place = list[Token](), 0
    while place < len(tokens):
        word, text = tokens[place], tokens[min(place + 1, len(tokens) - 1)]
        place += 1
        if word.token_type is not TokenType.INTERVAL or text.token_type is not TokenType.STRING:
            found.append(word)
            continue
        last = _last_field(tokens, place)
        found += (_made(TokenType.VAR, "CAST", word), _made(TokenType.L_PAREN, "(", word), text,
                  _made(TokenType.ALIAS, "AS", word), word, *tokens[place + 1 : last + 1],
                  _made(TokenType.R_PAREN, ")", word))  # fmt: skip
        place = last + 1
    return found


def _last_field(tokens: Sequence[Token], text: int) -> int:
    """Where the fields behind the text of an interval end; at the text itself if there are none."""
    words = [t.text.upper() if t.token_type is not TokenType.IDENTIFIER else "" for t in tokens[text + 1 : text + 4]]
    if not words or words[0] not in _FIELDS:
        return text
    return text + (3 if len(words) == 3 and words[1] == "TO" and words[2] in _FIELDS else 1)


def _made(kind: TokenType, text: str, near: Token) -> Token:
    return Token(kind, text, start=near.start, end=near.end, line=near.line, col=near.col)


def is_interval(kind: exp.Expression) -> bool:
    """Whether a type of the tree is that of intervals, whatever fields they have."""
    return isinstance(kind.this, exp.Interval) or kind.this is exp.DataType.Type.INTERVAL


_INVENTED = "_values"


def _restore_values(tree: exp.Expression) -> None:
    """Undo the parser's SELECT * FROM (VALUES ...) AS _values for what the text calls VALUES."""
    for values in list(tree.find_all(exp.Values)):
        alias, select = values.args.get("alias"), values.find_ancestor(exp.Select)
        if alias is not None and alias.name == _INVENTED and select is not None:
            values.set("alias", None)
            select.replace(values)


def unwrapped(node: exp.Expression) -> exp.Expression:
    """The node without parentheses around it."""
    while isinstance(node, exp.Paren):
        node = node.this
    return node


@contextmanager
def limited_depth() -> Iterator[None]:
    """Turns the end of Python's stack into a refusal of the statement that is being understood. Raises Unsupported."""
    try:
        yield
    except RecursionError as error:
        raise Unsupported("statement is nested too deeply", hint="Write it with fewer levels.") from error


def _check_depth(tree: exp.Expression) -> None:
    """Later stages descend by recursion. Raises Unsupported."""
    level: list[exp.Expr] = [tree]
    for _ in range(MAX_DEPTH):
        level = [child for node in level for child in node.iter_expressions()]
        if not level:
            return
    raise _too_deep(level[0])


def _too_deep(deepest: exp.Expr) -> Unsupported:
    """What a person calls it: a long chain of one operator, if that is most of the way down."""
    chain, node = Counter[str](), deepest.parent
    while node is not None:
        chain[_CHAINS.get(type(node), "")] += 1
        node = node.parent
    operator, times = max(((o, n) for o, n in chain.items() if o), key=lambda found: found[1], default=("", 0))
    if times <= MAX_DEPTH // 2:
        return Unsupported("statement is nested too deeply", hint=f"At most {MAX_DEPTH} levels are accepted.")
    instead = _INSTEAD_OF_CHAINS.get(operator, "put parentheses around halves of it")
    return Unsupported(
        f"more than {times - 1} times {operator} in one expression",
        detail=f"Each {operator} is a level of nesting, of which {MAX_DEPTH} are accepted.",
        hint=f"In its place {instead}.",
        position=position_of(deepest),
    )


_CHAINS: dict[type[exp.Expr], str] = {
    exp.Add: "+", exp.Sub: "-", exp.Mul: "*", exp.DPipe: "||", exp.Union: "UNION",
}  # fmt: skip
_INSTEAD_OF_CHAINS = {
    "UNION": "write VALUES (1), (2) for SELECT 1 UNION SELECT 2, or one SELECT with GROUP BY",
}


def position_of(node: exp.Expr) -> int:
    """1-based character offset of the node's first positioned token, 0 when it has none."""
    starts = [n.meta["start"] for n in node.walk() if "start" in n.meta]
    return min(starts) + 1 if starts else 0


def _statement(text: str, tokens: list[Token]) -> list[Statement]:
    if not tokens:
        return []
    start, end = tokens[0].start, tokens[-1].end + 1
    shifted = tuple(tokenize(text[start:end])) if start else tuple(tokens)
    return [Statement(text[start:end], start, shifted)]
