"""Starts a real PostgreSQL with a guarded, empty table `users`, for the tests of the relay alone."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
from psycopg.rows import TupleRow

from proxy.front.binaries import wheel_directory
from tests.wire.fake_session import AGES, CITIES

GUARD = "hush_guard"
GUARDED, NATIVE = "shop", "native"
ROLES = ("alice", "bob")
PORT = 5432
BIN = Path(os.environ.get("HUSH_TEST_FRONT_BIN") or wheel_directory()[0])

SCHEMA = f"""
create table information_schema.{GUARD} (never boolean);
revoke all on information_schema.{GUARD} from public;
create table users (city text, age int4);
alter table users enable row level security;
create policy private on users using (exists (select 1 from information_schema.{GUARD}));
grant select, references on users to public;
create table places (name text primary key, height int4);
insert into places select 'place ' || i, i from generate_series(1, 100) i;
grant select on places to public;
"""

_ROWS = ", ".join("('" + c.replace("'", "''") + f"', {a})" for c, a in zip(CITIES, AGES, strict=True))
#: The same with rows in `users` and nobody guarding them: what PostgreSQL answers when there is no relay.
NATIVE_SCHEMA = f"""
create table users (city text, age int4);
insert into users values {_ROWS};
create table places (name text primary key, height int4);
insert into places select 'place ' || i, i from generate_series(1, 100) i;
grant select on users, places to public;
"""


@dataclass(frozen=True, slots=True, repr=False)
class TestFront:
    """A running server."""

    __test__ = False

    def __repr__(self) -> str:
        return "TestFront()"

    socket_dir: Path
    process: subprocess.Popen[bytes]

    @property
    def socket_path(self) -> str:
        return f"{self.socket_dir}/.s.PGSQL.{PORT}"

    def direct(self, user: str = "postgres", dbname: str = "shop") -> psycopg.Connection[TupleRow]:
        """A connection that does not pass the relay."""
        return psycopg.connect(host=str(self.socket_dir), port=PORT, user=user, dbname=dbname, autocommit=True)

    def stop(self) -> None:
        self.process.send_signal(signal.SIGQUIT)
        self.process.wait()


def _account() -> str:
    """PostgreSQL does not run as root; any other account will do."""
    if os.geteuid() != 0:
        return pwd.getpwuid(os.geteuid()).pw_name
    names = {entry.pw_name for entry in pwd.getpwall()}
    return "postgres" if "postgres" in names else "nobody"


def start_front(directory: Path, bin_dir: Path = BIN) -> TestFront:
    """A server whose files are below `directory`, which every account can reach."""
    account = pwd.getpwnam(_account())
    home = directory / "front"
    home.mkdir(mode=0o700)
    os.chown(home, account.pw_uid, account.pw_gid)
    switch: dict[str, Any] = (
        {"user": account.pw_uid, "group": account.pw_gid, "extra_groups": []} if os.geteuid() == 0 else {}
    )
    process = _start_process(directory, home, bin_dir, switch)
    front = TestFront(home, process)
    _wait_until_ready(home)
    _fill(front)
    return front


def _start_process(directory: Path, home: Path, bin_dir: Path, switch: dict[str, Any]) -> subprocess.Popen[bytes]:
    """A new cluster below `home` and its server. switch: to whose account."""
    data = home / "data"
    initdb = [str(bin_dir / "initdb"), "-D", str(data), "-A", "trust", "-U", "postgres", "--no-sync", "-E", "UTF8"]
    environment = {"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8"}
    subprocess.run(initdb, check=True, stdout=subprocess.DEVNULL, env=environment, cwd="/", **switch)
    options = {
        "listen_addresses": "",
        "unix_socket_directories": str(home),
        "unix_socket_permissions": "0777",
        "port": str(PORT),
        "fsync": "off",
        "max_connections": "60",
        "autovacuum": "off",
    }
    arguments = [part for name, value in options.items() for part in ("-c", f"{name}={value}")]
    with (directory / "front.log").open("wb") as log:
        return subprocess.Popen(
            [str(bin_dir / "postgres"), "-D", str(data), *arguments],
            stdout=log,
            stderr=log,
            env=environment,
            cwd="/",
            **switch,
        )


def _fill(front: TestFront) -> None:
    """Roles, and a database with and one without a guard."""
    home = front.socket_dir
    with psycopg.connect(host=str(home), port=PORT, user="postgres", dbname="postgres", autocommit=True) as connection:
        for role in ROLES:
            connection.execute(f"create role {role} login".encode())
        for database in (GUARDED, NATIVE):
            connection.execute(f"create database {database}".encode())
    for database, schema in ((GUARDED, SCHEMA), (NATIVE, NATIVE_SCHEMA)):
        with front.direct(dbname=database) as connection:
            for name in ("hush.epsilon", "hush.intervals"):
                connection.execute(f"alter database {database} set {name} = ''".encode())
            connection.execute(schema.encode())


def _wait_until_ready(home: Path) -> None:
    deadline = time.monotonic() + 200
    while time.monotonic() < deadline:
        try:
            psycopg.connect(host=str(home), port=PORT, user="postgres", dbname="postgres").close()
        except psycopg.OperationalError:
            time.sleep(0.02)
        else:
            return
    raise TimeoutError("the front did not start")


def remove(directory: Path) -> None:
    shutil.rmtree(directory, ignore_errors=True)
