"""Does the fuzzer, or the oracle, find each planted mistake, and soon?"""

from __future__ import annotations

import pytest

from tests.fuzz.examine import report, run_worlds
from tests.fuzz.mutants import PLANTS, Plant

MOST_WORLDS = 10


@pytest.mark.parametrize(("plant", "how", "first"), PLANTS, ids=[p.__name__ for p, _, _ in PLANTS])
def test_a_planted_mistake_is_found(plant: Plant, how: str, first: int, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch)
    for seed in range(first, first + MOST_WORLDS):
        if run_worlds((seed,), how, stop=True).failures:
            return
    pytest.fail(f"{MOST_WORLDS} worlds did not show it")


def test_the_same_worlds_show_nothing_without_a_mistake() -> None:
    tally = run_worlds(sorted({first for _, _, first in PLANTS}), "both")
    assert not tally.failures, report(tally)
