"""How does a PostgreSQL server, elsewhere, compute what was reserved?

Each charge has a session of its own while it runs, in one read-only transaction over one snapshot. What the server says
about a failure is dropped where it is caught; only the class of the exception is kept.
"""

from __future__ import annotations

import contextlib
import logging
import os
import socket
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import psycopg

from proxy.engines import postgres_facts
from proxy.engines.base import Cancellation, EngineStopped, Facts
from proxy.engines.postgres_failures import stopped, stopped_at_look
from proxy.engines.postgres_open import EngineConnection, connect, first_connection, unfit, warnings
from proxy.engines.watchdog import Watch, Watchdog
from proxy.errors import ConfigError, Failure
from proxy.plan.charge import Reserved, Unpromised
from proxy.policy.model import Policy, PostgresSource, Table
from proxy.release.raw import KeptKeys, RawResult
from proxy.sql.render.dialect import quote
from proxy.sql.render.postgres.dialect import POSTGRES

_log = logging.getLogger("hushql")
_PUBLIC_BATCH = 2000
_MOST_IDLE = 8
_CANCEL_S = 5.0
_CHECK_S = 60.0
_REPEAT_S = 0.2
_GRACE_S = 2.0  # the server ends by itself what we could not cancel
_PATIENCE_S = 5.0  # with a server that does neither: then the connection is broken off
_BEGIN = "begin isolation level repeatable read read only"
_COMPILED = 5_000  # characters of a statement whose expressions the server may compile, which takes it 0.2 s then


class PostgresEngine:
    """The data of one policy. Implements `base.Engine`."""

    def __init__(self, policy: Policy, source: PostgresSource) -> None:
        """Reach the server, and say in the log what its login may do beyond reading. Raises ConfigError."""
        self._source = source
        self._zone = policy.privacy.time_zone
        self._lock = threading.Lock()
        self._is_closed = False
        self._idle: list[EngineConnection] = [first_connection(policy, source)]
        self._watchdog = Watchdog()
        self._relied_on = postgres_facts.ReliedOn()

    @contextmanager
    def session(
        self, looked_at: Sequence[str], *, timeout_s: float, cancellation: Cancellation
    ) -> Iterator[PostgresSession]:
        """A transaction that was begun and has found what is named. See `base.Engine.session`.

        The look is made with the message that begins it, and waits for locks of whoever changes a table.
        """
        interrupt, is_looking = _Interrupt(), True
        is_compiled = max(map(len, looked_at), default=0) <= _COMPILED
        begin = _begin(timeout_s, self._relied_on.look(looked_at), is_compiled=is_compiled)
        with self._watchdog.watch(interrupt, timeout_s, cancellation) as watch:
            try:
                with self._connected(begin, interrupt) as connection:
                    is_looking = False
                    yield PostgresSession(connection, watch, self._relied_on)
            except EngineStopped:
                if not is_looking:
                    watch.check()  # interrupted for a reason that has a better name
                cancellation.check()
                raise

    def check_facts(self, policy: Policy) -> Facts:
        """See `base.Engine.check_facts`. Raises ConfigError."""
        failure = ""
        try:
            with self._connected(_begin(_CHECK_S)) as connection:
                checked = postgres_facts.check_facts(connection, policy)
                said = warnings(connection)
        except (psycopg.Error, EngineStopped) as error:
            failure = type(error).__name__
        else:
            for words in (*said, *checked.warnings):
                _log.warning("%s: %s; see what a login needs in the guide", policy.dataset, words)
            self._relied_on = checked.relied_on
            return checked.facts
        raise ConfigError(  # outside the handler, so that the server's words do not hang on it
            f"what the policy declares about the data could not be checked: {failure}"
        )

    def public_rows(self, table: Table) -> Iterator[tuple[object, ...]]:
        """All rows of a public table, as texts. Raises ConfigError if they cannot be read, ValueError if private."""
        if not table.shows_rows:
            raise ValueError(f"table {table.name} is private")
        columns = ", ".join(f"{quote(c.name)}::text" for c in table.columns if not c.hidden)
        sql = f"select {columns} from {POSTGRES.relation(table.relation)}"
        is_failed = False
        try:
            with self._connected(_begin(0.0)) as connection:
                connection.execute(f"declare public_rows no scroll cursor for {sql}".encode())
                while rows := connection.execute(f"fetch {_PUBLIC_BATCH} from public_rows".encode()).fetchall():
                    yield from rows
        except (psycopg.Error, EngineStopped):
            is_failed = True
        if is_failed:
            raise ConfigError(f"the rows of the public table {table.name} cannot be read")

    def close(self) -> None:
        """Interrupt what runs, wait until it is gone, and let go of the server."""
        self._watchdog.close()
        with self._lock:
            self._is_closed = True
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    @contextmanager
    def _connected(self, begin: bytes, interrupt: _Interrupt | None = None) -> Iterator[EngineConnection]:
        """A session in a transaction. It serves the next statement too, unless this one fails.

        interrupt: aimed at the session while it has one. Raises EngineStopped when there is no server.
        """
        interrupt = interrupt or _Interrupt()
        connection = self._begun(begin, interrupt)
        is_kept = False
        try:
            yield connection
            with contextlib.suppress(psycopg.Error):
                connection.execute("rollback")
                is_kept = True
        finally:
            if interrupt.let_go() or not is_kept:  # what was asked for may still arrive, and would hit whoever is next
                connection.close()
        with self._lock:
            if not self._is_closed and not connection.closed and len(self._idle) < _MOST_IDLE:
                self._idle.append(connection)
                return
        connection.close()

    def _begun(self, begin: bytes, interrupt: _Interrupt) -> EngineConnection:
        """An idle session, or a new one where the server has ended those that were idle."""
        while True:
            with self._lock:
                if self._is_closed:
                    raise EngineStopped("Closed", Failure.UNREACHABLE)
                idle = self._idle.pop() if self._idle else None
            connection = idle
            try:
                connection = connection or self._connect()
                interrupt.aim(connection)
                if _is_so(connection.execute(begin)):
                    return connection
                stopped = EngineStopped("FactsChanged", Failure.CHANGED)
            except psycopg.Error as error:
                stopped = stopped_at_look(error, connection)
            was_used = interrupt.let_go()
            was_lost = connection is not None and connection.closed
            if connection is not None:
                connection.close()
            if idle is None or was_used or not was_lost:
                raise stopped  # outside the handler, so that libpq's words do not hang on it

    def _connect(self) -> EngineConnection:
        """A new session. Raises psycopg.Error, EngineStopped for a server that is not what it was."""
        connection = connect(self._source, self._zone)
        if unfit(connection):
            connection.close()
            raise EngineStopped("Unfit", Failure.CHANGED)
        return connection


def _begin(timeout_s: float, look: str = "", *, is_compiled: bool = False) -> bytes:
    """0: without a time-out. is_compiled: whether expressions of costly statements are, if the server does that."""
    milliseconds = int((timeout_s + _GRACE_S) * 1000) if timeout_s else 0
    compiling = "" if is_compiled else "; set local jit = off"
    return f"{_BEGIN}; set local statement_timeout = {milliseconds}{compiling}{look}".encode()


def _is_so(cursor: psycopg.Cursor[tuple[object, ...]]) -> bool:
    """Whether the last of several statements gives TRUE, if it gives a row."""
    while cursor.nextset():
        pass
    row = cursor.fetchone() if cursor.description else None
    return row is None or row[0] is True


class _Interrupt:
    """Asks the server to stop what a session does, and lets the session go if the server does not listen.

    Asking takes a connection of its own, so a thread of its own does it.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._connection: EngineConnection | None = None
        self._thread: threading.Thread | None = None
        self._next_s, self._breaks_s = 0.0, 0.0

    def aim(self, connection: EngineConnection) -> None:
        with self._lock:
            self._connection = connection

    def let_go(self) -> bool:
        """Leave the session alone from now on. Whether it was interrupted."""
        with self._lock:
            self._connection = None
            return self._thread is not None

    def __call__(self) -> None:
        with self._lock:
            now_s, connection = time.monotonic(), self._connection
            if connection is None or (self._thread is not None and now_s < self._next_s):
                return
            if self._thread is None:
                self._breaks_s = now_s + _PATIENCE_S
            elif now_s >= self._breaks_s:
                _break(connection)
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(target=_cancel, args=[connection], name="engine-cancel", daemon=True)
                self._thread.start()
            self._next_s = now_s + _REPEAT_S


def _cancel(connection: EngineConnection) -> None:
    with contextlib.suppress(psycopg.Error):
        connection.cancel_safe(timeout=_CANCEL_S)


def _break(connection: EngineConnection) -> None:
    """End the way to the server, so that nobody waits for it: its process stands still, or its machine is gone."""
    with contextlib.suppress(psycopg.Error, OSError), socket.socket(fileno=os.dup(connection.fileno())) as way:
        way.shutdown(socket.SHUT_RDWR)


class PostgresSession:
    """A transaction that is kept for what is charged, over one snapshot. Implements `base.EngineSession`."""

    def __init__(self, connection: EngineConnection, watch: Watch, relied_on: postgres_facts.ReliedOn) -> None:
        self.connection, self.watch, self.relied_on = connection, watch, relied_on

    @contextmanager
    def stages(self, reserved: Reserved | Unpromised) -> Iterator[PostgresStages]:
        """Run reserved SELECTs. See `base.EngineSession.stages`."""
        yield PostgresStages(self, reserved)


class PostgresStages:
    """The statements of one charge. Implements `base.Stages`."""

    def __init__(self, session: PostgresSession, reserved: Reserved | Unpromised) -> None:
        self._session = session
        self._statements = (reserved.sql, *reserved.further)

    def rows(self, stage: int, kept: KeptKeys) -> RawResult:
        """Run one reserved SELECT. See `base.Stages.rows`."""
        session = self._session
        session.watch.check()
        found: RawResult | EngineStopped
        try:
            # results in binary make it one statement by the protocol, whatever its text says
            parameters = [list(column) for column in kept.columns]
            cursor = session.connection.execute(self._statements[stage].encode(), parameters, binary=True)
            found = RawResult(len(cursor.description or ()), tuple(cursor.fetchall()))
            if not session.relied_on.is_still_so(session.connection):
                found = EngineStopped("FactsChanged", Failure.CHANGED)
        except psycopg.Error as error:
            found = stopped(error, session.connection)
        session.watch.check()  # interrupted for a reason that has a better name
        if isinstance(found, EngineStopped):
            raise found  # outside the handler, so that the server's words do not hang on it
        return found
