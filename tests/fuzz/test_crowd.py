"""Random queries over a few units among many others: what one takes along does not depend on the crowd."""

from __future__ import annotations

import random
from itertools import islice

import pytest

from proxy.errors import HushError
from proxy.plan.sql import row_source
from tests.fuzz.checks import Broken
from tests.fuzz.crowd import check_in_crowd, databases, worlds_of_numbers
from tests.fuzz.different_queries import make_different_query
from tests.fuzz.examine import Make
from tests.fuzz.framed_queries import make_framed_query
from tests.fuzz.full_queries import make_full_query
from tests.fuzz.grammar import make_query
from tests.fuzz.planning import make_context, plan_query
from tests.fuzz.promises import always
from tests.fuzz.unit_queries import make_unit_query
from tests.fuzz.worlds import World

FIRST = 131_000
PARTS = 10
WORLDS = 4  # of one part
QUERIES = 10  # of one world
MAKERS: tuple[Make, ...] = (make_query, make_unit_query, make_full_query, make_framed_query, make_different_query)
IN_PLACE = ("select count(*) from (select {u}, code, row_number() over (partition by {u} order by 1) as r from e) q"
            " where r = 1 and code = 1")  # fmt: skip


def examined(world: World, makers: tuple[Make, ...], queries: int) -> int:
    """How many queries of a world were planned, and kept their promises. Raises Broken."""
    planned = 0
    with databases(world) as (alone, crowd):
        for number in range(queries):
            rng = random.Random(f"crowd {world.seed} {number}")
            query = makers[number % len(makers)](world, rng)
            try:
                plan = plan_query(world, query, make_context(world, rng))
            except HushError:
                continue
            if plan.vector.moments:
                planned += 1
                try:
                    check_in_crowd(plan, alone, crowd)
                except Broken as error:
                    raise Broken(f"world {world.seed}: {error}\n    {query}") from error
    return planned


@pytest.mark.long
@pytest.mark.parametrize("first", range(FIRST, FIRST + PARTS * 1000, 1000))
def test_who_leaves_a_crowd_takes_what_they_have_alone(first: int) -> None:
    assert sum(examined(world, MAKERS, QUERIES) for world in islice(worlds_of_numbers(first), WORLDS))


@pytest.mark.long
def test_an_order_that_rows_do_not_decide_is_noticed_in_a_crowd(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_source, "is_told_by_place", lambda _: False)
    with pytest.raises(Broken):
        for world in islice(worlds_of_numbers(FIRST), 10):
            examined(world, (always(IN_PLACE),), 1)
