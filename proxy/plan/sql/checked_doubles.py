"""How does a row's measure become an integer where arithmetic of doubles raises, instead of giving infinity or zero?

The same integers as those of `total_doubles`. What would overflow is beyond the measure's bounds, so it is brought near
them before anything is computed; what would underflow is below one unit of the grid, so it is zero.
"""

from __future__ import annotations

import math

from proxy.errors import Unsupported
from proxy.plan.sql.total_doubles import outermost
from proxy.plan.vector.moments import ROW_UNITS, ScaledSum
from proxy.sql.render.postgres.dialect import LARGEST, LARGEST_NUMERIC, POSTGRES, SMALLEST
from proxy.sqltypes import SqlType

_LEAST = 1e-100  # half of bounds, which are at most 1e100: what is computed stays far from the ends of the doubles
_TINY = 2.0**-200  # of half of the bounds: whatever is made of such a z is below one unit of the grid


def scaled_integer(value: str, scaled: ScaledSum, missing: int) -> str:
    """trunc(2^30 clamp((x - middle)/half)), `missing` for what is no number."""
    _check(scaled)
    double, step = POSTGRES.double, scaled.half / ROW_UNITS
    low, high = _ends(scaled)
    shifted = f"({value} - {double(scaled.middle)})" if scaled.middle else value
    inside = POSTGRES.small_whole(f"{shifted} / {double(step)}")
    if step > 1:  # the quotient might underflow
        inside = f"CASE WHEN abs({shifted}) < {double(step)} THEN 0 ELSE {inside} END"
    return (
        f"(CASE WHEN {value} BETWEEN {double(low)} AND {double(high)} THEN {inside}"
        f" WHEN {value} BETWEEN {double(-LARGEST)} AND {double(low)} THEN {math.trunc(scaled.least * ROW_UNITS)}"
        f" WHEN {value} BETWEEN {double(high)} AND {double(LARGEST)} THEN {math.trunc(scaled.most * ROW_UNITS)}"
        f" ELSE {missing} END)"
    )


def numeric_integer(stored: str, scaled: ScaledSum, missing: str, *, limited: bool) -> str:
    """The same of a numeric column as it is stored; "" where only its double can decide.

    missing: the text for NULL and NaN, itself NULL where sums are to leave such rows out. limited: see `Column`; others
    are compared first, and made a double only where they have one. A numeric is never farther out than its double.
    """
    _check(scaled)
    double, step = POSTGRES.double, scaled.half / ROW_UNITS
    low, high = _ends(scaled)
    least, most = math.trunc(scaled.least * ROW_UNITS), math.trunc(scaled.most * ROW_UNITS)
    decide_alone = (_whole(low, scaled), _whole(high, scaled)) == (least, most)  # also those rounded to an end
    if not decide_alone or (step > 1 and scaled.middle):
        return ""

    def whole(text: str) -> str:
        shifted = f"({text} - {double(scaled.middle)})" if scaled.middle else text
        return POSTGRES.small_whole(f"{shifted} / {double(step)}")

    if limited:  # least and greatest would skip NULL
        value = POSTGRES.stored(stored, SqlType.NUMERIC, limited=True)
        inside = whole(f"float8smaller(float8larger({value}, {double(low)}), {double(high)})")
        return f"coalesce({inside}, {missing})"
    zero = min(max(_whole(0.0, scaled), least), most)
    parts = (
        (max(low, SMALLEST), high, whole(f"{stored}::FLOAT8")),
        (low, min(high, -SMALLEST), whole(f"{stored}::FLOAT8")),
        (-SMALLEST, SMALLEST, zero), (-LARGEST_NUMERIC, low, least), (high, LARGEST_NUMERIC, most),
    )  # fmt: skip
    whens = " ".join(f"WHEN {stored} BETWEEN {a!r} AND {b!r} THEN {number}" for a, b, number in parts if a < b)
    return f"(CASE {whens} ELSE {missing} END)"


def _ends(scaled: ScaledSum) -> tuple[float, float]:
    """Inside them nothing is clamped."""
    return outermost(scaled, scaled.least), outermost(scaled, scaled.most)


def _whole(value: float, scaled: ScaledSum) -> int:
    """trunc(2^30 (x - middle)/half) of a value that is not clamped."""
    return math.trunc((value - scaled.middle) / (scaled.half / ROW_UNITS))


def z(value: str, scaled: ScaledSum, missing: float) -> str:
    """A row's z between its ends, which lie in [-1, 1]; never NULL."""
    _check(scaled)
    double, near = POSTGRES.double, _near(value, scaled)
    least, most = double(scaled.least), double(scaled.most)
    return (
        f"(CASE WHEN {POSTGRES.finite(value)} THEN CASE WHEN abs({near}) < {double(scaled.half * _TINY)}"
        f" THEN {double(0.0)} ELSE greatest(least({near} / {double(scaled.half)}, {most}), {least}) END"
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
