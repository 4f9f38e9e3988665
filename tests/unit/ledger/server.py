"""A PostgreSQL server for tests of the shared ledger: durable as a real one, on a socket file, gone with the test."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psycopg

from proxy.front.account import choose_account
from proxy.front.binaries import Search, clean_environment, copy_wheel, find_binaries, launch_command, wheel_directory

_START_S = 60.0


@dataclass(slots=True)
class Database:
    """A running server. `stop` and `start` keep its data and its place. sockets: the folder of its socket."""

    command: list[str]
    sockets: Path
    log: Path
    _running: list[subprocess.Popen[bytes]]

    @property
    def url(self) -> str:
        return f"postgresql://hush@/postgres?host={self.sockets}"

    @property
    def socket(self) -> str:
        return str(self.sockets / ".s.PGSQL.5432")

    def start(self) -> None:
        with self.log.open("ab") as log:
            self._running.append(
                subprocess.Popen(self.command, stdout=log, stderr=log, env=clean_environment(), cwd="/")
            )
        with contextlib.closing(self._first_connection()):
            pass

    def stop(self, how: signal.Signals = signal.SIGQUIT) -> None:
        """SIGQUIT is a crash: nothing is written any more. SIGINT: an orderly end."""
        for process in self._running:
            process.send_signal(how)
            process.wait(_START_S)
        self._running.clear()

    @contextlib.contextmanager
    def standing_still(self) -> Iterator[None]:
        """All its processes are stopped meanwhile."""
        (main,) = self._running
        pids = [main.pid, *(int(pid) for pid in Path(f"/proc/{main.pid}/task/{main.pid}/children").read_text().split())]
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
        try:
            yield
        finally:
            for pid in pids:
                os.kill(pid, signal.SIGCONT)

    def execute(self, sql: str) -> list[tuple[object, ...]]:
        with psycopg.connect(self.url, autocommit=True) as connection:
            done = connection.execute(sql.encode())
            return done.fetchall() if done.description else []

    def _first_connection(self) -> psycopg.Connection[tuple[object, ...]]:
        """Connects again and again until the server says that it is ready, or has ended."""
        while True:
            try:
                return psycopg.connect(self.url, connect_timeout=int(_START_S))
            except psycopg.OperationalError:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    self._running[-1].wait(0.02)
                    raise RuntimeError(self.log.read_text()) from None


@contextlib.contextmanager
def running_database(place: Path, *, is_newest: bool = False) -> Iterator[Database]:
    """A server whose files are below `place`, which its account can reach. is_newest: that of the wheel."""
    folder = Path(tempfile.mkdtemp(prefix="ledger-", dir=place))
    account = choose_account("")
    copied = folder / "programs"
    copied.mkdir(mode=0o755)
    folder.chmod(0o755)
    data, sockets = folder / "data", folder / "sockets"
    for made in (data, sockets):
        made.mkdir(mode=0o700)
        if not account.is_own:
            os.chown(made, account.uid, account.gid)
    wanted = copy_wheel(wheel_directory()[0], copied) if is_newest else Search()
    binaries = find_binaries(wanted, account, copied)
    initdb = [binaries.program("initdb"), "-D", str(data), "-U", "hush", "--auth=trust", "--no-sync", "-E", "UTF8"]
    initdb += ["--locale=C"]
    subprocess.run(launch_command(account, initdb), check=True, capture_output=True, env=clean_environment())
    options = {"listen_addresses": "", "port": 5432, "unix_socket_directories": sockets, "max_connections": 60}
    settings = [part for name, value in options.items() for part in ("-c", f"{name}={value}")]
    command = launch_command(account, [binaries.program("postgres"), "-D", str(data), *settings])
    database = Database(command, sockets, folder / "log", [])
    try:
        database.start()
        yield database
    finally:
        database.stop()
        shutil.rmtree(folder, ignore_errors=True)
