"""Whatever a file of profiles may hold, planning ends: with a chosen bound, or with the policy's."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from proxy.plan.parts.cells import cells_of
from proxy.plan.profile.profile import BUCKETS, ColumnShares, Sizes, TableProfile, UnitMeans
from proxy.policy.model import Unknown
from tests.unit.plan.shop import ORDERS, context, plan

MOST, LEAST = 1e12, 1e-6  # what such a file may hold of counts, and of their noise
QUERIES = (
    "select count(*), sum(amount), avg(amount) from orders",
    "select status, count(*), avg(amount) from orders where status <> 'refunded' group by 1",
    "select store_id, sum(amount) filter (where status = 'paid') from orders where amount > 900 group by 1",
    "select avg(amount) from orders where store_id = 3 and amount between 10 and 11",
)


def number(rng: random.Random) -> float:
    return rng.choice(
        (0.0, 1.0, -1.0, MOST, -MOST, rng.gauss(0.0, 1.0), rng.uniform(-MOST, MOST), 10.0 ** rng.uniform(-12, 12))
    )


def sizes(rng: random.Random, least: float) -> Sizes:
    return Sizes(least, tuple(number(rng) for _ in range(BUCKETS)), 10.0 ** rng.uniform(-6, 12))


def absurd(seed: int) -> TableProfile:
    """Numbers without any sense, within the limits of a file; the sizes of sums from the smallest to the largest."""
    rng = random.Random(seed)
    ends = sorted(rng.uniform(-1e6, 1e6) * 10.0 ** rng.uniform(-6, 6) for _ in range(4))
    return TableProfile(
        table="orders", allowed=60, rows=sizes(rng, 1.0), data_version="1",
        sums=(("amount", 10.0 ** rng.uniform(-3, 3), sizes(rng, 2.0**-12)),),
        groups=tuple((c.name, sizes(rng, 1.0)) for c in ORDERS.columns if isinstance(c.domain, Unknown)),
        means=(UnitMeans("amount", tuple(ends), tuple(number(rng) for _ in ends[1:]), 10.0 ** rng.uniform(-6, 12)),),
        shares=tuple(
            ColumnShares(column=c.name, sd=10.0 ** rng.uniform(-6, 12),
                         rows=tuple(number(rng) for _ in range(cells_of(c).number)),
                         pairs=tuple(number(rng) for _ in range(cells_of(c).number)))
            for c in ORDERS.columns if cells_of(c).are_told
        ),
    )  # fmt: skip


@pytest.mark.parametrize("pure", [False, True])
@pytest.mark.parametrize("query", QUERIES)
def test_planning_ends_whatever_a_profile_holds(query: str, *, pure: bool) -> None:
    if pure and "store_id, " in query:
        query = query.replace("store_id, ", "status, ")  # groups that nobody listed need a delta
    for seed in range(60):
        found = plan(query, replace(context(pure=pure), profiles=(absurd(seed),)))
        assert 0.0 < found.sensitivity < float("inf"), seed
