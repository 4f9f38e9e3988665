"""From which number of units on do the private keys of a plan show, and what if that were another?"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from proxy.analysis.keys import PublicKey
from proxy.plan.parts.cut_units import CUT, WHOLE
from proxy.plan.release_plan import ReleasePlan, Threshold
from proxy.plan.vector.moments import UnitCount
from proxy.release.noisy import publish
from proxy.release.raw import RawResult


def lowered(plan: ReleasePlan, tau: float) -> ReleasePlan:
    """The plan with that threshold; the plan itself if all its keys are public."""
    if not isinstance(plan.selection, Threshold):
        return plan
    return replace(plan, selection=replace(plan.selection, rule=replace(plan.selection.rule, tau=tau)))


@dataclass(frozen=True, slots=True)
class _Quiet:
    """Noise that is always zero."""

    def take(self, n: int) -> tuple[int, ...]:
        return (0,) * n


def each_of(plan: ReleasePlan) -> int:
    """What a unit that is in one group adds to the number that selects, in released integers."""
    assert isinstance(plan.selection, Threshold)
    return math.floor(plan.scale * plan.allocation.weights[plan.selection.moment])


def least_shown(plan: ReleasePlan) -> int:
    """The least noisy number of units, in released integers, with which a group is shown; found by showing groups."""
    shown, hidden = 2**100, 0
    assert _shows(plan, shown)
    assert not _shows(plan, hidden)
    while shown - hidden > 1:
        middle = (shown + hidden) // 2
        shown, hidden = (middle, hidden) if _shows(plan, middle) else (shown, middle)
    return shown


def _shows(plan: ReleasePlan, count: int) -> bool:
    keys = [k.values[0] if isinstance(k, PublicKey) else "somewhere" for k in plan.analysed.keys]
    has_parts = any(isinstance(m, UnitCount) and m.per_part for m in plan.vector.moments)
    row = (int(has_parts), *keys, *(count for _ in plan.vector.moments))
    nothing = (*(None for _ in keys), 0, *(None for _ in plan.vector.moments[1:]))
    counted = ((CUT, *nothing), (WHOLE, *nothing)) if plan.cut_weight else ()
    return bool(publish(plan, RawResult(len(row), (row, *counted)), _Quiet()).cells)
