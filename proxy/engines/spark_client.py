"""How does one session with a server of Spark Connect's protocol look: what can be asked, and what can fail?

The only module that knows the client's library, which is loaded when the first session is opened. Everything asked is
one SELECT; what the server says of a failure is dropped here, and the library's own log of it is off.
"""

from __future__ import annotations

import os
import re
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal
from functools import partial
from types import ModuleType
from typing import Any
from urllib.parse import quote

from proxy.engines.base import EngineStopped
from proxy.engines.one_select import is_one_select
from proxy.errors import ConfigError, Failure
from proxy.sql.render.spark.dialect import KEPT_KEYS

MISSING = "the engine spark needs packages that are not installed"
INSTALL = "Install hushql with its extra: pip install 'hushql[spark]'."
_TAG = "hushql"
_NAME = re.compile(r"`[^`]*(?:``[^`]*)*`")  # no text has a backtick: see the dialect's text_literal
_LOGS = ("SQLQueryContextLogger", "DataFrameQueryContextLogger", "pyspark.sql.connect.client.logging")
_SETTINGS = (("spark.sql.ansi.enabled", "true"), ("spark.sql.session.timeZone", "UTC"))
_PATIENCE_S = 3.0  # how long a server may take to stop a statement
_QUIET_S = 20  # a server that does not answer a ping so long is gone
_OPTIONS = (
    ("grpc.keepalive_time_ms", _QUIET_S * 1000), ("grpc.keepalive_timeout_ms", _QUIET_S * 1000),
    ("grpc.enable_retries", 0),
)  # fmt: skip
_KINDS = {
    "UNAVAILABLE": Failure.LOST, "UNAUTHENTICATED": Failure.UNREACHABLE, "PERMISSION_DENIED": Failure.UNREACHABLE,
    "RESOURCE_EXHAUSTED": Failure.LIMITS,
}  # fmt: skip
_INSUFFICIENT_PRIVILEGE = "42501"  # as Spark's list of SQLSTATEs has it
_CLASS = re.compile(r"^(?:Caused by: )?(?:[\w$]+\.)+([\w$]+)(?=:|$)", re.MULTILINE)
#: Of Java's and Hadoop's files, Java's and Kyuubi's rights, and Iceberg's catalogues.
_DENIALS = frozenset({"AccessControlException", "AccessDeniedException", "ForbiddenException", "SecurityException"})


@dataclass(frozen=True, slots=True)
class Library:
    """The parts of the client's library, which has no types of its own that could be relied on."""

    core: ModuleType
    plan: ModuleType
    conf: ModuleType
    arrow: ModuleType
    grpc: ModuleType
    errors: ModuleType


def library() -> Library:
    """The client's library, with its logs turned off: they hold what servers say of rows. Raises ConfigError."""
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")  # of what it tells of connections on standard error
    try:
        import grpc  # noqa: PLC0415 - optional, and a third of a second to load
        import pyarrow  # noqa: PLC0415, ICN001
        from pyspark.errors.exceptions import base  # noqa: PLC0415
        from pyspark.logger import PySparkLogger  # noqa: PLC0415
        from pyspark.sql.connect import conf, plan  # noqa: PLC0415
        from pyspark.sql.connect.client import core  # noqa: PLC0415
    except ImportError as error:
        raise ConfigError(MISSING, detail=f"{error.name} is missing.", hint=INSTALL) from error
    for name in _LOGS:
        PySparkLogger.getLogger(name).disabled = True
    return Library(core, plan, conf, pyarrow, grpc, base)


@dataclass(frozen=True, slots=True)
class SparkAddress:
    """Where the server is. The token must never be printed; without TLS it is sent to this machine alone."""

    url: str = field(repr=False)
    token: str = field(default="", repr=False)

    @property
    def whole(self) -> str:
        """With the token as one value, whatever signs are in it."""
        if not self.token:
            return self.url
        return f"{self.url.rstrip('/;')}{';' if '/;' in self.url else '/;'}token={quote(self.token, safe='')}"


class NotAllowed(EngineStopped):
    """The server says that this login is not allowed to do what was asked."""


class SparkConnection:
    """One session, for one statement at a time; `interrupt` is for other threads.

    Each call raises EngineStopped, which says nothing but the kind of the failure.
    """

    def __init__(self, address: SparkAddress) -> None:
        """Open a session with the settings that spellings rest on. Raises ConfigError without the library."""
        self._library = library()
        self._is_interrupting = threading.Lock()
        self._first_asked_s = 0.0
        try:
            builder = self._library.core.DefaultChannelBuilder(address.whole, list(_OPTIONS))
            self._client = self._library.core.SparkConnectClient(connection=builder, use_reattachable_execute=False)
        except (self._library.errors.PySparkException, ValueError) as error:
            raise ConfigError(
                "source.url is no address of Spark Connect", detail="What it says is not shown: it may hold a secret.",
                hint="Write sc://host:15002, or sc://host:443/;use_ssl=true.",
            ) from _without_words(error)  # fmt: skip
        self._client.set_retry_policies([])
        self._settings = self._library.conf.RuntimeConf(self._client)
        try:
            for name, value in _SETTINGS:
                self._told(partial(self._settings.set, name, value))
        except EngineStopped:
            self.close()
            raise

    def check_settings(self) -> None:
        """Raise EngineStopped if they are others: a server that was started anew knows nothing of the session."""
        for name, value in _SETTINGS:
            if self._told(partial(self._settings.get, name)) != value:
                raise EngineStopped("OtherSettings", Failure.UNREACHABLE)

    def may(self, command: str) -> bool:
        """Whether a command succeeds. For the look whether anything can be written; nothing else is a command.

        That it may not is the server's word alone. Raises EngineStopped for a failure of another kind.
        """
        try:
            self._told(lambda: list(self._client.to_table_as_iterator(
                self._library.plan.SQL(command).to_proto(self._client), {})))  # fmt: skip
        except NotAllowed:
            return False
        return True

    @property
    def is_interrupted(self) -> bool:
        """Whether it was asked to stop something: the server may hear that late, and stop what is asked next."""
        return self._first_asked_s > 0.0

    def columns(self, sql: str) -> list[tuple[str, str]]:
        """Names and types of a SELECT's columns, which is not run."""
        found = self._told(lambda: self._client.schema(self._plan(sql).to_proto(self._client)))
        return [(str(one.name), str(one.dataType.simpleString())) for one in found.fields]

    def rows(
        self, sql: str, kept: Sequence[Sequence[object]] = (), *, max_bytes: int
    ) -> tuple[int, list[tuple[object, ...]]]:
        """How many columns a SELECT has, and its rows; those of more than `max_bytes` are a failure by limits.

        kept: the columns of the relation `KEPT_KEYS`.
        """
        batches = self._told(lambda: list(self._batches(sql, kept, max_bytes)))
        columns = batches[0].num_columns if batches else len(self.columns(sql))
        return columns, [row for batch in batches for row in _rows(batch)]

    def interrupt(self) -> None:
        """Ask the server to stop what runs, without waiting for it: it may be gone, or too busy to hear.

        To be called again until the statement has ended. After a while the connection is closed, which ends it here.
        """
        self._first_asked_s = self._first_asked_s or time.monotonic()
        if time.monotonic() - self._first_asked_s > _PATIENCE_S:
            self._client.close()
        elif self._is_interrupting.acquire(blocking=False):
            threading.Thread(target=self._interrupt, name="spark-interrupt", daemon=True).start()

    def close(self) -> None:
        """End the session; a server that is gone has ended it."""
        try:
            self._told(self._client.release_session)
        except EngineStopped:
            pass
        finally:
            self._client.close()

    def _interrupt(self) -> None:
        try:
            self._told(lambda: self._client.interrupt_tag(_TAG))
        except EngineStopped:
            pass
        finally:
            self._is_interrupting.release()

    def _plan(self, sql: str, kept: Sequence[Sequence[object]] = ()) -> Any:  # noqa: ANN401 - of a library without types
        """The one door for texts. Raises EngineStopped for what may be more than one SELECT."""
        if not is_one_select(_NAME.sub("x", sql)):
            raise EngineStopped("NotOneSelect")
        views = [self._library.plan.SubqueryAlias(self._relation(kept), KEPT_KEYS)] if kept else None
        return self._library.plan.SQL(sql, views=views)

    def _relation(self, columns: Sequence[Sequence[object]]) -> Any:  # noqa: ANN401 - of a library without types
        """Rows with the columns p1, .. A relation without rows has no type of its own."""
        plan, arrow = self._library.plan, self._library.arrow
        if not columns[0]:
            return plan.LocalRelation(None, ", ".join(f"p{i} STRING" for i in range(1, len(columns) + 1)))
        return plan.LocalRelation(arrow.table({f"p{i}": _typed(c, arrow) for i, c in enumerate(columns, 1)}))

    def _batches(self, sql: str, kept: Sequence[Sequence[object]], max_bytes: int) -> Iterator[Any]:
        taken = 0
        self._client.add_tag(_TAG)  # which holds for the thread that asks
        asked = self._plan(sql, kept).to_proto(self._client)
        for part in self._client.to_table_as_iterator(asked, {}):
            if isinstance(part, self._library.arrow.Table):
                taken += part.nbytes
                if taken > max_bytes:
                    raise EngineStopped("ResultTooLarge", Failure.LIMITS)
                yield part

    def _told(self, ask: Callable[[], Any]) -> Any:  # noqa: ANN401 - of a library without types
        """What the server answers. Raises EngineStopped outside of the handler, so that no words hang on it."""
        failed: Exception
        try:
            return ask()
        except self._library.errors.PySparkException as error:
            failed = error
        except (self._library.grpc.RpcError, ValueError) as error:  # the latter of a channel that was closed
            failed = error
        raise _stopped(failed)


def _stopped(error: Exception) -> EngineStopped:
    """By the status of the call, its SQLSTATE and the classes of exceptions alone."""
    name = type(error).__name__
    ask = getattr(error, "getGrpcStatusCode", None) or getattr(error, "code", None)
    status = str(getattr(ask() if ask else None, "name", ""))
    failure = Failure.CHANGED if name == "AnalysisException" else _KINDS.get(status, Failure.OTHER)
    return (NotAllowed if _is_denial(error, status) else EngineStopped)(name, failure, status)


def _is_denial(error: Exception, status: str) -> bool:
    """Whether the server says that it is a matter of rights: by status, SQLSTATE, or an exception or one behind it."""
    if status == "PERMISSION_DENIED":
        return True
    state, trace = getattr(error, "getSqlState", None), getattr(error, "getStackTrace", None)
    if state is not None and state() == _INSUFFICIENT_PRIVILEGE:
        return True
    return trace is not None and not _DENIALS.isdisjoint(_CLASS.findall(trace() or ""))


def _without_words(error: Exception) -> Exception:
    return EngineStopped(type(error).__name__)


def _typed(column: Sequence[object], arrow: ModuleType) -> Any:  # noqa: ANN401 - of a library without types
    """Values as an array, which has a type even where all of them are NULL."""
    first = next((value for value in column if value is not None), "")
    kinds = {
        bool: arrow.bool_(), int: arrow.int64(), float: arrow.float64(), date: arrow.date32(),
        datetime: arrow.timestamp("us"), str: arrow.string(),
    }  # fmt: skip
    return arrow.array(column, kinds[type(first)])


def _rows(batch: Any) -> Iterator[tuple[object, ...]]:  # noqa: ANN401 - of a library without types
    columns = [column.to_pylist() for column in batch.columns]
    return (tuple(map(_plain, row)) for row in zip(*columns, strict=True))


def _plain(value: object) -> object:
    """An exact sum comes as a DECIMAL without a fraction."""
    return int(value) if isinstance(value, Decimal) and value == value.to_integral_value() else value
