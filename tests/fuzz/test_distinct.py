"""Random distinct counts: the engine's integers are the oracle's, and one unit moves them within its bound."""

from __future__ import annotations

import pytest

from tests.fuzz.distinct_queries import make_distinct_query
from tests.fuzz.examine import QUERIES, report, run_worlds

WORLDS = 16
CHUNK = 4


@pytest.mark.parametrize("first", range(0, WORLDS, CHUNK))
def test_distinct_counts_are_the_oracles_and_move_within_their_bounds(first: int) -> None:
    tally = run_worlds(range(first, first + CHUNK), "both", make=make_distinct_query)
    assert not tally.failures, report(tally)
    assert tally.planned > CHUNK * QUERIES / 3, "the grammar makes too few queries that can be planned"
