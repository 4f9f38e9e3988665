"""Which bounds follow from `max_rows_per`, and for which statements?"""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType

import pytest

from proxy.plan.release_plan import PlanContext
from proxy.policy.model import PerKey, RowsPer, Table, WrittenBound
from tests.unit.plan.shop import ORDERS, TABLES, context, plan


def declaring(*rows_per: RowsPer, table: Table = ORDERS) -> PlanContext:
    told = replace(table, rows_per=rows_per, rows_per_group=WrittenBound(60))
    return replace(context(), tables=MappingProxyType({**TABLES, table.name: told}))


STATUS = declaring(RowsPer((PerKey("status"),), 2))
MONTH = declaring(RowsPer((PerKey("made", "month"),), 3))
BOTH = declaring(RowsPer((PerKey("made", "month"), PerKey("status")), 1))


@pytest.mark.parametrize(
    ("query", "of", "rows", "per_group"),
    [
        ("select count(*) from orders", STATUS, 6, 6),  # paid, refunded and NULL
        ("select status, count(*) from orders group by 1", STATUS, 6, 2),
        ("select count(*) from orders where status = 'paid'", STATUS, 2, 2),
        ("select count(*) from orders where status in ('paid', 'refunded')", STATUS, 4, 4),
        ("select store_id, count(*) from orders group by 1", STATUS, 6, 6),
        ("select store_id, status, count(*) from orders group by 1, 2", STATUS, 6, 2),
        ("select count(*) from orders", MONTH, 39, 39),  # of twelve months and NULL
        ("select date_trunc('month', made), count(*) from orders group by 1", MONTH, 39, 3),
        ("select made::date, count(*) from orders group by 1", MONTH, 39, 3),
        ("select date_trunc('week', made), count(*) from orders group by 1", MONTH, 39, 39),
        ("select date_trunc('year', made), count(*) from orders group by 1", MONTH, 39, 39),
        ("select extract(year from made), extract(month from made), count(*) from orders group by 1, 2", MONTH, 39, 3),
        ("select extract(month from made), count(*) from orders group by 1", MONTH, 39, 39),
        ("select count(*) from orders where made >= '2024-03-01' and made < '2024-05-01'", MONTH, 6, 6),
        ("select status, count(*) from orders group by 1", BOTH, 39, 13),
        ("select status, date_trunc('day', made), count(*) from orders group by 1, 2", BOTH, 39, 1),
        ("select count(*) from orders o join items i on i.order_id = o.order_id", STATUS, 100, 100),
        ("select count(*) from users", STATUS, 1, 1),
    ],
)
def test_rows_that_are_alike_bound_a_unit_and_its_groups(
    query: str, of: PlanContext, rows: int, per_group: int
) -> None:
    bounds = plan(query, of).analysed.bounds
    assert (bounds.rows, bounds.rows_per_group) == (rows, per_group)


def test_columns_that_nothing_is_known_of_bound_nothing() -> None:
    of = declaring(RowsPer((PerKey("store_id"),), 2))
    for query in ("select count(*) from orders", "select status, count(*) from orders group by 1"):
        bounds = plan(query, of).analysed.bounds
        assert (bounds.rows, bounds.rows_per_group) == (60, 60)
        assert "max_rows_per" not in bounds.source
    bounds = plan("select store_id, count(*) from orders group by 1", of).analysed.bounds
    assert (bounds.rows, bounds.rows_per_group) == (60, 2)
    assert "max_rows_per in a group" in bounds.source


def test_less_noise_follows() -> None:
    query = "select date_trunc('month', made), sum(amount) from orders group by 1"
    unit = [plan(query, of).allocation.unit_norm / plan(query, of).allocation.row_norm for of in (context(), MONTH)]
    assert unit[0] > 3 * unit[1]
