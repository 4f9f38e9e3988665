"""How does the noise of a few numbers reach what is computed from them?

The delta method: a value with its derivative by each independent noise. Sees noisy values and public parameters only.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Estimate:
    """A value and its derivative by each noise, in one order. All estimates that meet have the same noises."""

    value: float
    slopes: tuple[float, ...]

    def plus(self, other: Estimate, factor: float = 1.0) -> Estimate:
        """self + factor * other."""
        slopes = tuple(a + factor * b for a, b in zip(self.slopes, other.slopes, strict=True))
        return Estimate(self.value + factor * other.value, slopes)

    def plus_constant(self, constant: float) -> Estimate:
        return Estimate(self.value + constant, self.slopes)

    def scaled(self, factor: float) -> Estimate:
        return Estimate(self.value * factor, tuple(s * factor for s in self.slopes))

    def times(self, other: Estimate) -> Estimate:
        slopes = tuple(a * other.value + b * self.value for a, b in zip(self.slopes, other.slopes, strict=True))
        return Estimate(self.value * other.value, slopes)

    def over(self, other: Estimate) -> Estimate:
        """self / other. ZeroDivisionError where other is 0."""
        ratio = self.value / other.value
        slopes = tuple((a - ratio * b) / other.value for a, b in zip(self.slopes, other.slopes, strict=True))
        return Estimate(ratio, slopes)

    def root(self) -> Estimate:
        """The square root of a positive value. ValueError for others."""
        if not self.value > 0:
            raise ValueError("only a positive value has a root with a derivative")
        root = math.sqrt(self.value)
        return Estimate(root, tuple(s / (2.0 * root) for s in self.slopes))

    def sd(self, sds: Sequence[float]) -> float:
        """The standard deviation to first order. sds: of the noises."""
        return math.hypot(*(s * sd for s, sd in zip(self.slopes, sds, strict=True)))
