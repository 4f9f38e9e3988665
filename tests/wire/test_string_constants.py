"""Claim: a constant means the text or number that PostgreSQL takes it for, or it is refused."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal

import psycopg
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from psycopg.rows import TupleRow

from proxy.errors import Unsupported
from proxy.sql.syntax.parse import tokenize
from tests.wire.front import TestFront

Client = psycopg.Connection[TupleRow]
ENDS = st.sampled_from(["E'", "e'", "U&'", "u&'", "'", "$$", "$a$"])
PARTS = (
    "a", "é", "\U0001f600", "''", "\\\\", "\\'", "\\n", "\\b", "\\q", "\\\n", "\\x", "\\x4", "\\x41", "\\xc3\\xa9",
    "\\xff", "\\1", "\\101", "\\400", "\\377", "\\u0041", "\\u00e9", "\\ud83d\\ude00", "\\ud83d", "\\U0001F600",
    "\\u004", "\\0", "\\", "\\0041", "\\+01F600", "\\d83d\\de00", "!0041", "!!", "$", "'\n'", "' -- so\n'",
    "'\n -- so\n\t'", "' '", "'/**/\n'", '"', "' UESCAPE '!", "--", "/*", ";", " ", "_",
)  # fmt: skip
AFTER = st.sampled_from(["", "", " UESCAPE '!'", "\n'\\n'", "--x\n'b'"])
CONSTANTS = st.builds(
    lambda start, parts, after: start + "".join(parts) + start.lstrip("EeUu&") + after,
    ENDS, st.lists(st.sampled_from(PARTS), max_size=6), AFTER,
)  # fmt: skip


@pytest.fixture(scope="module")
def client(front: TestFront) -> Iterator[Client]:
    with front.direct() as connection:
        yield connection


def theirs(client: Client, constant: str) -> str | None:
    """What PostgreSQL takes a text for if it is one constant."""
    try:
        cursor = client.execute(f"SELECT ({constant})::text".encode())
        rows = cursor.fetchall()
    except psycopg.Error:
        return None
    return str(rows[0][0])


def compare(client: Client, constant: str) -> None:
    expected = theirs(client, constant)
    try:
        (found,) = [t.text for t in tokenize(constant)] if expected is not None else [None]
    except Unsupported:
        return
    assert found == expected


@settings(max_examples=400, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(CONSTANTS)
@example(r"E'\'a\\\x41\101\u00e9\U0001F600'")
@example("U&'d!0061t!+000061' UESCAPE '!'")
@example("'a'\n -- and\n 'b'")
@example("E'a'\n'\\n\\''")
@example("'a''\n''b'")
def test_a_constant_is_what_postgres_takes_it_for(client: Client, constant: str) -> None:
    compare(client, constant)


@pytest.mark.parametrize(
    ("constant", "value"),
    [
        (r"E'a\'b\n\x41\u0042\103'", "a'b\nABC"),
        (r"E'\xc3\xa9\uD83D\uDE00\q'", "é\U0001f600q"),
        (r"U&'\0061\+000062\\'", "ab\\"),
        ("$a$it's $$ $a$", "it's $$ "),
        ("'a'\n'b''c'", "ab'c"),
        ("E'a'\n'\\n'", "a\n"),
    ],
)
def test_constants_are_read_where_postgres_reads_them(client: Client, constant: str, value: str) -> None:
    assert theirs(client, constant) == value
    assert [t.text for t in tokenize(constant)] == [value]


@pytest.mark.parametrize(
    "constant",
    [r"E'\xff'", r"E'\u12'", r"E'\000'", r"U&'\0'", r"U&'\0000'", r"E'\ud83d'", r"U&'\d83d'", "U&'a' UESCAPE 'b'"],
)
def test_what_postgres_refuses_is_refused(client: Client, constant: str) -> None:
    assert theirs(client, constant) is None
    with pytest.raises(Unsupported):
        tokenize(constant)


@settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(st.from_regex(r"[0-9][0-9_.xXoObBeEaF]{0,9}", fullmatch=True))
@example("0x_28")
@example("0o50")
@example("0B1_01")
@example("1_000")
@example("1_0.5_0e1_0")
@example("0x8000000000000000")
def test_a_number_means_what_postgresql_takes_it_for(client: Client, constant: str) -> None:
    """Servers before version 16 refuse what is not decimal, or has an underscore, themselves."""
    expected = theirs(client, f"({constant})::numeric")
    if expected is not None:
        (found,) = tokenize(constant)
        assert Decimal(found.text) == Decimal(expected)
