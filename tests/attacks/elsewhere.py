"""The rows of a DuckDB file in the tests' own PostgreSQL."""

from __future__ import annotations

from pathlib import Path

import duckdb

from tests.postgres_server import private_server

READER = "hostile_reader"
_TABLES = ("people", "events", "labels")
_ROLE = f"do $$ begin create role {READER} login; exception when duplicate_object then null; end $$;"


def moved(path: Path, database: str, script: str) -> str:
    """The connection string of a login that only reads a new database. script: makes its tables.

    Texts with the one character that PostgreSQL does not hold stay behind.
    """
    server = private_server()
    server.create(database, script + _ROLE)
    with duckdb.connect(str(path)) as source, server.owner(database) as owner:
        source.execute("set TimeZone = 'UTC'")
        owner.execute("set TimeZone = 'UTC'")
        for table in _TABLES:
            written = path.with_suffix(f".{table}.csv")
            owner.execute(f"truncate {table}".encode())
            kept = "where name is null or strpos(name, chr(0)) = 0" if table == "people" else ""
            source.execute(f"copy (from {table} {kept}) to '{written}' (format csv, header false, force_quote *)")
            with owner.cursor() as cursor, cursor.copy(f"copy {table} from stdin (format csv)".encode()) as copy:
                copy.write(written.read_bytes())
        owner.execute(f"grant select on all tables in schema public to {READER}; analyze".encode())
    return server.dsn(database, READER)
