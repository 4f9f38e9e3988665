"""Random modes: rows within their bounds and as defined, answers of drawn public values alone; and planted mistakes.

A mistake is planted in the product; one of the two checks must find it within a few worlds.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from proxy.dp.modes import Poll, elect
from proxy.dp.quantiles import Draw
from proxy.plan.parts.histogram import weighed
from proxy.plan.parts.modes import ModePart, counted_values, plan_mode
from proxy.policy.model import Promise
from proxy.release.modes import foremost
from proxy.sql.algebra.nodes import TRUE, Block
from tests.fuzz.elected import QUERIES, check_bounds, check_meaning, run_modes
from tests.fuzz.examine import report
from tests.fuzz.ranked import Ranks
from tests.fuzz.test_sensitivity import LONG_CASES, LONG_SEED

WORLDS = 8
CHUNK = 4
FIRST = 50_000
MOST_WORLDS = 16
LONG_CHUNK = 50
SHARE = 5  # of the cases of the long search, modes are one in so many

Plant = Callable[[pytest.MonkeyPatch], None]


@pytest.mark.parametrize("first", range(FIRST, FIRST + WORLDS, CHUNK))
def test_one_unit_moves_the_scores_of_modes_within_their_charge(first: int) -> None:
    tally = run_modes(range(first, first + CHUNK), check_bounds)
    assert not tally.failures, report(tally)
    assert tally.planned > CHUNK * QUERIES / 2, "too few queries can be planned"


@pytest.mark.parametrize("first", range(FIRST + WORLDS, FIRST + 2 * WORLDS, CHUNK))
def test_weights_are_the_oracles_and_modes_those_of_the_draw(first: int) -> None:
    tally = run_modes(range(first, first + CHUNK), check_meaning)
    assert not tally.failures, report(tally)
    assert tally.planned > CHUNK * QUERIES / 2, "too few queries can be planned"


@pytest.mark.long
@pytest.mark.parametrize("check", [check_bounds, check_meaning])
@pytest.mark.parametrize("part", range(-(-LONG_CASES // (SHARE * LONG_CHUNK * QUERIES))))
def test_many_random_modes(part: int, check: Callable[[Ranks], None]) -> None:
    first = LONG_SEED + part * LONG_CHUNK
    tally = run_modes(range(first, first + LONG_CHUNK), check, stop=True)
    assert not tally.failures, report(tally)


# --- planted mistakes ---------------------------------------------------------------------------------------


def _text(patch: pytest.MonkeyPatch, pattern: str, new: str) -> None:
    patch.setattr("proxy.plan.parts.modes.weighed", lambda *a: re.sub(pattern, new, weighed(*a)))


def _poll(patch: pytest.MonkeyPatch, **facts: object) -> None:
    original: Any = Poll
    patch.setattr("proxy.plan.parts.modes.Poll", lambda **given: original(**{**given, **facts}))


def rows_of_a_group_are_not_limited(patch: pytest.MonkeyPatch) -> None:
    _text(patch, r"CASE WHEN rows > \d+ THEN [^ ]+ / rows ELSE 1e0 END", "1e0")


def groups_of_a_unit_are_not_limited(patch: pytest.MonkeyPatch) -> None:
    _text(patch, r"CASE WHEN q > \d+::HUGEINT THEN .*? ELSE 1e0 END", "1e0")


def the_number_of_groups_is_not_charged(patch: pytest.MonkeyPatch) -> None:
    original = Poll.charge.fget  # type: ignore[attr-defined]  # of a property
    patch.setattr(Poll, "charge", property(lambda poll: original(poll) * poll.groups))


def one_of_several_units_is_charged(patch: pytest.MonkeyPatch) -> None:
    def plan(asked: Any, statement: Any, pico: int, promise: Promise) -> ModePart:
        return plan_mode(asked, statement, pico, replace(promise, group_size=1))

    patch.setattr("proxy.plan.parts.parts.plan_mode", plan)


def a_replaced_unit_is_charged_as_one_that_goes(patch: pytest.MonkeyPatch) -> None:
    _poll(patch, is_monotone=True)


def a_draw_is_half_as_random(patch: pytest.MonkeyPatch) -> None:
    original = Poll.draw.fget  # type: ignore[attr-defined]  # of a property

    def draw(poll: Poll) -> Draw:
        found: Draw = original(poll)
        return replace(found, scale=found.scale / 2)

    patch.setattr(Poll, "draw", property(draw))


def values_that_occur_are_drawn_from(patch: pytest.MonkeyPatch) -> None:
    def among_those_with_rows(poll: Poll, weights: Any, choose: Any) -> int:
        held = weights.nonzero()[0]
        return int(held[0]) if len(held) else elect(poll, weights, choose)

    patch.setattr("proxy.release.modes.elect", among_those_with_rows)


def values_outside_of_the_domain_are_counted(patch: pytest.MonkeyPatch) -> None:
    patch.setattr("proxy.plan.sql.row_source.RowSource.in_domains", lambda *_: [])


def values_are_counted_instead_of_rows(patch: pytest.MonkeyPatch) -> None:
    _text(patch, r"(held AS \(SELECT .*?), count\(\*\)", r"\1, count(DISTINCT x)")


def the_smallest_number_decides(patch: pytest.MonkeyPatch) -> None:
    def smallest(plan: Any, cells: Any, numbers: Any) -> Any:
        return foremost(plan, cells, [replace(n, value=1000.0 - n.value) for n in numbers])

    patch.setattr("proxy.release.modes.foremost", smallest)


def rows_that_do_not_pass_have_values(patch: pytest.MonkeyPatch) -> None:
    def counted(block: Block, *others: Any) -> Block | None:
        return counted_values(
            replace(block, aggregates=tuple(replace(a, where=TRUE) for a in block.aggregates)), *others
        )

    patch.setattr("proxy.plan.release_plan.counted_values", counted)


PLANTS: tuple[tuple[Plant, Callable[[Ranks], None]], ...] = (
    (rows_of_a_group_are_not_limited, check_bounds),
    (groups_of_a_unit_are_not_limited, check_bounds),
    (the_number_of_groups_is_not_charged, check_bounds),
    (one_of_several_units_is_charged, check_bounds),
    (a_replaced_unit_is_charged_as_one_that_goes, check_bounds),
    (a_draw_is_half_as_random, check_bounds),
    (values_that_occur_are_drawn_from, check_meaning),
    (values_outside_of_the_domain_are_counted, check_meaning),
    (values_are_counted_instead_of_rows, check_bounds),
    (the_smallest_number_decides, check_meaning),
    (rows_that_do_not_pass_have_values, check_meaning),
)


@pytest.mark.parametrize(("plant", "check"), PLANTS, ids=[p.__name__ for p, _ in PLANTS])
def test_a_planted_mistake_in_modes_is_found(
    plant: Plant, check: Callable[[Ranks], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(monkeypatch)
    for seed in range(FIRST, FIRST + MOST_WORLDS):
        if run_modes((seed,), check, stop=True).failures:
            return
    pytest.fail(f"{MOST_WORLDS} worlds did not show it")
