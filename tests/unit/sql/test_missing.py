"""What an expression is where an outer join found no row."""

from __future__ import annotations

import pytest

from proxy.sql.algebra.nodes import Call, Case, ColumnRef, Literal, Member, Null, Scalar, Span
from proxy.sql.conditions.on_null_row import is_never_true, without
from proxy.sqltypes import SqlType

GONE = ColumnRef(1, "x", SqlType.INT4)
THERE = ColumnRef(0, "y", SqlType.INT4)
ONE, TWO = (Literal(n, SqlType.INT4) for n in (1, 2))
YES, NO = (Literal(b, SqlType.BOOL) for b in (True, False))
NOTHING, UNSURE = Null(SqlType.INT4), Null(SqlType.BOOL)


def call(function: str, *args: Scalar) -> Call:
    return Call(function, args, SqlType.BOOL if function in ("and", "or", "not", "=", "is null") else SqlType.INT4)


IS_ONE, IS_GONE, MAY_BE = call("=", GONE, ONE), call("is null", GONE), call("=", THERE, ONE)


@pytest.mark.parametrize(
    ("scalar", "expected"),
    [
        (GONE, NOTHING), (THERE, None), (ONE, ONE), (NOTHING, NOTHING), (Span(0, 1, 0), None),
        (Member(GONE, (ONE,)), UNSURE), (Member(THERE, (ONE,)), None),
        (IS_ONE, UNSURE), (MAY_BE, None), (call("+", GONE, THERE), NOTHING),
        (IS_GONE, YES), (call("is null", ONE), NO), (call("is null", THERE), None), (call("not", IS_GONE), NO),
        (call("not", IS_ONE), UNSURE), (call("not", MAY_BE), None),
        (call("and", IS_ONE, MAY_BE), None), (call("and", NO, MAY_BE), NO), (call("and", IS_ONE, YES), UNSURE),
        (call("and", YES, IS_GONE), YES), (call("or", IS_GONE, MAY_BE), YES), (call("or", IS_ONE, NO), UNSURE),
        (call("or", NO, NO), NO),
        (call("coalesce", GONE, TWO), TWO), (call("coalesce", GONE, THERE), None), (call("coalesce", GONE), NOTHING),
        (call("nullif", ONE, GONE), ONE), (call("nullif", GONE, ONE), NOTHING), (call("nullif", ONE, THERE), None),
        (call("greatest", GONE, TWO), TWO), (call("least", GONE, GONE), NOTHING), (call("least", ONE, TWO), None),
        (Case(((IS_ONE, ONE),), NOTHING, SqlType.INT4), NOTHING), (Case(((IS_ONE, ONE),), TWO, SqlType.INT4), TWO),
        (Case(((IS_GONE, ONE),), TWO, SqlType.INT4), ONE), (Case(((MAY_BE, ONE),), TWO, SqlType.INT4), None),
        (Case(((MAY_BE, ONE),), ONE, SqlType.INT4), ONE), (Case(((MAY_BE, GONE),), GONE, SqlType.INT4), NOTHING),
        (Call("is distinct from", (GONE, ONE), SqlType.BOOL), YES),
        (Call("is distinct from", (GONE, GONE), SqlType.BOOL), NO),
        (Call("is distinct from", (GONE, THERE), SqlType.BOOL), None),
        (Call("is distinct from", (ONE, ONE), SqlType.BOOL), None),
    ],
    ids=str,
)  # fmt: skip
def test_what_is_known_without_a_row(scalar: Scalar, expected: Literal | Null | None) -> None:
    assert without(scalar, lambda scan: scan == 1) == expected


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        (IS_ONE, True), (MAY_BE, False), (IS_GONE, False), (NO, True), (YES, False), (ONE, False),
        (call("and", IS_ONE, MAY_BE), True), (call("or", IS_ONE, MAY_BE), False), (call("or", IS_ONE, NO), True),
        (call("not", call("and", IS_ONE, MAY_BE)), False),
    ],
    ids=str,
)  # fmt: skip
def test_conditions_that_no_row_passes(condition: Scalar, expected: bool) -> None:
    assert is_never_true(condition, lambda scan: scan == 1) is expected
