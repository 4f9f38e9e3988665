"""Random queries over rows in PostgreSQL: one unit moves them within their bounds, and they are the oracle's.

make fuzz continues with fresh seeds, as in `test_sensitivity`.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.fuzz import elected
from tests.fuzz.bin_queries import make_bin_query
from tests.fuzz.constant_queries import make_constant_query
from tests.fuzz.different_queries import make_different_query
from tests.fuzz.elected import run_modes
from tests.fuzz.elsewhere import (
    PLAIN_RANKS,
    RANKS,
    PlainPostgresExaminer,
    PlainPostgresSetsExaminer,
    PostgresExaminer,
    PostgresSetsExaminer,
)
from tests.fuzz.examine import QUERIES, Make, report, run_worlds
from tests.fuzz.framed_queries import make_framed_query, make_share_query
from tests.fuzz.full_queries import make_full_query
from tests.fuzz.joint_queries import make_joint_query
from tests.fuzz.kept_queries import make_kept_query
from tests.fuzz.ranked import Engine, Ranks, check_bounds, check_meaning, run_quantiles
from tests.fuzz.scalars import make_scalars
from tests.fuzz.sets import SetsExaminer
from tests.fuzz.sets_queries import make_sets_query
from tests.fuzz.shrink import shrunk
from tests.fuzz.sibling_queries import make_sibling_query
from tests.fuzz.test_sensitivity import LONG_CASES, LONG_CHUNK, LONG_SEED
from tests.fuzz.unit_queries import make_unit_query

WORLDS = range(90_000, 90_004)
OTHERS: tuple[Make, ...] = (make_bin_query, make_constant_query, make_different_query, make_framed_query,
                            make_full_query, make_joint_query, make_kept_query, make_scalars, make_share_query,
                            make_sibling_query, make_unit_query)  # fmt: skip
SETS = (("sensitivity", PostgresSetsExaminer), ("meaning", PlainPostgresSetsExaminer))
QUANTILES = ((check_bounds, RANKS), (check_meaning, PLAIN_RANKS))
MODES = ((elected.check_bounds, RANKS), (elected.check_meaning, PLAIN_RANKS))


def test_one_unit_moves_the_vector_within_its_bound() -> None:
    tally = run_worlds(WORLDS, "sensitivity", of=PostgresExaminer)
    assert not tally.failures, report(tally)
    assert tally.planned > len(WORLDS) * QUERIES / 5, "the engine computes too few of these queries"


def test_engine_and_oracle_agree_in_every_integer() -> None:
    tally = run_worlds(WORLDS, "meaning", of=PlainPostgresExaminer)
    assert not tally.failures, report(tally)
    assert tally.planned > len(WORLDS) * QUERIES / 8, "too few of these queries mean the same in both engines"


def test_other_queries_move_it_within_its_bound_there_too() -> None:
    planned = 0
    for number, make in enumerate(OTHERS):
        tally = run_worlds((91_000 + number,), "sensitivity", 8, make=make, of=PostgresExaminer)
        assert not tally.failures, report(tally)
        planned += tally.planned
    assert planned > len(OTHERS) * 2, "the engine computes too few of these queries"


def test_grouping_sets_keep_all_promises_there_too() -> None:
    for how, of in SETS:
        tally = run_worlds((91_100,), how, 10, make=make_sets_query, of=of)
        assert not tally.failures, report(tally)
        assert tally.planned > 2, "the engine computes too few of these queries"


def test_quantiles_keep_all_promises_there_too() -> None:
    for check, engine in QUANTILES:
        tally = run_quantiles((91_200, 91_201), check, engine=engine)
        assert not tally.failures, report(tally)
        assert tally.planned > 4, "the engine computes too few of these queries"


def test_modes_keep_all_promises_there_too() -> None:
    for check, engine in MODES:
        tally = run_modes((91_300, 91_301), check, engine=engine)
        assert not tally.failures, report(tally)
        assert tally.planned > 4, "the engine computes too few of these queries"


@pytest.mark.long
@pytest.mark.parametrize(("how", "of"), SETS)
def test_many_grouping_sets(how: str, of: type[SetsExaminer]) -> None:
    tally = run_worlds(range(92_100, 92_200), how, 10, stop=True, make=make_sets_query, of=of)
    assert not tally.failures, f"{report(tally)}\n{shrunk(tally.failures[0], how, of)}"


@pytest.mark.long
@pytest.mark.parametrize(("check", "engine"), QUANTILES)
def test_many_quantiles(check: Callable[[Ranks], None], engine: Engine) -> None:
    tally = run_quantiles(range(92_200, 92_300), check, stop=True, engine=engine)
    assert not tally.failures, report(tally)


@pytest.mark.long
@pytest.mark.parametrize(("check", "engine"), MODES)
def test_many_modes(check: Callable[[Ranks], None], engine: Engine) -> None:
    tally = run_modes(range(92_300, 92_400), check, stop=True, engine=engine)
    assert not tally.failures, report(tally)


@pytest.mark.long
@pytest.mark.parametrize("make", OTHERS, ids=lambda make: make.__name__)
def test_many_other_queries(make: Make) -> None:
    worlds = range(92_000, 92_100)
    for how, of in (("sensitivity", PostgresExaminer), ("meaning", PlainPostgresExaminer)):
        tally = run_worlds(worlds, how, 10, stop=True, make=make, of=of)
        assert not tally.failures, f"{report(tally)}\n{shrunk(tally.failures[0], how, of)}"


@pytest.mark.long
@pytest.mark.parametrize("part", range(-(-LONG_CASES // (LONG_CHUNK * QUERIES))))
def test_many_random_queries(part: int) -> None:
    first = LONG_SEED + part * LONG_CHUNK
    for how, of in (("sensitivity", PostgresExaminer), ("meaning", PlainPostgresExaminer)):
        tally = run_worlds(range(first, first + LONG_CHUNK), how, stop=True, of=of)
        assert not tally.failures, f"{report(tally)}\n{shrunk(tally.failures[0], how, of)}"
