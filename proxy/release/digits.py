"""Down to which digit is a noisy number shown?

To the second digit of its noise's standard deviation: what comes after it is noise alone, and rounding there adds less
than a thousandth to the noise. Post-processing of noisy numbers by a public scale, see docs/claims/post-processing.md.
"""

from __future__ import annotations

import math
from dataclasses import replace
from decimal import Decimal

from proxy.release.figure import Figure

_MOST = 12  # digits after the point
_FINER = 1  # more digits, where none are left out that people may want


def last_digit(sd: float, *, is_rounded: bool = True) -> int | None:
    """The place of the last digit after the point, below 0 for one before it; None where nothing is known of noise.

    not is_rounded: one that leaves what was computed as it is, to a hundredth of the noise and no wider than whole.
    """
    if not (math.isfinite(sd) and sd > 0.0):
        return None
    place = 1 - math.floor(math.log10(sd))
    return min(_MOST, place if is_rounded else max(0, place + _FINER))


def rounded(figure: Figure) -> Figure:
    """The number with the digits that its noise leaves."""
    if figure.value is None:
        return figure
    return replace(figure, value=with_digits(figure.value, last_digit(figure.sd)))


def with_digits(value: float, place: int | None) -> float:
    """The nearest number with no digit behind that place."""
    return value if place is None or not math.isfinite(value) else round(value, place) + 0.0


def rounded_up(end: float, place: int | None) -> float:
    """The upper end of an interval with so many digits: a wider interval holds what it held."""
    if place is None or not math.isfinite(end):
        return end
    found = round(end, place)
    return found if found >= end else max(end, round(found + 10.0**-place, place))


def decimal_text(value: float, place: int | None, *, is_rounded: bool) -> str:
    """A number of PostgreSQL's numeric type. is_rounded: digits of the value itself are never cut off."""
    number = Decimal(repr(value)).normalize() if is_rounded else Decimal(value)
    own = number.as_tuple().exponent if is_rounded and place is not None else 0
    digits = max(0, 6 if place is None else place, min(_MOST, -own if isinstance(own, int) else 0))
    return f"{number:.{digits}f}"
