"""What does the private SQL cost in the engine, beside the plain query on a DuckDB as it comes?

Both read the same file with the same number of threads. The private statement runs on a connection that is opened
as the product opens its own.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import duckdb

from benchmarks.measure import Pair, Work, interleaved
from benchmarks.queries import Question
from proxy.admin.commands.demo_data import generate_with_progress
from proxy.admin.files import read_policy
from proxy.engines.duckdb_open import DATABASE, open_source
from proxy.policy.model import Policy
from proxy.session.pricing.dry_run import dry_run

ROOT = Path(__file__).resolve().parents[1]


@dataclass(frozen=True, slots=True, kw_only=True)
class Overhead:
    """One question at one scale."""

    question: Question
    orders: int
    pair: Pair

    @property
    def name(self) -> str:
        return self.question.name

    @property
    def ratio(self) -> float:
        return self.pair.ratio

    @property
    def is_within(self) -> bool:
        return not self.question.most or self.ratio <= self.question.most


def shop_at(folder: Path, scale: float) -> Path:
    """The demo's data, made once for each scale."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"shop-{scale:g}.duckdb"
    if not path.exists():
        generate_with_progress(path, scale, replace=False)
    return path


def overheads(data: Path, questions: tuple[Question, ...], runs: int) -> Iterator[Overhead]:
    """Time each question over one of the demo's files."""
    policy = read_policy(ROOT / "policies" / "shop.yaml", {**os.environ, "SHOP_DUCKDB": str(data)})
    return compared(policy, data, "orders", questions, runs)


def compared(policy: Policy, data: Path, table: str, questions: tuple[Question, ...], runs: int) -> Iterator[Overhead]:
    """Time each question over one file. table: whose rows are told."""
    with tempfile.TemporaryDirectory() as spill, open_source(policy, Path(spill) / "spill") as private:
        private.execute(f"use {DATABASE}")
        with duckdb.connect() as plain:
            plain.execute(f"attach '{str(data).replace(chr(39), chr(39) * 2)}' as {DATABASE} (read_only)")
            plain.execute(f"use {DATABASE}")
            orders = _rows(plain, table)
            for question in questions:
                pair = interleaved(
                    _query(plain, question.sql), _query(private, *private_sqls(policy, question.sql)), runs
                )
                yield Overhead(question=question, orders=orders, pair=pair)


def _query(connection: duckdb.DuckDBPyConnection, *statements: str) -> Work:
    return lambda: [connection.execute(sql).fetchall() for sql in statements]


def private_sql(policy: Policy, sql: str) -> str:
    """The one private statement of a query, as EXPLAIN shows it."""
    (only,) = private_sqls(policy, sql)
    return only


def private_sqls(policy: Policy, sql: str) -> tuple[str, ...]:
    """All private statements of a query with one release, which none of its keys is passed to."""
    (release,) = json.loads(dry_run(policy, sql, as_json=True))["releases"]
    return tuple(str(part["private_sql"]) for part in (release, *release.get("parts", ())))


def _rows(connection: duckdb.DuckDBPyConnection, table: str) -> int:
    row = connection.execute(f"select count(*) from {table}").fetchone()
    assert row is not None
    return int(row[0])
