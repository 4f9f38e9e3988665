"""Which bounds follow from a profile for what is not bounded by a chosen B, at a query's price?

A bound of most units makes noise smaller and loses what the few units above it have more. See docs/claims/profile.md.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from types import MappingProxyType

import numpy as np

from proxy.analysis.learned import Learned
from proxy.dp.accounting import of_pico_down
from proxy.dp.mechanisms import Distribution, distribution_of, grid_scale, noise_sd
from proxy.plan.profile.profile import Sizes, TableProfile, Tail
from proxy.policy.figures import figure
from proxy.policy.model import ByProfile, NotGiven, Privacy, RowUnit, Table

_GAIN = 0.8  # of the error without it, that a narrower bound must promise to stay below


def usable(profiles: Sequence[TableProfile], privacy: Privacy, pico: int) -> Learned:
    """What a release uses that costs so much. A public choice: of noisy numbers and the price alone."""
    return _usable(tuple(profiles), privacy, pico)


@lru_cache(maxsize=256)
def _usable(profiles: tuple[TableProfile, ...], privacy: Privacy, pico: int) -> Learned:
    noise = noise_of_one(privacy, pico)
    rows, totals = [], []
    for one in profiles:
        most = float(one.most_rows)
        usual = best_edge(one.rows, most, noise)
        if usual < most:
            most = math.ceil(usual)
            rows.append((one.table, int(most), f"by the profile of data version {one.data_version}"))
        for column, largest, sizes in one.sums:
            if (total := best_edge(sizes, most, noise)) < most:
                totals.append((one.table, column, total * largest))
    return Learned(tuple(rows), tuple(totals))


def with_limits(tables: Mapping[str, Table], profiles: Sequence[TableProfile]) -> Mapping[str, Table]:
    """The tables, with T by the profile where the policy gives none; what no profile tells stays without.

    Claim: a function of the profiles and the policy; T is enforced like any other.
    """
    told = {p.table: p for p in profiles if p.allowed is None and p.rows.is_told}
    return MappingProxyType({
        name: replace(table, rows_per_unit=ByProfile(told[name].most_rows, told[name].data_version))
        if name in told and isinstance(table.rows_per_unit, NotGiven) else table
        for name, table in tables.items()
    })  # fmt: skip


def without_limit(tables: Mapping[str, Table]) -> tuple[str, ...]:
    """The tables that cannot be asked yet: a unit may have several rows, and nothing says how many count."""
    return tuple(
        name for name, table in tables.items() if isinstance(table.rows_per_unit, NotGiven)
        and not (not table.is_promised or table.unit_unique or isinstance(table.ownership, RowUnit))
    )  # fmt: skip


def best_edge(sizes: Sizes, most: float, noise: float) -> float:
    """The size whose bound promises the least error, or `most` if none promises much less than that does.

    noise: sd of the noise of a bound of 1.
    """
    if not sizes.is_told:
        return most
    edges, above = np.array(sizes.tail.edges), np.array(sizes.tail.above)
    steps = np.diff(edges) * (above[1:] + above[:-1]) / 2.0
    lost = np.concatenate((np.cumsum(steps[::-1])[::-1], [0.0]))
    errors = np.hypot(edges * noise, lost)
    best = int(np.argmin(errors))
    whole = math.hypot(most * noise, float(np.interp(most, edges, lost)))
    return float(edges[best]) if errors[best] <= _GAIN * whole and edges[best] < most else most


def noise_of_one(privacy: Privacy, pico: int) -> float:
    """Standard deviation of the noise of a release that moves by at most 1 a unit, at this price."""
    distribution: Distribution = distribution_of(privacy.accounting)
    return noise_sd(distribution, grid_scale(distribution, of_pico_down(pico), float(privacy.promise.reach)))


def told_of(profiles: Sequence[TableProfile], name: str, column: str) -> str | None:
    """What is known of the units of a table and one of its columns, in a few words."""
    words = []
    for one in (p for p in profiles if p.table == name):
        if one.allowed != 1:
            words.append(f"99 of 100 units have at most {_most(one.rows.tail):.0f} rows")
        words += [
            f"99 of 100 units have sums of size {figure(_most(sizes.tail) * largest, 3)}"
            for of, largest, sizes in one.sums if of == column
        ]  # fmt: skip
    return ", ".join(words) or None


def _most(tail: Tail) -> float:
    """What all but one unit of a hundred have at most."""
    return float(tail.sizes_at(np.array([tail.units / 100.0]))[0])
