"""Is the SQL of a plan free of client text, and does it mean what the plan says?"""

from __future__ import annotations

from datetime import datetime

import duckdb
import pytest

from tests.unit.plan.shop import context, plan


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


def test_spellings_that_a_collation_calls_equal_stay_apart() -> None:
    connection = duckdb.connect()
    connection.execute("create table users (user_id integer, city varchar collate nocase)")
    connection.execute("insert into users values (1, 'PARIS'), (2, 'Paris'), (3, 'paris')")
    rows = connection.execute(plan("select city, count(*) from users group by 1").sql).fetchall()
    assert sorted(row[1] for row in rows) == ["PARIS", "Paris", "paris"]
    only_large = plan("select count(*) from users where city = 'PARIS'").sql
    before = connection.execute(only_large).fetchall()
    connection.execute("delete from users where user_id <> 1")
    assert connection.execute(only_large).fetchall() == before


def test_times_without_a_local_time_raise_nothing() -> None:
    connection = duckdb.connect()
    connection.execute("set TimeZone = 'UTC'")
    connection.execute("create table orders (user_id integer, made timestamptz)")
    connection.execute("insert into orders values (1, '290309-12-22 (BC) 00:00:00+00'), (1, 'infinity')")
    connection.execute("insert into orders values (2, '2024-06-01 12:00:00+00')")
    of = context(time_zone="Europe/Berlin")
    rows = connection.execute(plan("select count(*) from orders where made > '2024-01-01'", of).sql).fetchall()
    assert rows[0][1] > 0


def test_a_cast_to_timestamptz_stays_a_local_time() -> None:
    connection = tables(duckdb.connect())
    connection.execute("insert into users (user_id, born) values (1, '1990-01-01')")
    rows = connection.execute(plan("select born::timestamptz, count(*) from users group by 1").sql).fetchall()
    assert rows[0][1] == datetime(1990, 1, 1)
