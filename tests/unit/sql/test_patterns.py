"""Only patterns that mean the same to PostgreSQL and to the engine pass."""

from __future__ import annotations

import duckdb
import pytest

from proxy.sql.conditions.patterns import Found, check_extent, check_regular, of_similar, of_split

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


@pytest.mark.parametrize(
    ("pattern", "groups", "may_be_empty"),
    [
        ("", 0, True), ("a", 0, False), ("^a?$", 0, True), ("[0-9]+", 0, False), ("([a-z]+)@", 1, False),
        ("^.*@(.*)$", 1, False), (".*", 0, True), ("a{2}b{1,3}c", 0, False), ("[a-c]+-[a-c]*", 0, False),
        (r"\.[^.]*$", 0, False), ("a{2}a+", 0, False),
    ],
)  # fmt: skip
def test_clear_patterns_find_one_part(pattern: str, groups: int, may_be_empty: bool) -> None:
    assert check_extent(pattern) == Found(groups, may_be_empty)


@pytest.mark.parametrize(
    "pattern",
    ["a|ab", "(a*)(ab)", "(a)+", "((a))", "a*a*", "[ab]*b*c", "a?[ab]?", ".*-.*", ".*.*b$", "a^b", "(a|b)", "a**",
     "é*ü*"],
)  # fmt: skip
def test_patterns_that_find_several_are_refused(pattern: str) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        check_extent(pattern)


def test_a_delimiter_that_overlaps_itself_is_not_counted_from_the_end() -> None:
    assert of_split("aa", 1)
    with pytest.raises(ValueError, match="overlap"):
        of_split("aa", -1)
