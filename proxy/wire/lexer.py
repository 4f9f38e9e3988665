"""How does PostgreSQL cut a query string into tokens?

Follows its scanner for comments, strings, dollar quotes and quoted names, so that a word inside one of these is not
taken for a keyword. Assumes standard_conforming_strings (clients cannot turn it off). Knows no grammar.
Source: PostgreSQL documentation, "Lexical Structure".
"""

from __future__ import annotations

import enum
import re
from collections.abc import Iterator
from dataclasses import dataclass


class Sort(enum.Enum):
    """Kinds of token."""

    WORD = enum.auto()  # a keyword or unquoted name; text is in lower case
    NAME = enum.auto()  # a quoted name; text without the quotes
    ESCAPED_NAME = enum.auto()  # U&"..."; text as written
    STRING = enum.auto()  # text without the quotes; escapes of E'' and U&'' are not resolved
    NUMBER = enum.auto()  # a number or a parameter, `$1`
    SYMBOL = enum.auto()  # any other single character


@dataclass(frozen=True, slots=True)
class Token:
    """start, end: offsets in characters. is_plain: a string without escapes, whose text is its value.

    bodies: of a quoted string, what stands between its quotes, as written; several if it goes on in later lines.
    """

    sort: Sort
    text: str
    start: int
    end: int
    is_plain: bool = True
    bodies: tuple[str, ...] = ()


_TOKEN = re.compile(
    r"""
      (?P<space>   [\ \t\n\r\f\v]+ | --[^\n\r]* )
    | (?P<comment> /\* )
    | (?P<dollar>  \$ (?P<tag> (?:[A-Za-z_\x80-\U0010ffff][A-Za-z_0-9\x80-\U0010ffff]*)? ) \$ )
    | (?P<escape>  [eE]' (?: [^'\\] | '' | \\. )* (?: ' | \Z ) )
    | (?P<unicode> [uU]&' (?: [^'] | '' )* (?: ' | \Z ) )
    | (?P<other>   [bBxXnN]' (?: [^'] | '' )* (?: ' | \Z ) )
    | (?P<string>  ' (?: [^'] | '' )* (?: ' | \Z ) )
    | (?P<escaped> [uU]&" (?: [^"] | "" )* (?: " | \Z ) )
    | (?P<name>    " (?: [^"] | "" )* (?: " | \Z ) )
    | (?P<word>    [A-Za-z_\x80-\U0010ffff] [A-Za-z_0-9$\x80-\U0010ffff]* )
    | (?P<number>  [0-9] [A-Za-z_0-9.]* | \$[0-9]+ )
    | (?P<symbol>  . )
    """,
    re.VERBOSE | re.DOTALL,
)

#: Between two quotes of one constant: white space with the end of a line in it.
_CONTINUATION = re.compile(r"'(?:[ \t\f\v]|--[^\n\r]*)*[\n\r](?:[ \t\n\r\f\v]|--[^\n\r]*[\n\r])*'")
#: How a constant goes on behind that, by whether a backslash escapes in it.
_REST = {
    True: re.compile(r"(?: [^'\\] | '' | \\. )* (?: ' | \Z )", re.VERBOSE | re.DOTALL),
    False: re.compile(r"(?: [^'] | '' )* (?: ' | \Z )", re.VERBOSE | re.DOTALL),
}
_QUOTED = frozenset({"escape", "unicode", "other", "string"})

_COMMENT_EDGE = re.compile(r"/\*|\*/")


def tokens(text: str, at: int = 0) -> Iterator[Token]:
    """All tokens but white space and comments, in order. Raises nothing: what is unfinished ends the text.

    at: where to begin, outside of any token.
    """
    while match := _TOKEN.match(text, at):
        kind = match.lastgroup
        end = match.end()
        if kind == "comment":
            end = _comment_end(text, end)
        elif match["dollar"] is not None:
            place = text.find(match["dollar"], end)
            closing = len(text) if place < 0 else place
            string_end = min(len(text), closing + len(match["dollar"]))
            yield Token(Sort.STRING, text[end:closing], at, string_end)
            end = string_end
        elif kind in _QUOTED:
            found = _string(kind or "", text, at, end)
            yield found
            end = found.end
        elif kind != "space":
            yield _token(kind or "", match[0], at, end)
        at = end


def _token(kind: str, raw: str, start: int, end: int) -> Token:
    match kind:
        case "word":
            return Token(Sort.WORD, raw.lower(), start, end)
        case "name":
            return Token(Sort.NAME, raw[1:].removesuffix('"').replace('""', '"'), start, end)
        case "escaped":
            return Token(Sort.ESCAPED_NAME, raw, start, end)
        case "number":
            return Token(Sort.NUMBER, raw, start, end)
        case _:
            return Token(Sort.SYMBOL, raw, start, end)


def _string(kind: str, text: str, start: int, end: int) -> Token:
    """A constant whose first line ends at `end`, with what goes on with it in later lines."""
    opened = text.index("'", start) + 1
    bodies, following = [text[opened:end].removesuffix("'")], _CONTINUATION.match(text, end - 1)
    while following:
        rest = _REST[kind == "escape"].match(text, following.end())
        end = rest.end() if rest else len(text)
        bodies.append(text[following.end() : end].removesuffix("'"))
        following = _CONTINUATION.match(text, end - 1)
    is_plain = kind == "string"
    shown = "".join(bodies).replace("''", "'") if is_plain else text[start:end]
    return Token(Sort.STRING, shown, start, end, is_plain=is_plain, bodies=tuple(bodies))


def _comment_end(text: str, at: int) -> int:
    """Where a comment ends that began before `at`; comments nest."""
    depth = 1
    while depth:
        edge = _COMMENT_EDGE.search(text, at)
        if edge is None:
            return len(text)
        depth += 1 if edge[0] == "/*" else -1
        at = edge.end()
    return at


@dataclass(frozen=True, slots=True)
class StatementSpan:
    """One statement of a string: its tokens and where it lies, semicolon excluded."""

    tokens: tuple[Token, ...]
    start: int
    end: int


def statements(text: str) -> Iterator[StatementSpan]:
    """The statements of a string, empty ones left out."""
    return statements_of(tokens(text))


def statements_of(found: Iterator[Token]) -> Iterator[StatementSpan]:
    """The statements that these tokens make, empty ones left out."""
    collected: list[Token] = []
    for token in found:
        if token.sort is Sort.SYMBOL and token.text == ";":
            yield from _span(collected)
            collected = []
        else:
            collected.append(token)
    yield from _span(collected)


def _span(collected: list[Token]) -> Iterator[StatementSpan]:
    if collected:
        yield StatementSpan(tuple(collected), collected[0].start, collected[-1].end)
