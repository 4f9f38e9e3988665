"""Which one constant stands in tokens and tree for all the constants of a long list?

`x IN (1, 2, ...)` of hundreds of constants is read as one of a single constant, whose text is theirs with zero
characters between, which PostgreSQL's texts do not have. So nothing that looks at tokens or at the tree looks at each.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sqlglot import exp

from proxy.wire import lexer
from proxy.wire.lexer import Sort

FEWEST = 200  # shorter lists stay as they are written
_MARK = "\0"
_STRINGS, _NUMBERS = "'", "#"
_SPACE = r"[ \t\n\r\f\v]*+"
_STRING = r"'[^'\\\0]*+(?:''[^'\\\0]*+)*+'"
_NUMBER = r"[0-9]++(?:\.[0-9]++)?+"
_ITEMS = "|".join(rf"(?:{item}{_SPACE},{_SPACE}){{{FEWEST - 1},}}+{item}" for item in (_STRING, _NUMBER))
_LIST = re.compile(rf"\bIN{_SPACE}\({_SPACE}(?P<items>{_ITEMS}){_SPACE}\)", re.IGNORECASE)
_ITEM = {_STRINGS: re.compile(_STRING), _NUMBERS: re.compile(_NUMBER)}


@dataclass(frozen=True, slots=True)
class LongList:
    """Constants that stand at [start, end) of a text, and the value of the one that stands for them."""

    start: int
    end: int
    value: str


def long_lists(text: str) -> Iterator[LongList]:
    """Those of a text that PostgreSQL's scanner sees too: none in a comment, a string or a name."""
    at = 0
    for match in _LIST.finditer(text):
        start, end = match.span("items")
        before = list(lexer.tokens(text[at:start]))[-2:]
        if [(t.sort, t.text) for t in before] != [(Sort.WORD, "in"), (Sort.SYMBOL, "(")]:
            return  # what is quoted is seldom so long, and may hold any number of these
        yield LongList(start, end, _value(match["items"]))
        at = end


def _value(items: str) -> str:
    if not items.startswith("'"):
        return listed(_ITEM[_NUMBERS].findall(items), is_string=False)
    return listed([s[1:-1].replace("''", "'") for s in _ITEM[_STRINGS].findall(items)], is_string=True)


def listed(texts: Sequence[str], *, is_string: bool) -> str:
    """The text of the one constant that stands for these."""
    return _MARK + (_STRINGS if is_string else _NUMBERS) + _MARK.join(texts)


def is_listed(text: str) -> bool:
    """Whether a constant stands for a list."""
    return text.startswith(_MARK)


def texts_of(text: str) -> tuple[str, ...]:
    """The texts of the constants that one stands for."""
    return tuple(text[2:].split(_MARK)) if is_listed(text) else (text,)


def list_of(items: Sequence[exp.Expression]) -> tuple[tuple[str, ...], bool] | None:
    """The constants that a single one in a list stands for, and whether they are strings; None for any other list."""
    only = items[0] if len(items) == 1 else None
    if not isinstance(only, exp.Literal) or not is_listed(str(only.this)):
        return None
    return texts_of(str(only.this)), str(only.this)[1] == _STRINGS


def written_out(items: Sequence[exp.Expression]) -> Sequence[exp.Expression]:
    """The items of a list, each as itself."""
    found = list_of(items)
    if found is None:
        return items
    texts, is_string = found
    return [exp.Literal.string(text) if is_string else exp.Literal.number(text) for text in texts]
