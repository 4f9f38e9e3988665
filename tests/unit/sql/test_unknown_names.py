"""What is said of columns of the rows around a sub-query."""

from __future__ import annotations

import pytest

from proxy.errors import HushError
from tests.unit.sql.corpus import Case, plan, policy


@pytest.mark.parametrize("sub_query", [
    "SELECT count(*) FROM orders o WHERE o.store_id > s.store_id",
    "SELECT count(*), 1 FROM orders o WHERE o.store_id = s.store_id",
    "SELECT count(*) FROM orders o WHERE s.store_id = 4",
    "SELECT count(*) FROM orders o WHERE o.store_id = s.store_id AND o.at > s.opened",
])  # fmt: skip
def test_a_sub_query_that_asks_more_of_public_rows_than_equality_is_refused(sub_query: str) -> None:
    sql = f"SELECT s.name, ({sub_query}) AS n FROM stores s"
    with pytest.raises(HushError) as refused:
        plan(Case(place="", sql=sql, facts={}), policy())
    assert refused.value.hint.startswith("A sub-query over private rows may only say of public rows")
