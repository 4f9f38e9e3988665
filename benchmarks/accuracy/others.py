"""What would other ways of spending the same privacy answer? Each is simulated in a few lines.

All use Gaussian noise at the same rho and the same streams of it as the product, so that what differs is the method.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from benchmarks.accuracy.data import DAYS, KINDS, Bounds, Rows
from benchmarks.accuracy.ours import Values
from proxy.plan.vector import allocation

Groups = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Sampled:
    """Rows above the policy's bound are sampled away, person by person, and every column pays for itself.

    columns: "count" or "sum", each with its own noise; groups: of each row, if there are any. splits: whether each
    column has its own share of rho, or all rho at once (which is then only fair for one column).
    """

    rows: Rows
    bounds: Bounds
    columns: tuple[str, ...]
    groups: Groups
    size: int
    has_average: bool = False

    def answers(self, rho: float, seeds: Sequence[int]) -> Values:
        sd = np.sqrt(len(self.columns) / (2.0 * rho)) * self.bounds.rows
        found = []
        for seed in seeds:
            rng = np.random.default_rng(seed)
            noise = rng.standard_normal((len(self.columns), self.size)) * sd
            kept = self._kept(rng)
            numbers = [self._exact(c, kept) + n * self._scale(c) for c, n in zip(self.columns, noise, strict=True)]
            if self.has_average:
                numbers.append(np.clip(numbers[1] / np.maximum(numbers[0], 1.0), 0.0, self.bounds.amount))
            found.append(np.concatenate(numbers))
        return np.array(found)

    def _kept(self, rng: np.random.Generator) -> Groups:
        """The rows that are left of each unit."""
        if self.rows.sizes.max() <= self.bounds.rows:
            return np.arange(len(self.rows.unit))
        order = np.lexsort((rng.random(len(self.rows.unit)), self.rows.unit))
        starts = np.cumsum(self.rows.sizes) - self.rows.sizes
        place = np.arange(len(order)) - np.repeat(starts, self.rows.sizes)
        return order[place < self.bounds.rows]

    def _exact(self, column: str, kept: Groups) -> NDArray[np.float64]:
        values = np.ones(len(kept)) if column == "count" else np.minimum(self.rows.amount[kept], self.bounds.amount)
        return np.bincount(self.groups[kept], weights=values, minlength=self.size)

    def _scale(self, column: str) -> float:
        return 1.0 if column == "count" else self.bounds.amount


def all_together(rows: Rows) -> Groups:
    return np.zeros(len(rows.unit), dtype=np.int64)


def groups_of(rows: Rows, key: str) -> tuple[Groups, int]:
    return (rows.kind, len(KINDS)) if key == "kind" else (rows.day, DAYS)


def cut_at_zero(values: Values) -> Values:
    """Each number by itself."""
    found: Values = np.maximum(values, 0.0)
    return found


@contextmanager
def equal_weights() -> Iterator[None]:
    """While inside, every moment weighs one over the size of its cell."""
    original: Callable[..., list[float]] = allocation.uses_of
    allocation.uses_of = lambda vector, _: [0.0] * len(vector.moments)
    try:
        yield
    finally:
        allocation.uses_of = original
