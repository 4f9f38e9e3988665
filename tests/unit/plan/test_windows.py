"""Do window functions over a unit's rows mean what they say, whatever order the rows are stored in?"""

from __future__ import annotations

import random
from collections.abc import Sequence

import duckdb
import pytest

from tests.unit.plan.shop import plan

Order = tuple[int, float | None, str | None]  # its number, amount and status


def stored(rows: Sequence[Order]) -> duckdb.DuckDBPyConnection:
    """The rows of one unit, in that order."""
    connection = duckdb.connect()
    connection.execute(
        "create table orders (user_id integer, order_id bigint, store_id integer, amount decimal(10, 2),"
        " status varchar, made timestamptz)"
    )
    for number, amount, status in rows:
        connection.execute("insert into orders values (1, ?, 1, ?, ?, '2024-05-05')", [number, amount, status])
    return connection


def counted(sql: str, *orders: Sequence[Order]) -> list[int]:
    """The number of rows that a statement counts, for rows that are stored in each of these orders."""
    of, found = plan(sql), []
    for rows in orders:
        with stored(rows) as connection:
            result = connection.execute(of.sql).fetchall()
        found.append(round(sum(int(row[-1] or 0) for row in result) * of.units_per_grid[0]))
    return found


def numbered(window: str, rest: str) -> str:
    return f"select count(*) from (select user_id, amount, order_id, {window} as w from orders) t where {rest}"


ROWS: list[Order] = [(1, 5.0, "paid"), (2, None, "paid"), (3, 7.0, "refunded"), (4, 7.0, None), (5, None, None)]


@pytest.mark.parametrize("direction", ["asc", "desc"])
@pytest.mark.parametrize(("nulls", "first"), [("nulls first", True), ("nulls last", False), ("", None)])
def test_missing_values_stand_where_a_window_puts_them(direction: str, nulls: str, first: bool | None) -> None:
    is_first = direction == "desc" if first is None else first  # as PostgreSQL has it
    window = f"rank() over (partition by user_id order by amount {direction} {nulls})"
    assert counted(numbered(window, "w = 1 and amount is null"), ROWS) == [2 if is_first else 0]
    assert counted(numbered(window, "w = 4 and amount is null"), ROWS) == [0 if is_first else 2]


@pytest.mark.parametrize(
    "window",
    [
        "row_number() over (partition by user_id order by amount)",
        "row_number() over (partition by user_id)",
        "lag(order_id) over (partition by user_id order by status)",
        "first_value(order_id) over (partition by user_id order by amount desc)",
        "sum(order_id) over (partition by user_id order by amount rows between 1 preceding and current row)",
        "count(*) over (partition by user_id, status order by amount rows unbounded preceding)",
    ],
)
def test_rows_of_equal_place_have_an_order_of_their_own(window: str) -> None:
    """In whatever order they are stored: else other rows of a table would decide about a unit's."""
    orders, seen = [random.Random(n).sample(ROWS, len(ROWS)) for n in range(4)], 0
    for value, number in ((v, n) for v in range(1, 5) for n in (1, 2, 3, 4)):
        found = counted(numbered(window, f"w = {value} and order_id = {number}"), *orders)
        assert len(set(found)) == 1
        seen += found[0]
    assert seen


def test_further_keys_of_a_window_divide_the_rows_of_a_unit() -> None:
    window = "count(*) over (partition by user_id, status)"
    assert counted(numbered(window, "w = 2"), ROWS) == [4]
    assert counted(numbered(window, "w = 1"), ROWS) == [1]


def test_a_frame_without_rows_counts_none() -> None:
    window = "count(*) over (partition by user_id order by order_id rows between 3 preceding and 1 preceding)"
    for rows, number in ((0, 1), (1, 1), (2, 1), (3, 2)):
        assert counted(numbered(window, f"w = {rows}"), ROWS) == [number]
