"""Aggregates that public rows ask for, written as groups."""

from __future__ import annotations

import re

import pytest

from proxy.front.relations import RELATIONS
from proxy.sql.query.public_rows.aggregate_below_join import split_lifted
from proxy.sql.relations.scope import Catalog
from proxy.sql.syntax.parse import split_statements
from tests.unit.sql.corpus import policy


def lifted(text: str) -> str:
    """What the statement stands for, with one blank between words and `t` for the made up name."""
    catalog = Catalog(policy().tables, "shop")
    found = split_lifted(split_statements(plain(text))[0], catalog, frozenset(RELATIONS))[1].statement.text
    return plain(re.sub(r'"hush_each_0_[0-9]+"', "t", found))


def plain(text: str) -> str:
    return " ".join(text.split())


PAIRS = """
SELECT name, (SELECT count(*) FROM orders o WHERE o.store_id = s.store_id) FROM stores s
=> SELECT name, (SELECT coalesce(max(t.hush_a0), 0) AS "count" FROM
    (SELECT o.store_id AS hush_k0, count(*) AS hush_a0 FROM orders o GROUP BY 1) AS t WHERE t.hush_k0 = (s.store_id))
    FROM stores s

SELECT name FROM stores s
WHERE (SELECT sum(amount) / count(*) AS x FROM orders WHERE s.store_id + 1 = orders.store_id AND status = 'paid') > 7
=> SELECT name FROM stores s WHERE (SELECT max(t.hush_a0) / coalesce(max(t.hush_a1), 0) AS x FROM
    (SELECT orders.store_id AS hush_k0, sum(amount) AS hush_a0, count(*) AS hush_a1 FROM orders WHERE (status = 'paid')
    GROUP BY 1) AS t WHERE t.hush_k0 = (s.store_id + 1)) > 7

SELECT name, (SELECT bool_and(amount > 1) FROM orders o WHERE o.store_id = s.store_id) AS e FROM stores s
=> SELECT name, (SELECT bool_or(t.hush_a0) AS "bool_and" FROM
    (SELECT o.store_id AS hush_k0, bool_and(amount > 1) AS hush_a0 FROM orders o GROUP BY 1) AS t
    WHERE t.hush_k0 = (s.store_id)) AS e FROM stores s

SELECT d, count(o.order_id) FROM generate_series(timestamp '2024-01-01', timestamp '2024-03-01', interval '1 month') d
LEFT JOIN orders o ON date_trunc('month', o.at) = d GROUP BY d ORDER BY 2
=> SELECT d, coalesce(max(t.hush_a0), 0) AS "count"
    FROM generate_series(timestamp '2024-01-01', timestamp '2024-03-01', interval '1 month') d
    LEFT JOIN (SELECT date_trunc('month', o.at) AS hush_k0, count(o.order_id) AS hush_a0 FROM orders o
    WHERE (date_trunc('month', o.at) >= (CAST('2024-01-01' AS TIMESTAMP)))
    AND (date_trunc('month', o.at) <= (CAST('2024-03-01' AS TIMESTAMP))) GROUP BY 1) AS t
    ON t.hush_k0 = (d) GROUP BY d ORDER BY 2

SELECT v.x, sum(o.amount) AS a, avg(o.amount) AS b FROM (VALUES (1), (2)) v(x)
LEFT JOIN orders o ON o.store_id = v.x AND o.status = 'paid' AND v.x > 1
GROUP BY v.x HAVING count(DISTINCT o.order_id) > 1
=> SELECT v.x, (max(t.hush_a0) * count(*)) AS a, max(t.hush_a1) AS b FROM (VALUES (1), (2)) v(x)
    LEFT JOIN (SELECT o.store_id AS hush_k0, sum(o.amount) AS hush_a0, avg(o.amount) AS hush_a1,
    count(DISTINCT o.order_id) AS hush_a2 FROM orders o WHERE ((o.status = 'paid')) GROUP BY 1) AS t
    ON t.hush_k0 = (v.x) AND (v.x > 1) GROUP BY v.x HAVING coalesce(max(t.hush_a2), 0) > 1

SELECT d, count(o.order_id) AS n FROM generate_series(date '2024-01-01', date '2024-01-09', '2 days'::interval) d
LEFT JOIN orders o ON o.at >= d AND o.at < d + interval '2 days' GROUP BY d
=> SELECT d, coalesce(max(t.hush_a0), 0) AS n
    FROM generate_series(date '2024-01-01', date '2024-01-09', '2 days'::interval) d LEFT JOIN
    (SELECT date_bin(INTERVAL '2 day', o.at, (CAST('2024-01-01' AS DATE))::timestamp) AS hush_k0,
    count(o.order_id) AS hush_a0 FROM orders o WHERE (o.at >= (CAST('2024-01-01' AS DATE)))
    AND (o.at < (CAST('2024-01-09' AS DATE)) + CAST('2 days' AS INTERVAL)) GROUP BY 1) AS t
    ON t.hush_k0 = (d) GROUP BY d
"""


@pytest.mark.parametrize("pair", PAIRS.strip().split("\n\n"))
def test_what_is_asked_of_each_public_row_is_its_group(pair: str) -> None:
    text, meaning = pair.split("\n=> ")
    assert lifted(text) == plain(meaning)


ASKED = "SELECT name, (SELECT count(*) FROM orders o WHERE o.store_id = s.store_id {}) FROM stores s"
JOINED = "SELECT g.d, {} FROM generate_series(1, 4) g(d) LEFT JOIN orders o ON o.store_id = g.d {} GROUP BY g.d"
COUNTED = JOINED.format("count(o.order_id)", "{}")
RANGED = """SELECT d, count(o.order_id) FROM generate_series({}) d
    LEFT JOIN orders o ON o.at >= d AND o.at < d + interval '{}' GROUP BY d"""


@pytest.mark.parametrize("text", [
    *map(ASKED.format, ("OR o.amount > 5", "AND o.at > s.opened", "HAVING count(*) > 1", "AND 'hush_k0' <> ''")),
    ASKED.format("").replace("o.store_id =", "o.store_id >"), ASKED.format("").replace("*)", "*) * s.store_id"),
    "SELECT name, (SELECT count(*) FROM orders) FROM stores s",
    *(JOINED.format(aggregate, "") for aggregate in (
        "count(*)", "sum(1)", "count(coalesce(o.amount, 0))", "count(CASE WHEN o.amount IS NULL THEN 1 END)",
        "sum(CASE WHEN o.amount > 5 THEN 1 ELSE 2 END)", "count(*) FILTER (WHERE o.amount IS NULL)",
        "sum(g.d * o.amount)", "sum(CASE WHEN o.amount > 5 OR o.note IS NULL THEN 1 ELSE 0 END)",
        "sum(count(o.order_id)) OVER ()", "max(o.note) || o.note",
    )),
    *map(COUNTED.format, ("AND o.amount > g.d", "WHERE o.amount > 5")),
    COUNTED.format("") + ", o.status", COUNTED.format("").replace("BY g.d", "BY g.d % 2"),
    RANGED.format("now() - interval '3 days', now(), '1 day'", "1 day"),
    RANGED.format("date '2024-01-01', date '2024-01-09', '2 days'", "1 day"),
    RANGED.format("date '2024-01-01', date '2024-01-09', '6 hours'", "6 hours"),
    RANGED.format("date '2024-01-01', date '2024-05-01', '1 month'", "1 month"),
])  # fmt: skip
def test_what_is_more_than_a_group_stays(text: str) -> None:
    assert lifted(text) == plain(text)


@pytest.mark.parametrize("series", [
    "generate_series(9, 1, -2) g(d)", "(SELECT generate_series(1, 12)::text AS d) g",
    "generate_series(1, (SELECT 3)) g(d)", "generate_series(1, 9) WITH ORDINALITY AS g(n, d)",
])  # fmt: skip
def test_series_without_known_ends_does_not_bound_what_is_grouped(series: str) -> None:
    text = f"SELECT g.d, count(o.order_id) AS n FROM {series} LEFT JOIN orders o ON o.note = g.d GROUP BY g.d"
    assert "FROM orders o GROUP BY 1" in lifted(text)


def test_positions_in_what_was_lifted_are_those_of_what_it_was() -> None:
    text = ASKED.format("").replace("FROM stores", ", region FROM stores")
    found = split_lifted(split_statements(text)[0], Catalog(policy().tables, "shop"), frozenset())[1]
    assert found.original(found.statement.text.index("GROUP BY") + 1) == text.index("SELECT count") + 1
    assert found.original(found.statement.text.index("region") + 1) == text.index("region") + 1
