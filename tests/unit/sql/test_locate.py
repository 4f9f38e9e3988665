"""Expressions are found in the client's text; what cannot be found beyond doubt is refused."""

from __future__ import annotations

import pytest
from sqlglot import exp

from proxy.errors import Unsupported
from proxy.sql.syntax.locate import TextSpan, locate_expression
from proxy.sql.syntax.outer import Edit, find_clauses, rewrite
from proxy.sql.syntax.parse import parse, tokenize

ITEMS = (
    "count(*)", "count ( DISTINCT x )", "sum(x) FILTER (WHERE y > 1)", "x", "t.x", '"X"', "x::date",
    "x::timestamp with time zone",
    "CAST(x AS double precision)", "CASE WHEN x THEN 1 END", "CASE x WHEN 1 THEN NULL ELSE NULL END", "- x", "NOT x",
    "NOT (NOT x)", "((x))", "x IS NOT NULL", "x IS DISTINCT FROM y", "x IN (1, 2)", "x BETWEEN 1 AND 2", "x || 'a,b'",
    "extract(year FROM x)", "date_part('year', x)", "substring(x FROM 1 FOR 2)", "trim(BOTH 'x' FROM y)",
    "x + interval '1 day'",
    "date_trunc('month', x)::date", "coalesce(x, 'FROM')", "x NOT LIKE 'a%'", "x /* , */ + y", "f(x, (y), ARRAY[1, 2])",
    "sum(count(*)) OVER (ORDER BY x)", "(x, y)", "x[1]", "x AT TIME ZONE 'UTC'", "EXISTS (SELECT x FROM z)",
)  # fmt: skip


@pytest.mark.parametrize("before", ["", "a, ", "y + 1, x AS b, "])
@pytest.mark.parametrize("after", ["", ", x", " AS c, x + 1"])
@pytest.mark.parametrize("item", ITEMS)
def test_each_expression_is_found_where_it_stands(item: str, before: str, after: str) -> None:
    text = f"SELECT {before}{item}{after} FROM t GROUP BY x"
    select = parse(text)
    position = before.count(",")
    node = select.expressions[position]
    node = node.this if isinstance(node, exp.Alias) else node
    span = locate_expression(node, text, tokenize(text))
    assert text[span.start : span.end] == item


def test_what_has_no_place_is_refused() -> None:
    with pytest.raises(Unsupported, match="told apart"):
        locate_expression(exp.Literal.number(1), "SELECT 1", tokenize("SELECT 1"))
    stranger = parse("SELECT x + 1 FROM t").expressions[0]
    with pytest.raises(Unsupported, match="told apart"):
        locate_expression(stranger, "SELECT y + 2 FROM t", tokenize("SELECT y + 2 FROM t"))


@pytest.mark.parametrize(
    ("text", "items", "having", "rest"),
    [
        ("SELECT a FROM t", ["a"], "", ""),
        ("SELECT a, f(b, c) AS x, 'x, y' FROM t WHERE z", ["a", "f(b, c) AS x", "'x, y'"], "", ""),
        ("SELECT a IS NOT DISTINCT FROM b, c FROM t", ["a IS NOT DISTINCT FROM b", "c"], "", ""),
        ("SELECT ARRAY[a, b][1], c FROM t", ["ARRAY[a, b][1]", "c"], "", ""),
        ("SELECT a FROM t GROUP BY a HAVING count(*) > 1 ORDER BY a LIMIT 3", ["a"], "count(*) > 1",
         "ORDER BY a LIMIT 3"),
        ("SELECT a FROM t HAVING (true)", ["a"], "(true)", ""),
        ("SELECT a FROM t GROUP BY a OFFSET 2 ROWS FETCH FIRST 1 ROW ONLY", ["a"], "",
         "OFFSET 2 ROWS FETCH FIRST 1 ROW ONLY"),
        ("SELECT sum(a) OVER w FROM t GROUP BY a WINDOW w AS (ORDER BY a)", ["sum(a) OVER w"], "",
         "WINDOW w AS (ORDER BY a)"),
        ("SELECT a FROM (SELECT 1 FROM u ORDER BY 1 LIMIT 2) t ORDER BY 1", ["a"], "", "ORDER BY 1"),
    ],
)  # fmt: skip
def test_clauses(text: str, items: list[str], having: str, rest: str) -> None:
    select = parse(text)
    assert isinstance(select, exp.Select)
    found = find_clauses(select, TextSpan(0, len(text)), tokenize(text))
    assert [text[:end].endswith(item) for end, item in zip(found.items, items, strict=True)] == [True] * len(items)
    assert text[found.having.start : found.having.end].strip() == having
    assert text[found.rest.start : found.rest.end] == rest
    assert text[found.selected.end :].startswith("FROM")


def test_rewriting_keeps_every_other_character() -> None:
    text = "SELECT /* a */ count(*)n, 'FROM' -- b\n FROM t HAVING count(*) > 1 OR x ORDER BY 1"
    select = parse(text)
    assert isinstance(select, exp.Select)
    clauses = find_clauses(select, TextSpan(0, len(text)), tokenize(text))
    first, second = text.index("count(*)"), text.rindex("count(*)")
    edits = [Edit(TextSpan(second, second + 8), "B"), Edit(TextSpan(first, first + 8), "A")]
    assert rewrite(text, clauses, edits, "r") == (
        "SELECT /* a */  A n, 'FROM' -- b\n  FROM r WHERE   B  > 1 OR x  ORDER BY 1"
    )
