"""What was learned of a unit's contribution, and which of it does a query use at its price?

A bound of most units makes noise smaller and loses what the few units above it have more. It is used where the noise
that it saves is larger than what may be lost. See docs/claims/learned-bounds.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from proxy.analysis.learned import Learned
from proxy.dp.accounting import of_pico_down
from proxy.dp.mechanisms import Distribution, distribution_of, grid_scale, noise_sd
from proxy.policy.model import Neighbors, Privacy

_GAIN = 0.8  # of the error without it, that a learned bound must promise to stay below


@dataclass(frozen=True, slots=True)
class LearnedBound:
    """value: what most units have at most. above: so many of them may well have more."""

    value: float
    above: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LearnedTable:
    """What is known of one table. allowed: rows of a unit by the policy.

    totals: of a column: its name, the largest size of a value, and the size of a unit's sum.
    data_version: of the data that it was learned from.
    """

    table: str
    allowed: int
    rows: LearnedBound | None
    totals: tuple[tuple[str, float, LearnedBound], ...]
    data_version: str


def usable(tables: Sequence[LearnedTable], privacy: Privacy, pico: int) -> Learned:
    """What a release uses that costs so much. A public choice: of noisy numbers and the price alone."""
    if not tables:
        return Learned()
    noise = _noise_of_one(privacy, pico)
    rows, totals = [], []
    for one in tables:
        most = one.allowed
        if one.rows is not None and is_worth_it(one.rows, one.allowed, noise):
            most = math.ceil(one.rows.value)
            rows.append((one.table, most, f"learned from data version {one.data_version}"))
        for column, largest, bound in one.totals:
            if is_worth_it(bound, most * largest, noise):
                totals.append((one.table, column, bound.value))
    return Learned(tuple(rows), tuple(totals))


def is_worth_it(bound: LearnedBound, most: float, noise: float) -> bool:
    """Whether a bound promises a smaller error than `most`. noise: sd of the noise of a bound of 1.

    What is lost is taken to be the bound once more for each unit above it, as it is where large units are rare.
    """
    return bound.value * math.hypot(noise, bound.above) <= _GAIN * most * noise


def _noise_of_one(privacy: Privacy, pico: int) -> float:
    distribution: Distribution = distribution_of(privacy.accounting)
    factor = privacy.group_size * (2 if privacy.neighbors is Neighbors.REPLACE_ONE else 1)
    return noise_sd(distribution, grid_scale(distribution, of_pico_down(pico), float(factor)))


def told_of(tables: Sequence[LearnedTable], name: str, column: str) -> str | None:
    """What was learned of a table and one of its columns, in a few words."""
    words = []
    for one in (t for t in tables if t.table == name):
        if one.rows is not None:
            words.append(f"{one.rows.value:.0f} of {one.allowed} rows")
        words += [f"sums of size {bound.value:g}" for of, _, bound in one.totals if of == column]
    return ", ".join(words) or None
