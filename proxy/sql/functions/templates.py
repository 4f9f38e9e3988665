"""How are the places of a function's spelling filled in?"""

from __future__ import annotations

import re

_PLACE = re.compile(r"\{(\*|[0-9])\}")


def fill(template: str, parts: tuple[str, ...]) -> str:
    """The template with `{0}`, `{1}` and `{*}` filled in, in one pass: a part may itself hold such marks."""
    return _PLACE.sub(lambda m: ", ".join(parts) if m[1] == "*" else parts[int(m[1])], template)


def uses(template: str, place: int) -> int:
    """How often a part is written."""
    return sum(m[1] == str(place) for m in _PLACE.finditer(template))
