"""A proxy whose noise, choices or thresholds are off by a factor of two, for the auditor to notice.

`python -m tests.audit.planted MISTAKE serve ...`: the product with one function exchanged. Nothing of this is
installed with the product.
"""

from __future__ import annotations

import sys

from proxy.dp import quantiles, samplers
from proxy.dp.modes import elect
from proxy.plan.release_plan import ReleasePlan
from proxy.release import modes, noisy


def half_the_noise() -> None:
    """Noise of half the scale that is charged, and choices half as random."""
    take, scores = samplers.NoisePool.take, quantiles.scores
    setattr(samplers.NoisePool, "take", lambda self, n: tuple(v // 2 for v in take(self, n)))  # noqa: B010  # for mypy
    quantiles.scores = lambda *arguments: scores(*arguments) * 2
    setattr(modes, "elect", lambda poll, weights, choose: elect(poll, 2 * weights, choose))  # noqa: B010  # for mypy


def half_the_threshold() -> None:
    """Thresholds for noise of half the scale, where they are compared: plans come from other processes."""
    selected = getattr(noisy, "_selected")  # noqa: B009  # for mypy

    def lower(plan: ReleasePlan, exact: object, noise: object, moment: int, tau: float, check: object) -> object:
        return selected(plan, exact, noise, moment, 1 + (tau - 1) / 2, check)

    setattr(noisy, "_selected", lower)  # noqa: B010  # for mypy


MISTAKES = {plant.__name__: plant for plant in (half_the_noise, half_the_threshold)}

if __name__ == "__main__":
    from proxy.__main__ import main

    MISTAKES[sys.argv.pop(1)]()
    main()
