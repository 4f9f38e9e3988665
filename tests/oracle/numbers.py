"""What is the value of a function of numbers?"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from decimal import ROUND_DOWN, ROUND_HALF_UP, Decimal

from tests.oracle.values import NoValue, Value

_TURNED: dict[str, Callable[[float], float]] = {"degrees": math.degrees, "radians": math.radians}
_ANGLES: dict[str, Callable[[float], float]] = {
    "sin": math.sin, "cos": math.cos, "tan": math.tan, "asin": math.asin, "acos": math.acos, "atan": math.atan,
}  # fmt: skip
_BITS: dict[str, Callable[[int, int], int]] = {
    "&": operator.and_, "|": operator.or_, "#": operator.xor, ">>": operator.rshift,
}  # fmt: skip


def integer(name: str, values: list[int]) -> Value:
    left, right = values[0], values[-1]
    if name in ("/", "%") and right == 0:
        return None
    if name in _BITS:
        return _BITS[name](left, right)
    quotient = abs(left) // abs(right) * (1 if (left < 0) == (right < 0) else -1) if right else 0
    result = {
        "+": left + right, "-": left - right, "*": left * right, "/": quotient, "%": left - right * quotient,
        "negate": -left, "abs": abs(left),
    }[name]  # fmt: skip
    if not -(2**63) <= result < 2**63:
        raise NoValue
    return result


def real(name: str, values: list[float]) -> Value:
    left, right = values[0], values[-1]
    match name:
        case "+" | "-":
            return left + right if name == "+" else left - right
        case "*":
            return left * right
        case "/" | "%":
            return None if right == 0 else left / right if name == "/" else _remainder(left, right)
        case "negate":
            return -left
        case "abs":
            return abs(left)
        case "sqrt":
            return None if left < 0 else math.sqrt(left) if math.isfinite(left) else left
        case "exp" | "ln" | "log" | "sign" | "power" | "cbrt":
            return _smooth(name, left, right)
        case "width_bucket" | "width_bucket numeric":
            return _bucket(left, values[1], values[2], int(right), is_exact=name.endswith("numeric"))
        case "round digits" | "round tens" | "trunc digits" | "trunc tens":
            return (_round_digits if name.startswith("round") else _cut_digits)(left, int(right))
        case _ if name in _ANGLES or name in _TURNED or name == "atan2":
            return _angle(name, left, right)
        case "log of base":
            return None if right <= 0 else math.log2(right) if left == 2 else math.log(right) / math.log(left)
        case _:
            return _rounded(name, left)


def _angle(name: str, value: float, other: float) -> Value:
    if name == "atan2":
        return math.atan2(value, other)
    if name in _TURNED:
        return _TURNED[name](value)
    is_missing = abs(value) > 1 if name in ("asin", "acos") else not math.isfinite(value) and name != "atan"
    return None if is_missing else _ANGLES[name](value)


def _smooth(name: str, value: float, exponent: float) -> Value:
    try:
        match name:
            case "exp":
                return math.exp(value) if value <= 709 else None
            case "ln" | "log":
                return None if value <= 0 else math.log(value) if name == "ln" else math.log10(value)
            case "sign":
                return float((value > 0) - (value < 0))
            case "cbrt":
                return math.cbrt(value)
            case _:
                found = math.pow(value, exponent)
                return found if math.isfinite(found) else None
    except (OverflowError, ValueError):
        return None


def _bucket(value: float, low: float, high: float, count: int, *, is_exact: bool) -> Value:
    """Numerics are divided in decimal digits, as written."""
    if math.isnan(value) or value >= high:
        return count + 1
    if value < low:
        return 0
    if is_exact:
        at, first, last = (Decimal(f"{v:.15g}") for v in (value, low, high))
        return min(int((at - first) * count / (last - first)) + 1, count)
    return min(math.floor((value - low) / (high - low) * count) + 1, count)


def half_away(value: float) -> float:
    whole = math.trunc(value)
    return whole + math.copysign(1, value) if abs(value - whole) >= 0.5 else whole


_ROUNDINGS: dict[str, Callable[[float], float]] = {
    "floor": math.floor, "ceil": math.ceil, "trunc": math.trunc, "round": half_away, "round real": round,
}  # fmt: skip


def _rounded(name: str, left: float) -> float:
    if not math.isfinite(left):
        return left
    return float(_ROUNDINGS[name](left))


def _remainder(left: float, right: float) -> float:
    return math.nan if math.isinf(left) or math.isnan(left) or math.isnan(right) else math.fmod(left, right)


def _round_digits(value: float, digits: int) -> float:
    """Halves of the decimal digits go away from zero; a double stands for its first 15 digits."""
    if not math.isfinite(value) or (digits < 0 and abs(value) > 1e150):
        return value
    if digits < 0:
        return float(half_away(value / 10.0**-digits)) * 10.0**-digits
    if abs(value) * 10.0**digits >= 1e14:
        return value  # no fraction is left among the digits
    return float(Decimal(f"{value:.15g}").quantize(Decimal(1).scaleb(-digits), ROUND_HALF_UP))


def _cut_digits(value: float, digits: int) -> float:
    """Towards zero; a double stands for its first 15 digits."""
    if not math.isfinite(value) or (abs(value) > 1e150 if digits < 0 else abs(value) * 10.0**digits >= 1e14):
        return value
    return float(Decimal(f"{value:.15g}").quantize(Decimal(1).scaleb(-digits), ROUND_DOWN))
