"""What would others answer over the same rows? Errors by formula, from what each unit has in each group.

All spend the same rho with Gaussian noise. `oracle` knows the rows and picks the bound with the smallest error. `rows`
keeps T rows of a unit, drawn at random, as OpenDP's truncation does; `groups` keeps G groups of a unit and C rows in
each, as PipelineDP does. Both take T, G, C from the policy; of a sampled unit's rows the expectation is taken.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Doubles = NDArray[np.float64]
Whole = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Oracle:
    """Who knows the rows. error: root mean square over groups. good: share of answers within a tenth of the truth."""

    error: float
    good: float


@dataclass(frozen=True, slots=True)
class Cells:
    """What units have: for each pair of a unit and a group its number of rows, and what is summed up of them.

    groups: how many there are, in all. truth: of each, in the order of their numbers.
    """

    units: Whole
    numbers: Whole
    rows: Doubles
    values: Doubles
    groups: int

    @property
    def truth(self) -> Doubles:
        return self._totals(self.values)

    def _totals(self, values: Doubles) -> Doubles:
        return np.bincount(self.numbers, weights=values, minlength=self.groups)

    def oracle(self, rho: float) -> Oracle:
        """With the best bound of the length of a unit's vector, half an octave apart."""
        lengths = np.sqrt(np.bincount(self.units, weights=self.values**2))
        if not len(lengths) or lengths.max() == 0:
            return Oracle(0.0, math.nan)
        found = [self._bounded(lengths, bound, rho) for bound in _grid(float(lengths.max()))]
        return min(found, key=lambda one: one.error)

    def _bounded(self, lengths: Doubles, bound: float, rho: float) -> Oracle:
        factors = np.minimum(1.0, bound / np.maximum(lengths, 1e-300))
        missing, sd = self.truth - self._totals(self.values * factors[self.units]), bound / math.sqrt(2.0 * rho)
        error = math.sqrt(float(np.mean(missing**2)) + sd**2)
        near = [
            (math.erf((m + within) / (sd * math.sqrt(2.0))) - math.erf((m - within) / (sd * math.sqrt(2.0)))) / 2.0
            for m, within in zip(missing, 0.1 * np.abs(self.truth), strict=True) if within > 0
        ]  # fmt: skip
        return Oracle(error, sum(near) / len(near) if near else math.nan)

    def rows_kept(self, rho: float, most_rows: int, largest: float) -> float:
        """With so many rows of a unit, each at most so large."""
        whole = np.bincount(self.units, weights=self.rows)
        kept = np.minimum(1.0, most_rows / np.maximum(whole, 1.0))
        missing = self.truth - self._totals(self.values * kept[self.units])
        return math.sqrt(float(np.mean(missing**2)) + (most_rows * largest) ** 2 / (2.0 * rho))

    def groups_kept(self, rho: float, most_groups: int, most_rows: int, largest: float) -> float:
        """With so many groups of a unit and so many rows in each."""
        held = np.bincount(self.units)
        kept = np.minimum(1.0, most_groups / np.maximum(held, 1))[self.units] * np.minimum(1.0, most_rows / self.rows)
        missing = self.truth - self._totals(self.values * kept)
        groups = min(most_groups, self.groups)
        return math.sqrt(float(np.mean(missing**2)) + groups * (most_rows * largest) ** 2 / (2.0 * rho))


def _grid(largest: float) -> Doubles:
    """Bounds from the largest length down to a small part of it."""
    return largest * 2.0 ** (-np.arange(0, 41) / 2.0)
