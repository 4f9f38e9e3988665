"""Random queries whose constants were released before: one unit moves them within their bounds, as the oracle says."""

from __future__ import annotations

import pytest

from tests.fuzz.examine import QUERIES, report, run_worlds
from tests.fuzz.staged_queries import make_staged_query

WORLDS = range(60_000, 60_004)
CHUNK = 4


@pytest.mark.parametrize("first", WORLDS[::CHUNK])
def test_what_follows_a_stage_keeps_all_promises(first: int) -> None:
    tally = run_worlds(range(first, first + CHUNK), "both", make=make_staged_query)
    assert not tally.failures, report(tally)
    assert tally.planned > CHUNK * QUERIES / 4, "the grammar makes too few queries that can be planned"
