"""Random queries full of formats, patterns and lengths: right to the last integer, and bounded; mistakes are found."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from types import ModuleType

import pytest

from proxy.analysis import domains, key_values
from proxy.policy.model import Listed
from proxy.sql.functions.function import Function
from proxy.sql.functions.table import FUNCTIONS
from proxy.sql.render import dialect
from tests.fuzz.examine import report, run_worlds
from tests.fuzz.scalars import keyed, make_scalars

FIRST, WORLDS, QUERIES = 50_000, 4, 12
MOST_WORLDS = 4


def test_engine_oracle_and_bounds_agree() -> None:
    tally = run_worlds(range(FIRST, FIRST + WORLDS), "both", QUERIES, make=make_scalars)
    assert not tally.failures, report(tally)
    assert tally.planned > WORLDS * QUERIES / 3, "the grammar makes too few queries that can be planned"


def spelled(name: str, duckdb: str) -> tuple[ModuleType, Mapping[str, Function]]:
    """The table with a row that is spelled otherwise."""
    return dialect, {**FUNCTIONS, name: replace(FUNCTIONS[name], duckdb=duckdb)}


def groups_are_whole_matches() -> tuple[ModuleType, Mapping[str, Function]]:
    return spelled("extracted", "regexp_extract({0}, {1}, 0, 's')")


def lengths_below_zero_are_nothing() -> tuple[ModuleType, Mapping[str, Function]]:
    return spelled("left", "left({0}, greatest({1}, 0))")


def only_the_first_match_is_replaced() -> tuple[ModuleType, Mapping[str, Function]]:
    return spelled("replaced matches", FUNCTIONS["replaced match"].duckdb)


def a_capital_is_given_to_every_letter() -> tuple[ModuleType, Mapping[str, Function]]:
    return spelled("upper", "upper({0})")


def public_texts_of_times_lack_their_zeros() -> tuple[ModuleType, Mapping[str, Function]]:
    row = FUNCTIONS["to_char"]
    return key_values, {**FUNCTIONS, "to_char": replace(row, image=lambda v: tuple(
        str(text).lstrip("0") for text in row.image(v)))}  # fmt: skip


def clocks_do_not_leap() -> tuple[ModuleType, Mapping[str, Function]]:
    return spelled("local time", "timezone('UTC', timezone({1}, {0}))")


def bins_begin_with_the_first_time() -> tuple[ModuleType, Mapping[str, Function]]:
    return spelled("date_bin", "time_bucket(to_microseconds({1}), {0})")


def bits_are_those_of_either() -> tuple[ModuleType, Mapping[str, Function]]:
    return spelled("integer &", "{0} | {1}")


def common_bits_are_known_to_be_none() -> tuple[ModuleType, Mapping[str, Function]]:
    return domains, {**FUNCTIONS, "integer &": replace(FUNCTIONS["integer &"], domain=lambda _: Listed((0,)))}


def letters_stay_where_they_are() -> tuple[ModuleType, Mapping[str, Function]]:
    return spelled("reverse", "{0}")


def reversed_texts_are_known_to_be_one() -> tuple[ModuleType, Mapping[str, Function]]:
    return domains, {**FUNCTIONS, "reverse": replace(FUNCTIONS["reverse"], domain=lambda _: Listed(("a",)))}


def spans_that_touch_overlap() -> tuple[ModuleType, Mapping[str, Function]]:
    return spelled("overlaps", FUNCTIONS["overlaps"].duckdb.replace("v[3] < v[2]", "v[3] <= v[2]"))


def infinite_times_are_finite() -> tuple[ModuleType, Mapping[str, Function]]:
    return spelled("isfinite", "{0} IS NOT NULL")


def letters_are_counted_from_zero() -> tuple[ModuleType, Mapping[str, Function]]:
    return spelled("ascii", "nullif(ascii({0}), 97)")


def every_day_is_known_to_be_a_monday() -> tuple[ModuleType, Mapping[str, Function]]:
    row = FUNCTIONS["to_char"]
    return domains, {**FUNCTIONS, "to_char": replace(row, domain=lambda _: Listed(("Monday",)))}


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
def test_a_planted_mistake_is_found(
    plant: Callable[[], tuple[ModuleType, Mapping[str, Function]]], key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    module, table = plant()
    monkeypatch.setattr(module, "FUNCTIONS", table)
    for seed in range(FIRST, FIRST + MOST_WORLDS):
        if run_worlds((seed,), "meaning", 3, stop=True, make=keyed(key)).failures:
            return
    pytest.fail(f"{MOST_WORLDS} worlds did not show it")
