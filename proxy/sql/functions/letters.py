"""What do the engine's functions make of a known text?

The case changes letter by letter: each becomes one other letter or stays, whatever stands around it. Python's own rules
turn one letter into two, or look at where a word ends; a value spelled by them is a key that no row has.
"""

from __future__ import annotations

import enum
import re
import unicodedata

WORD = r"\pL\p{Nd}\p{Nl}"  # the engine's spelling of letters and digits
IN_WORDS = ("Lu", "Ll", "Lt", "Lm", "Lo", "Nd", "Nl")
_LAST_ANCHOR = re.compile(r"(?<!\\)((?:\\\\)*)\$(?=\)?$)")  # Python's may stand before the last line's end
_LOWER = {"İ": "i"}


def lower(text: str) -> str:
    return "".join(_one(c, c.lower(), _LOWER.get(c, c)) for c in text)


def upper(text: str) -> str:
    """Greek letters with an iota below have a form for titles alone, which counts as their upper case."""
    return "".join(_one(c, c.upper(), _one(c, c.title(), c)) for c in text)


def initcap(text: str) -> str:
    """Words begin with a capital. A word is made of letters and digits."""
    found, is_inside = [], False
    for letter in text:
        found.append(lower(letter) if is_inside else upper(letter))
        is_inside = unicodedata.category(letter) in IN_WORDS
    return "".join(found)


def left(text: str, count: int) -> str:
    """The first letters; below zero, all but so many at the end."""
    return text[:count] if count >= 0 else text[: max(len(text) + count, 0)]


def right(text: str, count: int) -> str:
    """The last letters; below zero, all but so many at the start."""
    return text[max(len(text) - count, 0) :] if count >= 0 else text[-count:]


def translate(text: str, old: str, new: str) -> str:
    """Each letter of `old` becomes the one at its place in `new`, or nothing."""
    return text.translate({ord(a): new[n : n + 1] for n, a in enumerate(old)})


def reversed_(text: str) -> str:
    """Character by character, as PostgreSQL counts them: an accent of its own comes before its letter then."""
    return text[::-1]


def like(text: str, pattern: str) -> bool:
    """Whether a text is as a pattern of LIKE says: `%` any characters, `_` one, a backslash before one that is meant.

    The last `%` so far takes one character more where what comes after it fails, so no pattern takes long.
    """
    marks = _marks(pattern)
    at = place = 0
    many, taken = -1, 0
    while at < len(text):
        if place < len(marks) and marks[place] is _MANY:
            many, taken, place = place, at, place + 1
        elif place < len(marks) and marks[place] in (_ONE, text[at]):
            at, place = at + 1, place + 1
        elif many >= 0:
            taken += 1
            at, place = taken, many + 1
        else:
            return False
    return all(mark is _MANY for mark in marks[place:])


class _Mark(enum.Enum):
    ONE = "_"
    MANY = "%"


_ONE, _MANY = _Mark


def _marks(pattern: str) -> list[str | _Mark]:
    found, rest = list[str | _Mark](), iter(pattern)
    for character in rest:
        match character:
            case "\\":
                found.append(next(rest))
            case "%" | "_":
                found.append(_Mark(character))
            case _:
                found.append(character)
    return found


def extracted(text: str, pattern: str, group: int) -> str:
    """What the group of the first match holds; nothing without a match."""
    found = re.search(_LAST_ANCHOR.sub(r"\1\\Z", pattern), text, re.DOTALL | re.ASCII)
    return (found[group] or "") if found else ""


def _one(letter: str, changed: str, otherwise: str) -> str:
    """The changed letter, unless it has become several."""
    return changed if len(changed) == len(letter) else otherwise
