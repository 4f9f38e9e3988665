"""Is the SQL of a plan free of client text, and does it mean what the plan says?"""

from __future__ import annotations

from dataclasses import replace
from datetime import date, datetime

import duckdb
import pytest

from proxy.plan.release_plan import Threshold
from proxy.policy.model import Column, Table, UnitColumns, WrittenBound
from proxy.sqltypes import SqlType
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


def test_integers_stay_integers_inside_a_measure() -> None:
    connection = tables(duckdb.connect())
    connection.execute("insert into users (user_id, age) values (1, 7)")
    halves, wholes = (
        connection.execute(plan(f"select sum(age / {n}), count(*) from users").sql).fetchall() for n in ("2", "2.0")
    )
    assert halves != wholes
    connection.execute("update users set age = 6")
    assert connection.execute(plan("select sum(age / 2), count(*) from users").sql).fetchall() == halves


def test_a_missing_value_of_a_column_without_null_counts_as_the_middle() -> None:
    connection = tables(duckdb.connect())
    found = []
    for value in ("null", "125e0", "'nan'", "'inf'"):
        connection.execute("delete from users")
        connection.execute(f"insert into users (user_id, height) values (1, {value})")
        found.append([connection.execute(plan(q, of).sql).fetchall() for q, of in (
            ("select sum(height) from users", context()), ("select avg(height) from users", context()),
            ("select avg(height) from users", context(pure=True)))])  # fmt: skip
    assert all(f == found[1] for f in found)


def test_a_comparison_with_a_constant_beyond_the_domain_keeps_the_domain_check() -> None:
    connection = tables(duckdb.connect())
    connection.execute("insert into users (user_id, age) values (1, 3000), (2, -3000)")
    for condition in ("age < 5000", "age <= 5000", "age > -5000", "age >= -5000", "age <> 5", "age = 3000"):
        query = f"select count(*) from users where {condition}"
        assert connection.execute(plan(query).sql).fetchall() == [(0, 0)], condition


@pytest.mark.parametrize(
    "condition",
    ["plan like 'f%'", "starts_with(plan, 'f')", "plan similar to 'f%'", "plan ~ '^f'", "position('r' in plan) > 0",
     "plan like 'f%' or plan like 'x%'", "nullif(plan, 'frugal') like 'f%'"],
)  # fmt: skip
def test_a_test_of_a_missing_text_fails_whatever_all_rows_have_in_common(condition: str) -> None:
    """Statistics of the rows must not decide about one that has a text outside the domain."""
    connection = tables(duckdb.connect())
    connection.execute("insert into users (user_id, plan) values (1, 'frugal'), (2, 'frugal')")
    query = f"select count(*) from users where {condition}"
    assert connection.execute(plan(query).sql).fetchall() == [(0, 0)]


def test_private_keys_beside_public_ones_are_selected_by_all_their_units() -> None:
    connection = tables(duckdb.connect())
    rows = ", ".join(f"({i}, 'Paris', '{'free' if i % 3 else 'pro'}')" for i in range(9))
    connection.execute(f"insert into users (user_id, city, plan) values {rows}")
    of = plan("select city, plan, count(*) from users group by 1, 2")
    assert isinstance(of.selection, Threshold)
    found = connection.execute(of.sql).fetchall()
    (part,) = [row for row in found if row[0] == 1]
    units = part[3 + of.selection.moment] * of.units_per_grid[of.selection.moment]
    assert part[1] == "Paris"
    assert round(units) == 9
    assert len(found) == 3


@pytest.mark.parametrize("value", ["infinity", "-infinity", "20000-01-01", "0044-03-15 (BC)"])
def test_private_times_outside_common_years_are_one_group(value: str) -> None:
    connection = tables(duckdb.connect())
    connection.execute(f"insert into users (user_id, born) values (1, '{value}'), (2, '9999-12-31')")
    rows = connection.execute(plan("select born, count(*) from users group by 1").sql).fetchall()
    assert {row[1] for row in rows} == {None, date(9999, 12, 31)}


def test_large_integers_and_decimals_join_exactly() -> None:
    connection = duckdb.connect()
    connection.execute("create table a (u bigint); create table b (u decimal(38, 2), n integer)")
    connection.execute("insert into a values (9007199254740993), (9223372036854775807), (1)")
    connection.execute("insert into b values (9007199254740992, 1), (9223372036854775807, 1), (1.5, 1)")
    connection.execute("insert into b values (999999999999999999999999999999999999, 1)")
    one = Table(name="a", relation=("a",), ownership=UnitColumns(("u",)), unit_unique=True,
                columns=(Column(name="u", type=SqlType.INT8, key=True),))  # fmt: skip
    many = Table(name="b", relation=("b",), ownership=UnitColumns(("u",)), rows_per_unit=WrittenBound(1),
                 columns=(Column(name="u", type=SqlType.NUMERIC, key=True),))  # fmt: skip
    of = replace(context(), tables={"a": one, "b": many})
    joined = plan("select count(*) from a join b on a.u = b.u", of)
    (row,) = connection.execute(joined.sql).fetchall()
    assert round(row[1] * joined.units_per_grid[0]) == 1


LARGE = "(order_id + 1)"
HAZARDS = (
    f"count(*) filter (where case when {LARGE}::float8 > 3 and store_id > 0 then {LARGE} end > 3)",
    f"count(*) filter (where case when {LARGE} in (3, 5, 7, 8, 9, 10, 11) and store_id > 0 then 1 end = 1)",
    f"count(*) filter (where {LARGE} in (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12)), count({LARGE})",
    f"count({LARGE} * 2), count({LARGE} * 3)",
    "count(*) filter (where nullif(order_id + 1, 5) is null)",
    "count(*) filter (where case when (date '2024-02-29' + 2147483647) > made then 1 end = 1)",
    "count((order_id * 1.0)::integer), count((order_id * 1.0)::bigint)",
    "count(sqrt(order_id * -1)), count(sqrt(order_id * -1) + 1)",
    "count(made::date + order_id::integer), count(made::date - order_id::integer)",
)


@pytest.mark.parametrize("aggregates", HAZARDS)
def test_every_call_is_total_by_itself(aggregates: str) -> None:
    """An optimizer may compute any part of an expression apart from what stands around it, so each is safe alone."""
    connection = duckdb.connect()
    connection.execute("set TimeZone = 'UTC'")
    connection.execute("create table orders (user_id integer, order_id bigint, store_id integer, made timestamptz)")
    connection.execute(
        "insert into orders values (1, 9223372036854775807, 1, 'infinity'), (2, -9223372036854775808, 2, null)"
    )
    connection.execute("insert into orders values (3, 3000000000, 1, '290309-12-22 (BC) 00:00:00+00')")
    for tail in ("", " group by 1"):
        key = "store_id in (1, 2), " if tail else ""
        assert connection.execute(plan(f"select {key}{aggregates} from orders{tail}").sql).fetchall()


@pytest.mark.parametrize("heights", ["(11)", "(10)", "(11), (12)", "(9), (11)"])
def test_a_case_of_texts_never_fails_for_what_the_rows_hold(heights: str) -> None:
    """DuckDB fails when its statistics say that no branch of the CASE can be taken; see Renderer."""
    connection = tables(duckdb.connect())
    connection.execute(f"insert into users (user_id, height, city) select h, h, 'x' from (values {heights}) t(h)")
    for text in ("'a'", "city", "lower(city)", "coalesce(city, 'b')"):
        query = f"select count(*) from users where {text} = case when height = 10 then 'A' end"
        assert len(connection.execute(plan(query).sql).fetchall()) == 1


def test_a_sum_alone_is_clamped_at_both_ends() -> None:
    """It is scaled by its larger end and not centred, so zero, not minus that end, is the lowest age."""
    connection = tables(duckdb.connect())
    connection.execute("insert into users (user_id, age) values (1, -5000)")
    assert connection.execute(plan("select sum(age) from users").sql).fetchall() == [(0, 0)]
    connection.execute("update users set age = 5000")
    of = plan("select sum(age) from users")
    ((_, found),) = connection.execute(of.sql).fetchall()
    assert found * of.units_per_grid[0] * 110 == pytest.approx(110)
