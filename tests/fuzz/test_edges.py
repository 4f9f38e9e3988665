"""All promises hold at the edges of bounds too; what random worlds do not show is found there."""

from __future__ import annotations

import random

import pytest

from proxy.analysis.analyse import Lowered
from tests.fuzz.edge_worlds import make_edge_query, make_edge_world
from tests.fuzz.examine import Examiner, Tally, examine_one, report
from tests.fuzz.planning import context_of

QUERIES = 12  # of one world
CHUNK = 6
FIRST = 50_000
WORLDS = 36


def run_edges(seeds: range) -> Tally:
    tally = Tally()
    for seed in seeds:
        with Examiner(make_edge_world(seed)) as examiner:
            for number in range(QUERIES):
                rng = random.Random(f"edge query {seed} {number}")
                query = make_edge_query(examiner.world, rng)
                examine_one(examiner, query, context_of(examiner.world, Lowered()), "both", tally, seed, number)
    return tally


@pytest.mark.parametrize("first", range(FIRST, FIRST + WORLDS, CHUNK))
def test_all_promises_hold_at_the_edges_of_bounds(first: int) -> None:
    tally = run_edges(range(first, first + CHUNK))
    assert not tally.failures, report(tally)
    assert tally.planned >= CHUNK * QUERIES * 0.9
