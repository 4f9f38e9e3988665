"""How does a cluster compute what was reserved, over Spark Connect?

Every statement has a session of its own, which serves others afterwards unless it fails. The kept keys go with the
statement, as a relation of its plan, so nothing that a session holds decides what is read. That all stages of a charge
read the same version is the policy's word: `immutable: true`.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager

from proxy.engines import spark_facts
from proxy.engines.base import Cancellation, EngineStopped, Facts
from proxy.engines.spark_client import SparkAddress, SparkConnection
from proxy.engines.spark_probes import check_probes
from proxy.engines.watchdog import Watch, Watchdog
from proxy.errors import ConfigError, Failure
from proxy.plan.charge import Reserved, Unpromised
from proxy.policy.model import Column, Policy, SparkSource, Table
from proxy.release.raw import KeptKeys, RawResult
from proxy.sql.render.spark.dialect import KEPT_KEYS, SPARK
from proxy.sqltypes import SqlType

MOST_BYTES = 1_000_000_000  # of a result, as it comes; what is larger is a failure by limits
_MOST_IDLE = 8
_LOOK_S = 60.0  # in which a server says whether a session is still there, where no client waits
_READ_ONLY = "Give hushql a login that may only read; or write 'may_write: true', which trusts in what hushql sends."


class SparkEngine:
    """The data of one policy. Implements `base.Engine`."""

    def __init__(self, source: SparkSource) -> None:
        """Look whether the server is there, computes as it must and lets nothing be written. Raises ConfigError."""
        self._address = SparkAddress(source.url, source.token)
        self._lock = threading.Lock()
        self._is_closed = False
        self._idle: list[SparkConnection] = []
        try:
            connection = self._opened()
        except EngineStopped as error:
            raise _not_served(error) from error
        if not source.may_write:
            _check_read_only(connection)
        self._idle.append(connection)
        self._watchdog = Watchdog()

    @contextmanager
    def session(
        self, looked_at: Sequence[str], *, timeout_s: float, cancellation: Cancellation
    ) -> Iterator[SparkSession]:
        """A session in which every name of the statements is there. See `base.Engine.session`."""
        deadline_s = time.monotonic() + timeout_s
        connection = self._ready(looked_at, deadline_s, cancellation)
        try:
            with self._watched(connection, deadline_s, cancellation) as watch:
                yield SparkSession(connection, watch)
        except BaseException:
            connection.close()
            raise
        self._give_back(connection)

    def check_facts(self, policy: Policy) -> Facts:
        """See `base.Engine.check_facts`. Raises ConfigError."""
        try:
            with self._asking() as connection:
                return spark_facts.check_facts(connection, policy)
        except EngineStopped as error:
            raise _not_served(error) from error

    def public_rows(self, table: Table) -> Iterator[tuple[object, ...]]:
        """All rows of a public table. Raises ConfigError if they cannot be read, ValueError for a private table."""
        if not table.shows_rows:
            raise ValueError(f"table {table.name} is private")
        columns = ", ".join(_fetched(column) for column in table.columns if not column.hidden)
        sql = f"SELECT {columns} FROM {SPARK.relation(table.relation)}"
        try:
            with self._asking() as connection:
                _, rows = connection.rows(sql, max_bytes=MOST_BYTES)
        except EngineStopped as error:
            raise ConfigError(f"the rows of the public table {table.name} cannot be read") from error
        yield from rows

    def close(self) -> None:
        """Interrupt what runs, wait until it is gone, and end the sessions."""
        with self._lock:
            self._is_closed = True
            idle, self._idle = self._idle, []
        self._watchdog.close()
        for connection in idle:
            connection.close()

    def _ready(self, looked_at: Sequence[str], deadline_s: float, cancellation: Cancellation) -> SparkConnection:
        """One that was idle may be gone by now: then a new session is tried, once."""
        idle = self._taken()
        if idle is not None:
            if self._looked(idle, looked_at, deadline_s, cancellation) is None:
                return idle
            cancellation.check()
        connection = self._opened()
        failure = self._looked(connection, looked_at, deadline_s, cancellation)
        if failure is not None:
            raise _at_look(failure)
        return connection

    def _looked(
        self, connection: SparkConnection, looked_at: Sequence[str], deadline_s: float, cancellation: Cancellation
    ) -> EngineStopped | None:
        """Why names are not there, if so; the session is then ended. Raises QueryCanceled."""
        try:
            with self._watched(connection, deadline_s, cancellation) as watch:
                failure = _failure_of_look(connection, looked_at)
                watch.check()
        except BaseException:
            connection.close()
            raise
        if failure is not None:
            connection.close()
        return failure

    def _watched(
        self, connection: SparkConnection, deadline_s: float, cancellation: Cancellation
    ) -> AbstractContextManager[Watch]:
        return self._watchdog.watch(connection.interrupt, max(deadline_s - time.monotonic(), 0.0), cancellation)

    def _opened(self) -> SparkConnection:
        """A new session that computes as it must. Raises EngineStopped."""
        try:
            connection = SparkConnection(self._address)
        except EngineStopped as error:
            raise _at_look(error) from error
        try:
            check_probes(connection)
        except BaseException:
            connection.close()
            raise
        return connection

    @contextmanager
    def _asking(self) -> Iterator[SparkConnection]:
        """A session for what is not charged, which serves others afterwards unless it fails.

        Raises EngineStopped, TooMuch if the server does not say in time whether the session is still there.
        """
        connection = self._ready((), time.monotonic() + _LOOK_S, Cancellation())
        try:
            yield connection
        except BaseException:
            connection.close()
            raise
        self._give_back(connection)

    def _taken(self) -> SparkConnection | None:
        """A session that nobody uses. Raises EngineStopped after `close`."""
        with self._lock:
            if self._is_closed:
                raise EngineStopped("Closed", Failure.UNREACHABLE)
            return self._idle.pop() if self._idle else None

    def _give_back(self, connection: SparkConnection) -> None:
        with self._lock:
            if not (self._is_closed or connection.is_interrupted) and len(self._idle) < _MOST_IDLE:
                self._idle.append(connection)
                return
        connection.close()


class SparkSession:
    """A session that is kept for what is charged. Implements `base.EngineSession`."""

    def __init__(self, connection: SparkConnection, watch: Watch) -> None:
        self.connection, self.watch = connection, watch

    @contextmanager
    def stages(self, reserved: Reserved | Unpromised) -> Iterator[SparkStages]:
        """Run reserved SELECTs. See `base.EngineSession.stages`."""
        yield SparkStages(self, reserved)


class SparkStages:
    """The statements of one charge. Implements `base.Stages`."""

    def __init__(self, session: SparkSession, reserved: Reserved | Unpromised) -> None:
        self._session = session
        self._statements = (reserved.sql, *reserved.further)

    def rows(self, stage: int, kept: KeptKeys) -> RawResult:
        """Run one reserved SELECT. See `base.Stages.rows`."""
        session, sql = self._session, self._statements[stage]
        session.watch.check()
        given = kept.columns if KEPT_KEYS in sql else ()
        try:
            width, rows = session.connection.rows(sql, given, max_bytes=MOST_BYTES)
        except EngineStopped as error:
            failure = error
        else:
            session.watch.check()
            return RawResult(width, tuple(rows))
        session.watch.check()  # interrupted for a reason that has a better name
        raise failure if failure.failure is not Failure.CHANGED else EngineStopped(failure.exception_name)


def _failure_of_look(connection: SparkConnection, looked_at: Sequence[str]) -> EngineStopped | None:
    """Names of a statement are those of the first one; only it has not the relation of keys that were kept."""
    try:
        connection.check_settings()
        for sql in looked_at:
            if KEPT_KEYS not in sql:
                connection.columns(sql)
    except EngineStopped as error:
        return error
    return None


def _at_look(error: EngineStopped) -> EngineStopped:
    """A server that is lost before anything is charged cannot be reached."""
    failure = Failure.UNREACHABLE if error.failure is Failure.LOST else error.failure
    return EngineStopped(error.exception_name, failure, error.code)


def _not_served(failure: EngineStopped) -> ConfigError:
    if failure.failure is Failure.UNREACHABLE:
        why = failure.code.lower().replace("_", " ") or failure.exception_name
        return ConfigError(
            f"the Spark server of source.url cannot be reached: {why}",
            hint="Look whether it runs, and whether source.token and use_ssl are as it expects.",
        )
    return ConfigError(
        f"the Spark server of source.url does not compute as private statements need it: {failure.exception_name}",
        hint="docs/guide/spark.md says which servers are known, and what each of them must compute.",
    )


def _check_read_only(connection: SparkConnection) -> None:
    """Try to make a table. Raises ConfigError unless the server says that this login is not allowed to.

    One that was made is removed again.
    """
    name = f"hushql_may_not_write_{os.getpid()}_{time.time_ns()}"
    try:
        if not connection.may(f"CREATE TABLE {SPARK.quote(name)} (n INT)"):
            return
    except EngineStopped as error:
        connection.close()
        raise ConfigError(
            f"whether the Spark server of source.url lets tables be created cannot be told: {error.exception_name}",
            detail="It failed to create one, and did not say that this login is not allowed to.", hint=_READ_ONLY,
        ) from error  # fmt: skip
    try:
        is_removed = connection.may(f"DROP TABLE {SPARK.quote(name)}")
    except EngineStopped:
        is_removed = False
    connection.close()
    left = "" if is_removed else f"The table {name} was created, and could not be removed."
    raise ConfigError("the Spark server of source.url lets tables be created", detail=left, hint=_READ_ONLY)


def _fetched(column: Column) -> str:
    """A column as Python can take it: a time with zone comes as text."""
    name = SPARK.quote(column.name)
    return f"CAST({name} AS STRING) || '+00'" if column.type is SqlType.TIMESTAMPTZ else name
