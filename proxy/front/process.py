"""How is one PostgreSQL server made, started, watched and ended?

Knows directories, processes and readiness; not what stands in the database.
"""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg

from proxy.errors import FrontFailed
from proxy.front.account import own_account
from proxy.front.binaries import Binaries, clean_environment, copy_wheel, launch_command, wheel_directory
from proxy.front.configuration import PORT, ServerSettings, configuration_text
from proxy.front.reader import FrontConnection
from proxy.front.roles import hba_text, ident_text
from proxy.front.runtime import RuntimeDirectory
from proxy.front.schema import READER, SUPERUSER
from proxy.front.segments import remove_segments_of

_POLL_S = 0.02
_WATCH_S = 0.2
_FAST_STOP_S = 5.0
_ENDING_S = 1.0
_LOG_TAIL_BYTES = 2000
_MAX_LOG_BYTES = 1_000_000
_INITDB_TIMEOUT_S = 60.0
_READING_S = 10

AdminConnection = psycopg.AsyncConnection[tuple[object, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Blueprint:
    """Everything needed to make one server. name: its subdirectory of the runtime directory."""

    runtime: RuntimeDirectory
    binaries: Binaries
    name: str
    max_sessions: int
    time_zone: str
    address_space_bytes: int
    file_bytes: int
    start_timeout_s: float

    @property
    def home(self) -> Path:
        return self.runtime.path / self.name

    @property
    def socket_dir(self) -> Path:
        return self.home / "s"

    @property
    def socket(self) -> Path:
        return self.socket_dir / f".s.PGSQL.{PORT}"

    @property
    def data(self) -> Path:
        return self.home / "data"

    @property
    def log(self) -> Path:
        return self.home / "log"


@dataclass(slots=True, eq=False)
class Postmaster:
    """One running server. Made by `start_postmaster`; `stop` ends it."""

    blueprint: Blueprint
    _process: subprocess.Popen[bytes] = field(repr=False)
    _socket: tuple[int, int] = (0, 0)  # which file it is, once it is there

    @property
    def pid(self) -> int:
        return self._process.pid

    def is_running(self) -> bool:
        return self._process.poll() is None

    async def wait(self) -> str:
        """Until the server has ended, or nobody can get to it any more; why. Meanwhile its log is kept short."""
        while self._process.poll() is None:
            if not self._is_whole() and not await self.ends_within(_ENDING_S):  # an orderly end removes them too
                return "its socket or its data directory is gone"
            _shorten(self.blueprint.log)
            await asyncio.sleep(_WATCH_S)
        return f"exit status {self._process.returncode}"

    def remember_socket(self) -> None:
        """Of a server that has just answered."""
        self._socket = self._which_socket()

    def _is_whole(self) -> bool:
        return self._which_socket() == self._socket and (self.blueprint.data / "postmaster.pid").exists()

    def _which_socket(self) -> tuple[int, int]:
        try:
            found = self.blueprint.socket.stat()
        except OSError:
            return (-1, -1)
        return found.st_dev, found.st_ino

    async def stop(self) -> None:
        """Fast shutdown (clients are told), then immediate shutdown, then kill. Waits for the end."""
        for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGKILL):
            if self._process.poll() is not None:
                break
            self._process.send_signal(number)
            if await self.ends_within(_FAST_STOP_S):
                break
        # after a kill, a busy backend would go on until its statement ends, and shared memory stays
        await asyncio.to_thread(self.blueprint.runtime.end_processes, self.blueprint.name)
        remove_segments_of(self.pid, self.blueprint.runtime.account.uid)

    async def ends_within(self, timeout_s: float) -> bool:
        """Whether the server has ended, or does so in this time."""
        for _ in range(int(timeout_s / _POLL_S)):
            if self._process.poll() is not None:
                return True
            await asyncio.sleep(_POLL_S)
        return self._process.poll() is not None

    async def connect(self, database: str, *, user: str = SUPERUSER) -> AdminConnection:
        """A connection that ignores PG* variables of the proxy's environment and checks who answers."""
        options = _options(self.blueprint, database, user)
        return await psycopg.AsyncConnection.connect(autocommit=True, prepare_threshold=None, **options)


def connect_reader(blueprint: Blueprint, database: str) -> FrontConnection:
    """A connection of the role that reads texts of clients; it waits for at most some seconds. Raises psycopg.Error."""
    options = _options(blueprint, database, READER)
    options["options"] = f"-c statement_timeout={_READING_S}s -c search_path=pg_catalog"
    return psycopg.Connection.connect(autocommit=True, prepare_threshold=None, **options)


def _options(blueprint: Blueprint, database: str, user: str) -> dict[str, Any]:
    """Of a connection to the server, whatever the proxy's own environment says."""
    return {
        "host": str(blueprint.socket_dir), "port": PORT, "user": user, "dbname": database, "options": "",
        "application_name": "hushql", "client_encoding": "UTF8", "connect_timeout": 10, "gssencmode": "disable",
        "channel_binding": "prefer", "require_auth": "", "requirepeer": blueprint.runtime.account.name,
    }  # fmt: skip


async def start_postmaster(blueprint: Blueprint, logins: tuple[str, ...]) -> Postmaster:
    """A new, empty cluster whose superuser answers. Raises FrontFailed with the server's own words."""
    await asyncio.to_thread(_restore, blueprint)
    data = await _make_cluster(blueprint)
    config = _write_configuration(blueprint, logins)
    server = [blueprint.binaries.program("postgres"), "-D", str(data), "-c", f"config_file={config}"]
    postmaster = Postmaster(blueprint, _spawn(blueprint, server))
    try:
        await _wait_until_ready(postmaster)
        postmaster.remember_socket()
    except BaseException:
        await postmaster.stop()
        raise
    return postmaster


def write_ident(blueprint: Blueprint, logins: tuple[str, ...]) -> Path:
    """Which roles the proxy's account may be; read by the server at start and reload."""
    return blueprint.runtime.write_readable(f"{blueprint.name}/pg_ident.conf", ident_text(own_account().name, logins))


def log_tail(blueprint: Blueprint) -> str:
    """The last lines the server wrote. They hold neither statements nor data."""
    try:
        text = blueprint.log.read_bytes()[-_LOG_TAIL_BYTES:].decode("utf-8", errors="replace")
    except OSError:
        return ""
    return "\n".join(text.splitlines()[-12:])


# --- steps of a start -------------------------------------------------------------------------


def _restore(blueprint: Blueprint) -> None:
    """Make the runtime directory again if somebody has removed it, and the programs that were copied into it."""
    blueprint.runtime.restore()
    copied = blueprint.runtime.path / "pg"
    if blueprint.binaries.directory.is_relative_to(copied) and not blueprint.binaries.directory.exists():
        copy_wheel(wheel_directory()[0], copied)


async def _make_cluster(blueprint: Blueprint) -> Path:
    """initdb as the front's account; UTF-8 with code-point order where the system can, else plain C."""
    blueprint.runtime.make_private(f"{blueprint.name}/s")
    for locale in ("C.UTF-8", "C"):
        data = blueprint.runtime.make_private(f"{blueprint.name}/data")
        options = ["--no-sync", "--encoding=UTF8", f"--locale={locale}", "--auth=reject", f"--username={SUPERUSER}"]
        options += ["--no-instructions", "--wal-segsize=1", "--lc-messages=C"]
        command = [blueprint.binaries.program("initdb"), f"--pgdata={data}", *options]
        if await _run_to_end(blueprint, command, _INITDB_TIMEOUT_S) == 0:
            return data
    raise FrontFailed("the public PostgreSQL could not be created", detail=f"initdb said: {log_tail(blueprint)}")


def _write_configuration(blueprint: Blueprint, logins: tuple[str, ...]) -> Path:
    runtime = blueprint.runtime
    hba = runtime.write_readable(f"{blueprint.name}/pg_hba.conf", hba_text())
    settings = ServerSettings(
        socket_dir=str(blueprint.socket_dir),
        hba_file=str(hba),
        ident_file=str(write_ident(blueprint, logins)),
        max_sessions=blueprint.max_sessions,
        time_zone=blueprint.time_zone,
        major=blueprint.binaries.major,
    )
    return runtime.write_readable(f"{blueprint.name}/postgresql.conf", configuration_text(settings))


def _spawn(blueprint: Blueprint, command: list[str]) -> subprocess.Popen[bytes]:
    """Start a program in a session of its own, so that Ctrl-C in a terminal does not reach it first.

    Must run on the event loop's thread: the kernel ends the program when the forking thread ends.
    """
    launch = launch_command(
        blueprint.runtime.account,
        command,
        address_space=blueprint.address_space_bytes,
        file_size=blueprint.file_bytes,
    )
    log = os.open(blueprint.log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND | os.O_CLOEXEC, 0o600)
    try:
        return subprocess.Popen(
            launch,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env=clean_environment(),
            start_new_session=True,
        )
    finally:
        os.close(log)


async def _run_to_end(blueprint: Blueprint, command: list[str], timeout_s: float) -> int:
    """The exit status of a program run in the front's place; ends it on cancellation and time-out."""
    process = _spawn(blueprint, command)
    try:
        async with asyncio.timeout(timeout_s):
            while process.poll() is None:  # noqa: ASYNC110 - a process sends no event
                await asyncio.sleep(_POLL_S / 4)
    except TimeoutError:
        raise FrontFailed(f"{Path(command[0]).name} did not finish in time") from None
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
    return process.returncode


async def _wait_until_ready(postmaster: Postmaster) -> None:
    blueprint = postmaster.blueprint
    deadline = asyncio.get_running_loop().time() + blueprint.start_timeout_s
    while True:
        if not postmaster.is_running():
            raise FrontFailed("the public PostgreSQL did not start", detail=f"It said: {log_tail(blueprint)}")
        try:
            await (await postmaster.connect("postgres")).close()
        except psycopg.Error as error:
            if asyncio.get_running_loop().time() > deadline:
                detail = f"Last error: {error} It said: {log_tail(blueprint)}"
                raise FrontFailed("the public PostgreSQL did not become ready", detail=detail) from error
            await asyncio.sleep(_POLL_S)
        else:
            return


def _shorten(log: Path) -> None:
    """The server appends, so an emptied log simply grows again from nothing."""
    try:
        if log.stat().st_size > _MAX_LOG_BYTES:
            os.truncate(log, 0)
    except OSError:
        return
