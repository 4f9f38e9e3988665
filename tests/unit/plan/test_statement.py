"""Is the SQL of a plan free of client text, and does it mean what the plan says?"""

from __future__ import annotations

import duckdb
import pytest

from tests.unit.plan.shop import plan


def tables(connection: duckdb.DuckDBPyConnection) -> duckdb.DuckDBPyConnection:
    connection.execute(
        "create table users (user_id integer, age integer, height double, weight double, city varchar, plan varchar,"
        " joined date, born date)"
    )
    return connection


@pytest.mark.parametrize(
    "query",
    [
        "select count(*) from users where coalesce(city, ') or true --', '{1}') = 'x'",
        "select count(*) from users where coalesce(city, '{0}', '{*}') = '{2}'",
        "select count(*) from users where (city || '{0}{1}') = '{0}'",
    ],
)
def test_a_literal_never_becomes_sql(query: str) -> None:
    connection = tables(duckdb.connect())
    connection.execute("insert into users (user_id, city) values (1, 'Paris')")
    rows = connection.execute(plan(query).sql).fetchall()
    assert rows == [(0, 0)]
