"""Is a statement over a local table refused, wherever the table stands in it?"""

from __future__ import annotations

import pytest

from proxy.errors import NotAggregate, Unsupported
from proxy.policy.load import load_policy
from proxy.sql.scope import Catalog
from tests.unit.policy.test_randomized import TEXT
from tests.unit.release.make import bound

_OWNED = """
  people:
    unit: person
    unit_unique: true
    columns: {person: {type: integer, key: true}, age: {type: integer, bounds: [0, 110]}}
"""
CATALOG = Catalog(load_policy(TEXT + _OWNED, filename="survey.yaml", environment={}).tables)


def test_other_tables_beside_it_are_answered() -> None:
    assert bound("select count(*) from people", CATALOG).columns


@pytest.mark.parametrize("query", [
    "select count(*) from answers",
    "select region, count(*) from answers group by 1",
    "select count(*) from people where person in (select person from answers)",
    "with a as (select person from answers) select count(*) from a",
    "select count(*) from people cross join answers",
])  # fmt: skip
def test_a_local_table_is_not_asked_about(query: str) -> None:
    with pytest.raises(Unsupported) as caught:
        bound(query, CATALOG)
    assert caught.value.sqlstate == "DP006"
    assert caught.value.message == 'the local table "answers" cannot be asked about yet'


def test_rows_of_a_local_table_are_not_shown_either() -> None:
    with pytest.raises(NotAggregate):
        bound("select region from answers", CATALOG)
