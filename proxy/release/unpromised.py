"""How do exact results become an answer about a local table, which is outside the dataset's promise?

No noise is added: what protects the rows was done before they were stored. See docs/claims/local-tables.md.
"""

from __future__ import annotations

from collections.abc import Callable

from proxy.plan.release_plan import ReleasePlan
from proxy.release.noisy import Check, NoisyCells, publish
from proxy.release.raw import KeptKeys, RawResult


class _NoNoise:
    """In the place of noise. Implements `samplers.Noise`."""

    def take(self, n: int) -> tuple[int, ...]:
        return (0,) * n


def publish_unpromised(
    plan: ReleasePlan, run: Callable[[int, KeptKeys], RawResult], check: Check = lambda: None
) -> NoisyCells:
    """The cells of a plan over stored rows of a local table. run: gives the rows of its SQL.

    Claim (docs/claims/local-tables.md): the result is a function of stored rows of local and public tables.
    """
    if not plan.is_unpromised:
        raise AssertionError("what is promised is released with noise alone")
    return publish(plan, run(0, KeptKeys()), _NoNoise(), check)
