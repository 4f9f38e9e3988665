"""TABLE name as a SELECT, and positions in both spellings."""

from __future__ import annotations

import pytest

from proxy.sql.syntax.parse import Statement, split_statements
from proxy.sql.syntax.table_command import write_out


def statement(text: str) -> Statement:
    (only,) = split_statements(text)
    return only


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("TABLE users", "SELECT * FROM users"),
        ("table hush.budget ORDER BY 1", "SELECT * FROM hush.budget ORDER BY 1"),
        ('WITH t AS (TABLE "users") SELECT 1 FROM t', 'WITH t AS (SELECT * FROM "users") SELECT 1 FROM t'),
        ("WITH t AS (SELECT 1) TABLE t", "WITH t AS (SELECT 1) SELECT * FROM t"),
        ("SELECT 1 UNION ALL TABLE a EXCEPT TABLE b",
         "SELECT 1 UNION ALL SELECT * FROM a EXCEPT SELECT * FROM b"),
    ],
)  # fmt: skip
def test_the_command_is_a_select(text: str, written: str) -> None:
    assert write_out(statement(text)).statement.text == written


@pytest.mark.parametrize(
    "text",
    ["SELECT count(*) table, 1 table FROM t", "SELECT count(*) table FROM t", "SELECT count(*) table",
     'SELECT "table" FROM t', "SELECT t.table FROM t", "SELECT 1 AS table", "SELECT 'TABLE x' FROM t"],
)  # fmt: skip
def test_a_label_is_no_command(text: str) -> None:
    asked = statement(text)
    assert write_out(asked).statement is asked


def test_positions_are_those_of_the_client() -> None:
    text = "TABLE abc EXCEPT TABLE def EXCEPT SELECT ghi"
    found = write_out(statement(text))
    for word in ("abc", "EXCEPT", "def", "ghi"):
        assert found.original(found.statement.text.index(word) + 1) == text.index(word) + 1
    assert found.original(found.statement.text.index("*") + 1) == 1
    assert found.original(found.statement.text.rindex("*") + 1) == text.rindex("TABLE") + 1
    assert found.original(0) == 0
