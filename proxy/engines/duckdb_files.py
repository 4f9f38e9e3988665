"""How do CSV and Parquet files become tables in memory?

Each file is read once, at the start: all statements see the same rows, whatever happens to the file later. Only columns
of the policy are loaded. CSV text is read with the policy's types, Parquet columns keep their own.
"""

from __future__ import annotations

from pathlib import Path

import duckdb

from proxy.errors import ConfigError
from proxy.policy.model import Column, DataFiles, Policy, Table
from proxy.sql.render.dialect import quote, text_literal
from proxy.sql.render.duckdb.dialect import DUCKDB
from proxy.sqltypes import SqlType

# numeric has no limits in PostgreSQL; here it has 28 digits before the point and 10 after
_CSV_TYPES = {
    SqlType.BOOL: "boolean",
    SqlType.INT2: "smallint",
    SqlType.INT4: "integer",
    SqlType.INT8: "bigint",
    SqlType.NUMERIC: "decimal(38, 10)",
    SqlType.FLOAT4: "float",
    SqlType.FLOAT8: "double",
    SqlType.TEXT: "varchar",
    SqlType.VARCHAR: "varchar",
    SqlType.BPCHAR: "varchar",
    SqlType.UUID: "uuid",
    SqlType.DATE: "date",
    SqlType.TIMESTAMP: "timestamp",
    SqlType.TIMESTAMPTZ: "timestamptz",
    SqlType.INTERVAL: "interval",
}


def load_files(connection: duckdb.DuckDBPyConnection, source: DataFiles, policy: Policy) -> None:
    """Create one table per file. Raises ConfigError, naming files, tables and columns and no value."""
    connection.execute(f"set TimeZone = {text_literal(policy.privacy.time_zone)}")  # for text without an offset
    for name, path in source.files:
        _load(connection, policy.tables[name], path)


def _load(connection: duckdb.DuckDBPyConnection, table: Table, path: str) -> None:
    if not Path(path).is_file():
        fault = "is not a file" if Path(path).exists() else "does not exist"
        raise ConfigError(
            f"the data file {path} of table {table.name} {fault}",
            hint="Paths in a policy start at the policy's folder.",
        )
    is_csv = _is_csv(path)
    reader = f"read_csv({text_literal(path)}, header = true, all_varchar = true)"
    source = reader if is_csv else f"read_parquet({text_literal(path)})"
    _check_columns(connection, table, path, source)
    columns = ", ".join(_loaded(c) if is_csv else quote(c.name) for c in table.columns)
    if len(table.relation) > 1:
        connection.execute(f"create schema if not exists {DUCKDB.relation(table.relation[:-1])}")
    failure = ""
    try:
        connection.execute(f"create table {DUCKDB.relation(table.relation)} as select {columns} from {source}")
    except duckdb.OutOfMemoryException:
        failure = "does not fit into limits.engine_memory; raise it, or put the data into a DuckDB file"
    except duckdb.Error:
        failure = _reason(connection, table, source) if is_csv else "cannot be read as Parquet"
    if failure:  # outside the handler: the engine's words quote rows, so they must not hang on our error
        raise ConfigError(f"the data file {path} of table {table.name} {failure}")


def _check_columns(connection: duckdb.DuckDBPyConnection, table: Table, path: str, source: str) -> None:
    found: set[str] | str
    try:
        found = {str(row[0]).lower() for row in connection.execute(f"describe from {source}").fetchall()}
    except duckdb.Error:
        found = "cannot be read; is it what its name says, readable for this user, with a header if it is CSV?"
    if isinstance(found, str):
        raise ConfigError(f"the data file {path} of table {table.name} {found}")
    missing = [c.name for c in table.columns if c.name.lower() not in found]
    if missing:
        names = ", ".join(f"{table.name}.{name}" for name in missing)
        raise ConfigError(f"the data file {path} has no column for {names}")


def _reason(connection: duckdb.DuckDBPyConnection, table: Table, source: str) -> str:
    """Which columns of a CSV file do not have the policy's type."""
    wrong = [c for c in table.columns if _has_misfit(connection, c, source)]
    if not wrong:
        return "cannot be read as CSV"
    return "has values that are not of the policy's type in " + ", ".join(
        f"{table.name}.{c.name} ({c.type.pg_name})" for c in wrong
    )


def _has_misfit(connection: duckdb.DuckDBPyConnection, column: Column, source: str) -> bool:
    name = quote(column.name)
    misfit = f"{name} is not null and try_cast({name} as {_CSV_TYPES[column.type]}) is null"
    try:
        return bool(connection.execute(f"select 1 from {source} where {misfit} limit 1").fetchall())
    except duckdb.Error:
        return False


def _loaded(column: Column) -> str:
    name = quote(column.name)
    return f"cast({name} as {_CSV_TYPES[column.type]}) as {name}"


def _is_csv(path: str) -> bool:
    return not path.lower().endswith((".parquet", ".pq"))
