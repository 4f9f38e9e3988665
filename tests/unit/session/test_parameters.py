"""Bound parameters become constants of their own type."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from datetime import date, datetime
from decimal import Decimal
from uuid import UUID

import pytest
from psycopg.adapt import PyFormat, Transformer

from proxy.errors import InvalidParameter
from proxy.session.contract import Parameter
from proxy.session.parameters import read_parameters
from proxy.sql.algebra import Literal, Null
from proxy.sql.constants import Elements
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
        Parameter(oid=1187, format=0, data=b"{}"), Parameter(oid=SqlType.INT4.oid, format=0, data=None),
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


ELEMENTS = (
    (SqlType.INT4, b"{1,NULL,-3}", (1, None, -3)), (SqlType.NUMERIC, b"{}", ()),
    (SqlType.BOOL, b"{t,f}", (True, False)),
    (SqlType.TEXT, b'{a,"b,\\"c",NULL,"NULL"}', ("a", 'b,"c', None, "NULL")),
    (SqlType.DATE, b"{2024-02-29}", (date(2024, 2, 29),)),
    (SqlType.UUID, b"{00000000-0000-0000-0000-000000000001}", ("00000000-0000-0000-0000-000000000001",)),
    (SqlType.TIMESTAMP, b'{"2024-01-01 12:00:00"}', (datetime(2024, 1, 1, 12),)),
)  # fmt: skip


@pytest.mark.parametrize(("kind", "text", "values"), ELEMENTS)
def test_arrays_are_read_in_both_formats(kind: SqlType, text: bytes, values: tuple[Value | None, ...]) -> None:
    expected = Elements(tuple(Null(kind) if v is None else Literal(v, kind) for v in values))
    loaded = [UUID(str(v)) if kind is SqlType.UUID and v else v for v in values]
    numbers = [struct.pack("!i", v) if isinstance(v, int) else v for v in loaded]
    binary = _binary_array(kind, numbers if kind is SqlType.INT4 else loaded)
    assert read_parameters((Parameter(oid=kind.array_oid, format=0, data=text),)) == {1: expected}
    assert read_parameters((Parameter(oid=kind.array_oid, format=1, data=binary),)) == {1: expected}


def _binary_array(kind: SqlType, values: Sequence[object]) -> bytes:
    """The bytes of an array, elements written by psycopg's own dumpers."""
    head = struct.pack("!iii", int(bool(values)), 0, kind.oid) + (struct.pack("!ii", len(values), 1) if values else b"")
    dumpers = Transformer()
    parts = []
    for value in values:
        data = value if value is None or isinstance(value, bytes) else (
            dumpers.get_dumper(value, PyFormat.BINARY).dump(value)
        )  # fmt: skip
        parts.append(struct.pack("!i", -1) if data is None else struct.pack("!i", len(data)) + bytes(data))
    return head + b"".join(parts)


ONE = struct.pack("!iiiiiii", 1, 0, 23, 1, 1, 4, 5)


@pytest.mark.parametrize(
    ("code", "data"),
    [(0, b"1"), (0, b"{1"), (0, b"{{1},{2}}"), (0, b"{x}"), (0, b"\xff"), (1, b""), (1, ONE[:-1]), (1, ONE + b"\0"),
     (1, ONE.replace(b"\x17", b"\x15")), (1, struct.pack("!iii", 2, 0, 23)),
     (1, struct.pack("!iiiii", 1, 0, 23, 2**31 - 1, 1)), (1, struct.pack("!iiiiii", 1, 0, 23, 1, 1, -2)),
     (1, struct.pack("!iiiiiih", 1, 0, 23, 1, 1, 2, 5))],
)  # fmt: skip
def test_what_is_no_array_is_an_error(code: int, data: bytes) -> None:
    with pytest.raises(InvalidParameter, match=r"\$1"):
        read_parameters((Parameter(oid=SqlType.INT4.array_oid, format=code, data=data),))


def test_an_array_that_is_null_is_null() -> None:
    found = read_parameters((Parameter(oid=SqlType.INT4.array_oid, format=0, data=None),))
    assert found == {1: Null(SqlType.INT4)}
