"""Which value answers mode(): what is drawn by exact numbers of rows, and how is it shown?

With `release.ranks` the place where choices meet private results. Nothing of a number of rows is read after the draw.
Of values that nobody listed the noisy numbers are released as any others are, and the largest of them is read.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from proxy.analysis.keys import NULL_KEY, KeyValue, NullKey, PrivateKey, key_identity
from proxy.dp.accuracy import Noisy
from proxy.dp.modes import elect
from proxy.dp.quantiles import Choose, Weights
from proxy.plan.parts.modes import ModePart
from proxy.plan.release_plan import ReleasePlan
from proxy.plan.vector.recipes import Ranked
from proxy.release.keys import identity, order, read_integer, read_key
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


def foremost(
    plan: ReleasePlan, cells: NoisyCells, numbers: Sequence[Noisy]
) -> list[tuple[tuple[KeyValue, ...], KeyValue]]:
    """Each group with the value of its largest noisy number, in the order of groups.

    Claim: a function of the noisy cells, of which a value's key is the last, and of the policy. Groups are those that
    cells have; where all their keys are public, all of these. NULL where the largest number is less than twice its
    noise, as is a group without any. See docs/claims/modes.md.
    """
    largest: dict[tuple[object, ...], tuple[tuple[KeyValue, ...], KeyValue, float]] = {}
    has_private = any(isinstance(k, PrivateKey) for k in plan.analysed.keys[:-1])
    for key in () if has_private else plan.public_keys:
        largest[identity(key)] = (key, NULL_KEY, -math.inf)
    for cell, number in zip(cells.cells, numbers, strict=True):
        group, value, size = cell.key[:-1], cell.key[-1], number.value
        _, _, most = largest.setdefault(identity(group), (group, NULL_KEY, -math.inf))
        if size > most and not isinstance(value, NullKey):  # what the engine cannot hold has no value
            largest[identity(group)] = (group, value if size >= max(1.0, 2 * number.sd) else NULL_KEY, size)
    groups = sorted(largest.values(), key=lambda found: [order(k) for k in found[0]])
    return [(key, value) for key, value, _ in groups]


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
