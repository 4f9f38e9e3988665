"""Which statements change nothing on the front that the next one could see?"""

from __future__ import annotations

import pytest

from proxy.front.relations import RELATIONS
from proxy.sql.query.side_effects import is_inert
from proxy.sql.query.split import split
from proxy.sql.relations.scope import Catalog
from proxy.sql.syntax.parse import split_statements
from tests.unit.sql.corpus import policy

CATALOG = Catalog(policy().tables)


def found(text: str) -> bool:
    return is_inert(split(split_statements(text)[0], CATALOG, frozenset(RELATIONS)))


@pytest.mark.parametrize(
    "text",
    [
        "SELECT count(*) FROM users WHERE lower(city) = 'bern' AND joined >= date '2020-01-01'",
        'SELECT plan AS "p", count(*), sum(age) / nullif(count(age), 0) FROM users GROUP BY 1',
        "SELECT plan FROM users GROUP BY plan HAVING count(*) > 5 AND NOT avg(age) BETWEEN 1 AND 2 ORDER BY 1 LIMIT 3",
        "SELECT CASE WHEN count(*) > 5 THEN 'many' ELSE 'few' END FROM users",
        "SELECT round(avg(age), 1), coalesce(sum(age), -1) FROM users JOIN orders USING (user_id)",
    ],
)
def test_arithmetic_on_results_is_inert(text: str) -> None:
    assert found(text)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT count(*), set_config('hush.epsilon', '9', false) FROM users",
        "SELECT count(*) FROM users ORDER BY set_config('hush.epsilon', '9', false)",
        "SELECT count(*) FROM users HAVING set_config('hush.epsilon', '9', false) <> ''",
        "SELECT count(*) FROM users LIMIT (SELECT length(set_config('hush.epsilon', '9', false)))",
        "SELECT count(*), query_to_xml('select 1', true, true, '') FROM users",
        "SELECT count(*), 'x'::pg_temp.checked FROM users",
        "SELECT count(*)::text FROM users",
        "SELECT count(*), (SELECT max(n) FROM (SELECT set_config('a.b', 'c', false) AS n) t) FROM users",
        "SELECT * FROM (SELECT count(*) AS n FROM users) t",
        "SELECT count(*) FROM users UNION ALL SELECT count(*) FROM orders",
        "WITH s AS (SELECT set_config('a.b', 'c', false)) SELECT count(*) FROM users",
        "SELECT count(*), 1 OPERATOR(pg_catalog.+) 1 FROM users",
        f"SELECT count(*) AS {'a' * 70} FROM users",
        "SELECT count(*) AS ä FROM users",
        "SELECT * FROM hush.budget",
        "SELECT 1",
    ],
)
def test_everything_else_is_not(text: str) -> None:
    assert not found(text)
