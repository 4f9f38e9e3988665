"""How does the demo's shop get into a PostgreSQL of its own?

The server is like the public one: reached by this account alone, through a private socket, and gone with the process.
It is made anew each time and filled from the DuckDB file.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import duckdb
import psycopg
from psycopg.conninfo import make_conninfo

from proxy.engines.described import FoundTable, Unservable
from proxy.engines.duckdb_described import describe_database
from proxy.errors import ConfigError
from proxy.front.account import choose_account
from proxy.front.binaries import Search, find_binaries
from proxy.front.configuration import PORT
from proxy.front.process import Blueprint, Postmaster, start_postmaster
from proxy.front.runtime import RuntimeDirectory, create, sweep
from proxy.front.schema import SUPERUSER
from proxy.sql.render.dialect import quote, text_literal
from proxy.sqltypes import SqlType

READER = "shop_reader"
_BLOCK_BYTES = 1 << 20
_GIBIBYTE = 1 << 30
_MOST_SESSIONS = 20
#: What a policy with one row for each unit, or a path to it, needs the database to promise.
_KEYS = (("users", "user_id"), ("orders", "order_id"), ("stores", "store_id"))


@contextmanager
def filled_server(shop: Path, folder: Path, binaries: Path | Search) -> Iterator[str]:
    """A running server with the shop's tables: the connection string of a login that only reads. Raises HushError.

    folder: where the server notes what it leaves behind if it is killed. Call it from the main thread.
    """
    account = choose_account("")
    folder.mkdir(mode=0o700, exist_ok=True)
    sweep(folder)
    runtime = create(folder, account)
    try:
        postmaster = asyncio.run(start_postmaster(_blueprint(runtime, binaries), (READER,)))
        try:
            _fill(postmaster, shop, folder)
            yield _dsn(postmaster, READER, shop.stem)
        finally:
            asyncio.run(postmaster.stop())
    finally:
        runtime.remove()


def _blueprint(runtime: RuntimeDirectory, binaries: Path | Search) -> Blueprint:
    return Blueprint(
        runtime=runtime, binaries=find_binaries(binaries, runtime.account, runtime.path / "pg"), name="0",
        max_sessions=_MOST_SESSIONS, time_zone="UTC", address_space_bytes=8 * _GIBIBYTE, file_bytes=2 * _GIBIBYTE,
        start_timeout_s=60.0,
    )  # fmt: skip


def _dsn(postmaster: Postmaster, user: str, database: str) -> str:
    return make_conninfo("", host=str(postmaster.blueprint.socket_dir), port=PORT, user=user, dbname=database)


def _fill(postmaster: Postmaster, shop: Path, folder: Path) -> None:
    owner = _dsn(postmaster, SUPERUSER, "postgres")
    with psycopg.connect(owner, autocommit=True) as connection:
        connection.execute(f"create database {quote(shop.stem)}".encode())
        connection.execute(f"create role {READER} login".encode())
        connection.execute(f"alter role {READER} set temp_file_limit = -1".encode())
        connection.execute(f"alter role {READER} set jit = on".encode())  # as servers come
    with psycopg.connect(_dsn(postmaster, SUPERUSER, shop.stem), autocommit=True) as connection:
        connection.execute("set temp_file_limit = -1")  # indices of a large shop are sorted on disk
        for table in describe_database(shop, lambda _done, _total: None):
            _copy(connection, table, shop, folder / "rows.csv")
        for name, key in _KEYS:
            connection.execute(f"create unique index on {name} ({key})".encode())
        connection.execute(f"grant select on all tables in schema public to {READER}".encode())
        connection.execute("analyze")


def _copy(connection: psycopg.Connection[tuple[object, ...]], table: FoundTable, shop: Path, file: Path) -> None:
    """Create a table like the one in the file, with its rows."""
    name = quote(table.relation[-1])
    columns = (
        f"{quote(c.name)} {c.stated_type if c.type is SqlType.NUMERIC else c.type.pg_name}"  # with its digits
        for c in table.columns if not isinstance(c.type, Unservable)
    )  # fmt: skip
    connection.execute(f"create table {name} ({', '.join(columns)})".encode())
    try:
        with duckdb.connect(str(shop), read_only=True) as source:
            source.execute(f"copy {name} to {text_literal(str(file))} (format csv, header false, nullstr '\\N')")
        with (
            file.open("rb") as rows,
            connection.cursor().copy(f"copy {name} from stdin (format csv, null '\\N')".encode()) as copy,
        ):
            while block := rows.read(_BLOCK_BYTES):
                copy.write(block)
    except (duckdb.Error, psycopg.Error, OSError) as error:
        raise ConfigError(f"the shop's table {table.relation[-1]} could not be copied") from error
    finally:
        file.unlink(missing_ok=True)
