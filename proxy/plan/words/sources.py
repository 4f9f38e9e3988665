"""Which sources of error has an estimate over randomized columns, and which of them dominates?

Public numbers alone: the noise of the release, what became of values before they were stored, and the number of rows
that a profile tells.
"""

from __future__ import annotations

import math

from proxy.analysis.estimated import key_growth
from proxy.plan.release_plan import ReleasePlan
from proxy.plan.vector.noise import noise_of
from proxy.plan.vector.recipes import response_of
from proxy.policy.figures import figure
from proxy.sql.algebra.describe import describe_aggregate


def error_sources(plan: ReleasePlan) -> tuple[tuple[str, str], ...]:
    """For each estimate what it is of, and its errors in words."""
    found = []
    growth = key_growth(plan.analysed.owned.block)
    sds = tuple(sd * growth for sd in plan.sds)
    for aggregate, recipe in zip(plan.analysed.owned.block.aggregates, plan.vector.finishes, strict=True):
        row_sd = response_of(recipe).row_sd
        if response_of(recipe).parts:
            found.append((describe_aggregate(aggregate), _words(noise_of(recipe, sds), row_sd, plan)))
    return tuple(found)


def _words(noise: float, row_sd: float, plan: ReleasePlan) -> str:
    drawn = f"randomization before storing sd at most {figure(row_sd)} times the root of the number of rows"
    if plan.is_unpromised:
        return drawn
    text = f"noise of the release sd {figure(noise)}, {drawn}"
    if row_sd <= 0.0:
        return text
    even = (noise / row_sd) ** 2
    if plan.usual is not None:
        rows = plan.usual.rows * plan.usual.groups
        which = "the randomization" if rows > even else "the noise"
        return f"{text}; with about {figure(rows)} rows {which} dominates"
    return f"{text}; the randomization dominates from {math.ceil(even):,} rows on"
