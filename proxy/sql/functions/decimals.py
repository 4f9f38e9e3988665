"""How does PostgreSQL compute with exact numbers?

In decimal digits, integers among them. Each rule takes the values of constants and gives the function's value for them,
or None where it has none. Digits after the point are those PostgreSQL keeps, as they decide what a later step sees.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import ROUND_CEILING, ROUND_DOWN, ROUND_FLOOR, ROUND_HALF_UP, Context, Decimal

Decimals = tuple[Decimal, ...]
FoldRule = Callable[[Decimals], Decimal | bool | None]

_EXACT = Context(prec=2000)
_LEAST_DIGITS = 16  # significant ones of a quotient
_MOST_SCALE = 1000


def not_folded(_: Decimals) -> None:
    """The default for a new function."""


def compared(holds: Callable[[Decimal, Decimal], bool]) -> FoldRule:
    return lambda values: holds(values[0], values[1])


def add(values: Decimals) -> Decimal:
    return _EXACT.add(values[0], values[1])


def subtract(values: Decimals) -> Decimal:
    return _EXACT.subtract(values[0], values[1])


def multiply(values: Decimals) -> Decimal:
    return _EXACT.multiply(values[0], values[1])


def divide(values: Decimals) -> Decimal | None:
    """A quotient to as many digits as PostgreSQL gives."""
    left, right = values
    if right == 0:
        return None
    scale = max(_LEAST_DIGITS - 4 * _quotient_weight(left, right), _scale(left), _scale(right), 0)
    unit = Decimal(1).scaleb(-min(scale, _MOST_SCALE))
    return _EXACT.divide(left, right).quantize(unit, ROUND_HALF_UP, _EXACT)


def _scale(value: Decimal) -> int:
    exponent = value.as_tuple().exponent
    assert isinstance(exponent, int)
    return max(0, -exponent)


def _quotient_weight(left: Decimal, right: Decimal) -> int:
    """The weight of the quotient's first digit as PostgreSQL estimates it, its digits being 0 to 9999."""
    (weight, first), (other_weight, other_first) = _leading(left), _leading(right)
    return weight - other_weight - (1 if first <= other_first else 0)


def _leading(value: Decimal) -> tuple[int, int]:
    if value == 0:
        return 0, 0
    weight = value.adjusted() // 4
    return weight, int(abs(value).scaleb(-4 * weight, _EXACT))


def divide_whole(values: Decimals) -> Decimal | None:
    return None if values[1] == 0 else _EXACT.divide_int(values[0], values[1])


def modulo(values: Decimals) -> Decimal | None:
    return None if values[1] == 0 else _EXACT.remainder(values[0], values[1])


def negate(values: Decimals) -> Decimal:
    return _EXACT.minus(values[0])


def absolute(values: Decimals) -> Decimal:
    return _EXACT.abs(values[0])


def floor(values: Decimals) -> Decimal:
    return values[0].to_integral_value(ROUND_FLOOR)


def ceil(values: Decimals) -> Decimal:
    return values[0].to_integral_value(ROUND_CEILING)


def truncate(values: Decimals) -> Decimal:
    """Towards zero; to as many digits as the second value says."""
    digits = int(values[1]) if len(values) > 1 else 0
    return values[0].quantize(Decimal(1).scaleb(-digits), ROUND_DOWN, _EXACT)


def rounded(values: Decimals) -> Decimal:
    """Halves go away from zero; to as many digits as the second value says."""
    digits = int(values[1]) if len(values) > 1 else 0
    return values[0].quantize(Decimal(1).scaleb(-digits), ROUND_HALF_UP, _EXACT)


def common_bits(values: Decimals) -> Decimal:
    return Decimal(int(values[0]) & int(values[1]))


def any_bits(values: Decimals) -> Decimal:
    return Decimal(int(values[0]) | int(values[1]))


def other_bits(values: Decimals) -> Decimal:
    """Those that one of the two has."""
    return Decimal(int(values[0]) ^ int(values[1]))


def shifted_bits(values: Decimals) -> Decimal:
    """To the right."""
    return Decimal(int(values[0]) >> int(values[1]))
