"""A text means what PostgreSQL reads, under the settings of the session, or is refused in PostgreSQL's own words.

The public twin of the tables tells: there PostgreSQL answers the same statement, with the same text, by itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pytest
from psycopg import pq

from tests.e2e.input_texts import ASKED, BEYOND, STYLES, Asked, every
from tests.e2e.served import Client, Served


@dataclass(frozen=True, slots=True)
class Refused:
    """What PostgreSQL says of a text that it does not take."""

    sqlstate: str
    message: str


TEXT = 25
NOISE = 2  # at the epsilon of this policy
Rows = list[tuple[bytes | None, ...]]


def ask(client: Client, sql: str, texts: Sequence[str] = (), oids: Sequence[int] = ()) -> Rows | Refused:
    """What comes of a statement whose parameters are sent as texts of these types."""
    result = client.pgconn.exec_params(sql.encode(), [t.encode() for t in texts], list(oids), None, pq.Format.TEXT)
    if result.status == pq.ExecStatus.TUPLES_OK:
        return [tuple(result.get_value(row, n) for n in range(result.nfields)) for row in range(result.ntuples)]
    fields = (result.error_field(f) for f in (pq.DiagnosticField.SQLSTATE, pq.DiagnosticField.MESSAGE_PRIMARY))
    return Refused(*((field or b"").decode() for field in fields))


def is_near(found: Rows | Refused, true: Rows | Refused) -> bool:
    """Whether an answer is the true count, but for its noise, which is next to none; errors are the same."""
    if isinstance(found, Refused) or isinstance(true, Refused):
        return found == true
    ((count,),), ((true_count,),) = found, true
    return abs(int(count or 0) - int(true_count or 0)) <= NOISE


def in_style(client: Client, style: Sequence[str]) -> Client:
    for name, value in zip(("DateStyle", "IntervalStyle", "TimeZone"), style, strict=True):
        client.execute(f"SET {name} = '{value}'".encode())
    return client


def _id(part: object) -> str:
    return part.kind if isinstance(part, Asked) else repr(part)


@pytest.fixture(scope="module", params=STYLES, ids=lambda style: style[0])
def pair(served: Served, request: pytest.FixtureRequest) -> Iterator[tuple[Client, Client]]:
    """A session on private tables, and one on their public twin, with the same settings."""
    with served.connect("shop") as private, served.connect("truth") as exact:
        yield in_style(private, request.param), in_style(exact, request.param)


@pytest.mark.parametrize(("asked", "text"), every(ASKED), ids=_id)
def test_a_text_means_what_postgresql_reads(pair: tuple[Client, Client], asked: Asked, text: str) -> None:
    check(pair, asked.sql, text, asked.oid)
    check(pair, asked.literal(text))


@pytest.mark.parametrize(("asked", "text"), every(ASKED), ids=_id)
def test_a_text_that_is_cast_means_what_postgresql_reads(served: Served, asked: Asked, text: str) -> None:
    """Sent as a parameter of that type, as a text, which is how some drivers send everything, and written out."""
    cast = asked.sql.replace("$1", f"$1::{asked.kind}")
    with served.connect("shop") as private, served.connect("truth") as exact:
        pair = in_style(private, STYLES[1]), in_style(exact, STYLES[1])
        check(pair, cast, text, asked.oid)
        check(pair, cast, text, TEXT)
        check(pair, asked.literal(text).replace("'::", "'::text::"))


def check(pair: tuple[Client, Client], sql: str, *parameter: object) -> None:
    """That both answer the same. parameter: a text and its type, if there is one."""
    texts, oids = [str(p) for p in parameter[:1]], [int(str(p)) for p in parameter[1:]]
    found, true = (ask(client, sql, texts, oids) for client in pair)
    assert is_near(found, true), (sql, parameter, found, true)


@pytest.mark.parametrize(("asked", "text"), every(BEYOND), ids=_id)
def test_what_no_private_engine_holds_is_refused_and_costs_nothing(
    pair: tuple[Client, Client], asked: Asked, text: str
) -> None:
    private, exact = pair
    before = private.execute("SELECT epsilon_spent FROM hush.budget").fetchall()
    assert isinstance(ask(exact, asked.sql, [text], [asked.oid]), list)
    for found in (ask(private, asked.sql, [text], [asked.oid]), ask(private, asked.literal(text))):
        assert isinstance(found, Refused)
        assert found.sqlstate == "DP006"
    assert private.execute("SELECT epsilon_spent FROM hush.budget").fetchall() == before


@pytest.mark.parametrize(("asked", "text"), every(ASKED), ids=_id)
def test_a_text_that_is_executed_means_what_postgresql_reads(
    pair: tuple[Client, Client], asked: Asked, text: str
) -> None:
    """EXECUTE of a statement that was prepared in SQL; what PostgreSQL takes the text for is what is asked about."""
    for client in pair:
        client.execute(f"PREPARE s ({asked.kind}) AS {asked.sql}".encode())
    try:
        check(pair, "EXECUTE s ('{}')".format(text.replace("'", "''")))
    finally:
        for client in pair:
            client.execute("DEALLOCATE s")
