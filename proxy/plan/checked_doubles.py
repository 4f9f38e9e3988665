"""How does a row's measure become an integer where arithmetic of doubles raises, instead of giving infinity or zero?

The same integers as those of `total_doubles`. What would overflow is beyond the measure's bounds, so it is brought near
them before anything is computed; what would underflow is below one unit of the grid, so it is zero.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from proxy.errors import Unsupported
from proxy.plan.moments import ROW_UNITS, ScaledSum
from proxy.sql.postgres_dialect import POSTGRES, SMALLEST

_LEAST = 1e-100  # half of bounds, which are at most 1e100: what is computed stays far from the ends of the doubles
_TINY = 2.0**-200  # of half of the bounds: whatever is made of such a z is below one unit of the grid


def scaled_integer(
    value: str, scaled: ScaledSum, missing: int, ends: tuple[float, float], stored: str = ""
) -> str:  # fmt: skip
    """trunc(2^30 clamp((x - middle)/half)), `missing` for what is no number. ends: inside them nothing is clamped.

    stored: the numeric column whose value it is; the most usual values are then computed without asking twice.
    """
    _check(scaled)
    double, step = POSTGRES.double, scaled.half / ROW_UNITS
    shifted = f"({value} - {double(scaled.middle)})" if scaled.middle else value
    near, units = _near(value, scaled), double(step)
    least, most = scaled.least * ROW_UNITS, scaled.most * ROW_UNITS
    zero = math.trunc(max(min(0.0, most), least))
    whole = f"trunc({shifted} / {units})::{POSTGRES.small}"
    inside = whole if step <= 1 else f"CASE WHEN abs({shifted}) < {units} THEN 0 ELSE {whole} END"  # else may underflow
    clamped = f"trunc(greatest(least({near} / {units}, {double(most)}), {double(least)}))::{POSTGRES.small}"
    usual = "".join(_usual(stored, scaled, ends)) if stored else ""
    return (
        f"(CASE {usual}WHEN {value} BETWEEN {double(ends[0])} AND {double(ends[1])} THEN {inside}"
        f" WHEN {POSTGRES.finite(value)} THEN CASE WHEN abs({near}) < {units} THEN {zero} ELSE {clamped} END"
        f" ELSE {missing} END)"
    )


def _usual(stored: str, scaled: ScaledSum, ends: tuple[float, float]) -> Iterator[str]:
    """Branches for numerics between the ends and not near zero; a numeric is never farther out than its double."""
    double, step = POSTGRES.double, scaled.half / ROW_UNITS
    if step > 1 and scaled.middle:  # the quotient might underflow
        return
    number = f"{stored}::FLOAT8"
    shifted = f"({number} - {double(scaled.middle)})" if scaled.middle else number
    for low, high in ((max(ends[0], SMALLEST), ends[1]), (ends[0], min(ends[1], -SMALLEST))):
        if low < high:
            whole = f"trunc({shifted} / {double(step)})::{POSTGRES.small}"
            yield f"WHEN {stored} BETWEEN {low!r} AND {high!r} THEN {whole} "


def z(value: str, scaled: ScaledSum, missing: float) -> str:
    """A row's z in [-1, 1], never NULL."""
    _check(scaled)
    double, near = POSTGRES.double, _near(value, scaled)
    return (
        f"(CASE WHEN {POSTGRES.finite(value)} THEN CASE WHEN abs({near}) < {double(scaled.half * _TINY)}"
        f" THEN {double(0.0)} ELSE greatest(least({near} / {double(scaled.half)}, {double(1.0)}), {double(-1.0)}) END"
        f" ELSE {double(missing)} END)"
    )


def _near(value: str, scaled: ScaledSum) -> str:
    """x - middle, at most twice half: beyond half it is clamped anyway."""
    double = POSTGRES.double
    low, high = double(scaled.middle - 2 * scaled.half), double(scaled.middle + 2 * scaled.half)
    return f"(least(greatest({value}, {low}), {high}) - {double(scaled.middle)})"


def _check(scaled: ScaledSum) -> None:
    if scaled.half < _LEAST:
        raise Unsupported(
            "sums of numbers with bounds this near to each other are not supported with engine postgres",
            hint="Multiply by a large constant.",
        )
