"""A date may lie beyond the calendar of timestamps: where the two meet, no row may raise."""

from __future__ import annotations

import duckdb
import pytest

from proxy.engines.duckdb_open import set_optimizer
from tests.unit.plan.shop import plan

MEETINGS = (
    "born > timestamp '2024-01-01'",
    "born = timestamp '2024-01-01 00:00:00'",
    "born <> '2024-01-01'::timestamptz",
    "timestamp '2024-01-01' >= born",
    "born IN (timestamp '2024-01-01', '2024-01-02')",
    "born BETWEEN '2024-01-01'::timestamp AND '2024-02-01'",
    "born IS DISTINCT FROM '2024-01-01'::timestamp",
    "coalesce(born, born::timestamp) > '2024-01-01'",
    "greatest(born, joined::timestamp) > '2024-01-01'",
    "least(born, '2024-01-01'::timestamp) < '2023-01-01'",
    "nullif(born, '2024-01-01'::timestamp) IS NULL",
    "CASE WHEN city = 'x' THEN born ELSE joined::timestamp END > '2024-01-01'",
    "CASE born WHEN '2024-01-01'::timestamp THEN TRUE ELSE FALSE END",
    "joined <= '2020-01-01'::timestamp",
)


@pytest.mark.parametrize("meeting", MEETINGS)
@pytest.mark.parametrize("born", ["5000000-01-01", "5000000-01-01 (BC)", "infinity", "-infinity", "2024-01-01"])
def test_a_date_that_meets_a_timestamp_raises_on_no_row(meeting: str, born: str) -> None:
    connection = duckdb.connect()
    set_optimizer(connection)
    connection.execute("create table users (user_id integer, city varchar, joined date, born date)")
    connection.execute(f"insert into users values (1, 'x', '{born}', '{born}'), (2, 'y', '2020-01-01', '2024-01-01')")
    for query in (
        f"SELECT count(*) FROM users WHERE {meeting}",
        f"SELECT count(*) FILTER (WHERE {meeting}), count(*) FROM users",
        f"SELECT {meeting} AS k, count(*) FROM users GROUP BY k",
    ):
        connection.execute(plan(query).sql).fetchall()


def test_a_date_that_meets_a_timestamp_is_its_midnight() -> None:
    connection = duckdb.connect()
    set_optimizer(connection)
    connection.execute("create table users (user_id integer, joined date, born date)")
    connection.execute("insert into users values (1, '2020-01-01', '2024-01-01')")
    met = plan(
        "SELECT count(*) FROM users WHERE born = '2024-01-01 00:00'::timestamp AND born < '2024-01-01 00:01'::timestamp"
    )
    assert connection.execute(met.sql).fetchall()[0][1] > 0
