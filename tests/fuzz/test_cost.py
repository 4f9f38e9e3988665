"""What does it cost to plan a statement, counted in calls of functions: no more than its length times a constant?"""

from __future__ import annotations

import contextlib
import random

import pytest

from proxy.errors import HushError
from proxy.sql.algebra import canonical
from tests.attacks.test_sizes import calls_of
from tests.fuzz.cost_queries import FAMILIES
from tests.unit.plan.shop import any_plan, plans

FOR_A_CHARACTER = 200  # of any family, at any size; a quadratic one of 400 parts takes thousands
FOR_A_STATEMENT = 1_500_000  # bounds that are numbers: a hundred thousand groups, values of keys, pairs of filters
SEEDS = range(3)
SIZES = (10, 120)


def calls_to_plan(sql: str) -> int:
    """Until it is planned or refused; a stack that is too deep for the counting is one of the refusals."""

    def work() -> None:
        with contextlib.suppress(HushError, RecursionError):
            plans(sql) if "GROUPING SETS" not in sql else any_plan(sql)

    return calls_of(work)


def check(family: str, seed: int, size: int) -> None:
    sql = FAMILIES[family](random.Random(seed), size)
    calls = calls_to_plan(sql)
    found = f"{calls:,} calls for {len(sql):,} characters: {sql[:2000]}"
    assert calls < FOR_A_STATEMENT + FOR_A_CHARACTER * len(sql), found


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("family", FAMILIES)
def test_planning_costs_what_its_length_says(family: str, seed: int) -> None:
    for size in SIZES:
        check(family, seed, size)


@pytest.mark.parametrize("family", ["AND", "OR", "aggregates", "grouped aggregates", "simple CASE", "HAVING", "lists"])
def test_four_times_as_long_takes_little_more_than_four_times_as_long(family: str) -> None:
    few, many = (calls_to_plan(FAMILIES[family](random.Random(1), size)) for size in (60, 240))
    assert many < 5 * few


@pytest.mark.long
@pytest.mark.parametrize("family", FAMILIES)
def test_planning_costs_what_its_length_says_for_longer(family: str) -> None:
    for seed in range(100, 140):
        check(family, seed, random.Random(seed).randrange(5, 900))


def test_what_looks_at_all_pairs_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """A planted mistake: each condition is compared with every other."""
    original = canonical.in_order

    def pairwise(scalars: tuple[object, ...]) -> object:
        assert all(isinstance(repr(a) < repr(b), bool) for a in scalars for b in scalars)
        return original(scalars)  # type: ignore[arg-type]

    monkeypatch.setattr(canonical, "in_order", pairwise)
    with pytest.raises(AssertionError, match="calls for"):
        check("AND", 0, 250)
