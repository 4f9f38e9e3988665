"""Where do the data of TPC-H come from, and what is the true answer to a query?"""

from __future__ import annotations

import subprocess
from pathlib import Path

import duckdb

from benchmarks.tpch.questions import TABLES

Row = tuple[object, ...]


def made(folder: Path, scale: float, generator: Path) -> Path:
    """The folder of the eight Parquet files at this scale, made once."""
    found = folder / f"{scale:g}"
    if not all((found / f"{table}.parquet").exists() for table in TABLES):
        found.mkdir(parents=True, exist_ok=True)
        subprocess.run([generator, "parquet", "-s", f"{scale:g}", f"--output-dir={found}"], check=True)
    return found


class Truth:
    """The same files in a DuckDB as it comes."""

    def __init__(self, data: Path) -> None:
        self._connection = duckdb.connect()
        for table in TABLES:
            self._connection.execute(f"CREATE TABLE {table} AS FROM '{data / f'{table}.parquet'}'")

    def rows(self, sql: str) -> list[Row]:
        return self._connection.execute(sql).fetchall()
