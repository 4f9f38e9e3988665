"""Random queries whose units are bounded by learned sizes, good ones and absurd ones: all promises hold for any."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from proxy.analysis.learned import Learned
from proxy.plan.release_plan import PlanContext
from tests.fuzz.examine import Examiner, report, run_worlds
from tests.fuzz.grammar import make_query
from tests.fuzz.planning import make_context
from tests.fuzz.sets import SetsExaminer
from tests.fuzz.sets_queries import make_sets_query
from tests.fuzz.worlds import World


def learned_context(world: World, rng: random.Random) -> PlanContext:
    """As `make_context`, with what somebody might have learned; drawn from a stream of its own."""
    context = make_context(world, rng)
    own = random.Random(f"learned {rng.random()}")
    rows = tuple((t.name, own.choice((1, 1, 2, 3, 5)), "learned") for t in world.tables.values() if own.random() < 0.8)
    totals = tuple(
        (t.name, c.name, 10.0 ** own.uniform(-3, 3))
        for t in world.tables.values() for c in t.columns if c.type.is_number and own.random() < 0.7
    )  # fmt: skip
    return replace(context, lowered=replace(context.lowered, learned=Learned(rows, totals)))


@pytest.mark.parametrize("of", [Examiner, SetsExaminer])
def test_learned_bounds_keep_all_promises(of: type[Examiner], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.fuzz.examine.make_context", learned_context)
    make = make_query if of is Examiner else make_sets_query
    tally = run_worlds(range(7100, 7104 if of is Examiner else 7102), "both", make=make, of=of)
    assert not tally.failures, report(tally)
    assert tally.planned


@pytest.mark.long
@pytest.mark.timeout(0)
@pytest.mark.parametrize("how", ["sensitivity", "meaning"])
def test_learned_bounds_keep_all_promises_in_many_worlds(how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.fuzz.examine.make_context", learned_context)
    tally = run_worlds(range(7200, 7300), how)
    assert not tally.failures, report(tally)
    assert tally.planned
