"""What is passed over could not have mattered: statements, and tokens that may, are those of the scanner."""

from __future__ import annotations

import sys
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.wire.lexer import Sort, statements, tokens
from proxy.wire.screen import screen
from proxy.wire.skim import first_parameter, skimmed

PIECES = st.sampled_from(
    ("select", "update", "pg_settings", "set_config", "pg_notify", "SET", "alter", "x", "e", "1", "1.5", "$1", "$a$",
     "$", " ", "\n", "(", ")", ",", ";", "'", "''", "'a'", "e'", "E'\\'", "\\", "U&", "u&", '"', '"update"', '"x"',
     '""', "--", "/*", "*/", "-", "/", ".", "é", "b'", "::", "uescape", "'set_config'", "_", "rule")
)  # fmt: skip
MATTER = {"update": 1, "pg_settings": 1, "pg_notify": 2, "set_config": 6}
TEXTS = st.lists(PIECES, max_size=25).map("".join)


@given(TEXTS)
def test_statements_are_those_of_the_scanner(text: str) -> None:
    assert [(s.start, s.end) for s in skimmed(text)] == [(s.start, s.end) for s in statements(text)]


@given(TEXTS)
def test_what_may_matter_is_not_passed_over(text: str) -> None:
    """And what follows it is there too."""
    for ours, theirs in zip(skimmed(text), statements(text), strict=True):
        kept = {t.start: t for t in ours.tokens if t.text or t.sort is not Sort.SYMBOL}
        ends = {t.end for t in theirs.tokens if t.sort is Sort.STRING}  # one may begin with a word that is passed over
        assert all(t in theirs.tokens or (t.sort is Sort.STRING and t.end in ends) for t in kept.values())
        assert theirs.tokens[0].start in kept
        for position, token in enumerate(theirs.tokens):
            if token.sort is Sort.ESCAPED_NAME:
                assert all(t.start in kept for t in theirs.tokens[position : position + 2])
            behind = MATTER.get(token.text, 0) if token.sort in (Sort.WORD, Sort.NAME) else 0
            assert all(t.start in kept for t in theirs.tokens[position : position + behind])
        if theirs.tokens[0].text in ("set", "alter"):
            assert ours.tokens[:8] == theirs.tokens[:8]


@given(TEXTS)
def test_the_first_parameter_is_that_of_the_scanner(text: str) -> None:
    named = [t for t in tokens(text) if t.sort is Sort.NUMBER and t.text.startswith("$")]
    assert [first_parameter(text)] == (named[:1] or [first_parameter("")])
    assert first_parameter("").text == "$1"


def tokens_looked_at(work: Callable[[], object]) -> int:
    """How many tokens are made until the work is done."""
    found = 0

    def see(frame: object, event: str, _argument: object) -> None:
        nonlocal found
        found += event == "call" and getattr(frame, "f_code").co_name in ("_token", "_string")  # noqa: B009 - of object

    before = sys.getprofile()
    sys.setprofile(see)
    try:
        work()
    finally:
        sys.setprofile(before)
    return found


LONG = {
    "a list of constants": "select 'rule' in (" + ", ".join("'ab'" for _ in range(20_000)) + ")",
    "a list of names": "select set_config('a.b', 'c', true), " + ", ".join('age, "Name"' for _ in range(20_000)),
    "arithmetic": "select 'set' " + "+ 1 - 2 / 3 " * 20_000,
    "escapes": r"select 'set', " + r"e'\'' || " * 20_000 + "x",
    "a comment": "select 1 /* set " + "x " * 20_000 + "*/",
    "casts": "select " + "x::int, " * 20_000 + " 'notify'",
}


@pytest.mark.parametrize("case", LONG)
def test_a_long_statement_holds_the_event_loop_for_few_tokens(case: str) -> None:
    """Every session's messages wait while one is screened."""
    assert tokens_looked_at(lambda: screen(LONG[case], "raise")) < 30
    assert tokens_looked_at(lambda: first_parameter(LONG[case])) < 30
