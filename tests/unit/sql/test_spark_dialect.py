"""How does Spark's dialect quote, and what does it refuse?"""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.errors import Unsupported
from proxy.policy.model import SparkSource, Unknown
from proxy.sql.functions.hazards import Operands
from proxy.sql.functions.table import FUNCTIONS
from proxy.sql.render.dialects import dialect_of
from proxy.sql.render.spark.dialect import SPARK
from proxy.sql.render.spark.functions import SPELLINGS
from proxy.sql.render.spark.spelling import text_of
from proxy.sqltypes import SqlType

INT8, TEXT, DOUBLE, MOMENT = SqlType.INT8, SqlType.TEXT, SqlType.FLOAT8, SqlType.TIMESTAMP
_LITERAL = re.compile(r"'[A-Za-z0-9 _.:,+-]*'|CAST\(X'(?:[0-9A-F]{2})*' AS STRING\)")


def _call(function: str, *args: str, kinds: tuple[SqlType, ...] = (TEXT,), may_raise: bool = False) -> str:
    return SPARK.call(function, tuple(f"({a})" for a in args), kinds, may_raise=may_raise)


@given(st.text())
def test_a_text_has_no_character_that_a_server_could_read_otherwise(text: str) -> None:
    """Neither backslashes nor quotes: Spark reads the first, and servers differ in what two of the others are."""
    literal = SPARK.text_literal(text) if text.isprintable() or text.isascii() else SPARK.text_literal(ascii(text))
    assert _LITERAL.fullmatch(literal)
    assert text_of(f"({literal})") in (text, ascii(text))


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_a_text_is_read_back_as_it_was(text: str) -> None:
    assert text_of(f"({SPARK.text_literal(text)})") == text


@pytest.mark.parametrize("name", ["a", "Odd `Name", "``", "a\\`b", "x` FROM y --", '"'])
def test_a_name_ends_where_it_should(name: str) -> None:
    quoted = SPARK.quote(name)
    assert quoted[0] == quoted[-1] == "`"
    assert quoted[1:-1].replace("``", "").count("`") == 0
    assert SPARK.relation(("parquet", name)) == f"`parquet`.{quoted}"


def test_a_cluster_has_this_dialect() -> None:
    assert dialect_of(SparkSource("sc://x")) is SPARK
    assert SPARK.name == "spark"


@pytest.mark.parametrize("function", sorted(set(FUNCTIONS) - set(SPELLINGS)))
def test_what_has_no_spelling_is_refused_with_a_hint(function: str) -> None:
    with pytest.raises(Unsupported, match="is not supported over private rows with engine spark") as refused:
        _call(function, "x")
    assert refused.value.hint
    assert not SPARK.may_raise(function, Operands((TEXT,), (Unknown(),), Unknown()))
    assert SPARK.times_written(function, 0) == 1


def test_spark_spells_functions_that_exist() -> None:
    assert set(SPELLINGS) <= set(FUNCTIONS)
    assert SPARK.times_written("integer abs", 0) > 1
    assert SPARK.may_raise("integer +", Operands((INT8, INT8), (Unknown(), Unknown()), Unknown()))


@pytest.mark.parametrize(
    "pattern", ["(a+)+$", "(a|b)-", "a*a*b", "[&&x]", "[a~~]", "^(a)(b)$", "[--x]", "(a|a)*"],
)  # fmt: skip
def test_a_pattern_that_could_take_long_or_mean_something_else_is_refused(pattern: str) -> None:
    with pytest.raises(Unsupported):
        _call("matches", "s0.x", SPARK.text_literal(pattern), kinds=(TEXT, TEXT))


@pytest.mark.parametrize(
    "pattern, written",
    [
        ("^a$", "(?s)^a\\z"),
        ("\\d+", "(?s)[0-9]+"),
        ("\\.x", "(?s)\\.x"),
        ("\\-\\é", "(?s)-é"),
        ("[a-z]{2,3}", "(?s)[a-z]{2,3}"),
        ("[^a]", "(?s)[^a]"),
    ],
)
def test_a_pattern_means_the_same_to_java_and_rust(pattern: str, written: str) -> None:
    text = _call("matches", "s0.x", SPARK.text_literal(pattern), kinds=(TEXT, TEXT))
    assert text.endswith(f"RLIKE {SPARK.text_literal(written)})")
    assert "substring((s0.x), 1, 1000)" in text


@pytest.mark.parametrize("pattern, written", [("a\\b", "ab"), ("\\%\\_\\\\", "\\%\\_\\\\"), ("%_", "%_")])
def test_backslashes_of_like_stand_before_what_they_take_the_meaning_of(pattern: str, written: str) -> None:
    assert SPARK.text_literal(written) in _call("like", "x", SPARK.text_literal(pattern), kinds=(TEXT, TEXT))


@pytest.mark.parametrize("function", ["like", "ilike", "matches"])
def test_a_pattern_that_is_no_constant_is_refused(function: str) -> None:
    for pattern in ("s0.y", "'it''s'", "'a' || 'b'"):
        with pytest.raises(Unsupported, match="a pattern that is no constant"):
            _call(function, "s0.x", pattern, kinds=(TEXT, TEXT))


@pytest.mark.parametrize("new", ["\\1", "$0", "\\0#"])
def test_a_replacement_with_a_part_of_the_match_is_refused(new: str) -> None:
    with pytest.raises(Unsupported, match="a replacement with parts"):
        _call("replaced matches", "x", "'a'", SPARK.text_literal(new), kinds=(TEXT,) * 3)


def test_a_time_of_a_zone_whose_clocks_are_set_back_is_refused() -> None:
    with pytest.raises(Unsupported, match="a time of another zone than UTC"):
        _call("instant", "x", SPARK.text_literal("Europe/Zurich"), "'UTC'", kinds=(MOMENT, TEXT, TEXT))


@pytest.mark.parametrize("span", [(9001 * 12, 0, 0), (0, 4_000_000, 0), (0, 0, 2**60), (-9001 * 12, 0, 0)])
def test_a_long_interval_is_refused(span: tuple[int, int, int]) -> None:
    with pytest.raises(Unsupported, match="an interval of more than 9,000 years"):
        _call("time + interval", "x", SPARK.span(*span), kinds=(MOMENT, SqlType.INTERVAL))


def test_an_expression_that_grows_without_end_is_refused() -> None:
    text = "s0.x"
    with pytest.raises(Unsupported, match="an expression of this size"):
        for _ in range(40):
            text = _call("trunc", text, kinds=(DOUBLE,))


@pytest.mark.parametrize("side", ["1234567890123456789", "-0.1234567890123456789", ""])
def test_a_comparison_that_has_no_common_type_is_refused(side: str) -> None:
    with pytest.raises(Unsupported, match="a number of more than 18 digits"):
        SPARK.compare("<", ("s0.`x`", side), ("x", "y"))
    with pytest.raises(Unsupported, match="a number of more than 18 digits"):
        SPARK.member("s0.`x`", [side])
    assert SPARK.compare("<", ("s0.`x`", "0.5"), ("x", "y")) == "s0.`x` < 0.5"
    assert SPARK.member("s0.`x`", ["1", "-2.5"]) == "coalesce(s0.`x` IN (1, -2.5), FALSE)"


_REFUSED: dict[str, Callable[[], str]] = {
    "link": lambda: SPARK.link("x"),
    "peers": lambda: SPARK.of_peers("GROUPS"),
    "double": lambda: SPARK.as_text("x", DOUBLE),
    "numeric": lambda: SPARK.as_text("x", SqlType.NUMERIC),
    "counters": lambda: SPARK.counters((), 1, 1, ""),
}


@pytest.mark.parametrize("refused", _REFUSED)
def test_what_else_is_refused(refused: str) -> None:
    with pytest.raises(Unsupported):
        _REFUSED[refused]()


def test_dates_beside_timestamps_are_compared_as_such() -> None:
    text = SPARK.call("<", ("(a)", "(b)"), (SqlType.DATE, MOMENT), may_raise=False)
    assert text == "(try_cast((a) AS TIMESTAMP_NTZ) < (b))"


def test_what_is_computed_only_there() -> None:
    assert SPARK.truncated("x").startswith("coalesce(CAST(CAST(CASE WHEN abs((x))")
    assert SPARK.rounded_up("x", "BIGINT") == "CAST(ceil(least(x, 9.2e18)) AS BIGINT)"
    assert SPARK.enumerated("x", ["a"]) == ""
    assert SPARK.exact_sum("x") == "sum(x)"
    assert SPARK.lower("x").startswith("lower(replace(")
    assert SPARK.read_within("x", INT8, (0.0, 1.0), "r") == "r"
