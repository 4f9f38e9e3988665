"""Real clients through the relay: psycopg, asyncpg, SQLAlchemy and psql."""

from __future__ import annotations

import asyncio
import contextlib
import os
import pty
import select
import signal
import subprocess
import time
from collections.abc import Iterator
from typing import Any

import asyncpg
import psycopg
import pytest
import sqlalchemy
from sqlalchemy import Column, Integer, MetaData, String, Table, func

from tests.wire.fake_session import AGES, CITIES
from tests.wire.front import BIN, NATIVE, PORT, TestFront
from tests.wire.raw import PASSWORD, USER
from tests.wire.serving import Serving

COUNTS = [("Bern", 2), ("Chur", 1), (CITIES[3], 1)]
GROUPS = "select city, count(*) from users group by city order by city"


# --- psycopg -------------------------------------------------------------------------------------------------


def test_psycopg_simple_and_extended(serving: Serving) -> None:
    with serving.connect() as connection:
        assert connection.execute(GROUPS).fetchall() == COUNTS
        for prepare in (False, True, True):
            rows = connection.execute(
                "select age from users where age > %s order by 1", [35], prepare=prepare
            ).fetchall()
            assert rows == [(40,), (50,), (60,)]
        with connection.cursor(binary=True) as cursor:
            assert cursor.execute("select sum(age), %s::int4 from users", [7]).fetchone() == (sum(AGES), 7)
        with psycopg.ClientCursor(connection) as client_side:
            assert client_side.execute("select count(*) from users where city = %s", ["Bern"]).fetchone() == (2,)


def test_psycopg_notices(serving: Serving) -> None:
    seen: list[str | None] = []
    with serving.connect() as connection:
        connection.add_notice_handler(lambda notice: seen.append(notice.message_primary))
        connection.execute("select count(*) from users")
    assert seen == ["charged 0.5"]


def test_psycopg_pipeline(serving: Serving) -> None:
    with serving.connect() as connection, connection.pipeline():
        cursors = [connection.execute(GROUPS if i % 2 else "select %s::int4", [] if i % 2 else [i]) for i in range(10)]
        assert [c.fetchall() for c in cursors] == [COUNTS if i % 2 else [(i,)] for i in range(10)]
    with serving.connect() as connection:
        with pytest.raises(psycopg.errors.UndefinedColumn), connection.pipeline():
            connection.execute("select 1 from users")
            connection.execute("select nope from users")
            connection.execute("select 2 from users")
        assert connection.execute(GROUPS).fetchall() == COUNTS


def test_psycopg_server_side_cursors(serving: Serving) -> None:
    with serving.connect(autocommit=False) as connection:
        with connection.cursor(name="one") as cursor:
            cursor.itersize = 2
            cursor.execute("select age from users order by age")
            assert [row[0] for row in cursor] == list(AGES)
        with connection.cursor(name="two", scrollable=True) as cursor:
            cursor.execute("select age from users where age > %s order by age", [30])
            assert cursor.fetchmany(2) == [(40,), (50,)]
            cursor.scroll(-1)
            assert cursor.fetchone() == (50,)
    with serving.connect() as connection, connection.cursor(name="three", withhold=True) as cursor:
        cursor.execute("select age from users")
        assert len(cursor.fetchall()) == 4


@pytest.mark.parametrize("options", ["", "(format csv)", "(format binary)"])
def test_psycopg_copy_to(options: str, serving: Serving, front: TestFront) -> None:
    statement = f"copy (select city, age from users order by age) to stdout {options}"
    with serving.connect() as connection, front.direct(dbname=NATIVE) as native:
        with connection.cursor().copy(statement) as copy:
            relayed = b"".join(copy)
        with native.cursor().copy(statement) as copy:
            assert relayed == b"".join(copy)


def test_psycopg_transactions(serving: Serving) -> None:
    with serving.connect(autocommit=False) as connection:
        connection.execute("create temp table kept (n int8)")
        with connection.transaction(), contextlib.suppress(psycopg.Error), connection.transaction():
            connection.execute("insert into kept select count(*) from users")
            connection.execute("select /* refuse */ city from users")
        assert connection.execute("select * from kept").fetchall() == []
        connection.execute("insert into kept select count(*) from users")
        connection.commit()
        assert connection.execute("select * from kept").fetchall() == [(4,)]


def test_psycopg_errors(serving: Serving) -> None:
    with serving.connect() as connection:
        with pytest.raises(psycopg.Error) as caught:
            connection.execute("select /* fail */ count(*) from users")
        diagnostics = caught.value.diag
        assert (caught.value.sqlstate, diagnostics.message_detail) == ("DP001", "Nothing is left.")
        assert diagnostics.message_hint == "Ask for more."


# --- asyncpg ---------------------------------------------------------------------------------------------------


async def _asyncpg(port: int) -> dict[str, Any]:
    seen: dict[str, Any] = {}
    arguments = {
        "host": "127.0.0.1",
        "port": port,
        "user": USER,
        "password": PASSWORD,
        "database": "shop",
        "ssl": False,
    }
    connection = await asyncpg.connect(**arguments)
    seen["rows"] = [tuple(row) for row in await connection.fetch(GROUPS)]
    prepared = await connection.prepare("select age from users where age > $1 order by age")
    seen["parameters"] = [t.name for t in prepared.get_parameters()]
    seen["prepared"] = [[row["age"] for row in await prepared.fetch(least)] for least in (30, 50)]
    async with connection.transaction():
        cursor = await prepared.cursor(0)
        seen["cursor"] = [[row[0] for row in await cursor.fetch(3)], [row[0] for row in await cursor.fetch(3)]]
        seen["iterated"] = [row[0] async for row in connection.cursor("select age from users", prefetch=2)]
    await connection.execute("create temp table t (a int4, n int8)")
    await connection.executemany(
        "insert into t select $1::int4, count(*) from users where age > $1::int4", [(30,), (50,)]
    )
    seen["many"] = [tuple(row) for row in await connection.fetch("select a, n from t order by a")]
    try:
        await connection.fetch("select /* refuse */ city from users")
    except asyncpg.PostgresError as error:
        seen["refused"] = error.sqlstate
    lines: list[bytes] = []

    async def collect(data: bytes) -> None:
        lines.append(data)

    await connection.copy_from_query("select city from users order by age limit 2", output=collect)
    seen["copy"] = b"".join(lines)
    await connection.reset()
    seen["after"] = await connection.fetchval("select count(*) from users")
    await connection.close()
    return seen


def test_asyncpg(serving: Serving) -> None:
    assert asyncio.run(_asyncpg(serving.port)) == {
        "rows": COUNTS,
        "parameters": ["int4"],
        "prepared": [[40, 50, 60], [60]],
        "cursor": [[30, 40, 50], [60]],
        "iterated": list(AGES),
        "many": [(30, 3), (50, 1)],
        "refused": "DP004",
        "copy": b"Bern\nBern\n",
        "after": 4,
    }


# --- SQLAlchemy --------------------------------------------------------------------------------------------------


@pytest.fixture
def engine(serving: Serving) -> Iterator[sqlalchemy.Engine]:
    url = sqlalchemy.URL.create(
        "postgresql+psycopg", username=USER, password=PASSWORD, host="127.0.0.1", port=serving.port, database="shop"
    )
    made = sqlalchemy.create_engine(url)
    yield made
    made.dispose()


def test_sqlalchemy(engine: sqlalchemy.Engine) -> None:
    users = Table("users", MetaData(), Column("city", String), Column("age", Integer))
    grouped = sqlalchemy.select(users.c.city, func.count()).group_by(users.c.city).order_by(users.c.city)
    with engine.connect() as connection:
        assert [tuple(row) for row in connection.execute(grouped)] == COUNTS
        filtered = sqlalchemy.select(func.sum(users.c.age)).where(users.c.age > 35)
        assert connection.execute(filtered).scalar() == 150
        streamed = connection.execution_options(stream_results=True).execute(sqlalchemy.select(users.c.age))
        assert [row.age for row in streamed] == list(AGES)
    reflected = Table("users", MetaData(), autoload_with=engine)
    assert [(c.name, str(c.type)) for c in reflected.columns] == [("city", "TEXT"), ("age", "INTEGER")]
    inspector = sqlalchemy.inspect(engine)
    assert sorted(inspector.get_table_names()) == ["places", "users"]
    assert inspector.get_pk_constraint("places")["constrained_columns"] == ["name"]


# --- psql --------------------------------------------------------------------------------------------------------


def psql(host: str, port: int, database: str, *commands: str) -> str:
    arguments = [part for command in commands for part in ("-c", command)]
    environment = {"PGPASSWORD": PASSWORD, "PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8", "PSQLRC": "/dev/null"}
    command = [str(BIN / "psql"), "-X", "-h", host, "-p", str(port), "-U", USER, "-d", database, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=60, check=False)
    return done.stdout + done.stderr


def test_psql_shows_what_it_shows_without_the_relay(serving: Serving, front: TestFront) -> None:
    commands = (
        r"\d",
        r"\dt",
        r"\d places",
        r"\d+ users",
        r"\l",
        r"\du",
        r"\dn",
        r"\df",
        r"\dT",
        r"\dp",
    )
    relayed = psql("127.0.0.1", serving.port, "shop", *commands)
    assert relayed == psql(str(front.socket_dir), PORT, "shop", *commands)
    assert "places_pkey" in relayed


def test_psql_results_and_error_positions(serving: Serving, front: TestFront) -> None:
    commands = (
        "select city, count(*) from users group by city order by city",
        "select city,\n  nöpe from users",
        "select 1; select cty from users; select 2",
        "copy (select age from users) to stdout",
        r"select age from users where age > $1 \bind 40 \g",
        r"\gdesc",
        "select age from users order by age \\gset",
        "begin; declare c cursor for select age from users; fetch 2 from c; commit;",
    )
    relayed = psql("127.0.0.1", serving.port, "shop", *commands).replace("NOTICE:  charged 0.5\n", "")
    assert relayed == psql(str(front.socket_dir), PORT, NATIVE, *commands)
    assert "LINE 2:   nöpe from users\n          ^" in relayed


def test_psql_interrupt_cancels_a_pending_release(serving: Serving) -> None:
    environment = {"PGPASSWORD": PASSWORD, "PATH": os.environ["PATH"], "PSQLRC": "/dev/null", "TERM": "dumb"}
    target = ["-h", "127.0.0.1", "-p", str(serving.port), "-U", USER, "-d", "shop"]
    pid, terminal = pty.fork()
    if not pid:
        os.execve(BIN / "psql", ["psql", "-X", "--no-readline", "-P", "pager=off", *target], environment)
    try:
        read_until(terminal, b"shop=>")
        os.write(terminal, b"select /* slow */ count(*) from users;\n")
        serving.wait_until_asleep()
        os.write(terminal, b"\x03")
        assert b"canceling statement due to user request" in read_until(terminal, b"shop=>", after=b"ERROR")
        os.write(terminal, b"select 'still ' || 'here';\n")
        read_until(terminal, b"still here")
        os.write(terminal, b"\\q\n")
    finally:
        os.kill(pid, signal.SIGKILL)
        os.close(terminal)
        os.waitpid(pid, 0)


def read_until(terminal: int, text: bytes, after: bytes = b"") -> bytes:
    seen = b""
    deadline = time.monotonic() + 60
    while text not in seen.partition(after)[2] if after else text not in seen:
        ready, _, _ = select.select([terminal], [], [], max(0.0, deadline - time.monotonic()))
        assert ready, seen
        seen += os.read(terminal, 4096)
    return seen
