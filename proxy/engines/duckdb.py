"""How does DuckDB, inside this process, compute what was reserved?

Every statement has a connection of its own over the same locked database. What DuckDB says about a failure is dropped
where it is caught; only the class of its exception is kept.
"""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

import duckdb

from proxy.engines import duckdb_facts
from proxy.engines.base import Cancellation, EngineStopped, Facts
from proxy.engines.duckdb_open import DATABASE, open_source
from proxy.engines.duckdb_unchanged import opened_file
from proxy.engines.one_select import is_one_select
from proxy.engines.watchdog import Watch, Watchdog
from proxy.errors import ConfigError, Failure
from proxy.plan.charge import Reserved, Unpromised
from proxy.policy.model import Column, Policy, Table
from proxy.release.raw import KeptKeys, RawResult
from proxy.sql.render.dialect import quote
from proxy.sql.render.duckdb.dialect import DUCKDB
from proxy.sqltypes import SqlType

_PUBLIC_BATCH = 2000
_MOST_IDLE = 8
_FEW_ROWS = 1000
_MOST_PARSED = 128
_LONG = 20_000
_OF_ITS_OWN = frozenset(("FatalException", "InternalException"))


class DuckDBEngine:
    """The data of one policy. Implements `base.Engine`."""

    def __init__(self, policy: Policy, spill: Path) -> None:
        """Open the data: see `duckdb_open.open_source`. Raises ConfigError."""
        self._connection = open_source(policy, spill)
        try:
            self._file = opened_file(policy.source)
        except ConfigError:
            self._connection.close()
            raise
        self._spill = spill
        self._lock = threading.Lock()
        self._watchdog = Watchdog()
        self._is_closed = False
        self._is_suspect = False
        self._idle: list[duckdb.DuckDBPyConnection] = []
        self._parsed = Parsed()

    @contextmanager
    def session(
        self,
        looked_at: Sequence[str],
        *,
        timeout_s: float,
        cancellation: Cancellation,
    ) -> Iterator[DuckDBSession]:
        """A connection, if the file still is what was opened: then all names are there. See `base.Engine.session`."""
        self._look()
        with (
            self._connected() as cursor,
            self._watchdog.watch(cursor.interrupt, timeout_s, cancellation) as watch,
        ):
            yield DuckDBSession(cursor, watch, self._parsed, self._stopped)

    def _look(self) -> None:
        """Raises EngineStopped if the data were changed in their place, or cannot be asked any more."""
        with self._lock:
            if self._is_closed:
                raise EngineStopped("Closed", Failure.UNREACHABLE)
            self._file.check()
        if self._is_suspect:
            self._cursor().close()
            self._is_suspect = False

    def _stopped(self, exception_name: str) -> EngineStopped:
        """What DuckDB has said. After an error of its own it may answer nothing any more."""
        self._is_suspect = self._is_suspect or exception_name in _OF_ITS_OWN
        with self._lock:
            failure = Failure.OTHER if self._is_closed else self._file.failure(exception_name)
        return EngineStopped(exception_name, failure)

    def check_facts(self, policy: Policy) -> Facts:
        """See `base.Engine.check_facts`. Raises ConfigError."""
        with closing(self._cursor()) as cursor:
            return duckdb_facts.check_facts(cursor, policy)

    def public_rows(self, table: Table) -> Iterator[tuple[object, ...]]:
        """All rows of a public table. Raises ConfigError if they cannot be read, ValueError for a private table."""
        if not table.shows_rows:
            raise ValueError(f"table {table.name} is private")
        columns = ", ".join(_fetched(column) for column in table.columns if not column.hidden)
        try:
            with closing(self._cursor()) as cursor:
                cursor.execute(f"select {columns} from {DUCKDB.relation(table.relation)}")
                while rows := cursor.fetchmany(_PUBLIC_BATCH):
                    yield from rows
        except duckdb.Error as error:
            raise ConfigError(f"the rows of the public table {table.name} cannot be read") from error

    def close(self) -> None:
        """Interrupt what runs, wait until it is gone, let go of the data and remove what spilled."""
        self._watchdog.close()
        with self._lock:
            while self._idle:
                self._idle.pop().close()
            self._connection.close()
            if not self._is_closed:
                self._file.close()
            self._is_closed = True
        shutil.rmtree(self._spill, ignore_errors=True)

    @contextmanager
    def _connected(self) -> Iterator[duckdb.DuckDBPyConnection]:
        """A connection for one statement. It serves the next one too, unless the statement fails."""
        with self._lock:
            idle = self._idle.pop() if self._idle else None
        cursor = self._cursor() if idle is None else idle
        try:
            yield cursor
        except BaseException:
            cursor.close()
            raise
        with self._lock:
            if not self._is_closed and len(self._idle) < _MOST_IDLE:
                self._idle.append(cursor)
                return
        cursor.close()

    def _cursor(self) -> duckdb.DuckDBPyConnection:
        try:
            with self._lock:
                cursor = self._connection.cursor()
            cursor.execute(f"use {DATABASE}")
        except duckdb.Error as error:
            failure = "Closed" if self._is_closed else type(error).__name__
        else:
            return cursor
        raise EngineStopped(failure, Failure.UNREACHABLE)


class Parsed:
    """The SELECTs that were parsed lately, by their text; they are planned anew each time."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._found: dict[str, duckdb.Statement] = {}  # oldest first

    def select(self, cursor: duckdb.DuckDBPyConnection, sql: str) -> duckdb.Statement | str:
        """The one SELECT in a text. Raises EngineStopped for anything else, duckdb.Error for what has no grammar.

        A long one stays text, which is parsed where it is executed: other threads may run then.
        """
        if len(sql) > _LONG and is_one_select(sql):
            return sql
        with self._lock:
            found = self._found.get(sql)
        if found is not None:
            return found
        statements = cursor.extract_statements(sql)
        if len(statements) != 1 or statements[0].type != duckdb.StatementType.SELECT:
            raise EngineStopped("NotOneSelect")
        with self._lock:
            self._found[sql] = statements[0]
            if len(self._found) > _MOST_PARSED:
                del self._found[next(iter(self._found))]
        return statements[0]

    def __len__(self) -> int:
        return len(self._found)


class DuckDBSession:
    """A connection that is kept for what is charged. Implements `base.EngineSession`."""

    def __init__(
        self, cursor: duckdb.DuckDBPyConnection, watch: Watch, parsed: Parsed, stopped: Callable[[str], EngineStopped]
    ) -> None:
        self.cursor, self.watch, self.parsed, self.stopped = cursor, watch, parsed, stopped

    @contextmanager
    def stages(self, reserved: Reserved | Unpromised) -> Iterator[DuckDBStages]:
        """Run reserved SELECTs in one transaction. See `base.EngineSession.stages`."""
        if not reserved.further:  # one statement is a transaction of its own
            yield DuckDBStages(self, reserved)
            return
        self.cursor.begin()
        yield DuckDBStages(self, reserved)
        self.cursor.rollback()  # after a failure the connection is closed instead


class DuckDBStages:
    """The statements of one charge. Implements `base.Stages`."""

    def __init__(self, session: DuckDBSession, reserved: Reserved | Unpromised) -> None:
        self._session = session
        self._statements = (reserved.sql, *reserved.further)

    def rows(self, stage: int, kept: KeptKeys) -> RawResult:
        """Run one reserved SELECT. See `base.Stages.rows`."""
        session = self._session
        try:
            statement = session.parsed.select(session.cursor, self._statements[stage])
            return _run(session.cursor, statement, kept, session.watch)
        except duckdb.Error as error:
            failure = type(error).__name__
        session.watch.check()  # interrupted for a reason that has a better name
        raise session.stopped(failure)  # outside the handler, so that the engine's words do not hang on it


def _fetched(column: Column) -> str:
    """A column as Python can take it: a time with zone comes as text, which spares DuckDB a time zone library."""
    name = quote(column.name)
    return f"{name}::varchar" if column.type is SqlType.TIMESTAMPTZ else name


def _run(
    cursor: duckdb.DuckDBPyConnection, statement: duckdb.Statement | str, kept: KeptKeys, watch: Watch
) -> RawResult:
    watch.check()
    cursor.execute(statement, [list(column) for column in kept.columns])
    rows = cursor.fetchall()
    found = RawResult(len(cursor.description or ()), tuple(rows))
    if len(rows) > _FEW_ROWS:
        cursor.execute("select 0")  # the connection would hold them until its next statement
    watch.check()
    return found
