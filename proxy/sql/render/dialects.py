"""Which engine's spelling does a policy's source need?"""

from __future__ import annotations

from typing import assert_never

from proxy.policy.model import DataFiles, DuckDBFile, PostgresSource, Source, SparkSource
from proxy.sql.render.dialect import Dialect
from proxy.sql.render.duckdb.dialect import DUCKDB
from proxy.sql.render.postgres.dialect import POSTGRES
from proxy.sql.render.spark.dialect import SPARK

_ALL: tuple[Dialect, ...] = (DUCKDB, POSTGRES)


def dialect_of(source: Source) -> Dialect:
    """The dialect of the engine that computes what a source holds."""
    match source:
        case DuckDBFile() | DataFiles():
            return DUCKDB
        case PostgresSource():
            return POSTGRES
        case SparkSource():
            return SPARK
        case _ as never:
            assert_never(never)


def times_written(function: str, place: int) -> int:
    """How often the text of an argument stands in that of a call, on the engine that writes it most often."""
    return max(dialect.times_written(function, place) for dialect in _ALL)
