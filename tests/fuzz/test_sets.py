"""Random queries with grouping sets, and planted mistakes about them."""

from __future__ import annotations

import random

import pytest

from tests.fuzz.examine import Make
from tests.fuzz.promises import CHUNK, QUERIES, find_mistake, keep_promises
from tests.fuzz.sets import SetsExaminer
from tests.fuzz.sets_mutants import PLANTS, Plant
from tests.fuzz.sets_queries import make_sets_query
from tests.fuzz.worlds import World

WORLDS = range(70_000, 70_004)
MOST_WORLDS = 40


@pytest.mark.parametrize("first", WORLDS[::CHUNK])
def test_grouping_sets_keep_all_promises(first: int) -> None:
    keep_promises(range(first, first + CHUNK), make_sets_query, of=SetsExaminer)


@pytest.mark.long
@pytest.mark.timeout(0)
def test_many_grouping_sets_keep_all_promises() -> None:
    keep_promises(range(71_000, 71_200), make_sets_query, 2 * QUERIES, of=SetsExaminer)


def _always(query: str) -> Make:
    def make(world: World, rng: random.Random) -> str:
        return query or make_sets_query(world, rng)

    return make


@pytest.mark.parametrize(("plant", "how", "query"), PLANTS, ids=[p.__name__ for p, _, _ in PLANTS])
def test_a_planted_mistake_is_found(plant: Plant, how: str, query: str, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch)
    worlds = range(WORLDS.start, WORLDS.start + MOST_WORLDS)
    find_mistake(worlds, how, _always(query), 2 if query else QUERIES, of=SetsExaminer)
