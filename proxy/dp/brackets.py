"""Between which public cells does a quantile of a private histogram lie, in 19 of 20 draws?

Two more cells are drawn for a fraction, for the rank `reach` below the wanted one and for the rank as far above. The
argument, of privacy and of coverage, is in docs/claims/quantiles.md.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from proxy.dp.quantiles import FAR, ROW_WEIGHT, UP, Choose, Draw, Ladder, Weights, distances

_MISSED = 0.05  # how often the two ends may fail to hold the quantile between them


def brackets(ladder: Ladder, histogram: Weights, choose: Choose) -> tuple[int, ...]:
    """For each fraction whose ends are wanted, the numbers of the cells at its lower and its upper end.

    The number before the first cell, or behind the last, says that there is no such end.

    Claim: for histograms of one group that differ by a unit with weights of at most a * move * ROW_WEIGHT in all, each
    draw is a^2 * charge-zCDP (pure: a * charge-DP), if `choose` draws as its Draw says. There are at most
    `ladder.ends` draws.
    """
    return tuple(end for f in ladder.bracketed for end in _ends(ladder, histogram, f, choose))


def _ends(ladder: Ladder, histogram: Weights, fraction: Fraction, choose: Choose) -> tuple[int, int]:
    reach = reach_of(ladder, fraction)
    low, high = -1, ladder.cells
    if reach < FAR:  # where noise is as large, nothing can be told
        draw = draw_of_end(ladder, fraction)
        if fraction > 0:
            low = choose(end_scores(histogram, fraction, -reach), draw) - 1
        if fraction < 1:
            high = choose(end_scores(histogram, fraction, reach), draw)
    return low, high


def reach_of(ladder: Ladder, fraction: Fraction) -> int:
    """How far the rank of an end is from the wanted one, in weights: further than all cells together err in 5 of 100.

    One row more, since PostgreSQL looks between the rows beside the wanted rank.
    """
    steepest = float(max(fraction, 1 - fraction))
    rows = 2.0 * ladder.move * steepest / ladder.epsilon * math.log(ladder.cells / _MISSED) * UP
    return math.ceil(min(float(FAR), (rows + 1.0) * ROW_WEIGHT))


def draw_of_end(ladder: Ladder, fraction: Fraction) -> Draw:
    """How an end is drawn. The rank it is for moves as the wanted one, however far away it is."""
    p, whole = fraction.numerator, fraction.denominator
    sensitivity = ladder.move * ROW_WEIGHT * max(p, whole - p)
    return Draw(
        distribution=ladder.distribution, sensitivity=sensitivity, scale=2.0 * sensitivity / ladder.epsilon * UP,
        charge=ladder.charge,
    )  # fmt: skip


def end_scores(histogram: Weights, fraction: Fraction, away: int) -> Weights:
    """The scores of cells for the rank `away` from the wanted one, and of what is beyond the data on that side.

    Beyond the data are all ranks up to 0, or from the last one on, so that some candidate always holds the rank. It
    stands before the cells of a lower end and behind those of an upper one.
    """
    p, whole = fraction.numerator, fraction.denominator
    total = int(histogram.sum())
    rank, rest = divmod(p * total, whole)
    rank += away
    cells = distances(histogram, rank, rest, whole)
    if away < 0:
        beyond = max(0, min(rank, FAR) * whole + rest)
        return -np.concatenate((_one(beyond, whole), cells))
    beyond = max(0, min(total - rank, FAR) * whole - rest)
    return -np.concatenate((cells, _one(beyond, whole)))


def _one(distance: int, whole: int) -> Weights:
    return np.array([min(distance, (FAR - 1) * whole)], dtype=np.int64)
