"""Casts of constants give PostgreSQL's constants."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal

import pytest

from proxy.sql.algebra import Literal
from proxy.sql.folding import fold_cast
from proxy.sqltypes import SqlType, Value


@pytest.mark.parametrize(
    ("value", "source", "wanted", "result"),
    [
        (7, SqlType.INT2, SqlType.INT4, 7),
        (7, SqlType.INT8, SqlType.NUMERIC, Decimal(7)),
        (7, SqlType.INT4, SqlType.FLOAT8, 7.0),
        (-7, SqlType.INT4, SqlType.TEXT, "-7"),
        (Decimal("2.5"), SqlType.NUMERIC, SqlType.INT4, 3),
        (Decimal("-2.5"), SqlType.NUMERIC, SqlType.INT4, -3),
        (2.5, SqlType.FLOAT8, SqlType.INT4, 2),
        (0.1, SqlType.FLOAT8, SqlType.NUMERIC, Decimal("0.1")),
        (Decimal("0.1"), SqlType.NUMERIC, SqlType.FLOAT4, 0.10000000149011612),
        (True, SqlType.BOOL, SqlType.INT4, 1),
        ("x", SqlType.TEXT, SqlType.VARCHAR, "x"),
        (date(2024, 2, 29), SqlType.DATE, SqlType.TIMESTAMP, datetime(2024, 2, 29)),
        (datetime(2024, 2, 29, 23, 59), SqlType.TIMESTAMP, SqlType.DATE, date(2024, 2, 29)),
    ],
)
def test_constant_is_folded(value: Value, source: SqlType, wanted: SqlType, result: Value) -> None:
    folded = fold_cast(Literal(value, source), wanted)
    assert folded == Literal(result, wanted)
    assert type(folded.value) is type(result)


@pytest.mark.parametrize(
    ("value", "source", "wanted"),
    [
        ("5", SqlType.TEXT, SqlType.INT4),
        (True, SqlType.BOOL, SqlType.TEXT),
        (1.5, SqlType.FLOAT8, SqlType.TEXT),
        (date(2024, 2, 29), SqlType.DATE, SqlType.TIMESTAMPTZ),
        (7, SqlType.INT4, SqlType.UUID),
    ],
)
def test_the_rest_is_left_to_the_engine(value: Value, source: SqlType, wanted: SqlType) -> None:
    assert fold_cast(Literal(value, source), wanted) is None


@pytest.mark.parametrize(("value", "wanted"), [(32768, SqlType.INT2), (2**31, SqlType.INT4), (2**63, SqlType.INT8),
                                               (-32769, SqlType.INT2), (Decimal("1e39"), SqlType.FLOAT4)])  # fmt: skip
def test_what_does_not_fit_is_an_error(value: Value, wanted: SqlType) -> None:
    source = SqlType.NUMERIC if isinstance(value, Decimal) else SqlType.INT8
    with pytest.raises(ValueError, match=r"^"):
        fold_cast(Literal(value, source), wanted)
