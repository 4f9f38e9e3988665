"""Views are written out where PostgreSQL would read them, and nowhere else."""

from __future__ import annotations

import pytest

from proxy.errors import HushError
from proxy.sql.syntax.parse import split_statements
from proxy.sql.syntax.views import Expanded, expand

VIEWS = {"v": "SELECT age FROM users", "w": "SELECT count(*) AS n FROM v", 'My "V"': "SELECT 1 AS one"}
V, W = "(SELECT age FROM users)", '(SELECT count(*) AS n FROM (SELECT age FROM users) AS "v")'


def expanded(text: str) -> Expanded:
    (statement,) = split_statements(text)
    return expand(statement, VIEWS)


@pytest.mark.parametrize(
    ("text", "meaning"),
    [
        ("SELECT age FROM v", f'SELECT age FROM {V} AS "v"'),
        ("SELECT x.age FROM pg_temp.V AS x", f"SELECT x.age FROM {V} AS x"),
        ("SELECT k FROM v x(k), w", f'SELECT k FROM {V} x(k), {W} AS "w"'),
        ('SELECT * FROM "My ""V"""', 'SELECT * FROM (SELECT 1 AS one) AS "My ""V"""'),
        ("SELECT 1 WHERE 2 IN (SELECT n FROM w)", f'SELECT 1 WHERE 2 IN (SELECT n FROM {W} AS "w")'),
        ("WITH a AS (SELECT * FROM v), v AS (SELECT 2) SELECT * FROM a, v, pg_temp.v AS x",
         f'WITH a AS (SELECT * FROM {V} AS "v"), v AS (SELECT 2) SELECT * FROM a, v, {V} AS x'),
        ("SELECT (WITH v AS (SELECT 1) SELECT 2 FROM v) FROM v",
         f'SELECT (WITH v AS (SELECT 1) SELECT 2 FROM v) FROM {V} AS "v"'),
    ],
)  # fmt: skip
def test_view_is_its_select(text: str, meaning: str) -> None:
    assert expanded(text).statement.text == meaning


@pytest.mark.parametrize("text", [
    "SELECT 'v'", "SELECT v.x FROM t AS v", 'SELECT * FROM "V", public.v, db.pg_temp.v', "SELECT v(1)",
    "WITH v AS (SELECT 1) SELECT * FROM v", "WITH RECURSIVE a AS (SELECT * FROM v), v AS (SELECT 2) SELECT * FROM a",
    "WITH v AS (SELECT 1) SELECT * FROM (SELECT * FROM t WHERE EXISTS (SELECT 1 FROM v)) x",
])  # fmt: skip
def test_what_is_no_view_stays(text: str) -> None:
    assert expanded(text).statement.text == text


@pytest.mark.parametrize(
    ("text", "at"),
    [
        ("WITH users AS (SELECT 1) SELECT * FROM v", "v"),
        ("WITH users AS (SELECT 1), a AS (SELECT * FROM w) SELECT 2", "w"),
        ("SELECT * FROM ONLY v", "v"),
    ],
)
def test_view_that_would_mean_something_else_is_refused(text: str, at: str) -> None:
    with pytest.raises(HushError) as refused:
        expanded(text)
    assert text[refused.value.position - 1 :].startswith(at)


def test_positions_are_those_of_the_text_before() -> None:
    text = "SELECT a, b FROM v, w AS x WHERE c"
    found = expanded(text)
    for word in ("SELECT a", "b FROM", " AS x", "WHERE"):
        assert found.original(found.statement.text.index(word) + 1) == text.index(word) + 1, word
    assert found.original(found.statement.text.index("users") + 1) == text.index("v") + 1
    assert found.original(found.statement.text.index("count") + 1) == text.index("w") + 1


def test_views_that_grow_too_long_are_refused() -> None:
    doubling = {f"v{n}": f"SELECT 1 FROM v{n - 1} a, v{n - 1} b" for n in range(1, 40)}
    (statement,) = split_statements("SELECT 1 FROM v39")
    with pytest.raises(HushError, match="too long"):
        expand(statement, {**doubling, "v0": "SELECT 1"})
