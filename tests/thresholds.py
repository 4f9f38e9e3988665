"""Plans whose private keys show from another number of units on."""

from __future__ import annotations

from dataclasses import replace

from proxy.plan.release_plan import ReleasePlan, Threshold


def lowered(plan: ReleasePlan, tau: float) -> ReleasePlan:
    """The plan with that threshold; the plan itself if all its keys are public."""
    if not isinstance(plan.selection, Threshold):
        return plan
    return replace(plan, selection=replace(plan.selection, rule=replace(plan.selection.rule, tau=tau)))
