"""How much longer than the plain queries do private ones over TPC-H take?"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import duckdb

from benchmarks.engine import Overhead, compared
from benchmarks.queries import Question
from benchmarks.tpch.data import made
from benchmarks.tpch.questions import POLICY, TABLES, questions
from proxy.admin.files import read_policy
from proxy.policy.model import DuckDBFile

_NATION = """SELECT n_name, sum(l_extendedprice) FROM lineitem JOIN orders ON l_orderkey = o_orderkey
JOIN customer ON o_custkey = c_custkey JOIN nation ON c_nationkey = n_nationkey GROUP BY n_name"""


def tpch_overheads(folder: Path, scale: float, generator: Path, runs: int) -> Iterator[Overhead]:
    """Query 1, and the sum by nation."""
    data = _database(made(folder, scale, generator))
    policy = replace(read_policy(POLICY, {**os.environ, "TPCH_DATA": str(data.parent)}), source=DuckDBFile(str(data)))
    first = next(q.sql for q in questions() if q.number == 1)
    asked = (Question("TPC-H query 1", first, 20), Question("TPC-H by nation", _NATION, 2.2))
    return compared(policy, data, "lineitem", asked, runs)


def _database(files: Path) -> Path:
    """The same rows in one DuckDB file, made once."""
    path = files / "tpch.duckdb"
    if not path.exists():
        half = files / "tpch.half"
        half.unlink(missing_ok=True)
        with duckdb.connect(str(half)) as connection:
            for table in TABLES:
                connection.execute(f"CREATE TABLE {table} AS FROM '{files / f'{table}.parquet'}'")
        half.rename(path)
    return path
