"""Which tables does the ledger's SQLite file have, and with which promises is it opened?"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from proxy.errors import LedgerFailed
from proxy.release import store

FILE_NAME = "ledger.db"
VERSION = 2
BUSY_TIMEOUT_S = 10.0

# entry: the chain; a body is never changed. repeat and outcome: the history's extras, outside the chain.
_TABLES = (
    "create table if not exists entry (seq integer primary key, body text not null) strict",
    "create index if not exists entry_login on entry (json_extract(body, '$.login'), seq)",
    """create table if not exists repeat (
        number integer primary key, at text not null, login text not null, query text not null
    ) strict""",
    "create index if not exists repeat_login on repeat (login, number)",
    "create table if not exists outcome (statement integer primary key, outcome text not null) strict",
    *store.SCHEMA,
)


def open_durable(path: Path) -> sqlite3.Connection:
    """A connection whose commits are on disk when they return (write-ahead log, one fsync per commit)."""
    connection = _open(path)
    connection.execute("pragma journal_mode = wal")
    connection.execute("pragma synchronous = full")
    _prepare(connection)
    return connection


def open_relaxed(path: Path) -> sqlite3.Connection:
    """A connection whose commits may be lost in a crash, never torn; for what may be lost."""
    connection = _open(path)
    connection.execute("pragma synchronous = normal")
    return connection


@contextmanager
def reading(path: Path) -> Iterator[sqlite3.Connection]:
    """A connection that cannot write, also beside a running proxy; it leaves no file behind that was not there.

    SQLite makes files beside a database for whoever reads it. Where there is no log, nobody writes, and the file is
    read as one that does not change. Raises LedgerFailed if a proxy has begun to write meanwhile.
    """
    is_alone = not log_of(path).exists()
    only = "mode=ro&immutable=1" if is_alone else "mode=ro"
    opened = sqlite3.connect(f"{path.absolute().as_uri()}?{only}", uri=True, isolation_level=None)
    with closing(opened) as connection:
        yield connection
    if is_alone and log_of(path).exists():
        raise LedgerFailed("a proxy has begun to use the ledger while it was read", hint="Try again.")


def log_of(path: Path) -> Path:
    """Where SQLite keeps what was written last, as long as somebody has the file open for writing."""
    return path.with_name(f"{path.name}-wal")


def _open(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(path, timeout=BUSY_TIMEOUT_S, isolation_level=None, check_same_thread=False)


def _prepare(connection: sqlite3.Connection) -> None:
    """Create the tables of a new file. Raises sqlite3.DatabaseError for a file of another version."""
    found = connection.execute("pragma user_version").fetchone()[0]
    if found == VERSION:
        return
    if found != 0:
        raise sqlite3.DatabaseError(f"the ledger's file has version {found}, this program knows version {VERSION}")
    connection.execute("begin immediate")
    for statement in _TABLES:
        connection.execute(statement)
    connection.execute(f"pragma user_version = {VERSION}")
    connection.execute("commit")
