"""Random queries on databases that differ in one unit: the vector moves within its bound, others' cells do not move.

make fuzz continues with fresh seeds: HUSHQL_FUZZ_CASES queries (default 100000) from HUSHQL_FUZZ_SEED on.
"""

from __future__ import annotations

import os

import pytest

from tests.fuzz.examine import QUERIES, report, run_worlds
from tests.fuzz.shrink import shrunk

WORLDS = 72
CHUNK = 4
FIRST = 10_000  # other worlds than those of the oracle


@pytest.mark.parametrize("first", range(FIRST, FIRST + WORLDS, CHUNK))
def test_one_unit_moves_the_vector_within_its_bound(first: int) -> None:
    tally = run_worlds(range(first, first + CHUNK), "sensitivity")
    assert not tally.failures, report(tally)
    assert tally.planned > CHUNK * QUERIES / 3, "the grammar makes too few queries that can be planned"


LONG_CASES = int(os.environ.get("HUSHQL_FUZZ_CASES", "100000"))
LONG_SEED = int(os.environ.get("HUSHQL_FUZZ_SEED", "1000000"))
LONG_CHUNK = 50


@pytest.mark.long
@pytest.mark.parametrize("part", range(-(-LONG_CASES // (LONG_CHUNK * QUERIES))))
def test_many_random_queries(part: int) -> None:
    first = LONG_SEED + part * LONG_CHUNK
    tally = run_worlds(range(first, first + LONG_CHUNK), "both", stop=True)
    assert not tally.failures, f"{report(tally)}\n{shrunk(tally.failures[0], 'both')}"
