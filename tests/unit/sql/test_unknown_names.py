"""What is said of columns of the rows around a sub-query."""

from __future__ import annotations

import pytest

from proxy.errors import HushError
from tests.unit.sql.corpus import Case, plan, policy

DEPENDS = "A sub-query over private rows cannot depend on the query around it."
GROUPED = f"{DEPENDS} Group it, and join the result: LEFT JOIN (SELECT o.store_id, "

COUNTED = (
    "COUNT(*) AS n FROM orders AS o GROUP BY o.store_id) t ON t.store_id = s.store_id, and SELECT COALESCE(t.n, 0)."
)


@pytest.mark.parametrize(
    ("sub_query", "hint"),
    [
        ("SELECT count(*) FROM orders o WHERE o.store_id = s.store_id",
         COUNTED),
        ("SELECT sum(o.amount) AS total FROM orders o WHERE o.status = 'paid' AND s.store_id = o.store_id",
         "SUM(o.amount) AS n FROM orders AS o WHERE ... GROUP BY o.store_id) t ON t.store_id = s.store_id."),
        ("SELECT count(*) FROM orders o WHERE o.store_id > s.store_id", ""),
        ("SELECT count(*), 1 FROM orders o WHERE o.store_id = s.store_id", ""),
        ("SELECT count(*) FROM orders o WHERE s.store_id = 4", ""),
    ],
)  # fmt: skip
def test_a_sub_query_of_each_row_of_a_public_table_is_told_how_to_be_grouped(sub_query: str, hint: str) -> None:
    sql = f"SELECT s.name, ({sub_query}) AS n FROM stores s"
    with pytest.raises(HushError) as refused:
        plan(Case(place="", sql=sql, facts={}), policy())
    assert refused.value.hint == (GROUPED + hint if hint else DEPENDS)
