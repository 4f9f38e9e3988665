"""Are names behind a full stop refused that PostgreSQL would take for functions of a row?"""

from __future__ import annotations

import pytest

from proxy.errors import Unsupported
from proxy.policy.model import RawSelect
from proxy.sql.query.probe import Probe, probe
from proxy.sql.relations.scope import Catalog
from proxy.sql.syntax.parse import split_statements
from tests.unit.plan.shop import TABLES

CATALOG = Catalog(TABLES)


def asked(text: str) -> Probe | None:
    return probe(split_statements(text)[0], CATALOG, may_hide=True, raw=RawSelect.EMPTY)


@pytest.mark.parametrize("text", [
    "SELECT u.age, age FROM users u", "SELECT users.age FROM users", "SELECT public.users.age FROM users",
    "SELECT u.*, (u).age, (u).* FROM users u", "SELECT u FROM users u", 'SELECT "U".age FROM users AS "U"',
    "SELECT t.a, t.city FROM users t(a)", "SELECT u.age FROM users u JOIN orders o ON o.user_id = u.user_id",
    "SELECT x.age FROM (SELECT * FROM users) x", "SELECT x.age FROM (SELECT u.* FROM users u) x",
    "SELECT x.n, x.lower FROM (SELECT age AS n, lower(city) FROM users) x",
    "SELECT x.a FROM (SELECT age FROM users) AS x(a)", "SELECT u.age FROM users u ORDER BY u.city",
    "SELECT count FROM users",
])  # fmt: skip
def test_columns_of_rows_are_answered_empty(text: str) -> None:
    assert isinstance(asked(text), Probe)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("SELECT u.count FROM users u", '"count" is no column of u: PostgreSQL takes it for the function count(u)'),
        ("SELECT (u).count FROM users u", "the function count(u)"),
        ("SELECT users.json_agg FROM users", "the function json_agg(users)"),
        ("SELECT public.users.count FROM users", "the function count(users)"),
        ("SELECT u.age FROM users u ORDER BY u.count", "the function count(u)"),
        ("SELECT o.age FROM users u JOIN orders o ON o.user_id = u.user_id", "is no column of o"),
        ("SELECT x.count FROM (SELECT * FROM users) x", "the function count(x)"),
        ("SELECT x.count FROM (SELECT u.age FROM users u) x", "the function count(x)"),
        ("SELECT x.age FROM (SELECT u.count AS age FROM users u) x", "the function count(u)"),
        ("SELECT (u.age).count FROM users u", "is no column of a value"),
        ("SELECT p.count FROM users u, pg_class p", "is no column of p"),
        ("SELECT s.count FROM users u, generate_series(1, 2) s", "is no column of s"),
    ],
)
def test_functions_of_rows_are_refused(text: str, says: str) -> None:
    with pytest.raises(Unsupported) as refused:
        asked(text)
    assert says in refused.value.message
    assert "count(*)" in refused.value.hint


def test_what_reads_no_row_may_say_so() -> None:
    """Over no rows an aggregate is what it is over none of the private ones."""
    assert isinstance(asked("SELECT u.count FROM users u WHERE false"), Probe)
