"""Random queries full of formats, patterns and lengths: right to the last integer, and bounded; mistakes are found."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from types import ModuleType

import pytest

from proxy.analysis import domains, key_values
from proxy.policy.model import Listed
from proxy.sql.functions.table import FUNCTIONS
from proxy.sql.render.duckdb import dialect
from proxy.sql.render.duckdb.functions import SPELLINGS
from tests.fuzz.examine import report, run_worlds
from tests.fuzz.scalars import keyed, make_scalars

FIRST, WORLDS, QUERIES = 50_000, 4, 12
MOST_WORLDS = 4
Planted = tuple[ModuleType, str, Mapping[str, object]]  # a table, where it stands and what it is called there


def test_engine_oracle_and_bounds_agree() -> None:
    tally = run_worlds(range(FIRST, FIRST + WORLDS), "both", QUERIES, make=make_scalars)
    assert not tally.failures, report(tally)
    assert tally.planned > WORLDS * QUERIES / 3, "the grammar makes too few queries that can be planned"


def spelled(name: str, template: str) -> Planted:
    """DuckDB's table with a row that is spelled otherwise."""
    return dialect, "SPELLINGS", {**SPELLINGS, name: replace(SPELLINGS[name], text=template)}


def groups_are_whole_matches() -> Planted:
    return spelled("extracted", "regexp_extract({0}, {1}, 0, 's')")


def lengths_below_zero_are_nothing() -> Planted:
    return spelled("left", "left({0}, greatest({1}, 0))")


def only_the_first_match_is_replaced() -> Planted:
    return spelled("replaced matches", SPELLINGS["replaced match"].text)


def a_capital_is_given_to_every_letter() -> Planted:
    return spelled("upper", "upper({0})")


def public_texts_of_times_lack_their_zeros() -> Planted:
    row = FUNCTIONS["to_char"]
    return key_values, "FUNCTIONS", {**FUNCTIONS, "to_char": replace(row, image=lambda v: tuple(
        str(text).lstrip("0") for text in row.image(v)))}  # fmt: skip


def clocks_do_not_leap() -> Planted:
    return spelled("local time", "timezone('UTC', timezone({1}, {0}))")


def bins_begin_with_the_first_time() -> Planted:
    return spelled("date_bin", "time_bucket(to_microseconds({1}), {0})")


def bits_are_those_of_either() -> Planted:
    return spelled("integer &", "{0} | {1}")


def common_bits_are_known_to_be_none() -> Planted:
    return (
        domains,
        "FUNCTIONS",
        {**FUNCTIONS, "integer &": replace(FUNCTIONS["integer &"], domain=lambda _: Listed((0,)))},
    )


def letters_stay_where_they_are() -> Planted:
    return spelled("reverse", "{0}")


def reversed_texts_are_known_to_be_one() -> Planted:
    return (
        domains,
        "FUNCTIONS",
        {**FUNCTIONS, "reverse": replace(FUNCTIONS["reverse"], domain=lambda _: Listed(("a",)))},
    )


def spans_that_touch_overlap() -> Planted:
    return spelled("overlaps", SPELLINGS["overlaps"].text.replace("v[3] < v[2]", "v[3] <= v[2]"))


def infinite_times_are_finite() -> Planted:
    return spelled("isfinite", "{0} IS NOT NULL")


def letters_are_counted_from_zero() -> Planted:
    return spelled("ascii", "nullif(ascii({0}), 97)")


def every_day_is_known_to_be_a_monday() -> Planted:
    row = FUNCTIONS["to_char"]
    return domains, "FUNCTIONS", {**FUNCTIONS, "to_char": replace(row, domain=lambda _: Listed(("Monday",)))}


@pytest.mark.parametrize(
    ("plant", "key"),
    [
        (groups_are_whole_matches, "substring({text} || '-a' from '(.)-')"),
        (lengths_below_zero_are_nothing, "left({text} || 'abc', -1)"),
        (only_the_first_match_is_replaced, "regexp_replace({text} || 'bb', 'b', 'c', 'g')"),
        (a_capital_is_given_to_every_letter, "upper({text} || 'ß')"),
        (public_texts_of_times_lack_their_zeros, "to_char({time}, 'MM/YYYY')"),
        (clocks_do_not_leap, "{time}::timestamp at time zone 'UTC' at time zone 'Asia/Kolkata'"),
        (bins_begin_with_the_first_time, "date_bin('7 days', {time}::timestamp, '2024-01-03 04:05')"),
        (bits_are_those_of_either, "length({text} || 'abc') & 2"),
        (common_bits_are_known_to_be_none, "length({text} || 'abc') & 3"),
        (letters_stay_where_they_are, "reverse({text} || 'ab')"),
        (reversed_texts_are_known_to_be_one, "reverse(to_char({time}, 'MM'))"),
        (spans_that_touch_overlap, "({time}::date - 1, {time}::date) overlaps ({time}::date, {time}::date + 1)"),
        (infinite_times_are_finite, "isfinite({time})"),
        (letters_are_counted_from_zero, "ascii('a' || {text})"),
        (every_day_is_known_to_be_a_monday, "to_char({time}, 'FMDay')"),
    ],
)  # fmt: skip
def test_a_planted_mistake_is_found(plant: Callable[[], Planted], key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(*plant())
    for seed in range(FIRST, FIRST + MOST_WORLDS):
        if run_worlds((seed,), "meaning", 3, stop=True, make=keyed(key)).failures:
            return
    pytest.fail(f"{MOST_WORLDS} worlds did not show it")
