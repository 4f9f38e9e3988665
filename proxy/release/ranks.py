"""Which values answer quantiles, MIN and MAX: what is chosen from exact histograms, and how is it shown?

The one place where choices meet private results. Nothing of a histogram is read after its cells were chosen.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from proxy.analysis.keys import NULL_KEY, KeyValue
from proxy.dp.accuracy import Noisy
from proxy.dp.quantiles import Choose, Weights, is_near_end, select
from proxy.errors import BadGroups
from proxy.plan.grid import Days, Moments, Reals, Wholes
from proxy.plan.quantiles import QuantilePart
from proxy.plan.recipes import Ranked
from proxy.plan.release_plan import ReleasePlan
from proxy.release.figure import Figure
from proxy.release.keys import identity, read_integer, read_key
from proxy.release.noisy import NoisyCells
from proxy.release.raw import RawResult

MOST_CELLS = 1 << 22  # of all groups that are shown

Rows = list[tuple[object, ...]]


def check_sizes(plan: ReleasePlan, cells: NoisyCells) -> None:
    """Refuse histograms that would take the memory of all sessions. Looks at keys that are shown, at nothing else."""
    most = max((p.ladder.cells for p in plan.parts if isinstance(p, QuantilePart)), default=0)
    if len(cells.cells) * most > MOST_CELLS:
        raise BadGroups(
            "the answer has too many groups for quantiles, MIN and MAX",
            detail=f"At most {MOST_CELLS // most} groups can each have one. What was reserved stays charged.",
            hint="Group by fewer or coarser expressions.",
        )


def chosen(
    part: QuantilePart, cells: NoisyCells, raw: RawResult, choose: Choose, check: Callable[[], None]
) -> list[tuple[int, ...]]:
    """The number of the chosen cell of each fraction, for each emitted key.

    Claim: for databases that differ in one unit (or the policy's group) this is close at the part's share of the cost,
    if `raw` is the result of the part's own SQL and `choose` draws as it is told. See docs/claims/quantiles.md.
    """
    rows: dict[tuple[object, ...], Rows] = {}
    for row in raw.rows:
        rows.setdefault(row[:-2], []).append(row)
    found = {identity(read_key(v) for v in key): of for key, of in rows.items()}  # there are few keys and many rows
    results = []
    for cell in cells.cells:
        check()
        results.append(select(part.ladder, _weights(part, found.get(identity(cell.key), [])), choose))
    return results


def _weights(part: QuantilePart, rows: Rows) -> Weights:
    size = part.ladder.cells
    weights = np.zeros(size, dtype=np.int64)
    for *_, cell, weight in rows:
        place = read_integer(cell)
        if not 0 <= place < size:
            raise TypeError("a row from the engine is in no cell")
        weights[place] += read_integer(weight)
    return weights


def answers(recipe: Ranked, part: QuantilePart, cells: NoisyCells, numbers: list[Noisy]) -> list[KeyValue]:
    """The values of one quantile; NULL where the noisy number of rows says that there is none."""
    offset = part.ladder.offset if is_near_end(part.asked.fractions[recipe.place]) else 0
    found: list[KeyValue] = []
    for cell, number in zip(cells.cells, numbers, strict=True):
        is_there = number.value >= max(1.0, 2 * number.sd, offset)
        found.append(part.grid.value(cell.parts[recipe.part][recipe.place]) if is_there else NULL_KEY)
    return found


def ends(part: QuantilePart) -> Figure:
    """What is said about the value of every quantile: that it is between the ends of the grid, if they are numbers."""
    match part.grid:
        case Wholes(low, high) | Reals(low, high):
            return Figure(None, math.inf, float(low), float(high))
        case Days() | Moments():
            return Figure(None, math.inf, -math.inf, math.inf)
