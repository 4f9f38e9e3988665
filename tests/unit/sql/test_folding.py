"""Casts and functions of constants give PostgreSQL's constants."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal

import pytest

from proxy.sql.algebra.constants import Constants
from proxy.sql.algebra.nodes import Call, Literal, Null, Scalar
from proxy.sql.binding.rules import make_binder
from proxy.sql.functions.folding import fold_cast
from proxy.sql.syntax.parse import parse
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


@pytest.mark.parametrize(
    ("expression", "result"),
    [  # as PostgreSQL 18 prints them
        ("0.1 + 0.2", "0.3"), ("0.10 * 3", "0.30"), ("1 - 0.9", "0.1"), ("1.0 / 3", "0.33333333333333333333"),
        ("2 / 3.0", "0.66666666666666666667"), ("1000000.0 / 7", "142857.142857142857"),
        ("1 / 8.0", "0.12500000000000000000"),
        ("0.00001 / 3", "0.000003333333333333333333"),
        ("7 / 2", "3"), ("-7 / 2", "-3"), ("-7 % 3", "-1"), ("7.5 % 2", "1.5"), ("-7.5 % 2", "-1.5"),
        ("- 0.5", "-0.5"), ("abs(-0.5)", "0.5"), ("floor(-0.5)", "-1"), ("ceil(-0.5)", "0"),
        ("trunc(-2.7)", "-2"), ("round(2.5)", "3"), ("round(-2.5)", "-3"), ("round(1.005, 2)", "1.01"),
        ("round(1250, -2)", "1300"), ("12345678901234567890.5 + 0.25", "12345678901234567890.75"),
        ("-123456789012345678901234567890.123456789", "-123456789012345678901234567890.123456789"),
        ("2147483647 - 2147483647", "0"),
    ],
)  # fmt: skip
def test_exact_constants_are_computed_in_digits(expression: str, result: str) -> None:
    found = bound(expression)
    assert isinstance(found, Literal)
    assert found.value == Decimal(result)
    assert str(found.value) != "-0"
    assert found.type in (SqlType.INT4, SqlType.NUMERIC)


@pytest.mark.parametrize(("expression", "result"), [("0.1 + 0.2 = 0.3", True), ("1.0 / 3 * 3 = 1", False),
                                                    ("7 > 2.5", True)])  # fmt: skip
def test_exact_constants_are_compared_in_digits(expression: str, result: bool) -> None:
    assert bound(expression) == Literal(result, SqlType.BOOL)


@pytest.mark.parametrize(
    ("expression", "result"),
    [
        ("date_trunc('month', timestamp '2024-05-20' - interval '2 months')", datetime(2024, 3, 1)),
        ("timestamp '2024-01-31' + interval '1 month'", datetime(2024, 2, 29)),
        ("date '2024-01-31' + interval '36 hours'", datetime(2024, 2, 1, 12)),
        ("date_trunc('week', now() + interval '-1 day')", datetime(2025, 12, 29)),
        ("date_trunc('second', timestamp '2024-01-31 12:30:15.5')", datetime(2024, 1, 31, 12, 30, 15)),
    ],
)
def test_times_that_are_moved_and_cut_are_constants(expression: str, result: datetime) -> None:
    found = bound(expression)
    assert isinstance(found, Literal)
    assert found.value == result


@pytest.mark.parametrize(
    "expression",
    [
        "timestamp '9999-12-31' + interval '1 day'",
        "date_trunc('month', timestamp '2024-05-20' + interval '9000 years')",
        "1 / 0",
        "1.5 % 0",
        "2147483647 + 1",
        "1e300 * 1e300",
        "0.1::float8 + 0.2",
        "sqrt(2.0)",
        "floor(3)",
        "1e-900 * 1e-900",
    ],
)
def test_what_has_no_exact_constant_is_left_to_the_engine(expression: str) -> None:
    assert isinstance(bound(expression), Call)


def bound(expression: str) -> Scalar:
    source = f"SELECT {expression}"
    binder = make_binder(lambda _: Null(SqlType.TEXT), Constants({}, datetime(2026, 1, 1)), source)
    return binder.scalar(parse(source).expressions[0])
