"""Does a chosen B bound every unit, whatever it has and whatever the shape of the statement?

See docs/claims/profile.md; random queries are in tests/fuzz/test_chosen.py.
"""

from __future__ import annotations

import math
from dataclasses import replace

import duckdb
import pytest

from proxy.dp.mechanisms import Distribution
from proxy.plan.release_plan import ReleasePlan, statement_of, with_sql
from proxy.plan.sql.statement import render
from proxy.plan.vector.allocation import with_chosen_bound
from tests.unit.plan.shop import context, plan

BOUND = 1.5
ROWS = (1, 100, 10_000, 3_000_000)  # of a unit: from below B to where a norm left 63 bits


@pytest.fixture(scope="module")
def database() -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    connection.execute("create table orders (user_id integer, order_id bigint, amount numeric(8, 2), status varchar)")
    for unit, rows in enumerate(ROWS):
        connection.execute(
            f"insert into orders select {unit}, range, 1000, case when range % 2 = 0 then 'paid' else 'refunded' end"
            f" from range({rows})"
        )
    connection.execute("create table census (hours integer)")
    connection.execute("insert into census select 99 from range(5)")
    return connection


def chosen(query: str, bound: float, *, pure: bool) -> ReleasePlan:
    """The plan of a query with a bound that nothing but itself enforces."""
    of = context(pure=pure)
    natural = plan(query, of)
    allocation = with_chosen_bound(
        natural.allocation, natural.allocation.weights, bound * max(natural.allocation.weights)
    )
    scale = natural.scale * natural.allocation.unit_norm / allocation.unit_norm
    changed = replace(natural, allocation=allocation, scale=scale)
    return with_sql(changed, render(statement_of(changed, of)))


def length(of: ReleasePlan, rows: list[tuple[object, ...]]) -> float:
    """Of the vector, in weighted units."""
    keys = len(of.analysed.keys)
    moments = [m for row in rows for m in row[1 + keys :] if isinstance(m, int)]
    whole = math.fsum(map(abs, moments)) if of.distribution is Distribution.LAPLACE else math.hypot(*moments)
    return whole / of.scale


@pytest.mark.parametrize("pure", [False, True])
@pytest.mark.parametrize(
    "query",
    [
        "select count(*) from orders",
        "select sum(amount) from orders",
        "select count(*), sum(amount), avg(amount) from orders",
        "select status, count(*), sum(amount) from orders group by status",
        "select status, count(*) filter (where amount > 5) from orders group by status",
        "select order_id, count(distinct user_id), sum(amount) from orders where order_id in (0, 1, 2, 9) group by 1",
    ],
)
def test_a_unit_of_any_size_is_as_long_as_the_bound(
    database: duckdb.DuckDBPyConnection, query: str, pure: bool
) -> None:
    of = chosen(query, BOUND, pure=pure)
    for unit in range(len(ROWS)):
        database.execute(
            f"create or replace temp view orders as select * from memory.main.orders where user_id = {unit}"
        )
        found = length(of, database.execute(of.sql).fetchall())
        database.execute("drop view temp.orders")
        assert found <= of.allocation.unit_norm * (1 + 2**-30)
        assert unit == 0 or found > 0.99 * of.allocation.unit_norm, "nothing is lost but what is above"


@pytest.mark.long
@pytest.mark.parametrize("pure", [False, True])
@pytest.mark.parametrize(
    "query",
    [
        "select count(*), sum(amount) from orders",
        "select status, count(*), sum(amount), avg(amount) from orders group by status",
    ],
)
def test_a_unit_of_a_billion_rows_is_as_long_as_the_bound(
    database: duckdb.DuckDBPyConnection, query: str, pure: bool
) -> None:
    of = chosen(query, BOUND, pure=pure)
    paid = "case when range % 2 = 0 then 'paid' else 'refunded' end"
    database.execute(
        "create or replace temp view orders as select 1 as user_id, range as order_id, 1000::numeric(8, 2) as amount,"
        f" {paid} as status from range(1000000000)"
    )
    found = length(of, database.execute(of.sql).fetchall())
    database.execute("drop view temp.orders")
    assert 0.99 * of.allocation.unit_norm < found <= of.allocation.unit_norm * (1 + 2**-30)


@pytest.mark.parametrize("pure", [False, True])
def test_a_row_that_is_a_unit_is_as_long_as_the_bound(database: duckdb.DuckDBPyConnection, pure: bool) -> None:
    of = chosen("select sum(hours) from census", 0.25, pure=pure)
    found = length(of, database.execute(of.sql).fetchall())
    assert found == pytest.approx(5 * of.allocation.unit_norm, rel=1e-6), "each of five rows, scaled down to B"


@pytest.mark.parametrize("pure", [False, True])
@pytest.mark.parametrize(
    "query", ["select count(*), sum(amount) from orders", "select status, count(*) from orders group by status"]
)
def test_an_imposed_bound_is_enforced_like_a_chosen_one(
    database: duckdb.DuckDBPyConnection, query: str, pure: bool
) -> None:
    of = plan(query, replace(context(pure=pure), bound=BOUND))
    assert of.allocation.is_chosen
    assert set(of.allocation.weights) == {1.0}
    for unit in range(len(ROWS)):
        database.execute(
            f"create or replace temp view orders as select * from memory.main.orders where user_id = {unit}"
        )
        found = length(of, database.execute(of.sql).fetchall())
        database.execute("drop view temp.orders")
        assert found <= BOUND * (1 + 2**-30)


@pytest.mark.parametrize("bound", [0.0, -1.0, math.inf, math.nan])
def test_a_bound_that_is_none_is_refused(bound: float) -> None:
    natural = plan("select count(*) from orders").allocation
    with pytest.raises(ValueError):
        with_chosen_bound(natural, natural.weights, bound)
