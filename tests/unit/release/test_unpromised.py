"""What comes out of stored rows of a local table, and of nothing else without noise?"""

from __future__ import annotations

import duckdb
import pytest

from proxy.errors import BadGroups
from proxy.plan.release_plan import ReleasePlan
from proxy.plan.sets.sets import plan_block
from proxy.release import noisy
from proxy.release.finish import finish
from proxy.release.noisy import NoisyCells
from proxy.release.raw import KeptKeys, RawResult
from proxy.release.unpromised import publish_unpromised
from proxy.sql.query.block import BoundBlock
from proxy.sql.relations.scope import Catalog
from tests.unit.plan.survey import WITH_LOCAL, of_local
from tests.unit.release.make import bound, planned_over

ROWS = 300


@pytest.fixture(scope="module")
def stored() -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    connection.execute(
        "create table answers as select r::integer as id, r % 3 = 0 as ill, (r % 70)::integer as age,"
        " ['Bern', 'Chur', null][1 + r % 3] as city, ['free', 'pro'][1 + r % 2] as plan,"
        f" (r % 40 - 10)::double as size from range({ROWS}) t(r)"
    )
    return connection


def planned(query: str) -> tuple[ReleasePlan, BoundBlock]:
    found = bound(query, Catalog(WITH_LOCAL))
    plan = plan_block(found.block, of_local())
    assert isinstance(plan, ReleasePlan)
    return plan, found


def cells_of(plan: ReleasePlan, connection: duckdb.DuckDBPyConnection) -> NoisyCells:
    def run(stage: int, kept: KeptKeys) -> RawResult:
        assert (stage, kept) == (0, KeptKeys())
        found = connection.execute(plan.sql)
        return RawResult(len(found.description or ()), tuple(found.fetchall()))

    return publish_unpromised(plan, run)


def shown(query: str, connection: duckdb.DuckDBPyConnection) -> list[tuple[str | None, ...]]:
    plan, of = planned(query)
    release = finish(plan, cells_of(plan, connection), of.columns, nonnegative=True, time_zone="UTC", is_rounded=True)
    return list(zip(*(c.values for c in release.columns), strict=True))


def test_public_columns_are_answered_exactly(stored: duckdb.DuckDBPyConnection) -> None:
    (row,) = shown(
        "select count(*), sum(age), avg(age), var_pop(age), sum(size), bool_or(age > 68) from answers", stored
    )
    exact = stored.execute("select count(*), sum(age), avg(age), var_pop(age), sum(size) from answers").fetchone()
    assert exact is not None
    assert row[0] == str(ROWS)
    assert row[1] == str(exact[1])
    assert [float(str(v)) for v in row[2:5]] == pytest.approx(exact[2:5], rel=1e-6)
    ((low, high),) = shown("select hush.low(sum(age)), hush.high(sum(age)) from answers", stored)
    assert float(str(low)) == pytest.approx(exact[1], abs=1e-3)
    assert low == high


def test_all_groups_of_rows_are_shown_and_no_others(stored: duckdb.DuckDBPyConnection) -> None:
    found = shown("select city, plan, count(*) from answers where id < 4 group by 1, 2", stored)
    exact = {("Bern", "free"): 1, ("Chur", "pro"): 1, (None, "free"): 1, ("Bern", "pro"): 1}
    cities = ("Bern", "Chur", None)
    assert {(c, p): int(str(n)) for c, p, n in found} == {
        (c, p): exact.get((c, p), 0) for c in cities for p in ("free", "pro")
    }
    assert shown("select city, count(*) from answers where id < 0 group by 1", stored) == []


def test_too_many_groups_are_refused(stored: duckdb.DuckDBPyConnection, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(noisy, "MOST_CELLS", 2)
    with pytest.raises(BadGroups, match="too many groups"):
        shown("select city, count(*) from answers group by 1", stored)


def test_the_answer_is_the_same_whenever_it_is_asked(stored: duckdb.DuckDBPyConnection) -> None:
    query = "select plan, sum(size), count(*) filter (where ill) from answers group by plan"
    first = shown(query, stored)
    stored.execute("create or replace table answers as select * from answers order by random()")
    assert shown(query, stored) == first


def test_nothing_promised_is_released_without_noise() -> None:
    plan, _ = planned_over("select count(*) from people", of_local())
    with pytest.raises(AssertionError, match="with noise alone"):
        publish_unpromised(plan, lambda _stage, _kept: RawResult(2, ((0, 1),)))
