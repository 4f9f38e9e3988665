"""Random queries over window functions with frames, and planted mistakes about them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from proxy.sql.algebra.describe import spell_frame
from tests.fuzz.examine import Make
from tests.fuzz.framed_queries import make_framed_query, make_peers_query, make_share_query
from tests.fuzz.promises import CHUNK, Plant, always, find_mistake, keep_promises

WORLDS = range(90_000, 90_004)
MOST_WORLDS = 40


@pytest.mark.parametrize("first", WORLDS[::CHUNK])
def test_frames_keep_all_promises(first: int) -> None:
    keep_promises(range(first, first + CHUNK), make_framed_query)


def test_tiles_and_shares_keep_all_promises() -> None:
    keep_promises(range(92_000, 92_002), make_share_query)


def test_groups_of_equal_rows_keep_all_promises() -> None:
    keep_promises(range(93_000, 93_004), make_peers_query, part=5)


@pytest.mark.long
@pytest.mark.parametrize("make", [make_framed_query, make_share_query, make_peers_query])
def test_more_frames(make: Make) -> None:
    keep_promises(range(91_000, 91_300), make)


def frames_are_forgotten(patch: pytest.MonkeyPatch) -> None:
    patch.setattr("proxy.plan.sql.row_source.spell_frame", lambda _: "")


def frames_count_rows_that_are_left_to_the_engine(patch: pytest.MonkeyPatch) -> None:
    patch.setattr("proxy.plan.sql.row_source.is_told_by_place", lambda _: False)


def groups_are_counted_as_rows(patch: pytest.MonkeyPatch) -> None:
    patch.setattr("proxy.plan.sql.row_source.spell_frame", lambda frame: spell_frame(replace(frame, by_peers=False)))


_BEFORE = "count(*) over (partition by {u} order by code rows between 2 preceding and 1 preceding)"
_HALF = "ntile(2) over (partition by {u} order by code)"
_SECOND = "nth_value(id, 2) over (partition by {u} order by code rows between 1 preceding and current row)"
_PEERS = "count(*) over (partition by {u} order by code groups between 1 preceding and current row)"
PLANTS: tuple[tuple[Plant, str, str], ...] = (
    (frames_are_forgotten, "meaning", f"select count(*) from (select {{u}}, {_BEFORE} as n from e) q where q.n = 1"),
    (frames_count_rows_that_are_left_to_the_engine, "meaning",
     f"select count(*) from (select {{u}}, id, {_BEFORE} as n from e) q where q.n = 1 and q.id > 2"),
    (groups_are_counted_as_rows, "meaning",
     f"select count(*) from (select {{u}}, {_PEERS} as n from e) q where q.n >= 2"),
    (frames_are_forgotten, "meaning", f"select count(*) from (select {{u}}, {_SECOND} as n from e) q where q.n = 1"),
    (frames_count_rows_that_are_left_to_the_engine, "meaning",
     f"select count(*) from (select {{u}}, id, {_HALF} as n from e) q where q.n = 1 and q.id > 2"),
)  # fmt: skip


@pytest.mark.parametrize(
    ("plant", "how", "query"), PLANTS, ids=[f"{p.__name__}{n}" for n, (p, _, _) in enumerate(PLANTS)]
)
def test_a_planted_mistake_is_found(plant: Plant, how: str, query: str, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch)
    find_mistake(range(WORLDS.start, WORLDS.start + MOST_WORLDS), how, always(query))
