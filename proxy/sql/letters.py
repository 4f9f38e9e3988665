"""How does the engine change the case of a text?

Letter by letter: each becomes one other letter or stays, whatever stands around it. Python's own rules turn one letter
into two, or look at where a word ends; a value spelled by them is a key that no row has.
"""

from __future__ import annotations

_LOWER = {"İ": "i"}
_UPPER = {"ß": "ẞ"}


def lower(text: str) -> str:
    return "".join(_one(c, c.lower(), _LOWER.get(c, c)) for c in text)


def upper(text: str) -> str:
    """Greek letters with an iota below have a form for titles alone, which counts as their upper case."""
    return "".join(_one(c, c.upper(), _one(c, c.title(), _UPPER.get(c, c))) for c in text)


def _one(letter: str, changed: str, otherwise: str) -> str:
    """The changed letter, unless it has become several."""
    return changed if len(changed) == len(letter) else otherwise
