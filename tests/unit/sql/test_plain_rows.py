"""Which statements only show rows: what could compute from several at once is not among them."""

from __future__ import annotations

import pytest

from proxy.policy.model import RawSelect
from proxy.sql.query.plain_rows import shows_plain_rows
from proxy.sql.query.probe import Probe, probe
from proxy.sql.relations.scope import Catalog
from proxy.sql.syntax.parse import parse, split_statements
from tests.unit.sql.corpus import policy

CATALOG = Catalog(policy().tables, "shop")

PLAIN = (
    "SELECT * FROM users", "SELECT u.*, o.amount FROM users u JOIN orders o ON o.user_id = u.user_id LIMIT 5",
    "SELECT city FROM public.users", "SELECT public.users.city FROM shop.public.users",
    "SELECT shop.public.users.city FROM users", 'SELECT "user_id" AS "count" FROM users ORDER BY "count"',
    "SELECT s.name, o.amount FROM stores s LEFT JOIN orders o USING (store_id)",
    "SELECT age FROM users WHERE age IN (1, 2) AND city LIKE 'a%' ESCAPE '!' OR NOT newsletter IS TRUE",
    "SELECT age::bigint + $1, lower(city) || 'x' FROM users WHERE user_id = ANY ($2) OFFSET 3 FETCH FIRST 4 ROWS ONLY",
    "SELECT CASE WHEN age > 3 THEN 1 ELSE coalesce(kids, 0) END FROM users NATURAL JOIN orders CROSS JOIN stores",
    "SELECT date_trunc('month', joined), extract(year FROM joined) FROM users WHERE joined > current_date - 1",
    "SELECT city FROM users WHERE joined > current_date - interval '1 day'",
)  # fmt: skip
OTHERS = (
    "SELECT * FROM stores", "SELECT 1", "VALUES (1)", "SELECT city FROM users GROUP BY city",
    "SELECT DISTINCT city FROM users", "SELECT DISTINCT ON (city) city FROM users",
    "SELECT city FROM users HAVING true", "SELECT count(*) FROM users", "SELECT max(age) FROM users",
    "SELECT any_value(age) FROM users", "SELECT unknown_aggregate(age) FROM users", "SELECT json_agg(age) FROM users",
    "SELECT mode() WITHIN GROUP (ORDER BY age) FROM users", "SELECT every(newsletter) FROM users",
    "SELECT sum(age) FILTER (WHERE true) FROM users", "SELECT rank() OVER (ORDER BY age) FROM users",
    "SELECT city FROM users UNION ALL SELECT city FROM users", "SELECT city FROM (SELECT city FROM users) t",
    "WITH t AS (SELECT 1) SELECT city FROM users",
    "SELECT city FROM users WHERE age IN (SELECT store_id FROM stores)",
    "SELECT city FROM users WHERE EXISTS (SELECT 1)", "SELECT (SELECT 1), city FROM users",
    "SELECT ARRAY(SELECT 1) FROM users", "SELECT u.count FROM users u", "SELECT u.city.x FROM users u",
    "SELECT (u).city FROM users u", "SELECT u FROM users u", "SELECT o.city FROM users u, orders o",
    "SELECT xmin FROM users", "SELECT other.users.city FROM users", "SELECT other.public.users.city FROM users",
    "SELECT x.* FROM users", "SELECT users.city FROM users u", "SELECT a FROM users u(a)",
    "SELECT city FROM ONLY users", "SELECT city FROM users TABLESAMPLE SYSTEM (1)",
    "SELECT city FROM users FOR UPDATE", "SELECT city FROM users, temporary", "SELECT city FROM users, other.stores",
    "SELECT city FROM users, generate_series(1, 2)", "SELECT unnest(ARRAY[1, 2]), city FROM users",
    "SELECT city FROM users, users", "SELECT city FROM users, LATERAL (SELECT 1) t",
    "SELECT city FROM users WINDOW w AS ()", "SELECT hush.low(age) FROM users",
    "SELECT pg_catalog.lower(city) FROM users", "SELECT city FROM users, hush.budget",
    "SELECT now() - t FROM users, (VALUES (1)) v(t)", "SELECT hidden FROM users",
)  # fmt: skip


@pytest.mark.parametrize("text", PLAIN)
def test_plain_rows_are_columns_of_tables_joined_and_filtered(text: str) -> None:
    assert shows_plain_rows(parse(text), CATALOG)


@pytest.mark.parametrize("text", OTHERS)
def test_what_computes_from_several_rows_shows_no_plain_rows(text: str) -> None:
    assert not shows_plain_rows(parse(text), CATALOG)


def found(text: str, raw: RawSelect, *, may_hide: bool = True) -> Probe | None:
    return probe(split_statements(text)[0], CATALOG, may_hide=may_hide, raw=raw)


def test_rows_are_made_up_only_where_the_policy_says_so() -> None:
    text = "SELECT * FROM users"
    made = found(text, RawSelect.MADE_UP)
    assert made is not None
    assert made.is_made_up
    assert found(text, RawSelect.REFUSE) is None
    assert found(text, RawSelect.MADE_UP, may_hide=False) is None
    empty = found(text, RawSelect.EMPTY)
    assert empty is not None
    assert not empty.is_made_up


def test_what_has_no_rows_is_not_made_up() -> None:
    for text in ("SELECT * FROM users LIMIT 0", "SELECT * FROM users WHERE 1 = 0"):
        empty = found(text, RawSelect.MADE_UP)
        assert empty is not None
        assert not empty.is_made_up


def test_schemas_before_columns_are_found() -> None:
    text = 'SELECT "public"."users"."city", shop.public.users.age, public.stores.name FROM users, stores'
    made = found(text, RawSelect.MADE_UP)
    assert made is not None
    assert [text[s.start : s.end] for s in made.schemas] == ['"public".', "shop.public."]
