"""Filters that seem to exclude each other: one row that passes them all must still weigh no more than its bound."""

from __future__ import annotations

import itertools

import duckdb
import pytest

from proxy.plan.release_plan import ReleasePlan
from tests.unit.plan.shop import context, plan

# one row of `users`, whose every value lies where two readings of it may differ
ROWS = tuple(
    f"(1, {age}, {height}, {weight}, {city}, {made}, {joined}, {born})"
    for age, height, weight, city, made, joined, born in (
        ("3000", "'nan'", "9007199254740992", "'a'", "'free'", "'2030-01-01'", "'2024-01-01'"),
        ("-5", "'inf'", "1e-1", "'A'", "'FREE'", "'1900-01-01'", "'infinity'"),
        ("null", "-0.0", "'nan'", "null", "null", "null", "null"),
        ("110", "250.00000000000003", "'-inf'", "''", "'other'", "'2020-12-31'", "'5000000-01-01'"),
        ("40", "100", "0.0", "'é'", "'pro'", "'2020-02-29'", "'2020-02-29'"),
    )
)


def listed(*conditions: str) -> str:
    return ", ".join(f"count(*) FILTER (WHERE {c})" for c in conditions)


def crossed(*pairs: tuple[str, str]) -> str:
    return listed(*(" AND ".join(chosen) for chosen in itertools.product(*pairs)))


MANY = 12
QUERIES = {
    "beyond the domain and NULL": listed("age < 5000", "age IS NULL"),
    "below the domain and NULL": listed("age > -5000", "age IS NULL", "age >= -4000"),
    "counted and NULL": "count(age), count(*) FILTER (WHERE age IS NULL)",
    "summed, counted and NULL": "sum(age), avg(height), count(height), count(*) FILTER (WHERE height IS NULL)",
    "many columns at once": crossed(
        ("age < 5000", "age IS NULL"), ("joined < '2050-01-01'", "joined IS NULL"), ("plan <> 'x'", "plan IS NULL")
    ),
    "numbers that one double stands for": listed(*(f"weight = 0.1{'0' * 20}{i}" for i in range(1, MANY))),
    "integers that one double stands for": listed("weight = 9007199254740992", "weight = 9007199254740993"),
    "integers beside decimals": listed("age < 9007199254740993", "age >= 9007199254740992.0", "age <> 7"),
    "ends that one double stands for": listed("weight <= 0.1", f"weight >= 0.1{'0' * 20}1", "weight = 0.1"),
    "times that one instant is": listed(*(f"born = timestamptz '2024-01-01 {i:02}:00:00+{i:02}'" for i in range(MANY))),
    "a date beside a timestamp": listed("born = '2024-01-01'", "born = '2024-01-01'::timestamp", "born IS NOT NULL"),
    "spellings": listed("city = 'a'", "city = 'A'", "lower(city) = 'a'", "city ILIKE 'a'", "upper(city) = 'A'"),
    "a negation": listed("age > 50", "NOT age > 50", "NOT (age > 50 AND height > 5)", "age > 50 AND height > 5"),
    "a negated list": listed("plan IN ('free', 'pro')", "plan NOT IN ('free', 'pro')", "plan IS NULL"),
    "not a number": listed("weight > 5", "weight <= 5", "weight IS NULL", "weight IS NOT NULL", "weight = weight"),
    "zeros": listed("weight = 0", "weight = -0.0", "weight < 0", "weight > 0", "height >= 0", "height <= 0"),
    "distinct from": listed("age IS DISTINCT FROM 5", "age IS NOT DISTINCT FROM 5", "age = 5", "age IS NULL"),
    "presence of an expression": "count(height / weight), count(*) FILTER (WHERE height / weight IS NULL)",
    "casts": "count(weight::int), count(*) FILTER (WHERE weight::int IS NULL), count(*) FILTER (WHERE weight::int > 0)",
    "more than a search can take": listed(*(f"age = {i}" for i in range(30)), *(f"age <> {i}" for i in range(30))),
    "units in many filters": ", ".join(f"count(DISTINCT user_id) FILTER (WHERE age <> {i})" for i in range(8)),
    "sums of everything": "sum(age), sum(height), avg(age), avg(height), count(*), count(age), sum(age * height)",
}


@pytest.mark.parametrize("pure", [False, True])
@pytest.mark.parametrize("kind", QUERIES)
def test_one_row_weighs_at_most_the_sensitivity(kind: str, pure: bool) -> None:
    connection = duckdb.connect()
    connection.execute("set TimeZone = 'UTC'")
    connection.execute(
        "create table users (user_id integer, age integer, height double, weight double, city varchar, plan varchar,"
        " joined date, born date)"
    )
    connection.execute("create table orders (user_id integer, order_id bigint)")
    joined = "(SELECT u.* FROM users u JOIN orders o ON o.user_id = u.user_id) AS t"
    shapes = (f"SELECT {QUERIES[kind]} FROM users", f"SELECT {QUERIES[kind]} FROM {joined}")
    for query, row in itertools.product(shapes, ROWS):
        connection.execute("delete from users; delete from orders; insert into orders select 1, 1 from range(0, 100)")
        connection.execute(f"insert into users values {row}")
        asked = plan(query, context(pure=pure))
        (found,) = connection.execute(asked.sql).fetchall()
        assert weight(found[1:], pure=pure) <= allowed(asked) * (1 + 2**-29), (query, row)


def weight(moments: tuple[int | None, ...], *, pure: bool) -> float:
    """The norm of one person's vector on the grid."""
    sizes = [abs(m or 0) for m in moments]
    return float(sum(sizes)) if pure else float(sum(s * s for s in sizes)) ** 0.5


def allowed(asked: ReleasePlan) -> float:
    return asked.scale * asked.allocation.unit_norm


@pytest.mark.parametrize("stored", ["4.99999999999999999999", "5.00000000000000000001", "5", "0.1"])
@pytest.mark.parametrize(
    "conditions",
    [
        ("amount < 5", "amount >= 5.00000000000000000001"),
        ("amount <= 4.99999999999999999999", "amount > 5"),
        ("amount > 5", "amount = 5", "amount < 5"),
        ("amount <= 5", "amount > 5.0", "amount = 5.00000000000000000001"),
        ("amount < 5", "amount IS NULL", "amount >= 5"),
        ("amount < 0.1", "amount >= 0.10000000000000000001"),
    ],
)
def test_a_decimal_between_two_doubles_weighs_at_most_the_sensitivity(conditions: tuple[str, ...], stored: str) -> None:
    """A comparison may be of decimals as they are stored, another of the doubles next to them."""
    connection = duckdb.connect()
    connection.execute("create table orders (user_id integer, amount decimal(38, 20))")
    connection.execute(f"insert into orders select 1, {stored} from range(0, 100)")
    asked = plan(f"SELECT {listed(*conditions)} FROM orders")
    (found,) = connection.execute(asked.sql).fetchall()
    assert weight(found[1:], pure=False) <= allowed(asked) * (1 + 2**-29)
