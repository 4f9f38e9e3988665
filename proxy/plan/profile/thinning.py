"""How large are units, once conditions keep some of their rows?

The rows of a unit pass by chance, each unit with a chance of its own: a beta distribution of the mean and the second
moment that a profile tells. What is left of a unit's rows is then a Poisson number. A forecast: it decides about
accuracy alone.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import lru_cache

import numpy as np

from proxy.plan.profile.kept import KeptShare
from proxy.plan.profile.profile import BUCKETS, STEP, Doubles, Tail

_KINDS = 24  # of units, that keep more or fewer of their rows
_FINE = 4  # means of Poisson numbers to a doubling
_LOWEST, _HIGHEST = -20, 34  # as powers of two
_EXACT = 8  # up to this power of two numbers are added one by one; beyond they are nearly normal
_ALIKE = 1e-3  # units that differ less are taken to be alike
_LEAST_OF_EDGE = 2.0**-40
_FEWEST = 0.6  # units; where fewer are expected they are taken to be so many


@lru_cache(maxsize=256)
def thinned(tail: Tail, kept: KeptShare, worth: float = 0.0, grows: float = 1.0) -> Tail:
    """The sizes of what is left of units, never above those of all their rows.

    worth: the size of a row's part of a unit's size; 0 where sizes are numbers of rows. grows: times which it is larger
    in rows that are kept than in all.
    """
    if kept.share >= 1.0:
        return tail
    edges = np.array(tail.edges)
    numbers, sizes = _numbers(tail), _sizes(edges, is_whole=not worth)
    step = round(2.0 * math.log2(worth / tail.edges[0])) if worth else 0
    one = tail.edges[0] * STEP**step
    chance, part = chances(kept.share, kept.stickiness)
    means, expected = grows * sizes[:, None] / one * chance, numbers[:, None] * part
    above, units = _poisson(means.ravel(), expected.ravel(), step)
    fewer = np.minimum(above, np.array(tail.above))
    return replace(tail, above=tuple(fewer.tolist()), units=max(min(units, tail.units), _FEWEST))


@lru_cache(maxsize=256)
def mean_size(sums: Tail, rows: Tail) -> float:
    """What a row adds to sums on average, as sums are measured."""
    whole, number = whole_of(sums, is_whole=False), whole_of(rows, is_whole=True)
    return max(whole / number, sums.edges[0] * _LEAST_OF_EDGE) if number > 0 else sums.edges[0]


@lru_cache(maxsize=256)
def whole_of(tail: Tail, *, is_whole: bool) -> float:
    """What all units have together."""
    return float(_sizes(np.array(tail.edges), is_whole=is_whole) @ _numbers(tail))


def _numbers(tail: Tail) -> Doubles:
    """Of units in each bucket."""
    return -np.diff(np.array((tail.units, *tail.above, 0.0)))


@lru_cache(maxsize=256)
def chances(share: float, stickiness: float) -> tuple[Doubles, Doubles]:
    """The chance of a row to be kept for kinds of units, and the part of all units that are of each kind.

    A beta distribution in pieces that hold about as many units, or as many of the rows that are kept.
    """
    if stickiness < _ALIKE:
        return np.array([share]), np.ones(1)
    if stickiness > 1.0 - _ALIKE:
        return np.array([0.0, 1.0]), np.array([1.0 - share, share])
    most = 1.0 / stickiness - 1.0
    a, b = share * most, (1.0 - share) * most
    logits = np.linspace(-30.0, 30.0, 801)
    step = logits[1] - logits[0]
    chance, logs = 1.0 / (1.0 + np.exp(-logits)), -a * np.log1p(np.exp(-logits)) - b * np.log1p(np.exp(logits))
    units = np.exp(logs - logs.max())
    units[0] += units[0] / (a * step)  # what is beyond either end
    units[-1] += units[-1] / (b * step)
    units /= units.sum()
    rows = units * chance
    piece = np.minimum((np.cumsum(units + rows / rows.sum()) * (_KINDS / 2.0)).astype(np.int64), _KINDS - 1)
    of_units, of_rows = np.bincount(piece, units, _KINDS), np.bincount(piece, rows, _KINDS)
    there = of_units > 0
    return np.asarray(of_rows[there] / of_units[there]), np.asarray(of_units[there], dtype=np.float64)


def _sizes(edges: Doubles, *, is_whole: bool) -> Doubles:
    """About the size of units in each bucket; of whole numbers their mean."""
    ends = np.concatenate(([0.0], edges, [edges[-1] * STEP]))
    if not is_whole:
        return np.asarray((ends[1:] + ends[:-1]) / 2.0)
    low, high = np.floor(ends[:-1] + 1e-9) + 1.0, np.floor(ends[1:] + 1e-9)
    return np.where(high >= low, (low + high) / 2.0, ends[1:])


def _poisson(means: Doubles, numbers: Doubles, step: int) -> tuple[Doubles, float]:
    """How many of so many Poisson numbers exceed each edge, and 0. step: half octaves of an edge that is worth 1."""
    table, grid = _table()
    places = np.clip((np.log2(np.maximum(means, grid[0])) - _LOWEST) * _FINE, 0.0, len(grid) - 1.001)
    low = places.astype(np.int64)
    right = np.clip((means - grid[low]) / (grid[low + 1] - grid[low]), 0.0, 1.0)
    left = np.where(means < grid[0], means / grid[0], 1.0 - right)
    weights = np.bincount(low, numbers * left, len(grid)) + np.bincount(low + 1, numbers * right, len(grid))
    exceed = weights @ table  # of 0, then of each edge of the ladder from 1
    at = np.clip(np.arange(BUCKETS - 1) - step + 1, 0, table.shape[1] - 1)
    return exceed[at], float(exceed[0])


@lru_cache(maxsize=1)
def _table() -> tuple[Doubles, Doubles]:
    """The chance that a Poisson number exceeds 0 and each edge of a ladder from 1, by its mean; and the means."""
    grid = 2.0 ** (np.arange((_HIGHEST - _LOWEST) * _FINE + 1) / _FINE + _LOWEST)
    edges = np.floor(np.concatenate(([0.0], STEP ** np.arange(BUCKETS)[: BUCKETS - 1])) + 1e-9)
    spread = (edges + 0.5 - grid[:, None]) / np.sqrt(grid[:, None])
    table = 1.0 / (1.0 + np.exp(np.clip(1.702 * spread, -60.0, 60.0)))
    few = grid <= 2.0**_EXACT
    counts = np.arange(2.0 ** (_EXACT + 1))
    factorials = np.concatenate(([0.0], np.cumsum(np.log(counts[1:]))))
    chance = np.exp(counts * np.log(grid[few, None]) - grid[few, None] - factorials)
    at_most = np.cumsum(chance, axis=1)[:, np.minimum(edges, counts[-1]).astype(np.int64)]
    table[few] = np.clip(1.0 - at_most, 0.0, 1.0)
    return table, grid
