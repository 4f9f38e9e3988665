"""Random queries: the engine's integers are the oracle's, and what is published is those integers plus noise."""

from __future__ import annotations

import pytest

from tests.fuzz.examine import QUERIES, report, run_worlds

WORLDS = 40
CHUNK = 5


@pytest.mark.parametrize("first", range(0, WORLDS, CHUNK))
def test_engine_and_oracle_agree_in_every_integer(first: int) -> None:
    tally = run_worlds(range(first, first + CHUNK), "meaning")
    assert not tally.failures, report(tally)
    assert tally.planned > CHUNK * QUERIES / 3, "the grammar makes too few queries that can be planned"
