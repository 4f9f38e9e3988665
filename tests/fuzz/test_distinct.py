"""Random distinct counts: the engine's integers are the oracle's, and one unit moves them within its bound."""

from __future__ import annotations

import random

import pytest

from proxy.sqltypes import SqlType
from tests.fuzz.distinct_mutants import PLANTS, Plant
from tests.fuzz.distinct_queries import make_distinct_query
from tests.fuzz.examine import QUERIES, Make, report, run_worlds
from tests.fuzz.worlds import World

WORLDS = 12
CHUNK = 4
MOST_WORLDS = 60


@pytest.mark.parametrize("first", range(0, WORLDS, CHUNK))
def test_distinct_counts_are_the_oracles_and_move_within_their_bounds(first: int) -> None:
    tally = run_worlds(range(first, first + CHUNK), "both", make=make_distinct_query)
    assert not tally.failures, report(tally)
    assert tally.planned > CHUNK * QUERIES / 3, "the grammar makes too few queries that can be planned"


def _always(query: str) -> Make:
    """Queries for one mistake."""

    def make(world: World, rng: random.Random) -> str:
        spelled = [c.name for c in world.tables["e"].columns if c.case_blind or c.type is SqlType.FLOAT8]
        return query.format(s=(*spelled, "code")[0]) or make_distinct_query(world, rng)

    return make


@pytest.mark.parametrize(("plant", "how", "query"), PLANTS, ids=[p.__name__ for p, _, _ in PLANTS])
def test_a_planted_mistake_is_found(plant: Plant, how: str, query: str, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch)
    for seed in range(MOST_WORLDS):
        tally = run_worlds((seed,), how, queries=2 if query else 20, stop=True, make=_always(query))
        if tally.failures:
            assert "raised" not in tally.failures[0].message, "the mistake is not the one that was planted"
            return
    pytest.fail(f"{MOST_WORLDS} worlds did not show it")


@pytest.mark.parametrize("query", sorted({query for _, _, query in PLANTS if query}))
def test_without_a_mistake_their_queries_are_answered(query: str) -> None:
    tally = run_worlds(range(4), "both", queries=2, make=_always(query))
    assert not tally.failures, report(tally)
    assert tally.planned
