"""What is the value of a comparison, of AND and OR, and of a choice, where arguments may be NULL?"""

from __future__ import annotations

from collections.abc import Callable

from proxy.sql.algebra import Call
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


LENIENT: dict[str, Callable[[Call, list[Value]], Value]] = {
    "and": _both,
    "or": _either,
    "is null": lambda _, v: v[0] is None,
    "is distinct from": _differs,
    "greatest": _extreme(1),
    "least": _extreme(-1),
    "nullif": _nullif,
}
COMPARISONS: dict[str, Callable[[int], bool]] = {
    "=": lambda o: o == 0,
    "<>": lambda o: o != 0,
    "<": lambda o: o < 0,
    "<=": lambda o: o <= 0,
    ">": lambda o: o > 0,
    ">=": lambda o: o >= 0,
}
