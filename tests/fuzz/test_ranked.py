"""Random quantiles: histograms within their bounds and as defined, answers from choices alone; and planted mistakes.

A mistake is planted in the product; one of the two checks must find it within a few worlds.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest

from proxy.dp import brackets, quantiles
from proxy.dp.quantiles import Draw, Ladder, select
from proxy.plan.parts.histogram import histogram
from proxy.plan.parts.quantiles import plan_quantiles
from tests.fuzz.examine import report
from tests.fuzz.ranked import QUERIES, Ranks, check_bounds, check_meaning, run_quantiles
from tests.fuzz.test_sensitivity import LONG_CASES, LONG_SEED

WORLDS = 8
CHUNK = 4
FIRST = 40_000
MOST_WORLDS = 10
LONG_CHUNK = 50
SHARE = 5  # of the cases of the long search, quantiles are one in so many

Plant = Callable[[pytest.MonkeyPatch], None]


@pytest.mark.parametrize("first", range(FIRST, FIRST + WORLDS, CHUNK))
def test_one_unit_moves_scores_within_their_charge(first: int) -> None:
    tally = run_quantiles(range(first, first + CHUNK), check_bounds)
    assert not tally.failures, report(tally)
    assert tally.planned > CHUNK * QUERIES / 2, "too few queries can be planned"


@pytest.mark.parametrize("first", range(FIRST + WORLDS, FIRST + 2 * WORLDS, CHUNK))
def test_histograms_are_the_oracles_and_answers_those_of_the_choice(first: int) -> None:
    tally = run_quantiles(range(first, first + CHUNK), check_meaning)
    assert not tally.failures, report(tally)
    assert tally.planned > CHUNK * QUERIES / 2, "too few queries can be planned"


@pytest.mark.long
@pytest.mark.parametrize("check", [check_bounds, check_meaning])
@pytest.mark.parametrize("part", range(-(-LONG_CASES // (SHARE * LONG_CHUNK * QUERIES))))
def test_many_random_quantiles(part: int, check: Callable[[Ranks], None]) -> None:
    first = LONG_SEED + part * LONG_CHUNK
    tally = run_quantiles(range(first, first + LONG_CHUNK), check, stop=True)
    assert not tally.failures, report(tally)


# --- planted mistakes ---------------------------------------------------------------------------------------


def _text(patch: pytest.MonkeyPatch, pattern: str, new: str) -> None:
    original = histogram
    patch.setattr("proxy.plan.parts.quantiles.histogram", lambda *a: re.sub(pattern, new, original(*a)))


def _ladder(patch: pytest.MonkeyPatch, **facts: object) -> None:
    original: Any = Ladder
    patch.setattr("proxy.plan.parts.quantiles.Ladder", lambda **given: original(**{**given, **facts}))


def rows_of_a_group_are_not_limited(patch: pytest.MonkeyPatch) -> None:
    _text(patch, r"CASE WHEN rows > \d+ THEN [^ ]+ / rows ELSE 1e0 END", "1e0")


def groups_of_a_unit_are_not_limited(patch: pytest.MonkeyPatch) -> None:
    _text(patch, r"CASE WHEN q > \d+::HUGEINT THEN .*? ELSE 1e0 END", "1e0")


def the_number_of_groups_is_not_charged(patch: pytest.MonkeyPatch) -> None:
    _ladder(patch, groups=1)


def one_of_several_units_is_charged(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(
        "proxy.plan.parts.parts.plan_quantiles",
        lambda asked, statement, pico, _: plan_quantiles(asked, statement, pico, 1),
    )


def all_fractions_are_charged_as_one(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Ladder, "levels", 1)


def the_smaller_side_of_a_fraction_is_its_sensitivity(patch: pytest.MonkeyPatch) -> None:
    original = quantiles.draw_of

    def draw_of(ladder: Ladder, fraction: Fraction) -> Draw:
        found, p, whole = original(ladder, fraction), fraction.numerator, fraction.denominator
        share = Fraction(max(1, min(p, whole - p)), max(p, whole - p))
        return replace(found, sensitivity=math.ceil(found.sensitivity * share))

    patch.setattr(quantiles, "draw_of", draw_of)
    patch.setattr("tests.fuzz.ranked.draw_of", draw_of)


def ranks_near_an_end_move_like_others(patch: pytest.MonkeyPatch) -> None:
    original = quantiles.draw_of

    def draw_of(ladder: Ladder, fraction: Fraction) -> Draw:
        found, p, whole = original(ladder, fraction), fraction.numerator, fraction.denominator
        return replace(found, sensitivity=found.sensitivity * max(p, whole - p) // whole)

    patch.setattr("tests.fuzz.ranked.draw_of", draw_of)


def ends_of_intervals_are_free(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Ladder, "ends", 0)


def the_rank_of_an_end_moves_with_all_rows(patch: pytest.MonkeyPatch) -> None:
    original = brackets.end_scores

    def scores(histogram: Any, fraction: Fraction, away: int) -> Any:
        return original(histogram, fraction, away + int(histogram.sum()))

    patch.setattr("tests.fuzz.ranked.end_scores", scores)


def ends_are_moved_to_cells_with_rows(patch: pytest.MonkeyPatch) -> None:
    def moved(ladder: Ladder, weights: Any, choose: Any) -> tuple[int, ...]:
        held = weights.nonzero()[0].tolist()
        found = brackets.brackets(ladder, weights, choose)
        return tuple(min(held, key=lambda h: abs(h - c), default=c) for c in found)

    patch.setattr("proxy.release.ranks.brackets", moved)


def answers_are_moved_to_cells_with_rows(patch: pytest.MonkeyPatch) -> None:
    def moved(ladder: Ladder, weights: Any, choose: Any) -> tuple[int, ...]:
        held = weights.nonzero()[0].tolist()
        return tuple(min(held, key=lambda h: abs(h - c), default=c) for c in select(ladder, weights, choose))

    patch.setattr("proxy.release.ranks.select", moved)


def rows_without_value_are_in_no_cell(patch: pytest.MonkeyPatch) -> None:
    _text(patch, r" ELSE \d+ END AS x", " END AS x")


def cells_of_a_group_are_counted_instead_of_rows(patch: pytest.MonkeyPatch) -> None:
    _text(patch, r"(held AS \(SELECT .*?), count\(\*\)", r"\1, count(DISTINCT x)")


PLANTS: tuple[tuple[Plant, Callable[[Ranks], None]], ...] = (
    (rows_of_a_group_are_not_limited, check_bounds),
    (groups_of_a_unit_are_not_limited, check_bounds),
    (the_number_of_groups_is_not_charged, check_bounds),
    (one_of_several_units_is_charged, check_bounds),
    (all_fractions_are_charged_as_one, check_bounds),
    (the_smaller_side_of_a_fraction_is_its_sensitivity, check_bounds),
    (ranks_near_an_end_move_like_others, check_bounds),
    (ends_of_intervals_are_free, check_bounds),
    (the_rank_of_an_end_moves_with_all_rows, check_bounds),
    (ends_are_moved_to_cells_with_rows, check_meaning),
    (answers_are_moved_to_cells_with_rows, check_meaning),
    (rows_without_value_are_in_no_cell, check_meaning),
    (cells_of_a_group_are_counted_instead_of_rows, check_bounds),
)


@pytest.mark.parametrize(("plant", "check"), PLANTS, ids=[p.__name__ for p, _ in PLANTS])
def test_a_planted_mistake_is_found(
    plant: Plant, check: Callable[[Ranks], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(monkeypatch)
    for seed in range(FIRST, FIRST + MOST_WORLDS):
        if run_quantiles((seed,), check, stop=True).failures:
            return
    pytest.fail(f"{MOST_WORLDS} worlds did not show it")
