"""Random queries over window functions with frames, and planted mistakes about them."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from proxy.policy.model import UnitColumns
from tests.fuzz.examine import Make, report, run_worlds
from tests.fuzz.framed_queries import make_framed_query, make_share_query
from tests.fuzz.worlds import World

QUERIES = 10  # of one world
WORLDS = range(90_000, 90_008)
CHUNK = 4
MOST_WORLDS = 40
Plant = Callable[[pytest.MonkeyPatch], None]


@pytest.mark.parametrize("first", WORLDS[::CHUNK])
def test_frames_keep_all_promises(first: int) -> None:
    tally = run_worlds(range(first, first + CHUNK), "both", QUERIES, make=make_framed_query)
    assert not tally.failures, report(tally)
    assert tally.planned > CHUNK * QUERIES / 3, "the grammar makes too few queries that can be planned"


def test_tiles_and_shares_keep_all_promises() -> None:
    tally = run_worlds(range(92_000, 92_004), "both", QUERIES, make=make_share_query)
    assert not tally.failures, report(tally)
    assert tally.planned > 4 * QUERIES / 3, "the grammar makes too few queries that can be planned"


@pytest.mark.long
@pytest.mark.parametrize("make", [make_framed_query, make_share_query])
def test_more_frames(make: Make) -> None:
    tally = run_worlds(range(91_000, 91_300), "both", QUERIES, make=make)
    assert not tally.failures, report(tally)


def frames_are_forgotten(patch: pytest.MonkeyPatch) -> None:
    patch.setattr("proxy.plan.terms.spell_frame", lambda _: "")


def frames_count_rows_that_are_left_to_the_engine(patch: pytest.MonkeyPatch) -> None:
    patch.setattr("proxy.plan.terms.is_told_by_place", lambda _: False)


_BEFORE = "count(*) over (partition by {u} order by code rows between 2 preceding and 1 preceding)"
_HALF = "ntile(2) over (partition by {u} order by code)"
_SECOND = "nth_value(id, 2) over (partition by {u} order by code rows between 1 preceding and current row)"
PLANTS: tuple[tuple[Plant, str, str], ...] = (
    (frames_are_forgotten, "meaning", f"select count(*) from (select {{u}}, {_BEFORE} as n from e) q where q.n = 1"),
    (frames_count_rows_that_are_left_to_the_engine, "meaning",
     f"select count(*) from (select {{u}}, id, {_BEFORE} as n from e) q where q.n = 1 and q.id > 2"),
    (frames_are_forgotten, "meaning", f"select count(*) from (select {{u}}, {_SECOND} as n from e) q where q.n = 1"),
    (frames_count_rows_that_are_left_to_the_engine, "meaning",
     f"select count(*) from (select {{u}}, id, {_HALF} as n from e) q where q.n = 1 and q.id > 2"),
)  # fmt: skip


def _always(query: str) -> Make:
    def make(world: World, _: random.Random) -> str:
        ownership = world.tables["e"].ownership
        assert isinstance(ownership, UnitColumns)
        return query.format(u=", ".join(ownership.columns))

    return make


@pytest.mark.parametrize(
    ("plant", "how", "query"), PLANTS, ids=[f"{p.__name__}{n}" for n, (p, _, _) in enumerate(PLANTS)]
)
def test_a_planted_mistake_is_found(plant: Plant, how: str, query: str, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch)
    for seed in range(WORLDS.start, WORLDS.start + MOST_WORLDS):
        if run_worlds((seed,), how, queries=2, stop=True, make=_always(query)).failures:
            return
    pytest.fail(f"{MOST_WORLDS} worlds did not show it")
