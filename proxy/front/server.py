"""What does one visibility's server go through from start to stop?

Builds it (cluster, roles, schema, public rows), restarts it when it dies, counts who uses it.
"""

from __future__ import annotations

import asyncio
import contextlib
import enum
import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import psycopg

from proxy.errors import FrontFailed, HushError
from proxy.front.definitions import definitions_sql
from proxy.front.lockdown import lockdown_sql
from proxy.front.process import AdminConnection, Blueprint, Postmaster, log_tail, start_postmaster, write_ident
from proxy.front.quoting import quote_name
from proxy.front.roles import (
    create_login_sql,
    owner_sql,
    reader_sql,
    remove_login_sql,
    restore_login_sql,
)
from proxy.front.schema import OWNER, copy_sql, database_sql, schema_sql
from proxy.front.visibility import Visibility
from proxy.policy.model import Policy, Table

# Yields the rows of a public table: the values of its visible columns, in the policy's order. It is
# called on a worker thread and may block.
PublicRows = Callable[[Table], Iterator[tuple[object, ...]]]

_COPY_BATCH = 2000
_FIRST_BACKOFF_S = 0.2
_LONGEST_BACKOFF_S = 30.0
_RELOAD_WAIT_S = 5.0
_DEATH_THROES_S = 0.5


class ServerState(enum.Enum):
    """What can be said about a server."""

    STARTING = "starting"
    RUNNING = "running"
    RESTARTING = "restarting"
    STOPPED = "stopped"


@dataclass(frozen=True, slots=True)
class FrontEvent:
    """Something the operator should know. detail: the server's own last words; no private data."""

    kind: str  # "crashed" | "lost" | "restarted" | "restart failed"
    dataset: str
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Spec:
    """What a server holds; two servers with equal specs are interchangeable."""

    policy: Policy
    visible: Visibility
    max_public_rows: int

    @property
    def shown_rows(self) -> frozenset[tuple[str, str]]:
        """Tables and columns of which it stores rows."""
        return self.visible.shown_rows(self.policy)


@dataclass(slots=True, kw_only=True, eq=False)
class FrontServer:
    """One supervised server. `start` before anything else, `stop` at the end."""

    spec: Spec
    blueprint: Blueprint
    rows: PublicRows
    on_event: Callable[[FrontEvent], None]
    logins: tuple[str, ...] = ()
    state: ServerState = ServerState.STARTING
    leases: int = 0
    is_retired: bool = False  # has no successor if it dies
    _has_roles: bool = True  # those of `logins`, once it is built
    _postmaster: list[Postmaster] = field(default_factory=list)
    _watch: list[asyncio.Task[None]] = field(default_factory=list)
    _changing: asyncio.Lock = field(default_factory=asyncio.Lock)

    @property
    def pid(self) -> int:
        """The postmaster's process id, 0 while there is none."""
        return self._postmaster[0].pid if self._postmaster else 0

    async def start(self) -> None:
        """Build and begin to supervise. Raises FrontFailed or PolicyError; nothing is left then."""
        await self._build()
        self.state = ServerState.RUNNING
        self._watch.append(asyncio.create_task(self._supervise(), name=f"front {self.blueprint.name}"))

    async def stop(self) -> None:
        """End supervision and the server; harmless when repeated."""
        self.state = ServerState.STOPPED
        for task in self._watch:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task
        self._watch.clear()
        await self._discard()
        await asyncio.to_thread(self.blueprint.runtime.remove_server, self.blueprint.name)

    async def set_logins(self, logins: tuple[str, ...]) -> None:
        """Make exactly these roles able to log in; sessions of the others end.

        Nothing is done where nothing changes: every login can ask when the server has read its files.
        """
        async with self._changing:
            before, self.logins = self.logins, logins
            if self._has_roles and before == logins:
                return
            if not self._postmaster or not self._postmaster[0].is_running():
                return  # the rebuild that is under way or due makes them all
            try:
                write_ident(self.blueprint, logins)
                async with await self._postmaster[0].connect(self.spec.policy.dataset) as connection:
                    await self._make_roles(connection, logins)
                    gone = (name for name in before if name not in logins)
                    await _run(connection, *(s for name in gone for s in remove_login_sql(name)))
                    await _run(connection, "SELECT pg_catalog.pg_reload_conf()")
                for name in logins:
                    if name not in before:
                        await self._wait_for_login(name)
                        break  # the file is read as a whole
                self._has_roles = True
            except asyncio.CancelledError:  # by the end of the login of whom it is done for: what was done is not known
                self.logins, self._has_roles = before, False
                raise
            except (psycopg.Error, OSError, FrontFailed) as error:
                if await self._postmaster[0].ends_within(_DEATH_THROES_S):
                    return  # as above: it died meanwhile
                self.logins, self._has_roles = before, False
                raise FrontFailed("the public PostgreSQL could not take the new logins") from error

    # --- building -----------------------------------------------------------------------------

    async def _build(self) -> None:
        async with self._changing:
            try:
                postmaster = await start_postmaster(self.blueprint, self.logins)
                self._postmaster.append(postmaster)
                await self._fill(postmaster)
            except psycopg.Error as error:
                await self._discard()
                raise FrontFailed("the public PostgreSQL refused its schema", detail=str(error).strip()) from error
            except OSError as error:
                await self._discard()
                raise FrontFailed(f"the public PostgreSQL could not start: {error.strerror}") from error
            except BaseException:
                await self._discard()
                raise

    async def _fill(self, postmaster: Postmaster) -> None:
        """Roles, database, lock-down, schema, public rows: in this order, logins last."""
        policy = self.spec.policy
        database = quote_name(policy.dataset)
        async with await postmaster.connect("postgres") as maintenance:
            await _run(maintenance, owner_sql(), reader_sql())
            if policy.dataset == "postgres":
                await _run(maintenance, f"ALTER DATABASE postgres OWNER TO {OWNER}")
            else:
                await _run(maintenance, f"CREATE DATABASE {database} OWNER {OWNER}")
            await _run(maintenance, *database_sql(policy, self.spec.visible))
        async with await postmaster.connect(policy.dataset) as connection:
            if policy.dataset != "postgres":
                await _run(connection, "DROP DATABASE postgres")
            await _run(connection, "REVOKE CONNECT ON DATABASE template1 FROM PUBLIC")
            await _run(connection, lockdown_sql(), definitions_sql(), schema_sql(policy, self.spec.visible))
            for name in self.spec.visible.tables:
                if policy.tables[name].shows_rows:
                    await self._load(connection, policy.tables[name])
            await self._make_roles(connection, self.logins)

    async def _load(self, connection: AdminConnection, table: Table) -> None:
        """Copy a public table's rows into the front; the iterator runs on a worker thread."""
        limit = self.spec.max_public_rows
        count = 0
        try:
            iterator = await asyncio.to_thread(self.rows, table)
            async with connection.cursor() as cursor, cursor.copy(copy_sql(table).encode()) as copy:
                while batch := await asyncio.to_thread(_take, iterator):
                    count += len(batch)
                    if count > limit:
                        raise FrontFailed(
                            f'the table "{table.name}", whose rows are shown, has more than {limit} rows',
                            hint="Make it private, or let its relation be a smaller view."
                            if table.is_public
                            else "Remove 'raw_select: allow', or let its relation be a smaller view.",
                        )
                    for row in batch:
                        await copy.write_row(row)
        except psycopg.Error as error:
            raise FrontFailed(
                f'the public table "{table.name}" does not fit its columns in the policy', detail=str(error).strip()
            ) from error
        except HushError:
            raise
        except Exception as error:
            raise FrontFailed(f'the public table "{table.name}" could not be read') from error
        await _run(connection, f"ANALYZE public.{quote_name(table.name)}")

    async def _make_roles(self, connection: AdminConnection, logins: tuple[str, ...]) -> None:
        found = await connection.execute("SELECT rolname FROM pg_catalog.pg_roles")
        present = {row[0] for row in await found.fetchall()}
        limit = self.spec.policy.limits.max_sessions_per_user
        for name in logins:
            make = restore_login_sql if name in present else create_login_sql
            await _run(connection, make(name, limit))

    async def _wait_for_login(self, name: str) -> None:
        """A reload is done by the server in its own time: try until the newest login gets in."""
        deadline = asyncio.get_running_loop().time() + _RELOAD_WAIT_S
        while True:
            try:
                connection = await self._postmaster[0].connect(self.spec.policy.dataset, user=name)
            except psycopg.Error as error:
                if asyncio.get_running_loop().time() > deadline:
                    raise FrontFailed(f'the login "{name}" cannot reach the public PostgreSQL') from error
                await asyncio.sleep(0.02)
            else:
                await connection.close()
                return

    async def _discard(self) -> None:
        while self._postmaster:
            await self._postmaster[0].stop()
            self._postmaster.clear()

    # --- supervision ----------------------------------------------------------------------------

    async def _supervise(self) -> None:
        """Rebuild the server whenever it ends by itself, waiting longer after each failure."""
        while True:
            why = await self._postmaster[0].wait()
            self.state = ServerState.RESTARTING
            self._tell("lost" if self._postmaster[0].is_running() else "crashed", f"{why}; {log_tail(self.blueprint)}")
            await self._discard()
            if self.is_retired:
                return
            await self._rebuild()
            self.state = ServerState.RUNNING
            self._tell("restarted", "")

    async def _rebuild(self) -> None:
        delay = _FIRST_BACKOFF_S
        while True:
            await asyncio.sleep(delay)
            try:
                await self._build()
            except HushError as error:
                self._tell("restart failed", error.text())
                delay = min(delay * 2, _LONGEST_BACKOFF_S)
            else:
                return

    def _tell(self, kind: str, detail: str) -> None:
        self.on_event(FrontEvent(kind, self.spec.policy.dataset, detail))


async def _run(connection: AdminConnection, *statements: str) -> None:
    for statement in statements:
        await connection.execute(statement.encode())


def _take(iterator: Iterator[tuple[object, ...]]) -> list[tuple[object, ...]]:
    return list(itertools.islice(iterator, _COPY_BATCH))
