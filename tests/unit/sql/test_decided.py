"""What constants decide of a condition of which only matters where it is TRUE."""

from __future__ import annotations

import pytest

from proxy.sql.algebra.nodes import TRUE, Call, ColumnRef, Literal, Null, Scalar
from proxy.sql.conditions.decided import NEVER, decided
from proxy.sqltypes import SqlType

X, Y = ColumnRef(0, "x", SqlType.INT4), ColumnRef(0, "y", SqlType.INT4)
ONE, NULL = Literal(1, SqlType.INT4), Null(SqlType.INT4)


def _of(function: str, *args: Scalar) -> Scalar:
    return Call(function, args, SqlType.BOOL)


def _same(one: Scalar, other: Scalar) -> Scalar:
    return _of("not", _of("is distinct from", one, other))


IS_ONE, IS_NULL, IS_Y = _of("=", X, ONE), _of("is null", X), _of("=", X, Y)


@pytest.mark.parametrize(
    ("condition", "left"),
    [
        (IS_Y, IS_Y),
        (_of("=", X, NULL), NEVER),
        (_of("<", NULL, X), NEVER),
        (Null(SqlType.BOOL), NEVER),
        (_same(X, ONE), IS_ONE),
        (_same(ONE, X), _of("=", ONE, X)),
        (_same(X, NULL), IS_NULL),
        (_same(NULL, X), IS_NULL),
        (_same(NULL, NULL), TRUE),
        (_same(NULL, ONE), NEVER),
        (_same(X, Y), _same(X, Y)),
        (_of("is null", ONE), NEVER),
        (_of("is null", NULL), TRUE),
        (IS_NULL, IS_NULL),
        (_of("and", IS_Y, _of("is null", NULL)), IS_Y),
        (_of("and", IS_Y, _of("is null", ONE)), NEVER),
        (_of("or", IS_Y, _of("=", X, NULL)), IS_Y),
        (_of("or", _of("=", X, NULL), _of("and", IS_NULL, _of("is null", NULL))), IS_NULL),
        (_of("or", IS_ONE, _of("and", IS_NULL, _of("is null", ONE))), IS_ONE),
        (_of("or", IS_Y, _of("is null", NULL)), TRUE),
        (_of("or", _of("=", X, NULL), _of("is null", ONE)), NEVER),
        (_of("or", IS_ONE, _same(Y, NULL)), _of("or", IS_ONE, _of("is null", Y))),
        (_of("not", _of("=", X, NULL)), _of("not", _of("=", X, NULL))),  # NULL as well; nothing is said of it
        (_of("not", IS_ONE), _of("not", IS_ONE)),
    ],
)
def test_a_condition_is_true_for_the_same_rows(condition: Scalar, left: Scalar) -> None:
    assert decided(condition) == left
