"""A site whose rows are in a PostgreSQL of the tests' own, which can be stopped, and statements that wait in it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Thread

import psycopg

from tests.faults.proxied import DATASET, PATIENCE_S, PEOPLE, Client, Proxied, Site, policy_document, refusal_of
from tests.postgres_server import PrivateServer, start_server

#: What gated statements wait for, in the server, when they are charged.
GATE = 4711
AWAY = "the private data cannot be reached"
NOTHING, STAYS = "Nothing was charged.", "What was reserved for it stays charged."
AGAIN = "What was reserved for it stays charged, and pays for the same statement asked again."

_DATA = f"""
create table people (person_id integer unique, age integer, score bigint);
insert into people select i, i * 7 % 90, i * 1000 from generate_series(0, {PEOPLE - 1}) as i;
create view gated as select p.* from people as p, (select pg_advisory_xact_lock_shared({GATE})) as gate;
create role reader login;
grant select on people, gated to reader;
"""


@dataclass(slots=True)
class Outside:
    """The private server, whichever process of it runs."""

    server: PrivateServer

    def owner(self) -> Client:
        return self.server.owner(DATASET)

    def stop(self) -> None:
        self.server.halt()

    def start(self) -> None:
        self.server = self.server.again()

    @contextmanager
    def shut(self) -> Iterator[Client]:
        """While inside, gated statements wait."""
        with self.owner() as owner:
            owner.execute(f"select pg_advisory_lock({GATE})".encode())
            yield owner

    def end_sessions(self) -> None:
        """As an administrator's `pg_terminate_backend` does with what hangs."""
        with self.owner() as owner:
            owner.execute("select pg_terminate_backend(pid) from pg_stat_activity where usename = 'reader'")


@contextmanager
def outside() -> Iterator[Outside]:
    made = Outside(start_server())
    try:
        made.server.create(DATASET, _DATA)
        yield made
    finally:
        made.server.stop()


def served_from(site: Site, there: Outside, folder: Path, **changes: object) -> Site:
    """The site's logins with the rows elsewhere."""
    document = policy_document()
    tables = document["tables"]
    assert isinstance(tables, dict)
    gated = {**tables["people"], "max_rows_per_unit": 1}
    del gated["unit_unique"]
    source = {"engine": "postgres", "dsn": there.server.dsn(DATASET, "reader"), "data_version": "1"}
    return site.copy(folder, source=source, tables={"people": tables["people"], "gated": gated}, **changes)


def gated(number: int) -> str:
    """A statement that waits at the gate."""
    return f"select count(*) from gated where score < {number + 1}"


def waiting(owner: Client) -> int:
    """How many statements wait at the gate."""
    found = owner.execute("select count(*) from pg_locks where locktype = 'advisory' and not granted").fetchone()
    assert found is not None
    assert isinstance(found[0], int)
    return found[0]


def until_waiting(owner: Client, count: int = 1) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while waiting(owner) != count:
        assert time.monotonic() < deadline
        time.sleep(0.01)


class Asking(Thread):
    """A client of its own that asks one statement; `told` in the end."""

    def __init__(self, proxied: Proxied, sql: str, login: str = "ann") -> None:
        super().__init__()
        self.error: psycopg.Error | None = None
        self.rows: list[tuple[object, ...]] = []
        self._proxied, self._sql, self._login = proxied, sql, login
        self.start()

    def run(self) -> None:
        def ask() -> None:
            with self._proxied.connect(self._login) as client:
                self.rows = client.execute(self._sql.encode()).fetchall()

        self.error = refusal_of(ask)

    def told(self) -> tuple[str, str, str]:
        """SQLSTATE, message and detail of its error."""
        self.join(PATIENCE_S)
        assert self.error is not None, self.rows
        diag = self.error.diag
        return self.error.sqlstate or "", diag.message_primary or "", diag.message_detail or ""

    def answered(self) -> list[tuple[object, ...]]:
        self.join(PATIENCE_S)
        assert self.error is None, self.error
        return self.rows


def lost_at_the_gate(proxied: Proxied, there: Outside, sql: str) -> tuple[str, str, str]:
    """What a client is told whose statement was charged when its session with the private server ended."""
    with there.shut() as owner:
        asking = Asking(proxied, sql)
        until_waiting(owner)
        there.end_sessions()
        return asking.told()
