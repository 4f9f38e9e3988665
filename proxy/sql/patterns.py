"""Which regular expressions mean the same to PostgreSQL and to the engine?

PostgreSQL's advanced expressions and the engine's (RE2) share a core: characters, `.`, brackets of characters and
ranges, groups, alternatives, `*`, `+`, `?`, `{m,n}`, `^` and `$`. Only that core passes; RE2 takes linear time on it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

MOST_CHARACTERS = 200
_MOST_BRACES = 2  # nested repetitions multiply
_TOKEN = re.compile(
    r"""(?P<atom>\\[^\w\s]|\\d|\.|\[\^?(?:[^\]\[\\\-]-[^\]\[\\\-]|[^\]\[\\\-])+-?\]|[^\\\[\](){}*+?|^$.])
    |(?P<repeat>[*+?])|(?P<braces>\{\d{1,2}(?:,\d{0,2})?\})|(?P<open>\()|(?P<close>\))|(?P<or>\|)|(?P<anchor>[\^$])""",
    re.VERBOSE | re.DOTALL | re.ASCII,
)


def check_regular(pattern: str) -> None:
    """Raise ValueError unless the pattern lies in the shared core."""
    tokens = tuple(_tokens(pattern))
    depth, before = 0, ""
    for kind, _ in tokens:
        if kind in ("repeat", "braces") and before not in ("atom", "close"):
            raise ValueError("a repetition follows nothing")
        if kind in ("or", "close") and before in ("", "or", "open"):
            raise ValueError("an alternative is empty")
        depth += {"open": 1, "close": -1}.get(kind, 0)
        if depth < 0:
            raise ValueError("a parenthesis is closed that was not opened")
        before = kind
    if depth or before == "or":
        raise ValueError("the pattern ends too early")
    if sum(kind == "braces" for kind, _ in tokens) > _MOST_BRACES:
        raise ValueError(f"more than {_MOST_BRACES} repetitions in braces")


def of_similar(pattern: str) -> str:
    """SIMILAR TO's pattern as a regular expression over the whole text. Raises ValueError."""
    plain = {"%": ".*", "_": ".", ".": r"\.", "^": r"\^", "$": r"\$"}
    inner = "".join(plain.get(text, text) for _, text in _tokens(pattern))
    found = f"^({inner})$" if inner else "^$"
    check_regular(found)
    return found


def _tokens(pattern: str) -> Iterator[tuple[str, str]]:
    if len(pattern) > MOST_CHARACTERS:
        raise ValueError(f"the pattern has more than {MOST_CHARACTERS} characters")
    position = 0
    while position < len(pattern):
        found = _TOKEN.match(pattern, position)
        if found is None:
            raise ValueError(f"{pattern[position : position + 5]!r} is not understood")
        yield str(found.lastgroup), found[0]
        position = found.end()
