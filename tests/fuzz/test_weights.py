"""Random queries whose aggregates matter unlike: what a unit moves stays within what follows from the weights."""

from __future__ import annotations

import random

import pytest

from tests.fuzz.examine import report, run_worlds


def _unlike(_wanted: object, aggregates: tuple[object, ...], _accounting: object) -> tuple[float, ...]:
    rng = random.Random(len(aggregates))
    return tuple(10.0 ** rng.uniform(-2, 2) for _ in aggregates)


@pytest.mark.parametrize("kind", ["sensitivity", "meaning"])
def test_shares_keep_the_bound(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("proxy.plan.release_plan.shares_of", _unlike)
    tally = run_worlds(range(900, 904), kind)
    assert not tally.failures, report(tally)
    assert tally.planned
