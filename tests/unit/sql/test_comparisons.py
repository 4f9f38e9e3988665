"""Comparisons as they are taken apart everywhere."""

from __future__ import annotations

from itertools import product

import pytest

from proxy.sql.algebra.comparisons import HOLDS, MIRRORED, NEGATED, Comparison, with_constant
from proxy.sql.algebra.nodes import Call, ColumnRef, Literal, Scalar
from proxy.sqltypes import SqlType

X, Y = ColumnRef(0, "x", SqlType.INT8), ColumnRef(0, "y", SqlType.INT8)
ONE = Literal(1, SqlType.INT8)


@pytest.mark.parametrize("name", HOLDS)
def test_exchanged_and_denied_comparisons_say_what_they_should(name: str) -> None:
    for one, other in product(range(3), repeat=2):
        assert HOLDS[MIRRORED[name]](other, one) is HOLDS[name](one, other)
        assert HOLDS[NEGATED[name]](one, other) is not HOLDS[name](one, other)


@pytest.mark.parametrize("name", [*HOLDS, "is distinct from"])
def test_the_constant_may_stand_on_either_side(name: str) -> None:
    assert with_constant(Call(name, (X, ONE), SqlType.BOOL)) == Comparison(X, name, 1)
    assert with_constant(Call(name, (ONE, X), SqlType.BOOL)) == Comparison(X, MIRRORED.get(name, name), 1)


@pytest.mark.parametrize("other", [X, Call("+", (X, ONE), SqlType.INT8), Call("<", (X, Y), SqlType.BOOL)])
def test_what_compares_nothing_with_a_constant_is_none(other: Scalar) -> None:
    assert with_constant(other) is None
