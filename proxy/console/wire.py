"""How does the console ask the proxy something? As any client does: by a connection to the proxy's own listener.

One path and one budget: nothing here knows of policies, ledgers or engines. The password is shown once; what is kept
instead is the SCRAM client key, which opens this login only and only until its password is changed.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import hashlib
import hmac
import socket
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from ipaddress import ip_address
from typing import LiteralString

import psycopg
from psycopg import sql
from psycopg.abc import PQGen
from psycopg.conninfo import make_conninfo
from psycopg.errors import error_from_result
from psycopg.generators import fetch, send
from psycopg.pq import ExecStatus, TransactionStatus
from psycopg.pq.abc import PGconn, PGresult
from psycopg.rows import TupleRow

from proxy.errors import AuthenticationFailed, FrontFailed, Unsupported
from proxy.wire.saslprep import prepare_password
from proxy.wire.scram import Verifier

_CONNECT_S = 15
_NO_FILE = "/dev/null/none"  # passwords that the server's own account keeps for others
_CANCEL_S = 5.0
_LATER = "Try again in a moment."
#: What is kept of an answer: the whole of it is in one page.
MOST_ANSWER_BYTES = 8 * 1024 * 1024
_CELL_BYTES = 32  # that a value takes beside its text
_ROWS_AT_ONCE = 200
_COPYING = frozenset({ExecStatus.COPY_OUT, ExecStatus.COPY_IN, ExecStatus.COPY_BOTH})
_APPLICATION = "hushql console"
Connection = psycopg.AsyncConnection[TupleRow]


@dataclass(frozen=True, slots=True)
class Address:
    """Where this proxy's clients connect. must_encrypt: whether the listener has TLS, which is used then."""

    host: str
    port: int
    must_encrypt: bool = False


def address_of(listening: socket.socket, *, must_encrypt: bool) -> Address:
    """How a program of this machine reaches a listening socket."""
    host, port = listening.getsockname()[:2]
    if ip_address(host).is_unspecified:
        host = "::1" if listening.family == socket.AF_INET6 else "127.0.0.1"
    return Address(host, int(port), must_encrypt)


@dataclass(frozen=True, slots=True)
class LoginPlace:
    """As whom, and to which database."""

    login: str
    database: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Credential:
    """What opens connections of one login: keys of its verifier, base64. No password.

    user: the name to log in by: that of a pass for whoever is no login of the users file.
    """

    address: Address
    place: LoginPlace
    user: str
    client_key: str = field(repr=False)
    server_key: str = field(repr=False)

    def is_of(self, verifier: Verifier) -> bool:
        """Whether they are still the keys of the login; another password, or the same once more, has others."""
        return self.server_key == base64.b64encode(verifier.server_key).decode("ascii")


async def log_in(address: Address, place: LoginPlace, password: str, *, to_directory: bool = False) -> None:
    """Show the password to the listener, once, with all its limits. to_directory: as it is, for a directory to judge.

    Raises FrontFailed in the listener's words if it lets nobody in, whether of the password or of too many sessions.
    """
    how = "password" if to_directory else "scram-sha-256"
    async with await _connected(address, place, place.login, {"password": password, "require_auth": how}):
        pass


def credential(address: Address, place: LoginPlace, user: str, password: str, verifier: Verifier) -> Credential:
    """What is kept of a password that was right. Takes some milliseconds. Raises AuthenticationFailed if it is not.

    user: the name to log in by, see `Credential`.
    """
    salted = hashlib.pbkdf2_hmac("sha256", prepare_password(password), verifier.salt, verifier.iterations)
    client_key = hmac.digest(salted, b"Client Key", "sha256")
    if not hmac.compare_digest(hashlib.sha256(client_key).digest(), verifier.stored_key):
        raise AuthenticationFailed("the login was changed meanwhile")
    return Credential(
        address=address, place=place, user=user, client_key=base64.b64encode(client_key).decode("ascii"),
        server_key=base64.b64encode(verifier.server_key).decode("ascii"),
    )  # fmt: skip


async def _connected(address: Address, place: LoginPlace, user: str, secret: dict[str, str]) -> Connection:
    """A connection that proved both ends to each other. Raises as `log_in` does."""
    try:
        where = make_conninfo(
            hostaddr=address.host, port=address.port, user=user, dbname=place.database, passfile=_NO_FILE,
            sslmode="require" if address.must_encrypt else "disable",
            connect_timeout=_CONNECT_S, application_name=_APPLICATION, **secret,
        )  # fmt: skip
        return await psycopg.AsyncConnection.connect(where, autocommit=True)
    except psycopg.OperationalError as error:
        words = _said(error)
        raise FrontFailed(words or "the proxy does not answer", hint="" if words else _LATER) from error


def _said(error: psycopg.OperationalError) -> str:
    """What the listener answered, "" if it did not. Only to be shown: libpq keeps no SQLSTATE to decide by."""
    return str(error).partition("FATAL:  ")[2].partition("\n")[0]


@dataclass(frozen=True, slots=True)
class ShownNotice:
    """One notice of an answer. code: its SQLSTATE."""

    severity: str
    message: str
    detail: str
    code: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsoleAnswer:
    """Rows as PostgreSQL's texts; None is NULL. kinds: numbers of the columns' types. tag: what was done."""

    columns: tuple[str, ...]
    kinds: tuple[int, ...]
    rows: tuple[tuple[str | None, ...], ...]
    notices: tuple[ShownNotice, ...]
    tag: str


class Wire:
    """One connection for one purpose, made when it is needed first and again when it was lost."""

    def __init__(self, credential: Credential) -> None:
        self._credential = credential
        self._connection: Connection | None = None
        self._turn = asyncio.Lock()
        self._notices: list[ShownNotice] = []
        self._closing: set[asyncio.Task[None]] = set()

    @property
    def is_resting(self) -> bool:
        """Whether something may be asked beside what its user does: nothing runs and no transaction is open."""
        is_idle = self._connection is None or self._connection.info.transaction_status is TransactionStatus.IDLE
        return is_idle and not self._turn.locked()

    async def ask(self, statement: str, settings: Sequence[tuple[LiteralString, str]] = ()) -> ConsoleAnswer:
        """Run exactly one statement; two or more are refused by PostgreSQL before any of them is run.

        settings: names of ours with anybody's values, set before it, for the connection.
        Raises psycopg.Error, Unsupported and as `log_in` does.
        """
        async with self._held() as connection:
            if connection.info.transaction_status is not TransactionStatus.INERROR:  # there only ROLLBACK helps
                for name, value in settings:
                    setting = sql.SQL("SET {} = {}").format(sql.SQL(name), sql.Literal(value))
                    await connection.execute(setting)
            self._notices.clear()
            async with connection.lock:
                rows, last = await _fetched(connection, statement.encode())
            return self._answer(rows, last)

    async def rows(self, statement: LiteralString, *values: str) -> list[TupleRow]:
        """What a statement of ours gives. Raises as `ask` does."""
        async with self._held() as connection:
            cursor = await connection.execute(statement, values)
            return await cursor.fetchall()

    async def cancel(self) -> None:
        """End what is being run, if anything."""
        if self._connection is not None and self._turn.locked():
            with contextlib.suppress(psycopg.Error):
                await self._connection.cancel_safe(timeout=_CANCEL_S)

    def close(self) -> None:
        """Hang up, without waiting."""
        if self._connection is not None:
            task = asyncio.get_running_loop().create_task(self._connection.close())
            self._closing.add(task)
            task.add_done_callback(self._closing.discard)
            self._connection = None

    @contextlib.asynccontextmanager
    async def _held(self) -> AsyncIterator[Connection]:
        async with self._turn:
            if self._connection is None or self._connection.closed:
                kept = self._credential
                keys = {"scram_client_key": kept.client_key, "scram_server_key": kept.server_key}
                self._connection = await _connected(
                    kept.address, kept.place, kept.user, {**keys, "require_auth": "scram-sha-256"}
                )
                self._connection.add_notice_handler(self._note)
            connection = self._connection
            try:
                yield connection
            finally:
                if connection.info.transaction_status is TransactionStatus.ACTIVE:  # left in the middle of an answer
                    await connection.close()

    def _note(self, said: psycopg.errors.Diagnostic) -> None:
        self._notices.append(
            ShownNotice(said.severity or "", said.message_primary or "", said.message_detail or "", said.sqlstate or "")
        )

    def _answer(self, rows: list[tuple[str | None, ...]], last: PGresult) -> ConsoleAnswer:
        columns = range(last.nfields)
        return ConsoleAnswer(
            columns=tuple(_text(last.fname(i)) or "" for i in columns), kinds=tuple(last.ftype(i) for i in columns),
            rows=tuple(rows), notices=tuple(self._notices), tag=_text(last.command_status) or "",
        )  # fmt: skip


async def _fetched(connection: Connection, statement: bytes) -> tuple[list[tuple[str | None, ...]], PGresult]:
    """The rows that one statement gives, and the result that tells of its columns and its end.

    They are in this process's memory and in one page, so what is larger is cancelled.
    """
    await connection.wait(_sent(connection.pgconn, statement))
    rows: list[tuple[str | None, ...]] = []
    size, last = 0, None
    while (result := await connection.wait(fetch(connection.pgconn))) is not None:
        if result.status in _COPYING:
            await connection.close()  # nothing else is understood on it now
            raise Unsupported("the console does not COPY", hint="Use another client, as psql.")
        if result.status == ExecStatus.FATAL_ERROR:
            last = result
        elif size <= MOST_ANSWER_BYTES:
            last, columns = result, range(result.nfields)
            found = [tuple(_text(result.get_value(row, i)) for i in columns) for row in range(result.ntuples)]
            size += sum(_CELL_BYTES + len(value or "") for row in found for value in row)
            rows += found
            if size > MOST_ANSWER_BYTES:
                rows.clear()
                await connection.cancel_safe(timeout=_CANCEL_S)
    if size > MOST_ANSWER_BYTES:
        raise Unsupported(
            f"the answer has more than the {MOST_ANSWER_BYTES // 2**20} MiB that a page takes",
            hint="Ask for fewer rows with LIMIT, or use another client, as psql.",
        )
    assert last is not None, "a statement has a result, if only an error"
    if last.status == ExecStatus.FATAL_ERROR:
        raise error_from_result(last, encoding="utf-8")
    return rows, last


def _sent(connection: PGconn, statement: bytes) -> PQGen[None]:
    connection.send_query_params(statement, None)  # the extended protocol, which takes one statement
    connection.set_chunked_rows_mode(_ROWS_AT_ONCE)
    yield from send(connection)


def _text(value: bytes | None) -> str | None:
    """As UTF-8; a session that has chosen another encoding reads marks in place of what is none."""
    return None if value is None else value.decode("utf-8", "replace")


class Wires:
    """The connections of one browser: what it runs must not hold up what it looks at."""

    def __init__(self, credential: Credential) -> None:
        self.running = Wire(credential)
        self.looking = Wire(credential)

    def close(self) -> None:
        """Hang up both."""
        self.running.close()
        self.looking.close()
