"""How is DuckDB opened so that it can reach the policy's data and nothing else?

The data stand in an attached database called `source`: the policy's file, read-only, or tables in memory that were
loaded from the policy's files. After that, files, extensions and settings are out of reach for good.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from types import MappingProxyType

import duckdb

from proxy.engines.duckdb_files import load_files
from proxy.errors import ConfigError
from proxy.policy.model import DataFiles, DuckDBFile, Policy, PostgresSource, SparkSource
from proxy.sql.render.dialect import text_literal

DATABASE = "source"

# Groups of a unit id that is a dense integer fit a plain array up to 2^22 ids. 10 million rows on 2 cores: 50,000 units
# 57 -> 34 ms, 1 million units 282 -> 119 ms; larger values were slower again.
_PERFECT_HASH_BITS = 22

# Optimizer rules that are switched off, each with its reason; tests/unit/engines/test_duckdb_optimizers.py has a
# statement for each that goes wrong with it.
SWITCHED_OFF = MappingProxyType({
    "common_subexpressions":
        "computes what stands twice once, ahead of the TRY around either, where it raises on a row's value",
    "partial_aggregate_pushdown":
        "writes what a sub-select computes once for each row into every place that names it, and computes it there",
})  # fmt: skip


def open_source(policy: Policy, spill: Path) -> duckdb.DuckDBPyConnection:
    """A connection to the policy's data with everything else locked away.

    spill: directory of this engine alone for what does not fit in memory; it is emptied, and made with mode 0700.
    Raises ConfigError for missing or unreadable data and for limits that DuckDB does not accept.
    """
    connection = _start(policy, spill)
    try:
        match policy.source:
            case DuckDBFile(path=path):
                _attach(connection, path)
            case DataFiles() as source:
                connection.execute(f"attach ':memory:' as {DATABASE}")
                connection.execute(f"use {DATABASE}")
                load_files(connection, source, policy)
            case PostgresSource() | SparkSource():
                raise ConfigError("DuckDB cannot serve a policy whose source is a server")
        _lock(connection, policy)
    except BaseException:
        connection.close()
        shutil.rmtree(spill, ignore_errors=True)
        raise
    return connection


def set_optimizer(connection: duckdb.DuckDBPyConnection) -> None:
    """Say how statements over private rows are computed, so that no row raises and nothing is computed twice."""
    connection.execute(f"set global perfect_ht_threshold = {_PERFECT_HASH_BITS}")
    connection.execute(f"set global disabled_optimizers = {text_literal(','.join(SWITCHED_OFF))}")


def _start(policy: Policy, spill: Path) -> duckdb.DuckDBPyConnection:
    limits = policy.limits
    try:
        if spill.exists():
            shutil.rmtree(spill)
        spill.mkdir(mode=0o700, parents=True)
    except OSError as error:
        raise ConfigError(f"{spill} cannot be used for DuckDB's temporary files: {error.strerror}") from error
    settings: dict[str, str | bool | int | float | list[str]] = {
        "autoinstall_known_extensions": False,
        "autoload_known_extensions": False,
        "allow_community_extensions": False,
        "allow_persistent_secrets": False,
        "memory_limit": limits.engine_memory,
        "temp_directory": str(spill),
        "preserve_insertion_order": False,
    }
    if limits.engine_threads:
        settings["threads"] = limits.engine_threads
    try:
        return duckdb.connect(":memory:", config=settings)
    except duckdb.Error as error:
        raise ConfigError(
            f"DuckDB does not accept limits.engine_memory {limits.engine_memory!r}"
            f" or limits.engine_threads {limits.engine_threads}",
            hint="Write the memory as 4GB or 500MB, and 0 threads for all cores.",
        ) from error


def _attach(connection: duckdb.DuckDBPyConnection, path: str) -> None:
    if not Path(path).is_file():
        fault = "is not a file" if Path(path).exists() else "does not exist"
        raise ConfigError(f"the data file {path} {fault}", hint="Paths in a policy start at the policy's folder.")
    try:
        connection.execute(f"attach {text_literal(path)} as {DATABASE} (type duckdb, read_only)")
    except duckdb.Error as error:
        raise ConfigError(
            f"the data file {path} cannot be opened as a DuckDB database",
            hint="Is it readable for this user, written by DuckDB 2 or older, and not open for writing elsewhere?",
        ) from error


def _lock(connection: duckdb.DuckDBPyConnection, policy: Policy) -> None:
    zone = policy.privacy.time_zone
    try:
        connection.execute(f"set global TimeZone = {text_literal(zone)}")
    except duckdb.Error as error:
        raise ConfigError(f"DuckDB does not know the time zone {zone!r} of privacy.time_zone") from error
    set_optimizer(connection)
    connection.execute("set global enable_external_access = false")
    connection.execute("set global lock_configuration = true")
