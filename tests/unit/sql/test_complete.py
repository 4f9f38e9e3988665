"""A tree that lacks something its text says is noticed."""

from __future__ import annotations

import pytest
from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from proxy.errors import Unsupported
from proxy.sql.syntax.complete import check_complete
from proxy.sql.syntax.parse import parse, tokenize


@pytest.mark.parametrize(
    "text",
    [
        "SELECT x FROM t WHERE a = 'b' AND c IN (1, 2.50, .5, 1e3) AND d LIKE 'x' ESCAPE '!'",
        "SELECT count(DISTINCT x) FILTER (WHERE a IS NOT DISTINCT FROM b) FROM t",
        "SELECT x + interval '1 month' - INTERVAL '2' day + interval '3 days 4 hours' FROM t WHERE a BETWEEN 1 AND 2",
        "SELECT to_char(x, 'YYYY-MM'), TO_CHAR ((y), 'D \"at\"'), (regexp_match(z, 'a'))[1] FROM t WHERE a[2] = '1'",
        "SELECT date_trunc('month', x), extract(year FROM y), count(ALL z) FROM t WHERE NOT a AND b NOT IN ('c')",
    ],
)
def test_whole_trees_pass(text: str) -> None:
    check_complete((parse(text),), tokenize(text))


@pytest.mark.parametrize(
    ("tree", "text"),
    [
        ("SELECT a FROM t", "SELECT a FROM t WHERE b = 5"), ("SELECT a FROM t", "SELECT a, 'x' FROM t"),
        ("SELECT count(a) FROM t", "SELECT count(DISTINCT a) FROM t"), ("SELECT sum(a) FROM t",
         "SELECT sum(a) FILTER (WHERE b) FROM t"), ("SELECT a FROM t", "SELECT a FROM ONLY t"),
        ("SELECT a LIKE 'x' FROM t", "SELECT a LIKE 'x' ESCAPE 'x' FROM t"),
        ("SELECT a FROM t", "SELECT a COLLATE b FROM t"),
        ("SELECT to_char(a, 'YYYY')", "SELECT to_char(a, 'YYYY' || 'MM')"),
        ("SELECT to_char(a, 'YYYY')", "SELECT to_char(a, 'YYYY'), 'YYYY'"),
    ],
)  # fmt: skip
def test_missing_parts_are_noticed(tree: str, text: str) -> None:
    with pytest.raises(Unsupported, match="not understood") as refused:
        check_complete((parse(tree),), tokenize(text))
    assert refused.value.position


@pytest.mark.parametrize("text", ["x + interval '1 month ago'", "x + interval '1 day 02:30'", "x + interval '1-2' year",
                                  "x - interval '1 mon' d", "interval '90' minute to second * 2"])  # fmt: skip
def test_texts_of_intervals_are_kept_whole(text: str) -> None:
    tree = parse(f"SELECT {text}")
    check_complete((tree,), tokenize(f"SELECT {text}"))
    written = [t.text for t in tokenize(text) if t.token_type is TokenType.STRING]
    assert [found.name for found in tree.find_all(exp.Literal) if found.is_string] == written


def test_a_word_behind_an_interval_is_a_field_or_a_name_as_in_postgresql() -> None:
    named, field = (parse(f"SELECT x - interval '5 days' {word}").expressions[0] for word in ("d", "day"))
    assert named.alias == "d"
    assert field.sql(dialect="postgres") == "x - CAST('5 days' AS INTERVAL DAY)"


@pytest.mark.parametrize("text", ["SELECT 1__0", "SELECT 0o18", "SELECT 5x"])
def test_numbers_the_parser_cuts_are_noticed(text: str) -> None:
    with pytest.raises(Unsupported, match="number"):
        check_complete((parse(text),), tokenize(text))
