"""Random queries over the different rows of units: do they keep all promises?

That DISTINCT and UNION are read as PostgreSQL does is asked of the cases in `tests/cases/different.yaml`.
"""

from __future__ import annotations

import pytest

from tests.fuzz.different_queries import make_different_query
from tests.fuzz.promises import CHUNK, keep_promises

WORLDS = range(80_000, 80_004)


@pytest.mark.parametrize("first", WORLDS[::CHUNK])
def test_different_rows_of_units_keep_all_promises(first: int) -> None:
    keep_promises(range(first, first + CHUNK), make_different_query, part=4)


@pytest.mark.long
def test_more_different_rows_of_units() -> None:
    keep_promises(range(81_000, 81_300), make_different_query)
