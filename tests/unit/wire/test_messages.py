"""Parsing undoes building, and only violations leave a parser."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.errors import ProtocolViolation
from proxy.wire import messages
from proxy.wire.messages import Bind, DescribedName, Execute, Parse, ResultColumn
from tests.unit.wire.make import row

NAMES = st.binary(max_size=10).map(lambda b: b.replace(b"\0", b"z"))
TEXTS = st.binary(max_size=100).map(lambda b: b.replace(b"\0", b"z"))
CODES = st.integers(0, 65535)
OIDS = st.integers(0, 2**32 - 1)


@st.composite
def binds(draw: st.DrawFn) -> Bind:
    values = tuple(draw(st.lists(st.none() | st.binary(max_size=20), max_size=5)))
    count = draw(st.sampled_from([0, 1, len(values)]))
    return Bind(
        portal=draw(NAMES),
        statement=draw(NAMES),
        formats=tuple(draw(st.lists(CODES, min_size=count, max_size=count))),
        values=values,
        result_formats=tuple(draw(st.lists(CODES, max_size=4))),
    )


COLUMNS = st.builds(
    ResultColumn,
    name=NAMES,
    table_oid=OIDS,
    attribute=CODES,
    oid=OIDS,
    size=st.integers(-(2**15), 2**15 - 1),
    typmod=st.integers(-(2**31), 2**31 - 1),
    format=st.just(0),
)


@given(NAMES, TEXTS, st.lists(OIDS, max_size=4))
def test_parse(name: bytes, text: bytes, oids: list[int]) -> None:
    assert messages.parse_parse(messages.parse(name, text, oids)[5:]) == Parse(name, text, tuple(oids))


@given(binds())
def test_bind(bind: Bind) -> None:
    raw = messages.bind(bind)
    assert int.from_bytes(raw[1:5], "big") == len(raw) - 1
    assert messages.parse_bind(raw[5:]) == bind
    assert messages.parse_bind_names(raw[5:]) == (bind.portal, bind.statement)


@given(NAMES, OIDS, TEXTS)
def test_small_messages(name: bytes, number: int, text: bytes) -> None:
    assert messages.parse_execute(messages.execute(name, number)[5:]) == Execute(name, number)
    assert messages.parse_query(messages.query(text)[5:]) == text
    assert messages.parse_named(messages.describe_statement(name)[5:]) == DescribedName(True, name)
    assert messages.parse_named(messages.close_portal(name)[5:]) == DescribedName(False, name)


@given(st.lists(COLUMNS, max_size=5))
def test_row_description(columns: list[ResultColumn]) -> None:
    assert messages.parse_row_description(messages.row_description(columns)[5:]) == tuple(columns)


def test_formats_of_a_row_description_follow_those_of_the_bind() -> None:
    columns = [ResultColumn(name=b"a", table_oid=0, attribute=0, oid=23, size=4, typmod=-1, format=0)] * 2

    def formats(*given_formats: int) -> list[int]:
        described = messages.row_description(columns, given_formats)
        return [c.format for c in messages.parse_row_description(described[5:])]

    assert formats() == [0, 0]
    assert formats(1) == [1, 1]
    assert formats(0, 1) == [0, 1]


def test_data_row() -> None:
    assert messages.parse_data_row(row(b"a", None, b"")[5:]) == (b"a", None, b"")


PARSERS: list[Callable[[bytes], object]] = [
    messages.parse_parse,
    messages.parse_bind,
    messages.parse_bind_names,
    messages.parse_execute,
    messages.parse_query,
    messages.parse_named,
    messages.parse_row_description,
    messages.parse_parameter_description,
    messages.parse_data_row,
    messages.parse_parameter_status,
]


@given(st.sampled_from(PARSERS), st.binary(max_size=60))
def test_only_violations_leave_a_parser(parser: Callable[[bytes], object], body: bytes) -> None:
    try:
        parser(body)
    except ProtocolViolation:
        return


@given(binds(), st.data())
def test_every_truncated_bind_is_a_violation(bind: Bind, data: st.DataObject) -> None:
    body = messages.bind(bind)[5:]
    at = data.draw(st.integers(0, len(body) - 1))
    with pytest.raises(ProtocolViolation):
        messages.parse_bind(body[:at])
    with pytest.raises(ProtocolViolation):
        messages.parse_bind(body + b"\0")


@pytest.mark.parametrize("body", [b"\0\0\0\0\0\1\xff\xff\xff\xfe\0\0", b"\0\0\0\2\0\0\0\0\0\1\0\0\0\0\0\0"])
def test_impossible_values_are_violations(body: bytes) -> None:
    with pytest.raises(ProtocolViolation):
        messages.parse_bind(body)


def test_a_subtype_other_than_statement_and_portal_is_a_violation() -> None:
    with pytest.raises(ProtocolViolation):
        messages.parse_named(b"Xname\0")
