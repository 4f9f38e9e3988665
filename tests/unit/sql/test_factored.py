"""Is an OR, rewritten by what its alternatives share, the same condition for TRUE, FALSE and NULL?"""

from __future__ import annotations

from itertools import product

import pytest

from proxy.sql.algebra.nodes import Call, ColumnRef, Scalar, columns_in_order, conjunction
from proxy.sql.conditions.factored import alternatives, requirements
from proxy.sqltypes import SqlType

A, B, C, D = (ColumnRef(0, name, SqlType.BOOL) for name in "abcd")
FALSE, NULL, TRUE = 0, 1, 2  # in the order of Kleene's logic: AND is the least, OR the greatest


def both(*parts: Scalar) -> Scalar:
    return conjunction(parts)


def either(left: Scalar, right: Scalar) -> Scalar:
    return Call("or", (left, right), SqlType.BOOL)


CASES: tuple[tuple[Scalar, int, str], ...] = (
    # condition, conditions it becomes, the first of them
    (A, 1, "a"),
    (both(A, B), 2, "a"),
    (either(A, B), 1, ""),
    (either(both(A, B), both(A, C)), 2, "a"),
    (either(both(B, A), both(C, A)), 2, "a"),
    (either(either(both(A, B), both(C, A)), both(A, D)), 2, "a"),
    (either(either(both(A, B), both(C, A)), D), 1, ""),
    (either(A, both(A, B)), 1, "a"),
    (either(both(A, B, C), both(B, A, D)), 3, "a"),
    (both(either(both(A, B), both(A, C)), D), 3, "a"),
    (either(both(A, B), both(A, B)), 2, "a"),
)


@pytest.mark.parametrize(("condition", "count", "first"), CASES)
def test_the_rewritten_condition_is_the_same(condition: Scalar, count: int, first: str) -> None:
    found = requirements(condition)
    assert len(found) == count
    if first:
        assert isinstance(found[0], ColumnRef)
        assert found[0].name == first
    columns = columns_in_order(condition)
    for values in product((FALSE, NULL, TRUE), repeat=len(columns)):
        world = dict(zip(columns, values, strict=True))
        assert min((truth(part, world) for part in found), default=TRUE) == truth(condition, world)


def test_very_many_alternatives_stay_as_they_are() -> None:
    condition: Scalar = A
    for _ in range(101):
        condition = either(condition, A)
    assert len(alternatives(condition)) == 102
    assert requirements(condition) == (condition,)


def truth(scalar: Scalar, world: dict[ColumnRef, int]) -> int:
    match scalar:
        case ColumnRef():
            return world[scalar]
        case Call("and", args):
            return min(truth(a, world) for a in args)
        case Call("or", args):
            return max(truth(a, world) for a in args)
        case _:
            raise AssertionError(scalar)
