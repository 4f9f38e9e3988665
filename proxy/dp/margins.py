"""How do noisy tables over the same public keys become tables whose totals agree?

Sees noisy values and public sizes only, so it costs nothing. A table has one axis for each of its keys, behind a first
axis along which nothing is added up. See docs/claims/grouping-sets.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

MarginKeys = tuple[int, ...]  # numbers of keys, ascending: the axes of a table behind the first
MarginTable = NDArray[np.float64]
Tables = Mapping[MarginKeys, MarginTable]

MOST_EXACT = 2.0**50  # a double with room for a fraction


def agreeing(tables: Tables, sds: Mapping[MarginKeys, float]) -> dict[MarginKeys, MarginTable]:
    """The tables nearest to the given ones, each weighed by its noise, among those that are sums of one whole table.

    sds: noise standard deviation of each table's cells, which are independent. Least squares has a closed form here: a
    table is the sum of one component for each subset of its keys, which adds up to zero along each of them; components
    of different subsets are independent, so each is averaged over the tables that have it. A table's say in one is
    the inverse of the variance of a sum of its cells.
    """
    components: dict[MarginKeys, tuple[MarginTable, float]] = {}
    for keys, table in tables.items():
        for subset in _subsets(keys):
            share = _cells(subset, keys, table)
            weight = share / (sds[keys] ** 2 * _size(table))
            total, weights = components.get(subset, (np.zeros(1), 0.0))
            components[subset] = (total + _component(table, keys, subset) * weight, weights + weight)
    return {
        keys: sum(
            (
                _spread(components[s][0] / components[s][1], s, keys) * (_cells(s, keys, table) / _size(table))
                for s in _subsets(keys)
            ),
            np.zeros(table.shape),
        )
        for keys, table in tables.items()
    }


def agreed_sds(tables: Tables, sds: Mapping[MarginKeys, float]) -> dict[MarginKeys, float]:
    """The noise standard deviation of the cells that `agreeing` gives, which is the same for all cells of a table.

    Components of different subsets are independent; taking the mean away along an axis of n places takes 1/n of the
    variance.
    """
    weights: dict[MarginKeys, float] = {}
    for keys, table in tables.items():
        for subset in _subsets(keys):
            weight = _cells(subset, keys, table) / (sds[keys] ** 2 * _size(table))
            weights[subset] = weights.get(subset, 0.0) + weight
    found = {}
    for keys, table in tables.items():
        sizes = dict(zip(keys, table.shape[1:], strict=True))
        variances = (
            (_cells(s, keys, table) / _size(table)) ** 2 / weights[s] * math.prod(1.0 - 1.0 / sizes[k] for k in s)
            for s in _subsets(keys)
        )
        found[keys] = math.sqrt(math.fsum(variances))
    return found


def _subsets(keys: MarginKeys) -> Iterator[MarginKeys]:
    for size in range(len(keys) + 1):
        yield from combinations(keys, size)


def _size(table: MarginTable) -> int:
    """Cells of a table, for each place of its first axis."""
    return math.prod(table.shape[1:])


def _cells(subset: MarginKeys, keys: MarginKeys, table: MarginTable) -> int:
    """Cells of a table of these keys alone."""
    return math.prod(n for k, n in zip(keys, table.shape[1:], strict=True) if k in subset)


def margin(table: MarginTable, keys: MarginKeys, subset: MarginKeys) -> MarginTable:
    """A table added up to fewer keys."""
    found: MarginTable = table.sum(axis=tuple(i for i, k in enumerate(keys, start=1) if k not in subset))
    return found


def _component(table: MarginTable, keys: MarginKeys, subset: MarginKeys) -> MarginTable:
    """What a table's sums over these keys have that those over fewer keys do not tell."""
    found = margin(table, keys, subset)
    for axis in range(1, found.ndim):
        found = found - found.mean(axis=axis, keepdims=True)
    return found


def _spread(table: MarginTable, subset: MarginKeys, keys: MarginKeys) -> MarginTable:
    """The same with an axis of one place for each further key."""
    places = (slice(None), *(slice(None) if k in subset else np.newaxis for k in keys))
    return table[places]


# --- whole and positive numbers -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class MarginStep:
    """How a table gets its final numbers: as parts of those of `above`, or as sums of those of `below`."""

    keys: MarginKeys
    above: MarginKeys = ()
    below: MarginKeys | None = None


def settle(tables: Tables, *, nonnegative: bool, whole: bool = True) -> dict[MarginKeys, MarginTable] | None:
    """Whole numbers near to tables that agree, which agree too; not negative if so wanted, and not whole if not.

    From totals to parts: the parts of a number are brought nearest to what they were among those that add up to it,
    then rounded so that they still do. None where no order of tables leads through all of them.
    """
    steps = descent(tuple(tables))
    if steps is None or any(np.abs(t).max(initial=0.0) > MOST_EXACT for t in tables.values()):
        return None
    some, table = next(iter(tables.items()))
    total = margin(table, some, ())
    total = np.rint(total) if whole else total
    found: dict[MarginKeys, MarginTable] = {(): np.maximum(total, 0.0) if nonnegative else total}
    for step in steps:
        if step.below is not None:
            found[step.keys] = margin(found[step.below], step.below, step.keys)
        elif step.keys:
            near = _positive if nonnegative else _moved
            found[step.keys] = _divided(found[step.above], step, tables[step.keys], near, whole=whole)
    return {keys: found[keys] for keys in tables}


def descent(sets: Sequence[MarginKeys]) -> tuple[MarginStep, ...] | None:
    """In which order tables are settled, each from totals that are settled already; None if there is none.

    One table may have the keys of all others: then it is reached through a chain of them, and the rest are its sums.
    Otherwise every table must be part of one total only.
    """
    ordered = sorted(sets, key=lambda s: (len(s), s))
    top = ordered[-1]
    if all(set(s) <= set(top) for s in ordered):
        steps, reached = [], MarginKeys()
        for keys in ordered:
            if set(reached) <= set(keys):
                steps.append(MarginStep(keys, above=reached))
                reached = keys
        chained = {s.keys for s in steps}
        return (*steps, *(MarginStep(keys, below=top) for keys in ordered if keys not in chained))
    steps = []
    for keys in ordered:
        totals = [s for s in {(), *ordered} if set(s) < set(keys)]
        nearest = [s for s in totals if not any(set(s) < set(other) for other in totals)]
        if len(nearest) > 1:
            return None
        steps.append(MarginStep(keys, above=nearest[0] if nearest else ()))
    return tuple(steps)


def _divided(
    totals: MarginTable,
    step: MarginStep,
    table: MarginTable,
    near: Callable[[MarginTable, MarginTable], MarginTable],
    *,
    whole: bool,
) -> MarginTable:
    """The parts of each total, as near ones that add up to it."""
    order = [0, *(i for i, k in enumerate(step.keys, start=1) if k in step.above)]
    order += [i for i, k in enumerate(step.keys, start=1) if k not in step.above]
    moved = table.transpose(order)
    parts = moved.reshape(totals.size, -1)
    wanted = totals.reshape(-1, 1)
    divided = near(parts, wanted)
    divided = _rounded(divided, wanted) if whole else divided
    placed: MarginTable = divided.reshape(moved.shape).transpose(np.argsort(order))
    return placed


def _moved(parts: MarginTable, totals: MarginTable) -> MarginTable:
    """Each row moved by one number so that it adds up to its total."""
    moved: MarginTable = parts + (totals - parts.sum(axis=1, keepdims=True)) / parts.shape[1]
    return moved


def _positive(parts: MarginTable, totals: MarginTable) -> MarginTable:
    """Each row moved by one number and cut at 0 so that it adds up to its total: the nearest such row."""
    falling = -np.sort(-parts, axis=1)
    moves = (falling.cumsum(axis=1) - totals) / np.arange(1, parts.shape[1] + 1)
    used = np.maximum((falling > moves).sum(axis=1), 1)
    near = np.maximum(parts - moves[np.arange(len(parts)), used - 1][:, np.newaxis], 0.0)
    return np.where(totals > 0, near, 0.0)


def _rounded(parts: MarginTable, totals: MarginTable) -> MarginTable:
    """Each row rounded down but for its largest fractions, which are rounded up until the row adds up."""
    down = np.floor(parts)
    missing = totals - down.sum(axis=1, keepdims=True)
    order = np.argsort(down - parts, axis=1, kind="stable")
    places = np.empty_like(order)
    np.put_along_axis(places, order, np.arange(parts.shape[1])[np.newaxis, :], axis=1)
    rounded: MarginTable = down + (places < missing)
    return rounded
