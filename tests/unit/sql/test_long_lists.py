"""A long list is one constant in tokens and tree, wherever PostgreSQL's scanner sees one, and nowhere else."""

from __future__ import annotations

import pytest

from proxy.errors import Unsupported
from proxy.sql.syntax.long_lists import FEWEST, list_of, listed, long_lists, texts_of, written_out
from proxy.sql.syntax.parse import parse, split_statements, tokenize
from tests.unit.plan.shop import plan

NUMBERS = ", ".join(map(str, range(FEWEST)))
STRINGS = ",\n".join(f"'it''s {n}'" for n in range(FEWEST))


@pytest.mark.parametrize("items", [NUMBERS, STRINGS, ",".join(["1.5"] * FEWEST)])
@pytest.mark.parametrize("opening", ["x IN (", "x in(\n ", "'in (' || x NOT IN ( ", "/* ' */ x IN (", '"IN" IN ('])
def test_a_long_list_is_one_token(items: str, opening: str) -> None:
    text = f"SELECT 1 WHERE {opening}{items} ) AND y IN (1, 2) AND z IN ({items})"
    found = [t for t in tokenize(text) if len(texts_of(t.text)) > 1]
    assert [text[t.start : t.end + 1].strip() for t in found] == [items, items]
    written = tuple(i.strip().strip("'").replace("''", "'") for i in items.split(","))
    assert [texts_of(t.text) for t in found] == [written, written]


@pytest.mark.parametrize(
    "text",
    [
        f"SELECT '{NUMBERS}', ' x IN ({NUMBERS})'",
        f"SELECT $$ x IN ({NUMBERS}) $$",
        f"SELECT 1 -- x IN ({NUMBERS})\n",
        f"SELECT 1 /* x IN ({STRINGS}) */",
        f'SELECT " x IN ({NUMBERS})"',
        f"SELECT begin({NUMBERS})",
        f"SELECT x IN ({NUMBERS}, y)",
        f"SELECT x IN ({NUMBERS}, 'a')",
        f"SELECT x IN ({NUMBERS}, -1)",
        f"SELECT x IN ({NUMBERS[: -len('199') - 2]})",
        rf"SELECT x IN ({STRINGS}, 'a\b')",
        f"SELECT x IN ({NUMBERS}, 0x10)",
        f"SELECT x IN ({NUMBERS}, 1_000)",
        f"SELECT x IN ({NUMBERS}, 1e5)",
    ],
)
def test_what_is_quoted_or_no_list_of_plain_constants_is_none(text: str) -> None:
    assert list(long_lists(text)) == []


def test_quotes_before_a_list_are_seen_as_postgresql_sees_them() -> None:
    text = f"SELECT 'a' IN ('{STRINGS}')"  # which begins with an empty string
    assert list(long_lists(text)) == []
    with pytest.raises(Unsupported):
        split_statements(f"SELECT ' IN ({STRINGS})")


def test_a_list_is_written_out_again() -> None:
    (asked,) = parse(f"SELECT x IN ({NUMBERS})").expressions
    assert list_of(asked.expressions) == (tuple(map(str, range(FEWEST))), False)
    assert [i.sql() for i in written_out(asked.expressions)] == NUMBERS.split(", ")
    (short,) = parse("SELECT x IN (1, 2)").expressions
    assert list_of(short.expressions) is None
    assert written_out(short.expressions) == short.expressions


def test_one_constant_is_itself() -> None:
    assert texts_of("a") == ("a",)
    assert texts_of(listed(["a", ""], is_string=True)) == ("a", "")


@pytest.mark.parametrize("condition", ["age IN (%s)", "age NOT IN (%s)", "height IN (%s)", "1 IN (%s)"])
def test_a_long_list_means_what_its_constants_mean(condition: str) -> None:
    """With a sum in it, which is one constant too, a list is read item by item."""
    as_one, by_item = (f"SELECT count(*) FROM users WHERE {condition % i}" for i in (NUMBERS, f"{NUMBERS}, 3 - 2"))
    assert plan(by_item).sql == plan(as_one).sql
    assert plan(as_one.replace("7", "07")).sql == plan(by_item.replace("7", "07")).sql


@pytest.mark.parametrize("listed_texts", [STRINGS, ", ".join(f"'2020-01-{1 + n % 28:02}'" for n in range(FEWEST))])
def test_texts_of_a_long_list_take_the_type_of_what_they_meet(listed_texts: str) -> None:
    column = "joined" if "2020" in listed_texts else "city"
    items = listed_texts.replace(",\n", ", ")
    by_item = items.replace("', '", "'::text, '", 1) if column == "city" else items.replace("', '", "'::date, '", 1)
    found, expected = (plan(f"SELECT count(*) FROM users WHERE {column} IN ({i})").sql for i in (items, by_item))
    assert found == expected


def test_a_list_is_no_value() -> None:
    with pytest.raises(Unsupported, match="list of constants"):
        plan(f"SELECT count(*) FROM users WHERE position('a' IN ({STRINGS})) > 1")


def test_rows_are_not_among_constants() -> None:
    with pytest.raises(Unsupported):
        plan(f"SELECT count(*) FROM users WHERE (age, city) IN ({NUMBERS})")
