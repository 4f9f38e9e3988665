"""Which public cells hold the wanted quantiles of a private histogram?

Scores cells and walks through several fractions, the middle one first; what is drawn is drawn by `samplers`. A
histogram is an array of weights, ROW_WEIGHT for a row that counts fully. Sources: Smith 2011 (the mechanism), Kaplan,
Schnapp and Stemmer 2022 (several quantiles). The argument is in docs/claims/quantiles.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import assert_never

import numpy as np
import numpy.typing as npt

from proxy.dp.mechanisms import Distribution

ROW_WEIGHT = 1 << 10  # of a row that counts fully; rows of a unit above its bounds weigh less
MOST_DENOMINATOR = 10**6  # of a fraction
_NEAR_AN_END = Fraction(1, 20)  # closer to an end than this, the wanted rank is kept away from it
_MOST_OFFSET = 1 << 45
_AGAINST_BEYOND = 100  # to one, against all cells beyond the data together
_FINENESS = 16  # pieces of a cell where several fractions share one histogram
FAR = 1 << 41  # weights beyond which no score gets worse; times the denominator it fits into 61 bits
MOST_MOVE = 1 << 28  # rows of a unit in a group, so that sensitivities are 63-bit integers
UP = 1.0 + 2.0**-40
_DOWN = 1.0 - 2.0**-40

Weights = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Draw:
    """How one cell is drawn by its score.

    sensitivity: most that any score moves between neighbours that fill one group up to its bound. charge: rho or
    epsilon of that move. scale: a cell is as likely as exp(score / scale). is_monotone: whether all scores move the
    same way between neighbours, which costs a quarter (pure: a half) of what it costs where they move either way.
    """

    distribution: Distribution
    sensitivity: int
    scale: float
    charge: float
    is_monotone: bool = False


Choose = Callable[[Weights, Draw], int]  # from scores to the number of the chosen one


@dataclass(frozen=True, slots=True, kw_only=True)
class Ladder:
    """The public facts about the fractions that are asked of one column in every group.

    fractions: rising, distinct, 0 for the least value and 1 for the largest. move: most rows that neighbours can add to
    one group. groups: the squares (pure: the sizes) of their shares in that move add up to at most this, over all
    groups. amount: rho or epsilon for all of it, rounded down. bracketed: the fractions whose ends are drawn as well.
    """

    distribution: Distribution
    fractions: tuple[Fraction, ...]
    cells: int
    move: int
    groups: int
    amount: float
    bracketed: tuple[Fraction, ...] = ()

    def __post_init__(self) -> None:
        if not self.fractions or list(self.fractions) != sorted(set(self.fractions)):
            raise ValueError("fractions are distinct and rise")
        if list(self.bracketed) != [f for f in self.fractions if f in self.bracketed]:
            raise ValueError("ends are those of fractions, in their order")
        if self.fractions[0] < 0 or self.fractions[-1] > 1:
            raise ValueError("a fraction lies between 0 and 1")
        if max(f.denominator for f in self.fractions) > MOST_DENOMINATOR:
            raise ValueError("a fraction has a small denominator")
        if min(self.cells, self.move, self.groups) < 1:
            raise ValueError(f"impossible counts: {self.cells} cells, {self.move} rows, {self.groups} groups")
        if self.move > MOST_MOVE:
            raise ValueError(f"too many rows of one unit: {self.move}")
        if not (math.isfinite(self.amount) and self.amount > 0):
            raise ValueError(f"rho or epsilon must be finite and positive: {self.amount}")

    @property
    def levels(self) -> int:
        """How many draws one row can take part in: ceil(log2(m + 1))."""
        return len(self.fractions).bit_length()

    @property
    def ends(self) -> int:
        """How many ends are drawn: the least value has none below it, the largest none above."""
        return sum((f > 0) + (f < 1) for f in self.bracketed)

    @property
    def draws(self) -> int:
        """How many draws one row takes part in."""
        return self.levels + self.ends

    @property
    def fineness(self) -> int:
        """Pieces of a cell. The weight of a cell is spread evenly over them, so that a cell can be divided."""
        return 1 if len(self.fractions) == 1 else _FINENESS

    @property
    def charge(self) -> float:
        """Rho or epsilon of one draw for neighbours that fill the group, rounded down."""
        return self.amount / (self.draws * self.groups) * _DOWN

    @property
    def epsilon(self) -> float:
        """epsilon_q: the logarithm of a choice's odds moves by at most this between such neighbours; rounded down."""
        return epsilon_of(self.distribution, self.charge)

    @property
    def offset(self) -> int:
        """Rows that the least and the largest value are kept away from the end of the data, rounded up.

        However loose the bounds are: the cells beyond the data are together 100 times less likely than the right one.
        """
        odds = math.log(self.cells * self.fineness * _AGAINST_BEYOND)
        return min(_MOST_OFFSET, math.ceil(2.0 * self.move / self.epsilon * odds * UP))

    def rank_error_up(self, fraction: Fraction, confidence: float) -> float:
        """Rows between the wanted rank and the chosen cell, with at least this probability.

        With t = ln(cells / (1 - confidence)) no score is below the best by more than scale * t (McSherry and
        Talwar 2007). The error of a level is carried on to the next, where it shrinks or stays.
        """
        steepest = Fraction(1) if self.levels > 1 or is_near_end(fraction) else max(fraction, 1 - fraction)
        reach = math.log(self.cells * self.fineness) + math.log(self.levels) - math.log1p(-confidence)
        return self.levels * 2.0 * self.move * float(steepest) / self.epsilon * reach * UP

    def distance_up(self, fraction: Fraction, confidence: float) -> float:
        """Rows between the rank that was asked for and the chosen cell, with at least this probability.

        Near an end the wanted rank is moved first.
        """
        return self.rank_error_up(fraction, confidence) + (self.offset if is_near_end(fraction) else 0)


def epsilon_of(distribution: Distribution, charge: float) -> float:
    """How far the logarithm of a choice's odds may move for a charge of rho or epsilon; rounded down."""
    match distribution:
        case Distribution.GAUSSIAN:
            return math.sqrt(8.0 * charge) * _DOWN
        case Distribution.LAPLACE:
            return charge * _DOWN
        case _ as never:
            assert_never(never)


def is_near_end(fraction: Fraction) -> bool:
    """Whether the wanted rank is kept away from the end of the data."""
    return min(fraction, 1 - fraction) < _NEAR_AN_END


def select(ladder: Ladder, histogram: Weights, choose: Choose) -> tuple[int, ...]:
    """The chosen cell of each fraction, in order.

    Claim: for histograms of one group that differ by a unit with weights of at most a * move * ROW_WEIGHT in all,
    the result is a^2 * levels * charge-zCDP (pure: a * levels * charge-DP), if `choose` draws as its Draw says. See
    docs/claims/quantiles.md.
    """
    if histogram.shape != (ladder.cells,) or histogram.dtype != np.int64:
        raise ValueError("a histogram has one weight for each cell")
    if histogram.min() < 0:
        raise ValueError("a weight is not negative")
    pieces = np.repeat(histogram, ladder.fineness)
    found = [0] * len(ladder.fractions)
    waiting = [(0, len(found), _Part(0, Fraction(0), len(pieces), Fraction(1)))]
    while waiting:
        first, last, part = waiting.pop()
        if first == last:
            continue
        middle = (first + last) // 2
        fraction = ladder.fractions[middle]
        piece = _choose(ladder, pieces, part, fraction, choose)
        found[middle] = piece // ladder.fineness
        # each piece is on one side of the chosen one, which is on the left, so that a row is in one part of a level
        waiting.append((first, middle, _Part(part.first, part.low, piece + 1, fraction)))
        waiting.append((middle + 1, last, _Part(piece + 1, fraction, part.end, part.high)))
    return tuple(found)


@dataclass(frozen=True, slots=True)
class _Part:
    """The pieces first..end-1, which hold the ranks between two fractions of the whole."""

    first: int
    low: Fraction
    end: int
    high: Fraction


def _choose(ladder: Ladder, pieces: Weights, part: _Part, fraction: Fraction, choose: Choose) -> int:
    if part.first == part.end:  # right of the last piece there is none: known from what was chosen before
        return part.end - 1
    relative = (fraction - part.low) / (part.high - part.low)
    within = scores(ladder, pieces[part.first : part.end], relative)
    return part.first + choose(within, draw_of(ladder, relative))


def draw_of(ladder: Ladder, fraction: Fraction) -> Draw:
    """How a cell is drawn for one fraction of a part of the data."""
    p, whole = fraction.numerator, fraction.denominator
    steepest = whole if is_near_end(fraction) else max(p, whole - p)
    sensitivity = ladder.move * ROW_WEIGHT * ladder.fineness * steepest
    return Draw(
        distribution=ladder.distribution,
        sensitivity=sensitivity,
        scale=2.0 * sensitivity / ladder.epsilon * UP,
        charge=ladder.charge,
    )


def scores(ladder: Ladder, weights: Weights, fraction: Fraction) -> Weights:
    """How far each piece's ranks are from the wanted one: 0 for the piece that holds it, negative for others.

    In units of a weight divided by the fraction's denominator, exact integers; far away no score gets worse.
    """
    p, whole = fraction.numerator, fraction.denominator
    rank, rest = _wanted(int(weights.sum()), p, whole, ladder)
    return -distances(weights, rank, rest, whole)


def distances(weights: Weights, rank: int, rest: int, whole: int) -> Weights:
    """How far each cell's ranks are from rank + rest/whole, times `whole`; far away it gets no larger."""
    ends = np.cumsum(weights)
    above = np.clip(ends - weights - rank, -FAR, FAR) * whole - rest
    below = np.clip(rank - ends, -FAR, FAR) * whole + rest
    found: Weights = np.minimum(np.maximum(0, np.maximum(above, below)), (FAR - 1) * whole)
    return found


def _wanted(total: int, p: int, whole: int, ladder: Ladder) -> tuple[int, int]:
    """The wanted rank: its floor, and what is left, in units of 1/whole."""
    offset = ladder.offset * ROW_WEIGHT * ladder.fineness
    rank, rest = divmod(p * total, whole)
    if Fraction(p, whole) < _NEAR_AN_END and rank < offset:
        return offset, 0
    if 1 - Fraction(p, whole) < _NEAR_AN_END and rank >= total - offset:
        return total - offset, 0
    return rank, rest
