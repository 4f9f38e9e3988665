"""Bound parameters become constants of their own type."""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from datetime import date, datetime
from decimal import Decimal
from uuid import UUID

import pytest
from psycopg.adapt import PyFormat, Transformer

from proxy.errors import InvalidParameter
from proxy.session.asking.binary_values import NOT_FINITE, NOT_HELD
from proxy.session.asking.parameters import canonical, read_parameters, unread
from proxy.session.contract import Parameter
from proxy.sql.algebra.constants import TIME_OID, Elements, Given, InputText, TimeOfDay
from proxy.sql.algebra.nodes import Literal, Null, Span
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
        Parameter(oid=600, format=0, data=b"(1,2)"), Parameter(oid=SqlType.INT4.oid, format=0, data=None),
        Parameter(oid=SqlType.INTERVAL.oid, format=0, data=b"1 day"), Parameter(oid=23, format=0, data=b"5"),
        Parameter(oid=TIME_OID, format=0, data=b"17:30"),
    ))  # fmt: skip
    assert found == {2: Null(SqlType.INT4), 3: Span(0, 1, 0), 4: Literal(5, SqlType.INT4), 5: TimeOfDay(63_000_000_000)}


@pytest.mark.parametrize(
    ("oid", "data", "value"),
    [
        (SqlType.INTERVAL.oid, struct.pack("!qii", 5, 2, 1), Span(1, 2, 5)),
        (SqlType.INTERVAL.oid, struct.pack("!qii", 2**63 - 1, 2**31 - 1, 2**31 - 1), NOT_FINITE),
        (SqlType.INTERVAL.oid, struct.pack("!qii", -(2**63), -(2**31), -(2**31)), NOT_FINITE),
        (TIME_OID, struct.pack("!q", 86_400_000_000), TimeOfDay(86_400_000_000)),
        (SqlType.FLOAT8.oid, struct.pack("!d", math.nan), NOT_FINITE),
        (SqlType.FLOAT8.oid, struct.pack("!d", math.inf), NOT_FINITE),
        (SqlType.NUMERIC.oid, struct.pack("!hhHh", 0, 0, 0xC000, 0), NOT_FINITE),
        (SqlType.NUMERIC.oid, struct.pack("!hhHhh", 1, 200, 0, 0, 1), NOT_HELD),
        (SqlType.DATE.oid, struct.pack("!i", 2**31 - 1), NOT_HELD),
        (SqlType.DATE.oid, struct.pack("!i", -800_000), NOT_HELD),
        (SqlType.TIMESTAMP.oid, struct.pack("!q", -(2**63)), NOT_HELD),
        (SqlType.BPCHAR.oid, b"c1  ", Literal("c1", SqlType.BPCHAR)),
    ],
)  # fmt: skip
def test_binary_values_that_are_more_than_literals(oid: int, data: bytes, value: Given) -> None:
    assert read_parameters((Parameter(oid=oid, format=1, data=data),)) == {1: value}


@pytest.mark.parametrize(
    ("kind", "code", "data"),
    [
        (SqlType.INT4, 1, b"\0"), (SqlType.INT8, 1, b"\0" * 7), (SqlType.NUMERIC, 1, b"\0\5" + b"\0" * 6),
        (SqlType.NUMERIC, 1, b""), (SqlType.UUID, 1, b"x" * 15), (SqlType.TEXT, 1, b"\xff"), (SqlType.TEXT, 0, b"\xff"),
        (SqlType.INTERVAL, 1, b"\0" * 15),
    ],
)  # fmt: skip
def test_bytes_that_are_no_value_are_an_error(kind: SqlType, code: int, data: bytes) -> None:
    with pytest.raises(InvalidParameter, match=r"\$1"):
        read_parameters((Parameter(oid=kind.oid, format=code, data=data),))


# --- what PostgreSQL is to read --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("oid", "data"),
    [
        (23, b" 5"), (23, b"0x10"), (16, b"tr"), (701, b"0x1p3"), (701, b"NaN"), (700, b"0.1"), (1700, b"1_0"),
        (1082, b"today"), (1082, b"20210601"), (1114, b"1.6.2021"), (1184, b"2021-06-01 12:00"), (1186, b"1-2"),
        (TIME_OID, b"5 PM"), (1007, b"{1, 2}"), (1007, b"{1,NULL}"), (1009, b'{a,"\\"}'),
        (2950, b"x"), (1182, b"{now}"),
    ],
)  # fmt: skip
def test_a_text_that_is_not_plain_is_read_by_postgresql(oid: int, data: bytes) -> None:
    assert unread((Parameter(oid=oid, format=0, data=data),)) == (InputText(data.decode(), oid),)


def test_plain_texts_binary_values_nulls_and_foreign_types_need_no_reading() -> None:
    given = (
        Parameter(oid=16, format=0, data=b"TRUE"), Parameter(oid=25, format=0, data=b" x "),
        Parameter(oid=1082, format=0, data=b"2021-06-01T12:00:00.000+02:00"),
        Parameter(oid=23, format=1, data=b"\0\0\0\5"),
        Parameter(oid=1184, format=0, data=b"2021-06-01 12:00:00+00"), Parameter(oid=23, format=0, data=None),
        Parameter(oid=600, format=0, data=b"(1, 2)"), Parameter(oid=1186, format=0, data=b"3 days"),
        Parameter(oid=1009, format=0, data=b'{a,"b c"}'), Parameter(oid=701, format=0, data=b"1e3"),
    )  # fmt: skip
    assert unread(given) == ()
    assert canonical(given, {}) == given


def test_what_was_read_takes_the_place_of_its_text_and_is_asked_for_once() -> None:
    given = tuple(Parameter(oid=23, format=0, data=text) for text in (b"0x10", b"7", b"0x10"))
    (text,) = unread(given)
    found = canonical(given, {text: b"\0\0\0\x10"})
    assert list(read_parameters(found).values()) == [Literal(number, SqlType.INT4) for number in (16, 7, 16)]
    assert unread(found) == ()


def test_bytes_that_are_no_text_are_not_read() -> None:
    with pytest.raises(InvalidParameter, match=r"\$1"):
        unread((Parameter(oid=23, format=0, data=b"\xff"),))


# --- arrays ----------------------------------------------------------------------------------------------------------


ELEMENTS = (
    (SqlType.INT4, b"{1,-3}", (1, -3)), (SqlType.NUMERIC, b"{1.5}", (Decimal("1.5"),)),
    (SqlType.BOOL, b"{t,f}", (True, False)),
    (SqlType.TEXT, b'{a,"b,{c","NULL",""}', ("a", "b,{c", "NULL", "")),
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
    "data",
    [b"", ONE[:-1], ONE + b"\0", ONE.replace(b"\x17", b"\x15"), struct.pack("!iii", 7, 0, 23),
     struct.pack("!iiiii", 1, 0, 23, 2**31 - 1, 1), struct.pack("!iiiii", 1, 0, 23, -1, 1),
     struct.pack("!iiiiii", 1, 0, 23, 1, 1, -2), struct.pack("!iiiiiih", 1, 0, 23, 1, 1, 2, 5)],
)  # fmt: skip
def test_what_is_no_array_is_an_error(data: bytes) -> None:
    with pytest.raises(InvalidParameter, match=r"\$1"):
        read_parameters((Parameter(oid=SqlType.INT4.array_oid, format=1, data=data),))


def test_an_array_of_several_dimensions_is_all_its_elements() -> None:
    data = struct.pack("!iiiiiii", 2, 1, 23, 2, 1, 1, 1) + struct.pack("!ii", 4, 5) + struct.pack("!i", -1)
    found = read_parameters((Parameter(oid=SqlType.INT4.array_oid, format=1, data=data),))
    assert found == {1: Elements((Literal(5, SqlType.INT4), Null(SqlType.INT4)), 2)}


def test_an_array_with_a_value_that_nobody_holds_is_none() -> None:
    data = struct.pack("!iiiii", 1, 0, 701, 1, 1) + struct.pack("!id", 8, math.nan)
    assert read_parameters((Parameter(oid=SqlType.FLOAT8.array_oid, format=1, data=data),)) == {1: NOT_HELD}


def test_an_array_that_is_null_is_null() -> None:
    found = read_parameters((Parameter(oid=SqlType.INT4.array_oid, format=0, data=None),))
    assert found == {1: Null(SqlType.INT4)}
