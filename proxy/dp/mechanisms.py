"""How is noise of one fixed integer scale turned into noise of any size?

Exact statistics are brought to an integer grid on which the noise always has scale 2**40; choosing the
grid chooses the noise. Draws nothing (`samplers`) and prices nothing (`accounting`).
The argument is in docs/claims/noise.md.
"""

from __future__ import annotations

import enum
import math
from typing import assert_never

from proxy.policy.model import Accounting

SCALE_BITS = 40
SCALE = 1 << SCALE_BITS  # of the noise, in grid units, for both distributions

# The doubles that place a statistic on the grid may be off by 2**-30 in all, far more than they are.
_GRID_SLACK = 1.0 - 2.0**-30
# A bound on the rounding of the few operations below and of the caller's own float of its charge.
_ROUNDING = 1.0 - 2.0**-46


class Distribution(enum.Enum):
    """The two integer distributions that releases add."""

    GAUSSIAN = "discrete_gaussian"
    LAPLACE = "discrete_laplace"


def distribution_of(accounting: Accounting) -> Distribution:
    """zcdp adds discrete Gaussian noise, pure adds discrete Laplace noise."""
    match accounting:
        case Accounting.ZCDP:
            return Distribution.GAUSSIAN
        case Accounting.PURE:
            return Distribution.LAPLACE
        case _ as never:
            assert_never(never)


def grid_scale(distribution: Distribution, rho_or_epsilon: float, sensitivity: float) -> float:
    """Grid units per unit of the statistic (S), rounded down so that noise is never too small.

    Claim: a vector that moves by at most `sensitivity` between neighbours (2-norm for GAUSSIAN, 1-norm for
    LAPLACE), multiplied by S with a relative error below 2**-30 and truncated toward zero, plus independent
    noise of scale 2**40 in every coordinate, is rho-zCDP, or epsilon-DP. `rho_or_epsilon` may be rounded by
    2**-48 of itself. Source: Canonne, Kamath and Steinke 2020.
    ValueError unless both numbers are finite and positive and so is S.
    """
    if not (math.isfinite(rho_or_epsilon) and rho_or_epsilon > 0):
        raise ValueError(f"rho or epsilon must be finite and positive: {rho_or_epsilon}")
    if not (math.isfinite(sensitivity) and sensitivity > 0):
        raise ValueError(f"a sensitivity must be finite and positive: {sensitivity}")
    scale_down = SCALE * _allowed_move(distribution, rho_or_epsilon) / sensitivity * _GRID_SLACK * _ROUNDING
    if not (math.isfinite(scale_down) and scale_down > 0):
        raise ValueError(f"no grid for {rho_or_epsilon} at sensitivity {sensitivity}")
    return scale_down


def _allowed_move(distribution: Distribution, rho_or_epsilon: float) -> float:
    """How far a vector may move, in units of the noise's scale: rho = move^2/2, or epsilon = move."""
    match distribution:
        case Distribution.GAUSSIAN:
            return math.sqrt(2.0 * rho_or_epsilon)
        case Distribution.LAPLACE:
            return rho_or_epsilon
        case _ as never:
            assert_never(never)


def sd_grid(distribution: Distribution) -> float:
    """Standard deviation of the noise in grid units, rounded up by less than 2**-40 of itself."""
    match distribution:
        case Distribution.GAUSSIAN:
            return float(SCALE)
        case Distribution.LAPLACE:
            return math.nextafter(math.sqrt(2.0) * SCALE, math.inf)
        case _ as never:
            assert_never(never)


def noise_sd(distribution: Distribution, scale: float) -> float:
    """Standard deviation of the noise in the statistic's own unit, on a grid of `scale` per unit."""
    return sd_grid(distribution) / scale
