"""Random queries over rows that a sub-select makes of each unit's own, and planted mistakes about them."""

from __future__ import annotations

import pytest

from tests.fuzz.examine import report, run_worlds
from tests.fuzz.promises import CHUNK, always, find_mistake, keep_promises
from tests.fuzz.unit_mutants import PLANTS, Plant
from tests.fuzz.unit_queries import make_unit_query

WORLDS = range(50_000, 50_008)
MOST_WORLDS = 40


@pytest.mark.parametrize("first", WORLDS[::CHUNK])
def test_rows_of_units_keep_all_promises(first: int) -> None:
    keep_promises(range(first, first + CHUNK), make_unit_query)


@pytest.mark.parametrize(("plant", "how", "query"), PLANTS, ids=[p.__name__ for p, _, _ in PLANTS])
def test_a_planted_mistake_is_found(plant: Plant, how: str, query: str, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch)
    find_mistake(range(WORLDS.start, WORLDS.start + MOST_WORLDS), how, always(query), may_raise=True)


@pytest.mark.parametrize("query", sorted({query for _, _, query in PLANTS}))
def test_without_a_mistake_their_queries_are_answered(query: str) -> None:
    tally = run_worlds(WORLDS[:4], "both", queries=2, make=always(query))
    assert not tally.failures, report(tally)
    assert tally.planned
