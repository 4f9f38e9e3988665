"""How does a row's measure become an integer where arithmetic of doubles never raises?

Where it does: `checked_doubles`, which makes the same integers.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from proxy.plan.vector.moments import ROW_UNITS, ScaledSum
from proxy.sql.render.dialect import Dialect


def scaled_integer(
    value: str, scaled: ScaledSum, missing: int, dialect: Dialect, truncated: Callable[[str], str]
) -> str:
    """trunc(2^30 clamp((x - middle)/half)), `missing` for what is no number. truncated: how a double is.

    A row inside its bounds takes as few operations as possible. Dividing by half/2^30 instead of multiplying by 2^30
    at the end gives the same double: powers of two are exact.
    """
    double, step = dialect.double, scaled.half / ROW_UNITS
    whole = double(float(ROW_UNITS))
    shifted = f"({value} - {double(scaled.middle)})" if scaled.middle else value
    is_exact = step * ROW_UNITS == scaled.half  # but for the smallest doubles there are
    units = f"({shifted} / {double(step)})" if is_exact else f"({shifted} / {double(scaled.half)} * {whole})"
    least, most = double(scaled.least * ROW_UNITS), double(scaled.most * ROW_UNITS)
    inside = f"{value} BETWEEN {double(outermost(scaled, scaled.least))} AND {double(outermost(scaled, scaled.most))}"
    return (
        f"(CASE WHEN {inside} THEN {truncated(units)} WHEN {dialect.finite(value)}"
        f" THEN {truncated(f'greatest(least({units}, {most}), {least})')} ELSE {missing} END)"
    )


def z(value: str, scaled: ScaledSum, missing: float, dialect: Dialect) -> str:
    """A row's z between its ends, which lie in [-1, 1]; never NULL."""
    double = dialect.double
    ratio = f"(({value} - {double(scaled.middle)}) / {double(scaled.half)})"
    clamped = f"greatest(least({ratio}, {double(scaled.most)}), {double(scaled.least)})"
    return f"(CASE WHEN {dialect.finite(value)} THEN {clamped} ELSE {double(missing)} END)"


def outermost(scaled: ScaledSum, z: float) -> float:
    """The outermost value whose z, rounded as the engine rounds it, is not beyond the given one.

    Rounding keeps order, so the values between two such ends need no clamp.
    """
    end = scaled.middle + scaled.half * z
    while end != scaled.middle and abs((end - scaled.middle) / scaled.half) > abs(z):
        end = math.nextafter(end, scaled.middle)
    return end
