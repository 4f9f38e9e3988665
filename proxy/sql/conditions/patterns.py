"""Which regular expressions mean the same to PostgreSQL and to the engine?

PostgreSQL's advanced expressions and the engine's (RE2) share a core: characters, `.`, brackets of characters and
ranges, groups, alternatives, `*`, `+`, `?`, `{m,n}`, `^` and `$`. Only that core passes; RE2 takes linear time on it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

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


def atoms(pattern: str) -> Iterator[str]:
    """The parts of a pattern, next to each other; characters and brackets are whole."""
    return (text for _, text in _tokens(pattern))


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


# --- what a match reads --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Found:
    """What a search of one pattern can give. groups: parts in parentheses. may_be_empty: whether it matches nothing."""

    groups: int
    may_be_empty: bool


@dataclass(frozen=True, slots=True)
class _Item:
    """A character of a kind, so often. codes: ASCII; -1 for all others."""

    codes: frozenset[int]
    least: int
    is_variable: bool


def check_extent(pattern: str) -> Found:
    """Raise ValueError unless both engines find the very same part of every text, and the same group in it.

    PostgreSQL looks for the longest match, the engine for that of the first choices. The two agree where characters
    follow each other in one row and each repetition ends where the next character cannot belong to it. One repetition
    may be left open, if the end of the text or nothing variable follows.
    """
    check_regular(pattern)
    tokens = list(_tokens(pattern))
    kinds = [kind for kind, _ in tokens]
    inner = kinds[kinds.index("open") :] if "open" in kinds else []
    if "or" in kinds or kinds.count("open") > 1 or any(a == "close" and b in _REPEATS for a, b in pairwise(inner)):
        raise ValueError("alternatives, repeated and nested groups are not accepted where a part of a text is taken")
    if "anchor" in kinds[1:-1]:
        raise ValueError("^ and $ stand at the ends")
    items = tuple(_items(tokens))
    variable = [i for i, item in enumerate(items) if item.is_variable]
    open_ended = [i for i in variable if items[i].codes & _next(items[i + 1 :])]
    is_bound = tokens[-1:] == [("anchor", "$")] or len(variable) == 1
    if len(open_ended) > (1 if is_bound else 0):
        raise ValueError("it is not clear where a repetition ends; use characters that cannot follow it")
    return Found(kinds.count("open"), all(item.least == 0 for item in items))


_REPEATS = ("repeat", "braces")
_SPECIAL = frozenset(r".^$*+?()[]{}|\\")


def _items(tokens: Sequence[tuple[str, str]]) -> Iterator[_Item]:
    for (kind, text), (after, repeat) in zip(tokens, [*tokens, ("", "")][1:], strict=True):
        if kind == "atom":
            least, is_variable = _times(repeat) if after in _REPEATS else (1, False)
            yield _Item(_codes(text), least, is_variable)


def _times(repeat: str) -> tuple[int, bool]:
    if repeat in ("*", "+", "?"):
        return int(repeat == "+"), True
    least, comma, most = repeat.strip("{}").partition(",")
    return int(least), bool(comma) and least != most


def _codes(atom: str) -> frozenset[int]:
    matched = {c for c in range(128) if re.fullmatch(atom, chr(c), re.DOTALL | re.ASCII)}
    has_others = atom == "." or atom.startswith("[^") or not atom.isascii()
    return frozenset(matched | {-1} if has_others else matched)


def _next(items: Sequence[_Item]) -> frozenset[int]:
    """The characters that may follow."""
    found: frozenset[int] = frozenset()
    for item in items:
        found |= item.codes
        if item.least:
            break
    return found


def of_split(delimiter: str, number: int) -> str:
    """A pattern whose group is that field of split_part; fields below zero count from the end. Raises ValueError."""
    mark = "".join(f"\\{c}" if c in _SPECIAL else c for c in delimiter)
    if number > 0:
        before = f"(?:.*?{mark}){{{number - 1}}}" if number > 1 else ""
        return f"^{before}(.*?)(?:{mark}|$)"
    if any(delimiter.startswith(delimiter[n:]) for n in range(1, len(delimiter))):
        raise ValueError("delimiters that overlap themselves are counted from the start only")
    after = f"(?:{mark}.*?){{{-number - 1}}}" if number < -1 else ""
    return f"^(?:.*{mark})?(.*?){after}$"
