"""How is a number printed for people? In digits, as many as they read; JSON has all of them."""

from __future__ import annotations

import math
from decimal import Decimal

_SMALL = 1e-4
_LONGEST = 1e15


def figure(number: object, digits: int = 4) -> str:
    """So many significant digits, and two of what is small: `1,000,000`, `2.449`, `0.000012`."""
    assert isinstance(number, (int, float)), "a value of a document that is no number"
    size = abs(number)
    if not math.isfinite(number) or size >= _LONGEST or number == 0:
        return f"{number:.{digits}g}"
    if size >= 10**digits:
        return f"{number:,.0f}"
    return format(Decimal(f"{number:.2g}"), "f") if size < _SMALL else f"{number:.{digits}g}"
