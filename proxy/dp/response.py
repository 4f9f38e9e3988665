"""What do all randomized columns of a row protect together?

The mechanisms are values of a policy, `proxy.policy.response`; here they are summed. A row's sum is in epsilon only if
every column is pure. Gaussian noise has a rho alone, so beside it each column counts with its rho (of a pure one
epsilon^2/2, Bun and Steinke 2016), and the sum is (epsilon, delta) by the policy's own delta.
The argument is in docs/claims/local-model.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from proxy.dp.accounting import epsilon_of_rho
from proxy.policy.model import Privacy
from proxy.policy.response import (
    GaussianNoise,
    KeptOrUniform,
    LaplaceNoise,
    Noised,
    NotRandomized,
    Randomized,
    Response,
    TwoCoins,
    best_response,
)

__all__ = [
    "ApproximateRow",
    "GaussianNoise",
    "KeptOrUniform",
    "LaplaceNoise",
    "Noised",
    "NotRandomized",
    "PureRow",
    "Randomized",
    "Response",
    "RhoRow",
    "TwoCoins",
    "best_response",
    "of_row",
]


@dataclass(frozen=True, slots=True)
class PureRow:
    """Replacing the randomized values of one row is hidden by this epsilon."""

    epsilon: float


@dataclass(frozen=True, slots=True)
class RhoRow:
    """Replacing the randomized values of one row is hidden by this rho. Without a delta it has no epsilon."""

    rho: float


@dataclass(frozen=True, slots=True)
class ApproximateRow:
    """Replacing the randomized values of one row is hidden by this rho, and so by (epsilon, delta)."""

    rho: float
    epsilon: float
    delta: float


def of_row(mechanisms: Sequence[Randomized], privacy: Privacy) -> PureRow | RhoRow | ApproximateRow:
    """The sum of a row's randomized columns, rounded up.

    Claim: for two rows of any values in the randomized columns, each drawn on its own, the chances of any outcome are
    apart by at most this. Assumes that the columns were randomized as declared.
    """
    pure = [m.epsilon for m in mechanisms if not isinstance(m, GaussianNoise)]
    if len(pure) == len(mechanisms):
        return PureRow(_sum_up(pure))
    rho = _sum_up([m.rho for m in mechanisms])
    if privacy.delta == 0:
        return RhoRow(rho)
    return ApproximateRow(rho, epsilon_of_rho(rho, privacy.delta), privacy.delta)


def _sum_up(numbers: Sequence[float]) -> float:
    whole = sum(map(Fraction, numbers), Fraction(0))
    value = float(whole)
    return math.nextafter(value, math.inf) if Fraction(value) < whole else value
