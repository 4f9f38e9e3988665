"""Statements of much at once over worlds with wide limits: whatever bounds profiles choose, all promises hold."""

from __future__ import annotations

import math
import random
from dataclasses import replace

import pytest

from proxy.analysis.analyse import Lowered
from proxy.plan.parts.cells import cells_of
from proxy.plan.profile.profile import BUCKETS, Sizes, TableProfile, UnitMeans
from proxy.plan.release_plan import PlanContext
from proxy.policy.model import Unknown
from proxy.sql.functions.domains.intervals import number_range
from tests.fuzz.elsewhere import PlainPostgresExaminer, PostgresExaminer
from tests.fuzz.examine import Examiner, report, run_worlds
from tests.fuzz.mixed_queries import make_hard_world, make_mixed_query
from tests.fuzz.test_chosen import made_shares, profiled_context
from tests.fuzz.worlds import World


def falling_sizes(rng: random.Random, least: float) -> Sizes:
    """Many units, few of them large: what makes a bound of a profile better than a wide one of a policy."""
    ratio, sd = rng.uniform(0.2, 0.8), 10.0 ** rng.uniform(-2, 2)
    return Sizes(least, tuple(10.0 ** rng.uniform(4, 6) * ratio**j + rng.gauss(0.0, sd) for j in range(BUCKETS)), sd)


def likely_context(world: World, rng: random.Random) -> PlanContext:
    """With profiles that are likely to be used, of every table; now and then as in `test_chosen`."""
    if rng.random() < 0.2:
        return profiled_context(world, rng)
    context, own = profiled_context(world, rng), random.Random(f"likely {rng.random()}")
    profiles = tuple(
        TableProfile(
            table=t.name, allowed=None, rows=falling_sizes(own, 1.0), data_version="1",
            sums=tuple((c.name, max(1.0, 10.0 ** own.uniform(0, 2)), falling_sizes(own, math.ldexp(1.0, -12)))
                       for c in t.columns if c.type.is_number and own.random() < 0.7),
            groups=tuple((c.name, falling_sizes(own, 1.0)) for c in t.columns if isinstance(c.domain, Unknown)),
            means=tuple(UnitMeans(c.name, (ends[0], (ends[0] + ends[1] + 1.0) / 2, ends[1] + 1.0),
                                  own.choice(((1e5, 0.0), (0.0, 1e5), (1e5, 2e4))), 10.0)
                        for c in t.columns if c.type.is_number and (ends := number_range(c.domain)) is not None
                        and abs(ends[0]) + abs(ends[1]) < 1e15),
            shares=tuple(made_shares(own, c) for c in t.columns if cells_of(c).are_told and own.random() < 0.5),
        )
        for t in world.tables.values()
    )  # fmt: skip
    lowered = context.lowered if own.random() < 0.1 else Lowered()
    pico = max(1, context.pico // own.choice((1, 10**2, 10**4)))  # where noise is large, a bound by a profile pays
    return replace(context, profiles=profiles, bound=0.0, lowered=lowered, pico=pico)


@pytest.fixture(autouse=True)
def _hard(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.fuzz.examine.make_world", make_hard_world)
    monkeypatch.setattr("tests.fuzz.examine.make_context", likely_context)


def test_much_at_once_keeps_all_promises() -> None:
    tally = run_worlds(range(7600, 7602), "both", 12, make=make_mixed_query)
    assert not tally.failures, report(tally)
    assert tally.planned


def test_much_at_once_keeps_all_promises_in_postgres() -> None:
    tally = run_worlds(range(7650, 7651), "sensitivity", 12, make=make_mixed_query, of=PostgresExaminer)
    assert not tally.failures, report(tally)
    assert tally.planned


@pytest.mark.long
@pytest.mark.timeout(0)
@pytest.mark.parametrize(
    ("how", "of"),
    [("both", Examiner), ("sensitivity", PostgresExaminer), ("meaning", PlainPostgresExaminer)],
)
def test_much_at_once_keeps_all_promises_in_many_worlds(how: str, of: type[Examiner]) -> None:
    tally = run_worlds(range(7700, 7800), how, make=make_mixed_query, of=of)
    assert not tally.failures, report(tally)
    assert tally.planned
