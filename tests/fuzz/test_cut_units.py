"""Random queries with narrow bounds: units that are cut are counted exactly, and all promises hold with the pair."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from proxy.analysis.analyse import Lowered
from proxy.plan.release_plan import PlanContext, ReleasePlan
from tests.fuzz.elsewhere import PlainPostgresExaminer
from tests.fuzz.examine import Examiner, Make, report, run_worlds
from tests.fuzz.grammar import make_query
from tests.fuzz.planning import context_of
from tests.fuzz.sets import SetsExaminer
from tests.fuzz.sets_queries import make_sets_query
from tests.fuzz.worlds import World


def narrow_context(world: World, rng: random.Random) -> PlanContext:
    """A client's own small bounds, and units that are always counted."""
    lowered = Lowered(rows_per_group=rng.choice((1, 1, 2)), groups=rng.choice((0, 1, 1)))
    return replace(context_of(world, lowered), privacy=replace(world.privacy, tell_cut=True))


@pytest.mark.parametrize(
    ("of", "make", "worlds"),
    [(Examiner, make_query, range(7300, 7304)), (PlainPostgresExaminer, make_query, range(7310, 7312)),
     (SetsExaminer, make_sets_query, range(7320, 7322))],
)  # fmt: skip
def test_counting_cut_units_keeps_all_promises(
    of: type[Examiner], make: Make, worlds: range, monkeypatch: pytest.MonkeyPatch
) -> None:
    cut, original = list[bool](), of.check_plan

    def check_plan(self: Examiner, plan: ReleasePlan) -> None:
        original(self, plan)
        if plan.cut_weight:
            place, everybody = 1 + len(plan.analysed.keys), self.databases.everybody()
            cut.extend(bool(row[place]) for row in self.databases.run(plan.sql, everybody) if row[0] == 2)

    monkeypatch.setattr("tests.fuzz.examine.make_context", narrow_context)
    monkeypatch.setattr(of, "check_plan", check_plan)
    tally = run_worlds(worlds, "both", 12, make=make, of=of)
    assert not tally.failures, report(tally)
    assert any(cut), "nobody was cut"
    assert not all(cut)
