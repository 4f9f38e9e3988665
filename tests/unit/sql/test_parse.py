"""Texts are cut where PostgreSQL cuts them, or refused."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.errors import HushError, Unsupported
from proxy.sql.syntax.parse import MAX_DEPTH, limited_depth, parse, split_statements, tokenize
from proxy.wire import lexer


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("SELECT $1,$2", ["SELECT", "$", "1", ",", "$", "2"]),
        ("a IN ($1,$2) OR b IN ($1,$2)",
         ["a", "IN", "(", "$", "1", ",", "$", "2", ")", "OR", "b", "IN", "(", "$", "1", ",", "$", "2", ")"]),
        ("SELECT $$it's$$ , $1", ["SELECT", "it's", ",", "$", "1"]),
        ("SELECT $1,$$x$$,$2", ["SELECT", "$", "1", ",", "x", ",", "$", "2"]),
        ("'a'$$b$$'c'E'd'", ["a", "b", "c", "d"]),
        ("'a''b' \"c\"\"d\"", ["a'b", 'c"d']),
        ("'\\', 1", ["\\", ",", "1"]),
        ("E'\\'', 1", ["'", ",", "1"]),
        ("a>0x28+1_000,0b1_1-0O_17", ["a", ">", "40", "+", "1000", ",", "3", "-", "15"]),
        ("1_0.5_0e1_0 '0x1' x0x1 $1", ["10.50e10", "0x1", "x0x1", "$", "1"]),
        ("a /* x /* y */ z */ b -- c\n d", ["a", "b", "d"]),
        ("x->>'k' #>> '{a}'", ["x", "->>", "k", "#>>", "{a}"]),
    ],
)  # fmt: skip
def test_tokens(text: str, parts: list[str]) -> None:
    assert [t.text for t in tokenize(text)] == parts


@pytest.mark.parametrize(
    "text", ['U&"x" = 1', "SELECT E'\\u00", "SELECT $$", "'unfinished", '"unfinished', "/* unfinished"]
)
def test_what_is_read_differently_is_refused(text: str) -> None:
    with pytest.raises(Unsupported):
        tokenize(f"{text} FROM users")


@given(st.lists(st.sampled_from([
    "'", "''", '"', "$$", "$a$", "$1", ",", "E'", "\\", "U&'", "/*", "*/", "--", "\n", " ", "x", "users", ";", "(", ")",
    "5", "{{", "}}", "`", "@", "::", "[", "]", "N'", "é", "\t", "1e", ".", "b'1'", "e''", "$", "_",
    "\x00", "\u2028", "\f", "\v",
]), max_size=12).map("".join))  # fmt: skip
def test_quoted_parts_are_postgresqls_or_the_text_is_refused(text: str) -> None:
    try:
        ours = tokenize(text)
    except HushError:
        return
    spans = {(t.start, t.end + 1) for t in ours}
    covered = {i for t in ours for i in range(t.start, t.end + 1)}
    for theirs in lexer.tokens(text):
        assert theirs.start in covered
        if theirs.sort in (lexer.Sort.STRING, lexer.Sort.NAME, lexer.Sort.ESCAPED_NAME):
            assert (theirs.start, theirs.end) in spans


@pytest.mark.parametrize(
    "text",
    [
        "SELECT " + "(" * (MAX_DEPTH + 1) + "1" + ")" * (MAX_DEPTH + 1), "SELECT " + "[" * 9, "SELECT (" * 300,
        "SELECT " + "array[" * 30 + "1" + "]" * 30,
    ],
)  # fmt: skip
def test_deep_nesting_is_refused_quickly(text: str) -> None:
    with pytest.raises(Unsupported, match="nested too deeply"):
        split_statements(text)


@pytest.mark.parametrize(
    "text", ["SELECT " + "NOT " * 3000 + "x", "SELECT 1" + "+1" * 3000, "SELECT x" + "::int" * 3000]
)
def test_long_chains_are_refused(text: str) -> None:
    with pytest.raises(Unsupported):
        parse(text)


def test_end_of_the_stack_is_a_refusal() -> None:
    def forever(n: int) -> int:
        return forever(n + 1) + 1

    with pytest.raises(Unsupported, match="nested too deeply"), limited_depth():
        forever(0)


@pytest.mark.parametrize("text", ["SELECT 1; SELECT 2", "not sql at all", "SELECT 1 FROM"])
def test_only_one_whole_statement_is_parsed(text: str) -> None:
    with pytest.raises(Unsupported):
        parse(text)


def test_statements_keep_text_and_offsets() -> None:
    text = " SELECT 1 ;; select ';' ;\n-- c;\n( select $1,$2 )"
    found = split_statements(text)
    assert [s.text for s in found] == ["SELECT 1", "select ';'", "( select $1,$2 )"]
    for statement in found:
        assert text[statement.start :].startswith(statement.text)
        assert all(statement.text[t.start : t.end + 1] for t in statement.tokens)
    assert found[2].words(2) == ("(", "SELECT")


@pytest.mark.parametrize(("operator", "hint"), [("+", "halves"), ("||", "halves")])
def test_a_long_chain_is_called_by_its_operator(operator: str, hint: str) -> None:
    with pytest.raises(Unsupported, match=f"times {re.escape(operator)} in one expression") as refused:
        parse("SELECT " + f" {operator} ".join(["x"] * (2 * MAX_DEPTH)))
    assert hint in refused.value.hint
