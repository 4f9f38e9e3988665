"""Random queries over rows that a sub-select makes of each unit's own, and planted mistakes about them."""

from __future__ import annotations

import random

import pytest

from proxy.policy.model import UnitColumns
from tests.fuzz.examine import Make, report, run_worlds
from tests.fuzz.unit_mutants import PLANTS, Plant
from tests.fuzz.unit_queries import make_unit_query
from tests.fuzz.worlds import World

QUERIES = 10  # of one world
WORLDS = range(50_000, 50_020)
CHUNK = 4
MOST_WORLDS = 40


@pytest.mark.parametrize("first", WORLDS[::CHUNK])
def test_rows_of_units_keep_all_promises(first: int) -> None:
    tally = run_worlds(range(first, first + CHUNK), "both", QUERIES, make=make_unit_query)
    assert not tally.failures, report(tally)
    assert tally.planned > CHUNK * QUERIES / 3, "the grammar makes too few queries that can be planned"


def _always(query: str) -> Make:
    def make(world: World, _: random.Random) -> str:
        ownership = world.tables["e"].ownership
        assert isinstance(ownership, UnitColumns)
        same = " and ".join(f"x.{c} = y.{c}" for c in ownership.columns)
        return query.format(u=", ".join(ownership.columns), same=same)

    return make


@pytest.mark.parametrize(("plant", "how", "query"), PLANTS, ids=[p.__name__ for p, _, _ in PLANTS])
def test_a_planted_mistake_is_found(plant: Plant, how: str, query: str, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch)
    for seed in WORLDS[:MOST_WORLDS]:
        if run_worlds((seed,), how, queries=2, stop=True, make=_always(query)).failures:
            return
    pytest.fail(f"{MOST_WORLDS} worlds did not show it")


@pytest.mark.parametrize("query", sorted({query for _, _, query in PLANTS}))
def test_without_a_mistake_their_queries_are_answered(query: str) -> None:
    tally = run_worlds(WORLDS[:4], "both", queries=2, make=_always(query))
    assert not tally.failures, report(tally)
    assert tally.planned
