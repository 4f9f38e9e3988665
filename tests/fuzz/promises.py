"""What every search asks of its queries, and how it shows that a planted mistake would be found."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

import pytest

from proxy.policy.model import UnitColumns
from tests.fuzz.examine import Examiner, Make, report, run_worlds
from tests.fuzz.worlds import World

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
