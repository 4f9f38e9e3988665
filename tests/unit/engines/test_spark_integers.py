"""Does a server of Spark's protocol compute the same integers as DuckDB, and anything at all from any rows?"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from proxy.analysis.analyse import Lowered
from proxy.engines.base import EngineStopped
from proxy.plan.sql import statement
from proxy.policy.model import Policy
from proxy.sql.render.duckdb.dialect import DUCKDB
from proxy.sql.render.spark.dialect import SPARK
from tests.unit.engines.spark_shop import SparkShop, differences, in_parquet
from tests.unit.engines.test_two_engines import ACCEPTED, SUMS, at_once, case_of, conditions
from tests.unit.engines.two_engines import Rows, policy, statements, unbounded
from tests.unit.sql.corpus import Case

_EVERY = 120  # of the cases in an ordinary run; all of them in the long one


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkShop]:
    opened = SparkShop(tmp_path_factory.mktemp("spark"))
    yield opened
    opened.close()


@pytest.fixture(autouse=True)
def by_cells(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where DuckDB adds up rows one by one, its integers are a few units of the grid smaller: see test_row_sums.py."""
    monkeypatch.setattr(statement, "most_rows", lambda _: 0)


def _compared(shop: SparkShop, chosen: list[Case], rows: str) -> tuple[int, list[str]]:
    """How many statements both engines computed, and those with other integers."""
    wide, tight = (policy(), Lowered()), (policy(is_tight=True), Lowered(rows_per_group=1, groups=2))
    count, found = 0, list[str]()
    for served, lowered in (wide, tight, (unbounded(policy()), Lowered())):
        for case in chosen:
            theirs = statements(case, in_parquet(served, shop.folders[rows]), SPARK, lowered)
            if theirs:
                ours = statements(case, served, DUCKDB, lowered)
                found += [f"{case.sql}: {sql}" for sql in differences(shop, ours, theirs, rows)]
                count += 1
    return count, found


@pytest.mark.parametrize("rows", ["own", "odd"])
def test_spark_computes_the_same_integers(shop: SparkShop, rows: str) -> None:
    chosen = [*ACCEPTED[7::_EVERY], *map(case_of, SUMS[::2] if rows == "own" else SUMS[1::2])]
    count, found = _compared(shop, chosen, rows)
    assert found == [], found
    assert count > 2 * len(chosen)  # of three policies: what is refused there is less than a third


@pytest.mark.long
@pytest.mark.parametrize("rows", ["own", "odd"])
def test_spark_computes_the_same_integers_for_every_case(shop: SparkShop, rows: str) -> None:
    assert _compared(shop, ACCEPTED, rows)[1] == []


def _failing(shop: SparkShop, case: Case, served: Policy) -> Iterator[str]:
    """A statement, if it fails over extreme rows."""
    try:
        for stages in statements(case, in_parquet(served, shop.folders["extreme"]), SPARK, Lowered()):
            vector: Rows = []
            for stage in stages:
                found = shop.of_spark(stage, vector)
                vector = vector or found
    except EngineStopped as error:
        yield f"{case.sql}: {error.exception_name}"


def _computed() -> Iterator[str]:
    """The conditions that Spark computes by themselves: of the others one would refuse a whole batch."""
    served = policy()
    for condition in conditions():
        if statements(case_of(f"SELECT count(*) FROM users WHERE {condition}"), served, SPARK, Lowered()):
            yield condition


def test_no_row_can_make_spark_fail(shop: SparkShop) -> None:
    computed = list(_computed())
    assert len(computed) > 0.9 * len(list(conditions()))
    bounded = policy()
    failing = [
        sql
        for served in (bounded, unbounded(bounded))
        for case in (*at_once(iter(computed)), *map(case_of, SUMS))
        for sql in _failing(shop, case, served)
    ]
    assert failing == []


_HEAVY = (
    "SELECT count(*) FROM (SELECT user_id, sum(amount) AS s FROM orders GROUP BY user_id) x WHERE s > 5",
    "SELECT sum(s), avg(n) FROM (SELECT user_id, sum(amount) AS s, count(*) AS n FROM orders GROUP BY user_id) x",
    "SELECT sum(amount), avg(amount), variance(amount) FROM orders",
    "SELECT status, sum(amount), count(*) FROM orders GROUP BY status",
    "SELECT note, sum(amount), count(DISTINCT store_id) FROM orders GROUP BY note",
)


@pytest.mark.parametrize("rows", [(120_000, 999.99), (5_000, 9_999_999_999.99)], ids=["many", "large"])
def test_one_heavy_person_leaves_64_bits_of_no_sum(tmp_path: Path, rows: tuple[int, float]) -> None:
    """Spark raises where a sum of whole numbers does, other servers wrap: the answer would be another, or none."""
    shop = SparkShop(tmp_path, heavy=rows)
    try:
        for case in map(case_of, _HEAVY):
            theirs = statements(case, in_parquet(policy(), shop.folders["own"]), SPARK, Lowered())
            assert theirs
            assert list(differences(shop, statements(case, policy(), DUCKDB, Lowered()), theirs, "own")) == []
    finally:
        shop.close()
