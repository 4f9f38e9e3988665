"""Bound parameters become constants of their own type."""

from __future__ import annotations

import struct
from datetime import date, datetime
from decimal import Decimal

import pytest

from proxy.errors import InvalidParameter
from proxy.session.contract import Parameter
from proxy.session.parameters import read_parameters
from proxy.sql.algebra import Literal, Null
from proxy.sqltypes import SqlType, Value


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        (SqlType.INT4, "40", 40), (SqlType.INT8, "-9000000000", -9_000_000_000), (SqlType.BOOL, "t", True),
        (SqlType.NUMERIC, "1.50", Decimal("1.50")), (SqlType.FLOAT8, "1e3", 1000.0), (SqlType.TEXT, " x ", " x "),
        (SqlType.VARCHAR, "é", "é"), (SqlType.BPCHAR, "c1   ", "c1"), (SqlType.DATE, "2024-02-29", date(2024, 2, 29)),
        (SqlType.TIMESTAMP, "2024-02-29 01:02:03.5", datetime(2024, 2, 29, 1, 2, 3, 500_000)),
        (SqlType.UUID, "A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11", "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"),
    ],
)  # fmt: skip
def test_text_format(kind: SqlType, text: str, value: Value) -> None:
    assert read_parameters((Parameter(oid=kind.oid, format=0, data=text.encode()),)) == {1: Literal(value, kind)}


@pytest.mark.parametrize(
    ("kind", "data", "value"),
    [
        (SqlType.INT2, struct.pack("!h", -3), -3),
        (SqlType.FLOAT8, struct.pack("!d", 2.5), 2.5),
        (SqlType.BOOL, b"\1", True),
        (SqlType.DATE, struct.pack("!i", 0), date(2000, 1, 1)),
        (SqlType.TEXT, b"x", "x"),
        (SqlType.NUMERIC, struct.pack("!hhhhhh", 2, 0, 0, 1, 1, 5000), Decimal("1.5")),
    ],
)
def test_binary_format(kind: SqlType, data: bytes, value: Value) -> None:
    assert read_parameters((Parameter(oid=kind.oid, format=1, data=data),)) == {1: Literal(value, kind)}


def test_numbers_count_from_one_and_foreign_types_are_left_out() -> None:
    found = read_parameters((
        Parameter(oid=1007, format=0, data=b"{1}"), Parameter(oid=SqlType.INT4.oid, format=0, data=None),
        Parameter(oid=SqlType.INTERVAL.oid, format=0, data=b"1 day"), Parameter(oid=23, format=0, data=b"5"),
    ))  # fmt: skip
    assert found == {2: Null(SqlType.INT4), 4: Literal(5, SqlType.INT4)}


@pytest.mark.parametrize(
    ("kind", "code", "data"),
    [
        (SqlType.INT4, 0, b"x"), (SqlType.INT4, 1, b"\0"), (SqlType.INT8, 1, b"\0" * 7),
        (SqlType.NUMERIC, 1, b"\0\5" + b"\0" * 6), (SqlType.NUMERIC, 1, b""),
        (SqlType.UUID, 1, b"x" * 15), (SqlType.FLOAT8, 0, b"NaN"), (SqlType.FLOAT8, 0, b"inf"),
        (SqlType.NUMERIC, 0, b"NaN"), (SqlType.DATE, 0, b"infinity"), (SqlType.DATE, 1, struct.pack("!i", 2**31 - 1)),
        (SqlType.TEXT, 0, b"\xff"), (SqlType.TIMESTAMP, 0, b"20000-01-01 00:00:00"), (SqlType.UUID, 0, b"z"),
    ],
)  # fmt: skip
def test_what_cannot_be_a_constant_is_an_error(kind: SqlType, code: int, data: bytes) -> None:
    with pytest.raises(InvalidParameter, match=r"\$1"):
        read_parameters((Parameter(oid=kind.oid, format=code, data=data),))
