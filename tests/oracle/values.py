"""What is a value for the oracle, and which of two comes first?"""

from __future__ import annotations

import math
from decimal import Decimal

from proxy.sqltypes import SqlType

Value = None | bool | int | float | str
Stored = Value | Decimal  # as it is stored: numeric is exact until something is computed from it


class NoValue(Exception):
    """A function has no value for its arguments (overflow, impossible date)."""


def order(left: Value, right: Value) -> int:
    """-1, 0 or 1: numbers as doubles unless both are integers, NaN above all and equal to itself, texts by code."""
    if isinstance(left, str) and isinstance(right, str):
        return (left > right) - (left < right)
    assert isinstance(left, (int, float))
    assert isinstance(right, (int, float))
    if not (isinstance(left, int) and isinstance(right, int)):
        left, right = float(left), float(right)
    if math.isnan(left) or math.isnan(right):
        return math.isnan(left) - math.isnan(right)
    return (left > right) - (left < right)


def equal(left: Value, right: Value) -> bool:
    return order(left, right) == 0


def converted(value: Value, kind: SqlType) -> Value:
    """A value that meets others, in their common type."""
    if isinstance(value, int) and not isinstance(value, bool) and kind.is_number and not kind.is_integer:
        return float(value)
    return value
