"""Where the noise line runs: what leaves a statement for the front, and what is refused before that."""

from __future__ import annotations

import pytest

from proxy.errors import NotAggregate
from proxy.sql.query.split import split
from proxy.sql.relations.scope import Catalog
from proxy.sql.syntax.parse import split_statements
from tests.unit.plan.shop import TABLES
from tests.unit.sql.corpus import policy


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


@pytest.mark.parametrize(
    ("sql", "hint"),
    [
        ("SELECT user_id, city FROM users LIMIT 5", "SELECT city, count(*) FROM users GROUP BY city."),
        ("SELECT * FROM orders", "SELECT count(*) FROM orders."),
        (
            'SELECT "Mixed Case" FROM "Odd ""Table"',
            'SELECT "Mixed Case", count(*) FROM "Odd ""Table" GROUP BY "Mixed Case".',
        ),
    ],
)
def test_who_asks_for_rows_is_told_what_to_ask_of_that_table(sql: str, hint: str) -> None:
    with pytest.raises(NotAggregate) as refused:
        split(split_statements(sql)[0], Catalog(policy().tables), frozenset())
    assert refused.value.hint == f"Ask for aggregates: {hint}"
