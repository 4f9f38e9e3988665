"""Which outer joins are inner ones, since each row is declared to meet one?"""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType

import pytest

from proxy.analysis.keys import NULL_KEY, PublicKey
from proxy.policy.model import Column, JoinKey, Listed
from proxy.sqltypes import SqlType
from tests.unit.plan.shop import ORDERS, STORES, TABLES, context, plan

REGION = Column(name="region", type=SqlType.TEXT, domain=Listed(("north", "south")), nullable=False)
PUBLIC = replace(STORES, columns=(STORES.columns[0], REGION))


def told(query: str, *complete: JoinKey) -> tuple[bool, str]:
    """Whether a group of NULL is shown, and the private statement."""
    orders = replace(ORDERS, complete_joins=complete)
    of = replace(context(), tables=MappingProxyType({**TABLES, "orders": orders, "stores": PUBLIC}))
    found = plan(query, of)
    (key,) = found.analysed.keys
    assert isinstance(key, PublicKey)
    return NULL_KEY in key.values, found.sql


DECLARED = JoinKey("store_id", "stores", "store_id")


@pytest.mark.parametrize(
    "rows",
    ["orders o left join stores s on o.store_id = s.store_id", "orders o left join stores s on s.store_id = o.store_id",
     "orders left join stores s using (store_id)", "stores s right join orders o on o.store_id = s.store_id",
     "orders o natural left join stores s", "orders o left join stores s on (o.store_id = s.store_id) and true"],
)  # fmt: skip
def test_a_complete_join_has_no_group_for_rows_that_meet_none(rows: str) -> None:
    query = f"select s.region, count(*) from {rows} group by 1"
    shows, sql = told(query)
    assert shows
    assert "LEFT JOIN" in sql
    shows, sql = told(query, DECLARED)
    assert not shows
    assert sql == told(query.replace("left join", "join").replace("right join", "join"), DECLARED)[1]


@pytest.mark.parametrize(
    "rows",
    ["orders o left join stores s on o.store_id = s.store_id and s.region = 'north'",
     "orders o left join stores s on o.store_id = s.store_id and o.amount > 5",
     "users u left join orders o on u.user_id = o.user_id left join stores s on o.store_id = s.store_id"],
)  # fmt: skip
def test_other_outer_joins_stay_what_they_are(rows: str) -> None:
    query = f"select s.region, count(*) from {rows} group by 1"
    try:
        assert told(query) == told(query, DECLARED)
    except Exception as refused:  # noqa: BLE001  # what is refused is so in both
        with pytest.raises(type(refused)):
            told(query, DECLARED)
    assert told("select s.region, count(*) from orders o left join stores s on o.store_id = s.store_id group by 1",
                JoinKey("order_id", "stores", "store_id"))[0]  # fmt: skip
