"""Long chains of AND and OR are lists and halves that mean the same, for NULL too."""

from __future__ import annotations

import random

import duckdb
import pytest
from sqlglot import exp

from proxy.sql.syntax.parse import MAX_DEPTH, parse

OPERANDS = ("x = {n}", "x <> {n}", "(x = {n})", "x > {n}", "y = '{n}'", "y <> '{n}'", "x = {n}.5", "{n} = x",
            "x = -{n}", "x IS NULL", "NOT x = {n}", "(x = {n} AND y <> '{n}')", "x = y::integer")  # fmt: skip


def written(rng: random.Random, operator: str) -> str:
    return f" {operator} ".join(rng.choice(OPERANDS).format(n=rng.randrange(4)) for _ in range(rng.choice((60, 120))))


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("operator", ["AND", "OR"])
def test_a_long_chain_means_the_same(operator: str, seed: int) -> None:
    rng = random.Random(f"{operator} {seed}")
    few = rng.choice(("x = {n}", "x <> {n}", "y <> '{n}'", "x > {n}"))  # mixed chains are soon all true, or all false
    chain = rng.choice((written(rng, operator), f" {operator} ".join(few.format(n=n % 3) for n in range(80))))
    text = f"SELECT x, y, {chain} AS found FROM t WHERE ({chain}) IS DISTINCT FROM true OR x > 1 ORDER BY x, y"
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE t AS SELECT * FROM (VALUES (0), (1), (2), (3), (NULL)) a(x),"
                           " (VALUES ('0'), ('1'), ('3'), (NULL)) b(y)")  # fmt: skip
        rebuilt = parse(text).sql(dialect="duckdb")
        assert connection.execute(rebuilt).fetchall() == connection.execute(text).fetchall()


def test_choices_of_one_column_are_one_list_where_the_first_stood() -> None:
    tree = parse("SELECT " + " OR ".join(["z > 1", *(f"(x = {n})" for n in range(5_000)), "y = 'a'", "x = 'b'"]))
    (found,) = tree.find_all(exp.In)
    assert [int(item.this) for item in found.expressions] == list(range(5_000))
    assert len(list(tree.find_all(exp.EQ))) == 2, "of another column, and of another kind of constant"


def test_a_short_chain_stays_as_it_is_written() -> None:
    tree = parse("SELECT " + " OR ".join(f"x = {n}" for n in range(40)))
    assert tree.find(exp.In) is None


def test_a_chain_in_a_chain_is_rebuilt_too() -> None:
    inner = " AND ".join(f"y > {n}" for n in range(2 * MAX_DEPTH))
    tree = parse(f"SELECT {' OR '.join(f'(x > {n} AND {inner})' for n in range(60))}")
    assert len(list(tree.find_all(exp.GT))) == 60 * (2 * MAX_DEPTH + 1)
