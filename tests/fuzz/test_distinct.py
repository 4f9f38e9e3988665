"""Random distinct counts: the engine's integers are the oracle's, and one unit moves them within its bound."""

from __future__ import annotations

import random

import pytest

from tests.fuzz.distinct_mutants import PLANTS, Plant
from tests.fuzz.distinct_queries import make_distinct_query
from tests.fuzz.examine import QUERIES, Make, report, run_worlds
from tests.fuzz.promises import CHUNK, find_mistake, keep_promises
from tests.fuzz.worlds import World

WORLDS = 8
MOST_WORLDS = 60


@pytest.mark.parametrize("first", range(0, WORLDS, CHUNK))
def test_distinct_counts_are_the_oracles_and_move_within_their_bounds(first: int) -> None:
    keep_promises(range(first, first + CHUNK), make_distinct_query)


def _always(query: str) -> Make:
    """Queries for one mistake."""

    def make(world: World, rng: random.Random) -> str:
        return query or make_distinct_query(world, rng)

    return make


@pytest.mark.parametrize(("plant", "how", "query"), PLANTS, ids=[p.__name__ for p, _, _ in PLANTS])
def test_a_planted_mistake_is_found(plant: Plant, how: str, query: str, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch)
    find_mistake(range(MOST_WORLDS), how, _always(query), 2 if query else QUERIES)


@pytest.mark.parametrize("query", sorted({query for _, _, query in PLANTS if query}))
def test_without_a_mistake_their_queries_are_answered(query: str) -> None:
    tally = run_worlds(range(4), "both", queries=2, make=_always(query))
    assert not tally.failures, report(tally)
    assert tally.planned
