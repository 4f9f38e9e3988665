"""Which value answers mode(): what is drawn by exact numbers of rows, and how is it shown?

With `release.ranks` the place where choices meet private results. Nothing of a number of rows is read after the draw.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from proxy.analysis.keys import NULL_KEY, KeyValue, key_identity
from proxy.dp.accuracy import Noisy
from proxy.dp.modes import elect
from proxy.dp.quantiles import Choose, Weights
from proxy.plan.modes import ModePart
from proxy.plan.recipes import Ranked
from proxy.release.keys import identity, read_integer, read_key
from proxy.release.noisy import NoisyCells
from proxy.release.ranks import RankedColumn
from proxy.release.raw import RawResult


def drawn_values(
    part: ModePart, cells: NoisyCells, raw: RawResult, choose: Choose, check: Callable[[], None]
) -> list[tuple[int, ...]]:
    """The number of the drawn candidate for each emitted key.

    Claim: for databases that differ in one unit (or the policy's group) this is close at the part's share of the cost,
    if `raw` is the result of the part's own SQL and `choose` draws as it is told. See docs/claims/modes.md.
    """
    places = {key_identity(value): place for place, value in enumerate(part.candidates)}
    found: dict[tuple[object, ...], Weights] = {}
    for *key, value, weight in raw.rows:
        weights = found.setdefault(identity(read_key(v) for v in key), _nothing(part))
        place = places.get(key_identity(read_key(value)))
        if place is not None:  # what is no candidate does not exist here
            weights[place] += read_integer(weight)
    results: list[tuple[int, ...]] = []
    for cell in cells.cells:
        check()
        results.append((elect(part.poll, found.get(identity(cell.key), _nothing(part)), choose),))
    return results


def _nothing(part: ModePart) -> Weights:
    return np.zeros(part.poll.candidates, dtype=np.int64)


def mode_column(recipe: Ranked, part: ModePart, cells: NoisyCells, numbers: list[Noisy]) -> RankedColumn:
    """What is shown of one mode, NULL where the noisy number of rows says that there are too few; no interval."""
    least = max(1, part.poll.least)
    found: list[KeyValue] = []
    for cell, number in zip(cells.cells, numbers, strict=True):
        is_there = number.value >= max(least, 2 * number.sd)
        found.append(part.candidates[cell.parts[recipe.part][recipe.place]] if is_there else NULL_KEY)
    nothing: list[KeyValue] = [NULL_KEY] * len(found)
    return RankedColumn(found, nothing, nothing)
