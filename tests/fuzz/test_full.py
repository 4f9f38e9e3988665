"""Random queries over rows of FULL JOIN, and planted mistakes about them."""

from __future__ import annotations

import random
from collections.abc import Callable
from types import SimpleNamespace

import pytest

from proxy.policy.model import UnitColumns
from proxy.sql import full_joins
from proxy.sql.algebra import JoinKind
from tests.fuzz.examine import Make, report, run_worlds
from tests.fuzz.full_queries import make_full_query
from tests.fuzz.worlds import World

QUERIES = 10  # of one world
WORLDS = range(110_000, 110_008)
CHUNK = 4
MOST_WORLDS = 20
Plant = Callable[[pytest.MonkeyPatch], None]


@pytest.mark.parametrize("first", WORLDS[::CHUNK])
def test_rows_of_full_joins_keep_all_promises(first: int) -> None:
    tally = run_worlds(range(first, first + CHUNK), "both", QUERIES, make=make_full_query)
    assert not tally.failures, report(tally)
    assert tally.planned > CHUNK * QUERIES / 3, "the grammar makes too few queries that can be planned"


@pytest.mark.long
def test_more_rows_of_full_joins() -> None:
    tally = run_worlds(range(111_000, 111_300), "both", QUERIES, make=make_full_query)
    assert not tally.failures, report(tally)


def a_unit_has_rows_on_one_side_only(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(full_joins, "_is_unit_alone", lambda *_: True)


def rows_that_were_met_come_again(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(full_joins, "JoinKind", SimpleNamespace(ANTI=JoinKind.SEMI))


PLANTS: tuple[tuple[Plant, str, str], ...] = (
    (a_unit_has_rows_on_one_side_only, "sensitivity",
     "select count(*) from p x full join p y on {same} and x.code < y.code"),
    (rows_that_were_met_come_again, "sensitivity",
     "select count(*), count(x.code) from p x full join p y on {same}"),
)  # fmt: skip


def _always(query: str) -> Make:
    def make(world: World, _: random.Random) -> str:
        ownership = world.tables["e"].ownership
        assert isinstance(ownership, UnitColumns)
        same = " and ".join(f"x.{c} = y.{c}" for c in ownership.columns)
        return query.format(same=same)

    return make


@pytest.mark.parametrize(("plant", "how", "query"), PLANTS, ids=[p.__name__ for p, _, _ in PLANTS])
def test_a_planted_mistake_is_found(plant: Plant, how: str, query: str, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch)
    for seed in range(WORLDS.start, WORLDS.start + MOST_WORLDS):
        if run_worlds((seed,), how, queries=2, stop=True, make=_always(query)).failures:
            return
    pytest.fail(f"{MOST_WORLDS} worlds did not show it")
