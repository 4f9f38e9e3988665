"""Random queries over rows in PostgreSQL: one unit moves them within their bounds, and they are the oracle's.

make fuzz continues with fresh seeds, as in `test_sensitivity`.
"""

from __future__ import annotations

import pytest

from tests.fuzz.elsewhere import PlainPostgresExaminer, PostgresExaminer
from tests.fuzz.examine import QUERIES, report, run_worlds
from tests.fuzz.shrink import shrunk
from tests.fuzz.test_sensitivity import LONG_CASES, LONG_CHUNK, LONG_SEED

WORLDS = range(90_000, 90_004)


def test_one_unit_moves_the_vector_within_its_bound() -> None:
    tally = run_worlds(WORLDS, "sensitivity", of=PostgresExaminer)
    assert not tally.failures, report(tally)
    assert tally.planned > len(WORLDS) * QUERIES / 5, "the engine computes too few of these queries"


def test_engine_and_oracle_agree_in_every_integer() -> None:
    tally = run_worlds(WORLDS, "meaning", of=PlainPostgresExaminer)
    assert not tally.failures, report(tally)
    assert tally.planned > len(WORLDS) * QUERIES / 8, "too few of these queries mean the same in both engines"


@pytest.mark.long
@pytest.mark.parametrize("part", range(-(-LONG_CASES // (LONG_CHUNK * QUERIES))))
def test_many_random_queries(part: int) -> None:
    first = LONG_SEED + part * LONG_CHUNK
    for how, of in (("sensitivity", PostgresExaminer), ("meaning", PlainPostgresExaminer)):
        tally = run_worlds(range(first, first + LONG_CHUNK), how, stop=True, of=of)
        assert not tally.failures, f"{report(tally)}\n{shrunk(tally.failures[0], how, of)}"
