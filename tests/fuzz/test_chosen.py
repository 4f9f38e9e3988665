"""Random queries whose bound B is chosen by profiles, good ones, absurd and hostile ones: all promises hold for any."""

from __future__ import annotations

import math
import random
from dataclasses import replace

import pytest

from proxy.plan.parts.cells import cells_of
from proxy.plan.profile.profile import BUCKETS, ColumnShares, Sizes, TableProfile, UnitMeans
from proxy.plan.release_plan import PlanContext
from proxy.policy.model import Column, Unknown
from proxy.sql.functions.domains.intervals import number_range
from tests.fuzz.elsewhere import PlainPostgresExaminer, PostgresExaminer
from tests.fuzz.examine import Examiner, report, run_worlds
from tests.fuzz.grammar import make_query
from tests.fuzz.planning import make_context
from tests.fuzz.sets import SetsExaminer
from tests.fuzz.sets_queries import make_sets_query
from tests.fuzz.worlds import World


def made_sizes(rng: random.Random, least: float) -> Sizes:
    """Numbers of units by size: falling ones, all in one bucket, nothing, or nonsense."""
    kind = rng.choice(("falling", "one", "huge", "nonsense"))
    sd = 10.0 ** rng.uniform(-3, 3)
    counts = [rng.gauss(0.0, sd) for _ in range(BUCKETS)]
    match kind:
        case "falling":
            ratio, first = rng.uniform(0.2, 0.95), 10.0 ** rng.uniform(0, 6)
            counts = [c + first * ratio**j for j, c in enumerate(counts)]
        case "one":
            counts[rng.randrange(BUCKETS)] += 1e5
        case "huge":
            counts = [rng.choice((0.0, 1e15, -1e15)) for _ in range(BUCKETS)]
        case _:
            counts = [rng.gauss(0.0, 1e6) for _ in range(BUCKETS)]
    return Sizes(least, tuple(counts), sd)


def made_shares(rng: random.Random, column: Column) -> ColumnShares:
    """Shares of cells: likely ones, others that cannot be, or of another number of cells."""
    kind = rng.choice(("likely", "nonsense", "huge", "others"))
    number = cells_of(column).number if kind != "others" else rng.randint(1, 65)
    scale = 10.0 ** rng.uniform(0, 6) if kind != "huge" else 1e15
    parts = [rng.random() ** 4 if kind == "likely" else rng.gauss(0.0, 1.0) for _ in range(number)]
    pairs = [p * rng.random() if kind == "likely" else rng.gauss(0.0, 1.0) for p in parts]
    return ColumnShares(column=column.name, rows=tuple(scale * p for p in parts), sd=10.0 ** rng.uniform(-3, 3),
                        pairs=tuple(scale * p for p in pairs))  # fmt: skip


def made_means(rng: random.Random, column: Column) -> UnitMeans:
    """Averages of units: in one cell, in many, or far outside what the policy allows."""
    kind = rng.choice(("one", "many", "outside"))
    ends = number_range(column.domain) or (-1.0, 1.0)
    lo, hi = (min(ends), max(ends) + 1.0) if kind != "outside" else (-(10.0 ** rng.uniform(0, 12)), 10.0)
    number = rng.choice((1, 2, 64))
    counts = [rng.gauss(0.0, 1.0) + (1e4 if kind == "many" else 0.0) for _ in range(number)]
    counts[rng.randrange(number)] += 1e5
    return UnitMeans(column=column.name, ends=tuple(lo + (hi - lo) * k / number for k in range(number + 1)),
                     counts=tuple(counts), sd=10.0 ** rng.uniform(-3, 3))  # fmt: skip


def profiled_context(world: World, rng: random.Random) -> PlanContext:
    """As `make_context`, with profiles drawn from a stream of their own; the price is so that many are used.

    Sometimes a bound is imposed.
    """
    context = make_context(world, rng)
    own = random.Random(f"profiled {rng.random()}")
    profiles = tuple(
        TableProfile(
            table=t.name, allowed=own.choice((1, 5, 60)),
            rows=made_sizes(own, 1.0),
            sums=tuple(
                (c.name, 10.0 ** own.uniform(-3, 3), made_sizes(own, math.ldexp(1.0, -12)))
                for c in t.columns if c.type.is_number and own.random() < 0.7
            ),
            data_version="1",
            groups=tuple(
                (c.name, made_sizes(own, 1.0))
                for c in t.columns if isinstance(c.domain, Unknown) and own.random() < 0.8
            ),
            means=tuple(made_means(own, c) for c in t.columns if c.type.is_number and own.random() < 0.8),
            shares=tuple(made_shares(own, c) for c in t.columns if cells_of(c).are_told and own.random() < 0.8),
        )
        for t in world.tables.values() if own.random() < 0.9
    )  # fmt: skip
    return replace(context, profiles=profiles, bound=own.choice((0.0, 0.0, 0.0, 1.0, 0.01)))


@pytest.mark.parametrize("of", [Examiner, SetsExaminer])
def test_chosen_bounds_keep_all_promises(of: type[Examiner], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.fuzz.examine.make_context", profiled_context)
    make = make_query if of is Examiner else make_sets_query
    tally = run_worlds(range(7300, 7306 if of is Examiner else 7302), "both", make=make, of=of)
    assert not tally.failures, report(tally)
    assert tally.planned


def test_chosen_bounds_keep_all_promises_in_postgres(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.fuzz.examine.make_context", profiled_context)
    for how, of in (("sensitivity", PostgresExaminer), ("meaning", PlainPostgresExaminer)):
        tally = run_worlds(range(7400, 7402), how, of=of)
        assert not tally.failures, report(tally)
        assert tally.planned


@pytest.mark.long
@pytest.mark.timeout(0)
@pytest.mark.parametrize(
    ("how", "of"),
    [("both", Examiner), ("sensitivity", PostgresExaminer), ("meaning", PlainPostgresExaminer)],
)
def test_chosen_bounds_keep_all_promises_in_many_worlds(
    how: str, of: type[Examiner], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tests.fuzz.examine.make_context", profiled_context)
    tally = run_worlds(range(7500, 7600), how, of=of)
    assert not tally.failures, report(tally)
    assert tally.planned
