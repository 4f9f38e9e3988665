"""What does an asker know of the numbers of a statement, from answers that were shown before?

From the asker's own answers alone, which are noisy and paid for.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from proxy.dp.accuracy import half_width_95
from proxy.pipeline.target import Shown
from proxy.plan.release_plan import ReleasePlan
from proxy.plan.reuse.derive import Derived, derive
from proxy.plan.sets.sets import Plan
from proxy.plan.vector.noise import sd_of
from proxy.plan.vector.recipes import Finish, Mean, Relation, Spread
from proxy.plan.words.outputs import output_noise
from proxy.release.derived import derived_cells, finish_derived
from proxy.release.finish import vectors_of
from proxy.release.noisy import NoisyCells
from proxy.release.solved import MomentLists
from proxy.release.store import StoredRelease
from proxy.sql.query.block import Carries, Injected
from proxy.sqltypes import SqlType


def shown_of(
    plan: Plan, sources: Sequence[Plan], load: Callable[[Plan], StoredRelease | None]
) -> tuple[Shown | None, ...]:
    """What is known of each aggregate of a plan, from the most accurate release that gives all of them."""
    nothing = (None,) * sum(len(p.vector.finishes) for p in plan.plans)
    one = plan.plans[0]
    if plan.several is not None or one.parts:
        return nothing
    found = derive(one, sources, math.inf, math.inf)
    stored = [load(p) for p in found[0].plans] if found else [None]
    there = [NoisyCells.of_payload(s.payload) for s in stored if s is not None]
    return _told(found[0], there) if len(there) == len(stored) else nothing


def _told(derived: Derived, cells: Sequence[NoisyCells]) -> tuple[Shown | None, ...]:
    plan, places = derived.shown, range(len(derived.shown.vector.finishes))
    parts = (Carries.VALUE, Carries.LOW, Carries.HIGH)
    columns = tuple(Injected(part, place, SqlType.FLOAT8) for place in places for part in parts)
    found = finish_derived(derived, cells, columns, nonnegative=False, time_zone="UTC").columns
    stated = [o.half_width_95 for o in output_noise(plan)]
    vectors = vectors_of(plan, derived_cells(derived, cells))
    fewer = [_fewer(recipe, vectors, plan) for recipe in plan.vector.finishes]
    return tuple(
        _of_groups([found[3 * place + i].values for i in range(3)], stated=stated[place], fewer=fewer[place])
        for place in places
    )


def _fewer(recipe: Finish, vectors: MomentLists, plan: ReleasePlan) -> float:
    """How many times more rows an average was of than it may be; at most twice."""
    if not isinstance(recipe, (Mean, Spread, Relation)) or not vectors:
        return 1.0
    rows = math.fsum(c * v[i] for v in vectors for i, c in recipe.number.terms) / len(vectors)
    least = rows - half_width_95(plan.distribution, sd_of(recipe.number, plan.sds))
    return rows / max(least, rows / 2.0) if rows > 0.0 else 2.0


def _of_groups(columns: Sequence[Sequence[str | None]], *, stated: float, fewer: float) -> Shown | None:
    """Means over the groups that have a value and an interval. columns: values, low and high ends."""
    told = [
        (abs(float(v)), (float(high) - float(low)) / 2.0)
        for v, low, high in zip(*columns, strict=True)
        if v is not None and low is not None and high is not None
    ]
    if not told:
        return None
    value, reach = (math.fsum(column) / len(told) for column in zip(*told, strict=True))
    return Shown(value, reach, stated, fewer)
