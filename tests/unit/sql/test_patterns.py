"""Only patterns that mean the same to PostgreSQL and to the engine pass."""

from __future__ import annotations

import duckdb
import pytest

from proxy.sql.patterns import check_regular, of_similar

SHARED = ("", "a", "^a$", "a.b", "(a|b)+", "[a-z0-9_]{2,3}", "[^a-]?", r"\.\$", r"\d+", "é*", "x{2}", "^(a|b.)*c$", " ")
FOREIGN = (
    "(?i)a", "(?:a)", r"\w", r"\s", r"\b", r"\1", r"\y", "[[:alpha:]]", "[a", "a]", "]", "*a", "a**", "a+?", "(|a)",
    "a|", "()",
    "(a", "a)", "{2}", "a{", "a{,2}", "a{100}", "(a{9}){9}b{9}", "a" * 201, r"[\d]", "[b-a-c]", "^*", "|", "\\",
    "$+",
)  # fmt: skip


@pytest.mark.parametrize("pattern", SHARED)
def test_the_shared_core_passes_and_the_engine_takes_it(pattern: str) -> None:
    check_regular(pattern)
    with duckdb.connect() as connection:
        connection.execute("select regexp_matches('abc', ?, 's')", [pattern]).fetchall()


@pytest.mark.parametrize("pattern", FOREIGN)
def test_all_else_is_refused(pattern: str) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        check_regular(pattern)


@pytest.mark.parametrize(
    ("similar", "regular"),
    [("%", "^(.*)$"), ("a_c", "^(a.c)$"), ("a.c", r"^(a\.c)$"), ("(a|b)%", "^((a|b).*)$"), ("", "^$"),
     (r"\%", r"^(\%)$"), ("^$", r"^(\^\$)$"), ("[%_]", "^([%_])$")],
)  # fmt: skip
def test_similar_to_is_about_the_whole_text(similar: str, regular: str) -> None:
    assert of_similar(similar) == regular
