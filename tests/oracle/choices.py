"""What is the value of a comparison, of AND and OR, and of a choice, where arguments may be NULL?"""

from __future__ import annotations

import math
from collections.abc import Callable

from proxy.sql.algebra.nodes import Call
from tests.oracle.values import Value, converted, equal, order


def _both(call: Call, values: list[Value]) -> Value:
    left, right = values
    if left is False or right is False:
        return False
    return None if left is None or right is None else True


def _either(call: Call, values: list[Value]) -> Value:
    left, right = values
    if left is True or right is True:
        return True
    return None if left is None or right is None else False


def _differs(call: Call, values: list[Value]) -> Value:
    left, right = values
    return not equal(left, right) if left is not None and right is not None else left is not right


def _extreme(sign: int) -> Callable[[Call, list[Value]], Value]:
    def best(call: Call, values: list[Value]) -> Value:
        found: Value = None
        for value in (converted(v, call.type) for v in values):
            if value is not None and (found is None or order(value, found) * sign > 0):
                found = value
        return found

    return best


def _nullif(call: Call, values: list[Value]) -> Value:
    left, right = values
    return None if left is not None and right is not None and equal(left, right) else left


def _overlaps(_: Call, values: list[Value]) -> Value:
    """As PostgreSQL's C code decides it, step by step."""
    (start, end), (other_start, other_end) = sorted((_span(values[:2]), _span(values[2:])), key=_begins, reverse=True)
    if start is None or other_start is None:
        return None
    if start == other_start:
        return None if end is None or other_end is None else True
    if other_end is None:
        return None
    return True if order(start, other_end) < 0 else None if end is None else False


def _span(values: list[Value]) -> tuple[Value, Value]:
    """Where a span begins and ends; of one end alone where it begins."""
    there = sorted((v for v in values if isinstance(v, (int, float))), reverse=True)
    return (there[-1] if there else None), (there[0] if len(there) > 1 else None)


def _begins(span: tuple[Value, Value]) -> float:
    return float(span[0]) if isinstance(span[0], (int, float)) else math.inf


LENIENT: dict[str, Callable[[Call, list[Value]], Value]] = {
    "and": _both,
    "or": _either,
    "is null": lambda _, v: v[0] is None,
    "is distinct from": _differs,
    "greatest": _extreme(1),
    "least": _extreme(-1),
    "nullif": _nullif,
    "overlaps": _overlaps,
}
COMPARISONS: dict[str, Callable[[int], bool]] = {
    "=": lambda o: o == 0,
    "<>": lambda o: o != 0,
    "<": lambda o: o < 0,
    "<=": lambda o: o <= 0,
    ">": lambda o: o > 0,
    ">=": lambda o: o >= 0,
}
