"""What every search asks of its queries, and how it shows that a planted mistake would be found."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Sequence

import pytest

from proxy.errors import HushError
from proxy.policy.model import UnitColumns
from tests.fuzz.examine import Examiner, Make, report, run_worlds
from tests.fuzz.kept_queries import Answer, Shop
from tests.fuzz.worlds import World, make_world

QUERIES = 10  # of one world
CHUNK = 4  # worlds of one test
Plant = Callable[[pytest.MonkeyPatch], None]


def keep_promises(
    worlds: Sequence[int], make: Make, queries: int = QUERIES, *, of: type[Examiner] = Examiner, part: int = 3
) -> None:
    """No query of these worlds moves further than it may or means anything else; one in `part` at least is planned."""
    tally = run_worlds(worlds, "both", queries, make=make, of=of)
    assert not tally.failures, report(tally)
    assert tally.planned > len(worlds) * queries / part, "the grammar makes too few queries that can be planned"


def compare_answers(
    name: str,
    seeds: Iterable[int],
    of: Callable[[World], Shop],
    make: Make,
    queries: int,
    is_same: Callable[[str, Answer, Answer], bool] = lambda _, given, expected: given == expected,
) -> tuple[list[str], int]:
    """Statements answered in another way than by an SQL engine, and how many were answered. name: of the queries."""
    found, answered = [], 0
    for seed in seeds:
        shop, rng = of(make_world(seed)), random.Random(f"{name} {seed}")
        for query in (make(shop.world, rng) for _ in range(queries)):
            try:
                given = shop.given(query)
            except HushError:
                continue
            answered += 1
            expected = shop.expected(query)
            if not is_same(query, given, expected):
                found.append(f"world {seed}: {query}\n    {given}\n    {expected}")
    return found, answered


def find_mistake(
    worlds: Sequence[int],
    how: str,
    make: Make,
    queries: int = 2,
    *,
    of: type[Examiner] = Examiner,
    may_raise: bool = False,
) -> None:
    """One of these worlds shows that something is wrong. may_raise: be it by an error."""
    for seed in worlds:
        tally = run_worlds((seed,), how, queries, stop=True, make=make, of=of)
        if tally.failures:
            assert may_raise or "raised" not in tally.failures[0].message, "this is not what was planted"
            return
    pytest.fail(f"{len(worlds)} worlds did not show it")


def always(query: str) -> Make:
    """One query in every world; `{u}` stands for the columns of the unit, `{same}` for x and y being of one unit."""

    def make(world: World, _: random.Random) -> str:
        ownership = world.tables["e"].ownership
        assert isinstance(ownership, UnitColumns)
        same = " and ".join(f"x.{c} = y.{c}" for c in ownership.columns)
        return query.format(u=", ".join(ownership.columns), same=same)

    return make
