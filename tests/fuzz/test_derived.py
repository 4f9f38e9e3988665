"""What follows from earlier answers is what a new release would say, to the last digit but for noise.

Of exact data without noise: every derived number is compared with that of the question's own private SQL.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import numpy as np
import pytest

from proxy.analysis.analyse import Lowered
from proxy.dp.quantiles import Draw, Weights
from proxy.errors import HushError
from proxy.plan.release_plan import PlanContext, ReleasePlan
from proxy.plan.release_plan import plan_release as planned
from proxy.plan.reuse.derive import Derived, derive
from proxy.release.derived import finish_derived
from proxy.release.finish import Release, finish
from proxy.release.noisy import NoisyCells
from proxy.release.parts import publish_release
from proxy.release.raw import KeptKeys, RawResult
from proxy.sql.query.block import BoundBlock
from tests.fuzz.derived_world import Question, make_again, make_source, make_tame_world, make_wanted
from tests.fuzz.duck import Databases
from tests.fuzz.examine import NoNoise
from tests.fuzz.planning import bind, context_of
from tests.fuzz.worlds import World
from tests.thresholds import lowered

_PICO = 10**18  # so much that no number is told from its noise
_SOURCES, _AGAIN, _WANTED = 10, 2, 40


@dataclass(frozen=True, slots=True)
class Compared:
    """A derived answer beside a new one."""

    wanted: str
    derived: Derived
    columns: list[tuple[str, list[str | None], list[str | None]]]

    @property
    def mistakes(self) -> list[str]:
        return [name for name, ours, fresh in self.columns if not all(map(_alike, ours, fresh))]


def _alike(ours: str | None, fresh: str | None) -> bool:
    """Numbers that are NULL in one of them are too near to their noise."""
    if ours is None or fresh is None or ours == fresh:
        return True
    try:
        return math.isclose(float(ours), float(fresh), rel_tol=1e-3, abs_tol=1e-3)
    except ValueError:
        return False


def _best(scores: Weights, _: Draw) -> int:
    """Not by chance: a cell with the best score."""
    return int(np.argmax(scores))


class _Asked:
    def __init__(self, world: World, databases: Databases, context: PlanContext) -> None:
        self._world, self._databases, self._context = world, databases, context

    def planned(self, text: str) -> tuple[ReleasePlan, BoundBlock]:
        block = bind(self._world, text)
        return planned(block.block, self._context), block

    def cells(self, plan: ReleasePlan) -> NoisyCells:
        """All groups, private ones too."""
        plan = lowered(plan, -1.0)

        def rows(stage: int, kept: KeptKeys) -> RawResult:
            columns: list[list[object]] = [list(c) for c in kept.columns]
            return RawResult(0, tuple(self._databases.run(plan.stages[stage], self._databases.everybody(), columns)))

        return publish_release(plan, rows, NoNoise(), choose=_best)


def compared(seed: int) -> Iterator[Compared]:
    """Every question of a world that follows from others of it."""
    rng = random.Random(f"derived {seed}")
    world = make_tame_world(rng)
    table = "p" if rng.random() < 0.7 else "v"
    databases = Databases(world)
    asked = _Asked(world, databases, replace(context_of(world, Lowered()), pico=_PICO))
    try:
        sources = list(_planned(asked, [make_source(rng, table) for _ in range(_SOURCES)]))
        wanted = [make_again(rng, q) for q, _, _ in sources for _ in range(_AGAIN)]
        wanted += [make_wanted(rng, table) for _ in range(_WANTED)]
        for question, plan, block in _planned(asked, wanted):
            for found in derive(plan, [p for _, p, _ in sources], math.inf, math.inf):
                read = [asked.cells(s.of) for s in found.sources]
                ours = finish_derived(found, read, block.columns, nonnegative=False, time_zone="UTC")
                fresh = finish(plan, asked.cells(plan), block.columns, nonnegative=False, time_zone="UTC")
                yield Compared(question.text, found, list(_columns(ours, fresh)))
    finally:
        databases.close()


def _planned(asked: _Asked, questions: Iterable[Question]) -> Iterator[tuple[Question, ReleasePlan, BoundBlock]]:
    for question in questions:
        try:
            yield question, *asked.planned(question.text)
        except HushError:
            continue  # no bounds, or groups that are private without a delta


def _columns(ours: Release, fresh: Release) -> Iterator[tuple[str, list[str | None], list[str | None]]]:
    assert ours.rows == fresh.rows
    for one, other in zip(ours.columns, fresh.columns, strict=True):
        yield one.column.name, list(one.values), list(other.values)


def _mistakes(seeds: range) -> tuple[list[str], int, int]:
    every = [c for seed in seeds for c in compared(seed)]
    wrong = [f"{c.wanted}: {c.mistakes}" for c in every if c.mistakes]
    return wrong, len(every), sum(len(c.derived.sources) > 1 for c in every)


def test_what_is_derived_is_what_a_new_release_would_say() -> None:
    wrong, count, of_two = _mistakes(range(4))
    assert not wrong, wrong[:3]
    assert count > 80, "the questions rarely follow from each other"
    assert of_two


@pytest.mark.long
def test_more_that_is_derived() -> None:
    wrong, count, of_two = _mistakes(range(1000, 1100))
    assert not wrong, wrong[:3]
    assert count > 1000
    assert of_two
