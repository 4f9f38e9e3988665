"""Of how many units does an answer leave rows out, as far as its own noisy numbers tell?

Post-processing of two noisy numbers that were released with the answer. See docs/claims/cut-units.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from proxy.dp.accuracy import half_width_95
from proxy.plan.release_plan import ReleasePlan
from proxy.plan.sets.sets import Plan
from proxy.release.noisy import NoisyCells, NoisyCut

WORTH_SAYING = 0.01


@dataclass(frozen=True, slots=True)
class CutShare:
    """The share of units that are cut, with its 95 % interval. 0 to 1 where the noise is as large as all of them."""

    share: float
    least: float
    most: float

    @property
    def is_told(self) -> bool:
        return self.most - self.least < 1.0

    @property
    def is_worth_saying(self) -> bool:
        return self.most >= WORTH_SAYING


def cut_share(plan: Plan, cells: NoisyCells) -> CutShare | None:
    """Of the grouping set in which most units are cut; None where none is counted."""
    found = [_share(plan.plans[of.number], of) for of in cells.cut]
    return max(found, key=lambda f: (f.is_told, f.share), default=None)


def _share(plan: ReleasePlan, of: NoisyCut) -> CutShare:
    unit = plan.scale * plan.cut_weight
    return share_of(of.cut / unit, of.whole / unit, half_width_95(plan.distribution, plan.cut_sd))


def share_of(cut: float, whole: float, reach: float) -> CutShare:
    """cut / (cut + whole), between the p for which (1 - p) cut - p whole is within its own noise (Fieller).

    reach: of the noise of each number, 95 % of which is within.
    """
    every = cut + whole
    a, b, c = every * every - 2 * reach * reach, every * cut - reach * reach, cut * cut - reach * reach
    if every <= 0 or a <= 0:
        return CutShare(0.0, 0.0, 1.0)
    off = math.sqrt(max(0.0, b * b - a * c))
    share, least, most = (min(max(p, 0.0), 1.0) for p in (cut / every, (b - off) / a, (b + off) / a))
    return CutShare(share, least, most)


def cut_words(of: CutShare, unit: str) -> str:
    """In words for people."""
    whose = f"of {unit}s have rows left out"
    if not of.is_told:
        return f"too few {unit}s to tell how many have rows left out"
    if not of.is_worth_saying:
        return f"less than 1 % {whose}"
    if of.least <= 0:
        return f"less than {_percent(of.most, up=True)} % {whose}"
    ends = f"{_percent(of.least, up=False)} to {_percent(of.most, up=True)} %"
    return (
        f"about {100 * of.share:.2g} % {whose} ({ends})"
        if of.share < 0.995
        else f"nearly all {unit}s have rows left out"
    )


def _percent(share: float, *, up: bool) -> str:
    """Two digits, rounded outwards."""
    step = 1.0 if share >= 0.1 else 0.1
    steps = 100 * share / step
    return f"{min(100.0, (math.ceil(steps) if up else math.floor(steps)) * step):.2g}" if share < 0.99 else "100"
