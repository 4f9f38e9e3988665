"""Random queries over the different rows of units: do they keep all promises?

That DISTINCT and UNION are read as PostgreSQL does is asked of the cases in `tests/cases/different.yaml`.
"""

from __future__ import annotations

import pytest

from tests.fuzz.different_queries import make_different_query
from tests.fuzz.examine import report, run_worlds

QUERIES = 10  # of one world
WORLDS = range(80_000, 80_008)
CHUNK = 4


@pytest.mark.parametrize("first", WORLDS[::CHUNK])
def test_different_rows_of_units_keep_all_promises(first: int) -> None:
    tally = run_worlds(range(first, first + CHUNK), "both", QUERIES, make=make_different_query)
    assert not tally.failures, report(tally)
    assert tally.planned > CHUNK * QUERIES / 4, "the grammar makes too few queries that can be planned"


@pytest.mark.long
def test_more_different_rows_of_units() -> None:
    tally = run_worlds(range(81_000, 81_300), "both", QUERIES, make=make_different_query)
    assert not tally.failures, report(tally)
