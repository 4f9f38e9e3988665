"""WHERE proves nothing about rows that have not passed it: the engine computes its conditions in any order."""

from __future__ import annotations

import duckdb
import pytest

from tests.unit.plan.shop import plan

ONE_PERSON = "CASE WHEN store_id = 7 THEN least(order_id, order_id) ELSE 0 END"


@pytest.mark.parametrize(
    "square",
    [
        "coalesce(least(order_id, order_id), 0) * coalesce(least(order_id, order_id), 0)",
        f"({ONE_PERSON}) * ({ONE_PERSON})",
        "abs(coalesce(least(order_id, order_id), 0)) * greatest(least(order_id, order_id), 1)",
    ],
)
def test_a_condition_elsewhere_does_not_make_arithmetic_safe(square: str) -> None:
    connection = duckdb.connect()
    connection.execute("set disabled_optimizers = 'filter_pushdown,reorder_filter'")  # one of the orders it may take
    connection.execute("create table orders (user_id integer, order_id bigint, store_id integer)")
    connection.execute("insert into orders values (1, 4611686018427387904, 7), (2, 1, 3)")
    query = f"SELECT count(*) FROM orders WHERE {square} >= 0 AND least(order_id, order_id) IN (1, 2)"
    assert connection.execute(plan(query).sql).fetchall()[0][1] > 0
