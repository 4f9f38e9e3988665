"""Random queries with grouping sets, and planted mistakes about them."""

from __future__ import annotations

import random

import pytest

from tests.fuzz.examine import Make, report, run_worlds
from tests.fuzz.sets import SetsExaminer
from tests.fuzz.sets_mutants import PLANTS, Plant
from tests.fuzz.sets_queries import make_sets_query
from tests.fuzz.worlds import World

QUERIES = 10  # of one world
WORLDS = range(70_000, 70_008)
CHUNK = 4
MOST_WORLDS = 40


@pytest.mark.parametrize("first", WORLDS[::CHUNK])
def test_grouping_sets_keep_all_promises(first: int) -> None:
    tally = run_worlds(range(first, first + CHUNK), "both", QUERIES, make=make_sets_query, of=SetsExaminer)
    assert not tally.failures, report(tally)
    assert tally.planned > CHUNK * QUERIES / 3, "the grammar makes too few queries that can be planned"


@pytest.mark.long
@pytest.mark.timeout(0)
def test_many_grouping_sets_keep_all_promises() -> None:
    tally = run_worlds(range(71_000, 71_200), "both", make=make_sets_query, of=SetsExaminer)
    assert not tally.failures, report(tally)


def _always(query: str) -> Make:
    def make(world: World, rng: random.Random) -> str:
        return query or make_sets_query(world, rng)

    return make


@pytest.mark.parametrize(("plant", "how", "query"), PLANTS, ids=[p.__name__ for p, _, _ in PLANTS])
def test_a_planted_mistake_is_found(plant: Plant, how: str, query: str, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch)
    for seed in range(WORLDS.start, WORLDS.start + MOST_WORLDS):
        tally = run_worlds((seed,), how, queries=2 if query else 10, stop=True, make=_always(query), of=SetsExaminer)
        if tally.failures:
            assert "raised" not in tally.failures[0].message, "the mistake is not the one that was planted"
            return
    pytest.fail(f"{MOST_WORLDS} worlds did not show it")
