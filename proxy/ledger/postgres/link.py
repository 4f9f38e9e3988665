"""How does one connection to the ledger's PostgreSQL come about, what does it promise, and how long is it waited for?

Where it is comes from the command line; passwords come from a password file, a service file or the environment, as
with every client of PostgreSQL. A connection that failed is thrown away; the next use opens another.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any, TypeVar, cast

import psycopg
from psycopg.abc import PQGen
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from proxy.errors import ConfigError, LedgerFailed

T = TypeVar("T")
LedgerConnection = psycopg.Connection[tuple[Any, ...]]

HINT = "Look at the PostgreSQL server of the ledger, and at the way to it."
_SCHEMES = ("postgresql://", "postgres://")
_DEFAULTS: dict[str, str | int] = {
    "application_name": "hushql",
    "connect_timeout": 4,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
}
_SETTINGS = (
    "set search_path = hushql, pg_catalog",
    "set default_transaction_isolation = 'read committed'",
    "set default_transaction_read_only = off",
    "set lock_timeout = '3s'",
    "set statement_timeout = '60s'",
    "set idle_in_transaction_session_timeout = '10s'",
)
_SILENCE_S = 5.0  # after which a server is given up, also one that stands still
_LONG_S = 1.0  # a failure that took longer is everybody's who stood in line
_PROMISES = (
    "select current_setting('fsync'), current_setting('full_page_writes'), current_setting('synchronous_commit')"
)


def check_address(url: str) -> None:
    """Raises ConfigError unless it is an address of PostgreSQL without a password in it."""
    hint = "Write postgresql://user@host:port/database."
    if not url.startswith(_SCHEMES):
        raise ConfigError("the ledger's address is none of PostgreSQL", hint=hint)
    try:
        parts = conninfo_to_dict(url)
    except psycopg.Error as error:
        raise ConfigError("the ledger's address cannot be read", hint=hint) from error
    if parts.get("password") is not None:
        raise ConfigError(
            "a password in the ledger's address would be seen by everybody who may list processes",
            hint="Use a password file (~/.pgpass, PGPASSFILE), a service file (PGSERVICEFILE) or PGPASSWORD.",
        )


class Queue:
    """Where threads wait for a link.

    Who stood behind somebody that waited long and in vain shares that failure: else the last would wait as many times.
    """

    def __init__(self) -> None:
        self.lock = threading.Lock()  # to be used alone by who cannot fail
        self._in_vain = 0.0

    @contextlib.contextmanager
    def first(self) -> Iterator[None]:
        """One at a time. Raises LedgerFailed."""
        asked = time.monotonic()
        with self.lock:
            if asked < self._in_vain:
                raise LedgerFailed("the ledger cannot be used now", hint=HINT)
            began = time.monotonic()
            try:
                yield
            except (psycopg.Error, LedgerFailed):
                ended = time.monotonic()
                self._in_vain = ended if ended - began > _LONG_S else self._in_vain
                raise


class _Watched(psycopg.Connection[tuple[Any, ...]]):
    """A connection that is closed when its server is silent for too long: that of psycopg waits for ever."""

    def wait(self, gen: PQGen[T], interval: float = 0.1, timeout: float | None = None) -> T:
        try:
            return super().wait(_watched(gen), interval, timeout)
        except _Silent:
            self.pgconn.finish()
            raise


class _Silent(psycopg.OperationalError):
    """The server did not answer in time."""


def _watched(gen: PQGen[T]) -> PQGen[T]:
    """The same, which fails when it was resumed for long without anything that came or went."""
    heard = time.monotonic()
    try:
        wanted = next(gen)
        while True:
            ready = yield wanted
            now = time.monotonic()
            if ready:
                heard = now
            elif now - heard > _SILENCE_S:
                raise _Silent("the server does not answer")
            wanted = gen.send(ready)
    except StopIteration as end:
        return cast(T, end.value)


class Link:
    """One connection, opened when it is needed. Not thread-safe.

    is_relaxed: what it commits may be lost in a crash. is_patient: it waits for answers without end.
    """

    def __init__(self, url: str, *, is_relaxed: bool = False, is_patient: bool = False) -> None:
        self._url = url
        self._is_relaxed = is_relaxed
        self._kind = psycopg.Connection[tuple[Any, ...]] if is_patient else _Watched
        self._open: list[LedgerConnection] = []

    def get(self) -> LedgerConnection:
        """The connection. Raises psycopg.Error, LedgerFailed if the server promises too little."""
        if self._open and not self._open[0].closed:
            return self._open[0]
        self.drop()
        connection = self._kind.connect(make_conninfo(self._url, **self._defaults()), autocommit=True)
        try:
            _prepare(connection, is_relaxed=self._is_relaxed)
        except BaseException:
            connection.close()
            raise
        self._open.append(connection)
        return connection

    def twice(self, work: Callable[[LedgerConnection], T]) -> T:
        """Do what may be done again, on a new connection if one was lost that stood before. Raises psycopg.Error."""
        stood = bool(self._open)
        try:
            return self._once(work)
        except psycopg.Error:
            if self._open or not stood:
                raise
        return self._once(work)

    def _once(self, work: Callable[[LedgerConnection], T]) -> T:
        connection = self.get()
        try:
            return work(connection)
        except BaseException:
            self.end_transaction()
            raise

    def end_transaction(self) -> None:
        """Roll back what was not committed. A connection that was lost is thrown away."""
        try:
            for connection in self._open:
                if connection.closed or connection.info.transaction_status is not psycopg.pq.TransactionStatus.IDLE:
                    connection.execute("rollback")
        except psycopg.Error:
            self.drop()

    def drop(self) -> None:
        """Throw the connection away: nobody knows what state it is in."""
        for connection in self._open:
            with contextlib.suppress(psycopg.Error):
                connection.close()
        self._open.clear()

    def _defaults(self) -> dict[str, str | int]:
        given = conninfo_to_dict(self._url)
        return {name: value for name, value in _DEFAULTS.items() if name not in given}


def _prepare(connection: LedgerConnection, *, is_relaxed: bool) -> None:
    for setting in _SETTINGS:
        connection.execute(setting)
    if is_relaxed:
        connection.execute("set synchronous_commit = off")
        return
    row = connection.execute(_PROMISES).fetchone()
    assert row is not None
    if row[0] != "on" or row[1] != "on":
        raise LedgerFailed(
            "the ledger's PostgreSQL may lose what it has committed", hint="Set fsync and full_page_writes to on."
        )
    if row[2] == "off":
        connection.execute("set synchronous_commit = on")
