"""Are the values of a unit's rows exact, and the same whatever the order of its rows?"""

from __future__ import annotations

import duckdb
import pytest

from tests.unit.plan.shop import plan

_ROWS = ("(1, 1, 0.1, 'paid')", "(1, 2, 0.2, 'paid')", "(1, 2, 0.7, 'refunded')", "(1, NULL, NULL, NULL)",
         "(2, 3, 999.99, 'paid')", "(2, 3, 0.01, NULL)", "(NULL, 1, 5, 'paid')")  # fmt: skip


def held(condition: str, inner: str, rows: tuple[str, ...] = _ROWS) -> int:
    """How many units have a value that meets a condition."""
    connection = duckdb.connect()
    connection.execute("create table orders (user_id integer, store_id integer, amount decimal(12, 2), status varchar)")
    connection.execute(f"insert into orders values {', '.join(rows)}")
    found = plan(
        f"select count(*) from (select user_id, {inner} as v from orders group by user_id) t where {condition}"
    )
    ((_, value),) = connection.execute(found.sql).fetchall()
    return round(int(value) / found.scale / found.allocation.weights[0])


@pytest.mark.parametrize(
    ("condition", "inner", "units"),
    [
        ("v = 1.0", "sum(amount)", 1),
        ("v = 1000.0", "sum(amount)", 1),
        ("v = 5", "sum(store_id)", 1),
        ("v between 1.66 and 1.67", "avg(store_id)", 1),
        ("v = 0.7", "max(amount)", 1),
        ("v = 0.01", "min(amount)", 1),
        ("v = 4", "count(*)", 1),
        ("v = 2", "count(status) filter (where amount < 0.5)", 1),
        ("v is null", "sum(amount) filter (where amount > 5000)", 2),
        ("v = 2", "count(distinct store_id)", 1),
        ("v = 'refunded'", "max(status)", 1),
    ],
)
def test_values_of_a_unit_are_exact_in_any_order(condition: str, inner: str, units: int) -> None:
    assert held(condition, inner) == units
    assert held(condition, inner, _ROWS[::-1]) == units


def test_rows_of_units_and_keys_have_the_bounds_of_the_rows_below() -> None:
    bounds = plan("select count(*) from (select user_id, store_id from orders group by 1, 2) t").analysed.bounds
    assert (bounds.rows, bounds.rows_per_group, bounds.groups) == (60, 60, 1)
    few = "select status, count(*) from (select user_id, status from orders group by user_id, status) t group by 1"
    bounds = plan(few).analysed.bounds
    assert (bounds.rows, bounds.rows_per_group, bounds.groups) == (3, 3, 3), "two values and NULL"


def test_an_inner_value_is_named_as_it_was_asked_for() -> None:
    of = plan("select avg(n) from (select user_id, count(*) as n from orders group by user_id) t")
    assert 'AS "count(*)"' in of.shown(of.sql)
    assert 'AS "user_id"' in of.shown(of.sql)
