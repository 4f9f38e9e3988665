"""Which tokens of a query string bear on whether a statement is refused, found without looking at each of all others?

Statements and tokens are those of `lexer`. Where nothing can matter, many tokens are passed over at once and stand
as a single one without text: a list of a hundred thousand constants, for one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from proxy.wire.lexer import Sort, StatementSpan, Token, statements_of, tokens

#: Words that matter anywhere in a statement, and how many tokens behind each.
_WORDS = {"update": 0, "pg_settings": 0, "pg_notify": 1, "set_config": 5}
#: First words of which more matters, and that.
_STARTS = frozenset(("alter", "analyse", "analyze", "cluster", "create", "drop", "listen", "notify", "reassign",
                     "reindex", "set", "vacuum"))  # fmt: skip
_OF_START = 8
_LETTERS = r"A-Za-z_\x80-\U0010ffff"
_BORING_TOKENS = rf"""
      [\ \t\n\r\f\v,()=<>+*.:%^|&~!@\#?\[\]{{}}\\`]
    | -(?!-) | /(?!\*)
    | (?! [eE]' | [uU]&" | (?:{"|".join(_WORDS)}) (?![{_LETTERS}0-9$]) ) [{_LETTERS}][{_LETTERS}0-9$]*+
    | [0-9][A-Za-z_0-9.]*+
    | '[^']*+(?:''[^']*+)*+'
    | [eE]'(?:[^'\\]|''|\\.)*+' (?! [\ \t\f\v]*+ (?: [\n\r] | -- ) )
    | "(?! (?:{"|".join(_WORDS)}) " ) [^"]*+ (?:""[^"]*+)*+ "
"""
_FLAGS = re.VERBOSE | re.DOTALL | re.IGNORECASE
_BORING = re.compile(rf"(?: {_BORING_TOKENS} | \$[0-9]++ )*+", _FLAGS)
_NO_PARAMETERS = re.compile(rf"(?: {_BORING_TOKENS} )*+", _FLAGS)
_SPACE = " \t\n\r\f\v"


def skimmed(text: str) -> Iterator[StatementSpan]:
    """The statements of a string, as `statements` has them, with the tokens that may matter."""
    return statements_of(_tokens(text))


def first_parameter(text: str) -> Token:
    """The first `$1` or the like that stands in a text outside of all quotes; `$1` at its beginning if none does."""
    at = 0
    while True:
        match = _NO_PARAMETERS.match(text, at)
        token = next(tokens(text, match.end() if match else at), None)
        if token is None:
            return Token(Sort.NUMBER, "$1", 0, 0)
        if token.sort is Sort.NUMBER and token.text.startswith("$"):
            return token
        at = token.end


def _tokens(text: str) -> Iterator[Token]:
    at, wanted, is_first = 0, 1, True
    while True:
        if not wanted:
            match = _BORING.match(text, at)
            passed = match[0].rstrip(_SPACE) if match else ""
            if passed:
                yield Token(Sort.SYMBOL, "", at, at + len(passed))
            at = match.end() if match else at
        token = next(tokens(text, at), None)
        if token is None:
            return
        yield token
        at = token.end
        if token.sort is Sort.SYMBOL and token.text == ";":
            wanted, is_first = 1, True
            continue
        wanted = max(wanted - 1, _wanted_behind(token), _OF_START if is_first and token.text in _STARTS else 0)
        is_first = False


def _wanted_behind(token: Token) -> int:
    if token.sort is Sort.ESCAPED_NAME:
        return 1
    return _WORDS.get(token.text, 0) if token.sort in (Sort.WORD, Sort.NAME) else 0
