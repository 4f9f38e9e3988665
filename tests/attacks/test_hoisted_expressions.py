"""TRY protects nothing that the engine computes ahead of it, as it does with expressions that stand twice."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

from proxy.engines.base import Cancellation
from proxy.engines.duckdb import DuckDBEngine
from proxy.policy.model import DuckDBFile
from tests.unit.engines.make import first_stage, paying, policy
from tests.unit.plan.shop import ORDERS, USERS, plan

SQUARE = "order_id * order_id"
LATER = "born + 100000000"
TWICE = (
    f"SELECT count(*) FILTER (WHERE {SQUARE} + {SQUARE} > 5) FROM orders",
    f"SELECT count(*) FILTER (WHERE {SQUARE} > 5), count(*) FILTER (WHERE {SQUARE} > 6) FROM orders",
    f"SELECT {SQUARE} + {SQUARE} AS k, count(*) FROM orders GROUP BY k",
    f"SELECT {SQUARE} AS k, {SQUARE} + 1 AS l, count(*) FROM orders GROUP BY k, l",
    f"SELECT count(*) FROM orders WHERE {SQUARE} > 5 AND {SQUARE} + 1 > 7",
    f"SELECT count({SQUARE}), count({SQUARE} + 1) FROM orders",
    f"SELECT sum(CASE WHEN {SQUARE} > 1 THEN store_id ELSE 0 END) FROM orders WHERE store_id IN (1, 2)",
    f"SELECT count(*) FILTER (WHERE {LATER} > joined), count(*) FILTER (WHERE {LATER} > born) FROM users",
    f"SELECT {LATER} AS m, date_trunc('month', {LATER}) AS n, count(*) FROM users GROUP BY m, n",
    "SELECT count(*) FILTER (WHERE substring(city || city, 2) > 'a' OR substring(city || city, 2) < 'a') FROM users",
)


@pytest.fixture(scope="module")
def extremes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[DuckDBEngine, Path]]:
    """The engine as it is served, over rows on which plain arithmetic raises."""
    folder = tmp_path_factory.mktemp("extremes")
    with duckdb.connect(str(folder / "x.duckdb")) as connection:
        connection.execute("create table users (user_id integer, city varchar, joined date, born date)")
        connection.execute(
            "insert into users values (1, 'x', '2020-01-01', '5800000-01-01'), (2, 'y', null, 'infinity')"
        )
        connection.execute("create table orders (user_id integer, order_id bigint, store_id integer)")
        connection.execute(
            "insert into orders values (1, 4611686018427387904, 1), (2, -9223372036854775808, 2), (3, 2, 1)"
        )
    engine = DuckDBEngine(policy(DuckDBFile(str(folder / "x.duckdb")), USERS, ORDERS), folder / "spill")
    yield engine, folder
    engine.close()


@pytest.mark.parametrize("query", TWICE)
def test_an_expression_that_stands_twice_raises_on_no_row(
    query: str, extremes: tuple[DuckDBEngine, Path], tmp_path: Path
) -> None:
    engine, _ = extremes
    paid = paying(tmp_path)(plan(query).sql)
    assert first_stage(engine, paid, timeout_s=60, cancellation=Cancellation()).rows
