"""How do exact numbers compare, so that no row raises and no digit is lost?

Columns of integers and of numeric compare with each other and with constants as PostgreSQL's numeric does, wherever the
engine has a type that holds both sides (38 digits); else as double precision. In which type the data store a numeric
column is not known when a statement is planned, so the engine finds the common type, and TRY catches a row that has no
place in it. Every other comparison of numbers is one of doubles: of what is computed, and with double precision.
"""

from __future__ import annotations

import math
from decimal import Decimal
from typing import TypeGuard

from proxy.sql.algebra.nodes import ColumnRef, Literal, Scalar
from proxy.sqltypes import SqlType, Value

# Whole numbers from 0 to this one have a common type with every type that a numeric column may have, into which no
# row's cast fails; UHUGEINT has none with negative ones. More decimals would leave no place for their ten digits: data
# with such a column are not served.
EVERY_NUMERIC_HOLDS = 10**9
MOST_DECIMALS = 28
MOST_DIGITS = 38  # of the exact types of every engine
_MARGIN = 2.0**-50


def is_exact(scalar: Scalar) -> TypeGuard[ColumnRef | Literal]:
    """Whether a scalar is a stored or written number that is no double."""
    if isinstance(scalar, Literal) and isinstance(scalar.value, float):
        return False
    return isinstance(scalar, (ColumnRef, Literal)) and (scalar.type.is_integer or scalar.type is SqlType.NUMERIC)


def compares_exactly(left: Scalar, right: Scalar) -> bool:
    """Whether a column is compared as this module says; two integers are exact without it."""
    if not is_exact(left) or not is_exact(right) or (left.type.is_integer and right.type.is_integer):
        return False
    return isinstance(left, ColumnRef) or isinstance(right, ColumnRef)


def is_small_whole(value: Value) -> TypeGuard[int | float | Decimal]:
    """Whether every numeric column compares with this number as it is stored, in its scan."""
    match value:
        case bool():
            return False
        case int() | float() | Decimal():
            return math.isfinite(value) and 0 <= value <= EVERY_NUMERIC_HOLDS and value == int(value)
        case _:
            return False


def digits_of(value: Value) -> str:
    """A constant in decimal digits; "" if they are more than the engine's exact types hold."""
    assert isinstance(value, (int, Decimal))
    text = format(Decimal(value), "f")
    text = text.rstrip("0").rstrip(".") if "." in text else text
    return text if sum(c.isdigit() for c in text) <= MOST_DIGITS else ""


def is_surely_at_most(low: float | Decimal, high: float | Decimal, end: float | Decimal) -> bool:
    """Whether a number that compares as below low (above high) is, read as a double, below high (above low).

    end: which of the two the column's domain ends with. A double is within a few units in its last place of the stored
    number, and on the same side of every whole number.
    """
    if not low <= high:
        return False
    size = max(abs(float(low)), abs(float(high)))
    return (end == int(end) and size <= 2**53) or float(high) - float(low) > _MARGIN * size
