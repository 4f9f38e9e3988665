"""Units, fields, formats, zones and intervals may be parameters, however a driver sends them.

The public twin of the tables tells what is right: there PostgreSQL answers the same statement with the same parameter.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import pytest
from psycopg import pq
from sqlalchemy import Column, DateTime, MetaData, Table, create_engine, func, select

from tests.e2e.served import PASSWORD, Client, Served
from tests.e2e.test_input_texts import NOISE, Refused, Rows, ask

RUNS = 7  # from the sixth on PostgreSQL may make a generic plan
TEXT_OID, INTERVAL_OID, UNSAID = 25, 1186, 0
BY_MONTH = "SELECT date_trunc($1, at), count(*) FROM orders GROUP BY 1 ORDER BY 1"


@dataclass(frozen=True, slots=True)
class Asked:
    """A statement, the type of its parameters, and each of them as a text and in binary."""

    sql: str
    kind: str
    oid: int
    texts: tuple[str, ...]
    data: tuple[bytes, ...]


def of_texts(sql: str, *texts: str) -> Asked:
    return Asked(sql, "text", TEXT_OID, texts, tuple(t.encode() for t in texts))


def of_interval(sql: str, text: str, months: int, days: int, seconds: int = 0) -> Asked:
    return Asked(sql, "interval", INTERVAL_OID, (text,), (struct.pack("!qii", seconds * 1_000_000, days, months),))


BY_PART = "SELECT date_part($1, at), count(*) FROM orders GROUP BY 1 ORDER BY 1"
BY_FORMAT = "SELECT to_char(at, $1), count(*) FROM orders GROUP BY 1 ORDER BY 1"
ASKED = (
    *(of_texts(BY_MONTH, unit) for unit in ("month", "MONTH", "quarter", "year", "week")),
    *(of_texts(BY_PART, field) for field in ("year", "Month", "dow", "isodow", "week", "quarter")),
    *(of_texts(BY_FORMAT, form) for form in ("YYYY-MM", "Dy", "FMMonth", "YYYY-\"Q\"Q")),
    of_texts("SELECT date_trunc($1, at), count(*) FROM orders GROUP BY date_trunc($1, at) ORDER BY 1", "month"),
    of_texts("SELECT date_trunc($1, at), to_char(at, $2), count(*) FROM orders GROUP BY 1, 2", "quarter", "MM"),
    of_texts("SELECT 1, count(*) FROM orders WHERE date_trunc($1, at) = '2024-06-01'", "month"),
    of_texts("SELECT 1, count(*) FROM orders WHERE date_part($1, at) BETWEEN 3 AND 5", "month"),
    of_texts("SELECT 1, count(*) FILTER (WHERE to_char(at, $1) = '2024') FROM orders", "YYYY"),
    of_texts("SELECT date_trunc($1, seen AT TIME ZONE $2), count(*) FROM users GROUP BY 1", "month", "Asia/Tokyo"),
    of_texts("SELECT 1, count(*) FROM users WHERE joined > to_date('01.06.2021', $1)", "DD.MM.YYYY"),
    of_interval("SELECT 1, count(*) FROM orders WHERE at > date '2025-12-01' - $1::interval", "1 year 2 months", 14, 0),
    of_interval("SELECT 1, count(*) FROM orders WHERE at + $1 < '2024-06-01'", "P40DT3H", 0, 40, 10_800),
    of_interval("SELECT 1, count(*) FROM orders WHERE at > now() - $1::interval", "20 mons", 20, 0),
    of_interval("SELECT 1, count(*) FROM orders WHERE timestamp '2025-12-01' - at > $1", "100 days", 0, 100),
    of_interval("SELECT date_bin($1, at, '2024-01-01'), count(*) FROM orders GROUP BY 1", "30 days", 0, 30),
)  # fmt: skip


@pytest.fixture(scope="module")
def pair(served: Served) -> Iterator[tuple[Client, Client]]:
    with served.connect("shop") as private, served.connect("truth") as exact:
        yield private, exact


def counts(rows: Rows | Refused) -> dict[tuple[bytes | None, ...], int]:
    """The count of each group that has more than noise might have made up."""
    assert not isinstance(rows, Refused), rows
    return {key: int(count) for *key_parts, count in rows if count and int(count) > 4 * NOISE
            for key in (tuple(key_parts),)}  # fmt: skip


def check(found: Rows | Refused, true: Rows | Refused) -> None:
    """Whether each group has the count that it should have. Few have less than noise might make up."""
    private, exact = counts(found), counts(true)
    assert exact
    assert private.keys() == exact.keys()
    assert all(abs(private[key] - exact[key]) <= NOISE for key in exact), (private, exact)


def rows_of(result: pq.abc.PGresult) -> Rows | Refused:
    if result.status != pq.ExecStatus.TUPLES_OK:
        return Refused("", (result.error_message or b"").decode())
    return [tuple(result.get_value(row, n) for n in range(result.nfields)) for row in range(result.ntuples)]


# --- ways to send a parameter --------------------------------------------------------------------------------


def as_texts(client: Client, asked: Asked) -> Rows | Refused:
    return ask(client, asked.sql, asked.texts, [asked.oid] * len(asked.texts))


def as_binary(client: Client, asked: Asked) -> Rows | Refused:
    count = len(asked.data)
    oids, formats = [asked.oid] * count, [pq.Format.BINARY] * count
    return rows_of(client.pgconn.exec_params(asked.sql.encode(), list(asked.data), oids, formats, pq.Format.TEXT))


def as_texts_of_no_type(client: Client, asked: Asked) -> Rows | Refused:
    return ask(client, asked.sql, asked.texts, [UNSAID] * len(asked.texts))


def named(client: Client, asked: Asked, data: Sequence[bytes], form: pq.Format) -> Rows | Refused:
    """A statement with a name, run until its plan may be generic; all its answers are the first one's."""
    client.pgconn.prepare(b"n", asked.sql.encode(), [asked.oid] * len(data))
    formats = [form] * len(data)
    found = [rows_of(client.pgconn.exec_prepared(b"n", list(data), formats, pq.Format.TEXT)) for _ in range(RUNS)]
    client.execute("DEALLOCATE n")
    assert found == found[:1] * RUNS
    return found[0]


def named_as_texts(client: Client, asked: Asked) -> Rows | Refused:
    return named(client, asked, [t.encode() for t in asked.texts], pq.Format.TEXT)


def named_as_binary(client: Client, asked: Asked) -> Rows | Refused:
    return named(client, asked, asked.data, pq.Format.BINARY)


def in_sql(client: Client, asked: Asked) -> Rows | Refused:
    """PREPARE and EXECUTE, as statements."""
    kinds = ", ".join([asked.kind] * len(asked.texts))
    client.execute(f"PREPARE s ({kinds}) AS {asked.sql}".encode())
    values = ", ".join(f"'{text}'" for text in asked.texts)
    found = [rows_of(client.pgconn.exec_(f"EXECUTE s ({values})".encode())) for _ in range(RUNS)]
    client.execute("DEALLOCATE s")
    assert found == found[:1] * RUNS
    return found[0]


WAYS = (as_texts, as_binary, as_texts_of_no_type, named_as_texts, named_as_binary, in_sql)
Way = Callable[[Client, Asked], Rows | Refused]


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
@pytest.mark.parametrize("asked", ASKED, ids=lambda asked: f"{asked.texts}-{asked.sql[7:30]}")
def test_what_is_bound_means_what_postgresql_takes_it_for(pair: tuple[Client, Client], asked: Asked, way: Way) -> None:
    found, true = (way(client, asked) for client in pair)
    check(found, true)


def test_one_statement_with_a_name_serves_one_unit_after_the_other(pair: tuple[Client, Client]) -> None:
    for client in pair:
        client.pgconn.prepare(b"unit", BY_MONTH.encode(), [TEXT_OID])
    for unit in ("month", "year", "quarter", "month", "week", "year", "month", "quarter"):
        found, true = (rows_of(client.pgconn.exec_prepared(b"unit", [unit.encode()])) for client in pair)
        check(found, true)


@pytest.mark.parametrize("unit", ["fortnight", "", "month ago", "; DROP TABLE x"])
def test_an_unknown_unit_is_refused_before_anything_is_charged(pair: tuple[Client, Client], unit: str) -> None:
    private, exact = pair
    before = private.execute("SELECT epsilon_spent FROM hush.budget").fetchall()
    assert isinstance(ask(exact, BY_MONTH, [unit], [TEXT_OID]), Refused)
    for form in (as_texts, as_binary, named_as_texts, in_sql):
        assert isinstance(form(private, of_texts(BY_MONTH, unit)), Refused)
    assert private.execute("SELECT epsilon_spent FROM hush.budget").fetchall() == before


@pytest.mark.parametrize("threshold", [None, 0, 5])
def test_a_query_builder_binds_the_unit(served: Served, threshold: int | None) -> None:
    """As SQLAlchemy does it: the unit is a parameter in the select list and once more in GROUP BY."""
    orders = Table("orders", MetaData(), Column("at", DateTime))
    month = func.date_trunc("month", orders.c.at)
    question = select(month, func.count()).group_by(month).order_by(month)
    found = {}
    for dataset in ("shop", "truth"):
        login = f"ann:{PASSWORD.replace(' ', '%20')}@127.0.0.1:{served.port}"
        engine = create_engine(f"postgresql+psycopg://{login}/{dataset}", connect_args={"prepare_threshold": threshold})
        with engine.connect() as client:
            found[dataset] = [client.execute(question).all() for _ in range(RUNS)][-1]
        engine.dispose()
    private, exact = ({at: n for at, n in found[name] if n > 4 * NOISE} for name in ("shop", "truth"))
    assert exact.keys() == private.keys()
    assert len(exact) == 24
    assert all(abs(private[at] - exact[at]) <= NOISE for at in exact)


EXECUTED = (
    ("SET DateStyle = 'SQL, DMY'; SET TimeZone = 'Asia/Kolkata'", "timestamptz", "2024-06-01 12:00+00",
     "SELECT count(*) FROM users WHERE seen > $1"),
    ("SET DateStyle = 'Postgres, DMY'; SET TimeZone = 'Asia/Kolkata'", "timestamptz", "2024-06-01 12:00+00",
     "SELECT count(*) FROM users WHERE seen > $1"),
    ("SET DateStyle = 'SQL, DMY'; SET TimeZone = 'America/New_York'", "timestamptz", "2024-11-03 01:30 EST",
     "SELECT count(*) FROM users WHERE seen > $1"),
    ("SET DateStyle = 'German'", "timestamp", "2024-06-01 12:00:00.1", "SELECT count(*) FROM orders WHERE at > $1"),
    ("SET DateStyle = 'SQL, MDY'", "date", "2021-02-03", "SELECT count(*) FROM users WHERE joined > $1"),
    ("SET extra_float_digits = -14", "float8", "47.5", "SELECT count(*) FROM items WHERE price > $1"),
    ("SET extra_float_digits = -6", "real", "1.6953125", "SELECT count(*) FROM users WHERE height > $1"),
)  # fmt: skip


@pytest.mark.parametrize(("settings", "kind", "text", "sql"), EXECUTED, ids=lambda part: part[:30])
def test_what_is_executed_means_the_same_under_all_settings(
    served: Served, settings: str, kind: str, text: str, sql: str
) -> None:
    """Settings of output have no say in what a value is that EXECUTE passes on."""
    found = []
    for dataset in ("shop", "truth"):
        with served.connect(dataset) as client:
            client.execute(settings.encode())
            client.execute(f"PREPARE s ({kind}) AS {sql}".encode())
            found.append(client.execute(f"EXECUTE s ('{text}')".encode()).fetchall()[0][0])
    assert abs(found[0] - found[1]) <= NOISE
