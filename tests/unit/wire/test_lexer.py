"""Words inside strings, comments and quoted names are not words."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.wire.lexer import Sort, statements, tokens


def words(text: str) -> list[str]:
    return [t.text for t in tokens(text) if t.sort is Sort.WORD]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SELECT a", ["select", "a"]),
        ("'select' a", ["a"]),
        ("'it''s' a", ["a"]),
        (r"e'\' x' a", ["a"]),
        (r"E'a''b\\' a", ["a"]),
        (r"'\' a", ["a"]),
        ("u&'x' a", ["a"]),
        ("b'01' x'ff' n'x' a", ["a"]),
        ('"select" a', ["a"]),
        ('"a""b" a', ["a"]),
        ('u&"select" a', ["a"]),
        ("-- select\na", ["a"]),
        ("/* x /* y */ z */ a", ["a"]),
        ("/* x */ /* y", []),
        ("a /* x", ["a"]),
        ("$$ x $$ a", ["a"]),
        ("$t$ x $$ y $t$ a", ["a"]),
        ("$t$ x", []),
        ("$1 $2a a", ["a", "a"]),
        ("a$b$ c", ["a$b$", "c"]),
        ("1e5 0x1F 1_000 a", ["a"]),
        ("'x", []),
        ('"x', []),
        ("nöpe", ["nöpe"]),
        ("a.b::c", ["a", "b", "c"]),
    ],
)
def test_words(text: str, expected: list[str]) -> None:
    assert words(text) == expected


def test_values_of_tokens() -> None:
    found = list(tokens("""'it''s' "a""b" $q$x'y$q$ E'z' 7 ;"""))
    assert [(t.sort, t.text, t.is_plain) for t in found] == [
        (Sort.STRING, "it's", True),
        (Sort.NAME, 'a"b', True),
        (Sort.STRING, "x'y", True),
        (Sort.STRING, "E'z'", False),
        (Sort.NUMBER, "7", True),
        (Sort.SYMBOL, ";", True),
    ]


def test_statements_are_cut_at_their_semicolons() -> None:
    text = " select ';' ; ; /* ; */ select $$;$$ -- ;\n; select 1  "
    assert [text[s.start : s.end] for s in statements(text)] == ["select ';'", "select $$;$$", "select 1"]


@given(st.text(alphabet="abE'\"$;/*-\\ \n1&uU", max_size=40))
def test_tokens_cover_the_text_in_order(text: str) -> None:
    at = 0
    for token in tokens(text):
        assert at <= token.start < token.end <= len(text)
        at = token.end
    for span in statements(text):
        assert span.tokens[0].start == span.start
        assert span.tokens[-1].end == span.end
