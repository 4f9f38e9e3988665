"""What does the private SQL cost in a PostgreSQL, beside the plain query on the same server?

The server is the demo's, filled from the same file as DuckDB's part: 16 MB of buffers, no parallel workers; it compiles
what the engine asks for. So elapsed times are those of one process, whose processor time the system tells.
"""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import psycopg

from benchmarks.engine import ROOT, Overhead, private_sql
from benchmarks.measure import Pair
from benchmarks.queries import Question
from proxy.admin.demo.postgres import filled_server
from proxy.admin.files import read_policy
from proxy.engines.postgres import PostgresEngine
from proxy.engines.postgres_open import connect
from proxy.front.binaries import Search
from proxy.policy.model import Policy, PostgresSource

_TICKS_S = os.sysconf("SC_CLK_TCK")


def postgres_overheads(data: Path, questions: tuple[Question, ...], runs: int) -> Iterator[Overhead]:
    """Time each question over the rows of one file."""
    policy = read_policy(ROOT / "policies" / "shop.yaml", {**os.environ, "SHOP_DUCKDB": str(data)})
    with tempfile.TemporaryDirectory() as folder, filled_server(data, Path(folder) / "server", Search()) as dsn:
        source = PostgresSource(dsn=dsn)
        served = _as_found(replace(policy, source=source), source)
        with psycopg.connect(dsn, autocommit=True) as plain, connect(source, "UTC") as private:
            orders = _orders(plain)
            for question in questions:
                sql = private_sql(served, question.sql)
                pair = _interleaved((plain, question.sql), (private, sql), runs)
                yield Overhead(question=question, orders=orders, pair=pair)


def _as_found(policy: Policy, source: PostgresSource) -> Policy:
    """With what a start of the proxy learns from the server's catalogue."""
    with closing(PostgresEngine(policy, source)) as engine:
        limited = engine.check_facts(policy).with_limited_digits(policy.tables)
    return replace(policy, tables={**policy.tables, **limited})


_Asked = tuple[psycopg.Connection[tuple[object, ...]], str]


def _interleaved(plain: _Asked, private: _Asked, runs: int) -> Pair:
    """Each once to warm up, then in turn."""
    _both_times(plain)
    _both_times(private)
    times = [(*_both_times(plain), *_both_times(private)) for _ in range(runs)]
    elapsed, cpu, other_elapsed, other_cpu = (statistics.median(t) for t in zip(*times, strict=True))
    return Pair(elapsed, other_elapsed, cpu, other_cpu)


def _both_times(asked: _Asked) -> tuple[float, float]:
    """Elapsed milliseconds, and those of the server's process."""
    connection, sql = asked
    before, start = _processor_ms(connection), time.perf_counter()
    connection.execute(sql.encode(), binary=True).fetchall()
    return (time.perf_counter() - start) * 1e3, _processor_ms(connection) - before


def _processor_ms(connection: psycopg.Connection[tuple[object, ...]]) -> float:
    fields = Path(f"/proc/{connection.info.backend_pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) * 1e3 / _TICKS_S


def _orders(connection: psycopg.Connection[tuple[object, ...]]) -> int:
    row = connection.execute("select count(*) from orders").fetchone()
    assert row is not None
    return int(str(row[0]))
