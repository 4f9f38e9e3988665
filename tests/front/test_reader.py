"""Texts are read by PostgreSQL's own input functions, apart from every client's session."""

from __future__ import annotations

import os
import signal
import struct
from collections.abc import Callable, Iterator

import psycopg
import pytest

from proxy.errors import FrontFailed, NotReadable
from proxy.front.front import Front
from proxy.front.reader import FrontReader
from proxy.front.roles import READERS
from proxy.front.schema import SUPERUSER
from proxy.sql.algebra.constants import InputStyle, InputText

Client = psycopg.Connection[tuple[object, ...]]
DATE, INT4, INTERVAL = 1082, 23, 1186
YEAR_TO_MONTH = ((1 << 2 | 1 << 1) << 16) | 0xFFFF
ISO, GERMAN = (InputStyle((("DateStyle", style), ("TimeZone", "UTC"))) for style in ("ISO, MDY", "SQL, DMY"))


@pytest.fixture
def reader(front: Front) -> Iterator[FrontReader]:
    made = FrontReader(front.connect_reader)
    yield made
    made.close()


def days(count: int) -> bytes:
    """A date, so many days after the start of the year 2000."""
    return struct.pack("!i", count)


def test_texts_are_read_in_the_style_that_is_asked_for(reader: FrontReader) -> None:
    text = (InputText("02/01/2000", DATE),)
    assert reader.read(text, ISO) == (days(31),)
    assert reader.read(text, GERMAN) == (days(1),)
    assert reader.read(text, ISO) == (days(31),)


def test_many_texts_of_several_types_are_read_in_their_order(reader: FrontReader) -> None:
    texts = tuple(InputText(f" {n}", INT4) for n in range(2500))
    assert reader.read(texts, ISO) == tuple(struct.pack("!i", n) for n in range(2500))
    mixed = (InputText("5", INTERVAL, YEAR_TO_MONTH), InputText("5", INTERVAL), InputText("5", INT4))
    assert reader.read(mixed, ISO) == (
        struct.pack("!qii", 0, 0, 5), struct.pack("!qii", 5_000_000, 0, 0), struct.pack("!i", 5)
    )  # fmt: skip


@pytest.mark.parametrize(
    ("text", "sqlstate", "words"),
    [
        (InputText("2000-02-30", DATE), "22008", "date/time field value out of range"),
        (InputText("soon", DATE), "22007", 'invalid input syntax for type date: "soon"'),
        (InputText("x", INT4), "22P02", "invalid input syntax for type integer"),
        (InputText("9999999999", INT4), "22003", "out of range for type integer"),
        (InputText("\udcff", INT4), "22021", "invalid byte sequence"),
    ],
)
def test_what_postgresql_refuses_is_refused_in_its_words(
    reader: FrontReader, text: InputText, sqlstate: str, words: str
) -> None:
    with pytest.raises(NotReadable, match=words) as refused:
        reader.read((text,), ISO)
    assert refused.value.sqlstate == sqlstate
    assert reader.read((InputText(" 7 ", INT4),), ISO) == (struct.pack("!i", 7),)


def test_what_a_client_makes_and_breaks_has_no_say(reader: FrontReader, connect: Callable[[str], Client]) -> None:
    client = connect("alice")
    client.execute("BEGIN")
    client.execute("CREATE TEMP TABLE date (x text)")  # and a type of that name
    client.execute("SET search_path = pg_temp")
    with pytest.raises(psycopg.Error):
        client.execute("SELECT 1/0")
    assert reader.read((InputText("20000102", DATE),), ISO) == (days(1),)
    assert client.info.transaction_status is psycopg.pq.TransactionStatus.INERROR


def test_connections_are_kept_and_replaced_when_they_are_gone(front: Front) -> None:
    opened: list[Client] = []

    def connect() -> Client:
        opened.append(front.connect_reader())
        return opened[-1]

    reader = FrontReader(connect)
    for _ in range(3):
        assert reader.read((InputText(" 1", INT4),), ISO) == (struct.pack("!i", 1),)
    assert len(opened) == 1
    opened[0].pgconn.finish()
    assert reader.read((InputText(" 1", INT4),), ISO) == (struct.pack("!i", 1),)
    assert len(opened) == 2
    reader.close()
    assert opened[1].closed


def test_a_backend_that_was_ended_is_replaced(front: Front) -> None:
    opened: list[Client] = []

    def connect() -> Client:
        opened.append(front.connect_reader())
        return opened[-1]

    reader = FrontReader(connect)
    reader.read((InputText(" 1", INT4),), ISO)
    address = front.address_for("alice")
    place = f"host={address.socket_dir} port={address.port} dbname={address.database} user={SUPERUSER}"
    with psycopg.connect(place, autocommit=True) as owner:
        owner.execute("SELECT pg_terminate_backend(%s, 5000)", (opened[0].info.backend_pid,))
    assert reader.read((InputText(" 2", INT4),), ISO) == (struct.pack("!i", 2),)
    assert len(opened) == 2
    reader.close()


def test_a_front_that_is_gone_is_said_to_be(front: Front) -> None:
    def connect() -> Client:
        raise psycopg.OperationalError("gone")

    with pytest.raises(FrontFailed, match="does not answer"):
        FrontReader(connect).read((InputText(" 1", INT4),), ISO)


def test_a_front_that_stands_still_holds_nobody_up(front: Front) -> None:
    opened: list[Client] = []

    def connect() -> Client:
        opened.append(front.connect_reader())
        return opened[-1]

    reader = FrontReader(connect, timeout_s=0.2)
    reader.read((InputText(" 1", INT4),), ISO)
    pid = opened[0].info.backend_pid
    os.kill(pid, signal.SIGSTOP)
    try:
        with pytest.raises(FrontFailed, match="does not answer"):
            reader.read((InputText(" 1" * 1_000_000, INT4),), ISO)
    finally:
        os.kill(pid, signal.SIGCONT)
    assert reader.read((InputText(" 1", INT4),), ISO) == (struct.pack("!i", 1),)
    assert len(opened) == 2
    reader.close()


def test_a_style_that_the_front_does_not_take_is_a_failure(reader: FrontReader) -> None:
    with pytest.raises(FrontFailed):
        reader.read((InputText(" 1", INT4),), InputStyle((("TimeZone", "Mars/Base"),)))
    assert reader.read((InputText(" 1", INT4),), ISO) == (struct.pack("!i", 1),)


def test_the_reader_may_do_no_more_than_a_login(front: Front) -> None:
    with front.connect_reader() as connection:
        rights = connection.execute(
            "SELECT rolsuper, rolcreatedb, rolcreaterole, rolreplication, rolbypassrls, rolconnlimit >= %s"
            " FROM pg_roles WHERE rolname = current_user", (READERS,)
        ).fetchone()  # fmt: skip
    assert rights == (False, False, False, False, False, True)


def test_no_text_is_written_to_the_log(front: Front, reader: FrontReader) -> None:
    secret = "what nobody else may read"
    with pytest.raises(NotReadable):
        reader.read((InputText(secret, DATE),), ISO)
    assert all(secret not in server.blueprint.log.read_text() for server in front.servers)
