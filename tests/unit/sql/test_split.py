"""Where the noise line runs: what leaves a statement for the front, and what is refused before that."""

from __future__ import annotations

import pytest

from proxy.errors import NotAggregate
from proxy.sql.parse import split_statements
from proxy.sql.scope import Catalog
from proxy.sql.split import split
from tests.unit.plan.shop import TABLES


@pytest.mark.parametrize(
    "text",
    [
        "SELECT age FROM users",
        "SELECT * FROM (SELECT age FROM users) t",
        "WITH t AS (SELECT age FROM users) SELECT age FROM t",
    ],
)
def test_private_rows_are_not_shown(text: str) -> None:
    with pytest.raises(NotAggregate):
        split(split_statements(text)[0], Catalog(TABLES), frozenset())


def test_the_text_over_private_rows_is_told_to_be_erased() -> None:
    text = "WITH t (a, p) AS (SELECT age, plan FROM users WHERE age > 5) SELECT count(*) FROM t"
    (emptied,) = split(split_statements(text)[0], Catalog(TABLES), frozenset()).emptied
    assert text[emptied.span.start : emptied.span.end] == "SELECT age, plan FROM users WHERE age > 5"
    assert emptied.text() == "SELECT NULL, NULL"
