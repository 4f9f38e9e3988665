"""How is a call of a function written: its name, its arguments and the table it reads, as they stand in the text?

For words to people alone. Nothing is decided by what is found here, and nothing is found where a text is odd.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from proxy.wire.lexer import Sort, Token, tokens

_LONGEST = 120  # characters of an argument that a person reads
_MOST_AROUND = 20  # calls in each other that are looked at, each through to its end
_NAMES = (Sort.WORD, Sort.NAME)
_DEPTH = {"(": 1, "[": 1, ")": -1, "]": -1}


@dataclass(frozen=True, slots=True)
class WrittenCall:
    """name: in lower case. arguments: their texts. table: the first of the FROM clause behind it, "t" if there is none.

    ordered: by what WITHIN GROUP orders.
    """

    name: str
    arguments: tuple[str, ...] = ()
    table: str = "t"
    ordered: str = ""

    def argument(self, place: int, default: str) -> str:
        """The text of an argument, counted from 0; what stands for it if there is none, or one that is too long."""
        given = self.arguments[place] if place < len(self.arguments) else ""
        plain = re.sub(r"(?i)^distinct\s+", "", given)
        return re.split(r"(?i)\s+(?:separator|order\s+by)\s", plain)[0] or default  # group_concat(x SEPARATOR ',')

    @property
    def subject(self) -> str:
        """The first argument that is no constant, or what the call is ordered by."""
        return next((a for a in self.arguments if a and not is_constant(a)), self.ordered or "x")


def is_constant(text: str) -> bool:
    """Whether the text of an argument is one string or number."""
    found = list(tokens(text))
    return len(found) == 1 and found[0].sort in (Sort.STRING, Sort.NUMBER)


def call_at(text: str, start: int) -> WrittenCall | None:
    """The call whose name begins at an offset; None if there is none."""
    found = list(tokens(text[start:]))
    return _call(text[start:], found, 0)


def call_of(text: str, name: str) -> WrittenCall | None:
    """The first call of a function in a text; None if it is not called."""
    found = list(tokens(text))
    named = (at for at, token in enumerate(found) if token.sort is Sort.WORD and token.text == name)
    return next((call for at in named if (call := _call(text, found, at)) is not None), None)


def calls_around(text: str, place: int) -> Iterator[WrittenCall]:
    """The calls whose parentheses hold what begins at an offset, the innermost first; of many those nearest to it."""
    found, opened = list(tokens(text)), list[int]()
    for at, token in enumerate(found):
        if token.start >= place:
            break
        if token.text == "(" and token.sort is Sort.SYMBOL:
            opened.append(at)
        elif token.text == ")" and token.sort is Sort.SYMBOL and opened:
            opened.pop()
    for at in reversed(opened[-_MOST_AROUND:]):
        if (call := _call(text, found, at - 1)) is not None:
            yield call


def _call(text: str, found: Sequence[Token], at: int) -> WrittenCall | None:
    """The call whose name is a token; at: its place, which may be before the first."""
    if not 0 <= at < len(found) - 1 or found[at].sort not in _NAMES or not _is(found[at + 1], "("):
        return None
    depth, begin, arguments = 0, found[at + 1].end, list[str]()
    for place in range(at + 1, len(found)):
        token = found[place]
        depth += _depth(token)
        if depth == 1 and _is(token, ","):
            arguments.append(_argument(text[begin : token.start]))
            begin = token.end
        if depth == 0:
            last = _argument(text[begin : token.start])
            arguments += [last] if last or arguments else []
            behind = found[place + 1 :]
            return WrittenCall(found[at].text.lower(), tuple(arguments), _table(text, behind), _ordered(text, behind))
    return None


def _ordered(text: str, found: Sequence[Token]) -> str:
    """What WITHIN GROUP (ORDER BY x) behind a call orders by."""
    if [t.text for t in found[:5]] != ["within", "group", "(", "order", "by"]:
        return ""
    depth, begin = 1, found[4].end
    for token in found[5:]:
        depth += _depth(token)
        if depth == 0 or (depth == 1 and (_is(token, ",") or token.text in ("asc", "desc", "nulls"))):
            return _argument(text[begin : token.start])
    return ""


def _is(token: Token, symbol: str) -> bool:
    return token.sort is Sort.SYMBOL and token.text == symbol


def _depth(token: Token) -> int:
    return _DEPTH.get(token.text, 0) if token.sort is Sort.SYMBOL else 0


def _argument(text: str) -> str:
    """An argument in one line; "" for one that is too long, or has a comment."""
    line = " ".join(text.split())
    return line if len(line) <= _LONGEST and "--" not in line and "/*" not in line else ""


def _table(text: str, found: Iterable[Token]) -> str:
    depth, is_next = 0, False
    for token in found:
        depth += _depth(token)
        if is_next:
            return text[token.start : token.end] if token.sort in _NAMES else "t"
        is_next = depth <= 0 and token.sort is Sort.WORD and token.text == "from"
    return "t"
