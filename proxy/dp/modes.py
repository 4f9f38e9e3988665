"""Which of several public values do most rows of a private group have?

Says how a candidate is drawn by its number of rows; what is drawn is drawn by `samplers`. Rows are counted in units of
1/ROW_WEIGHT. Sources: McSherry and Talwar 2007 (the mechanism), Dong, Durfee and Rogers 2020 (scores that move one
way). The argument is in docs/claims/modes.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from proxy.dp.mechanisms import Distribution
from proxy.dp.quantiles import MOST_MOVE, ROW_WEIGHT, UP, Choose, Draw, Weights, epsilon_of

_DOWN = 1.0 - 2.0**-40


@dataclass(frozen=True, slots=True, kw_only=True)
class Poll:
    """The public facts about the most frequent of some values in every group.

    candidates: how many values there are. move: most rows by which the number of any of them moves between neighbours.
    is_monotone: whether all of them move the same way, since units only come or only go. groups: the squares (pure: the
    sizes) of their shares in that move add up to at most this, over all groups. amount: rho or epsilon for all of it,
    rounded down.
    """

    distribution: Distribution
    candidates: int
    move: int
    is_monotone: bool
    groups: int
    amount: float

    def __post_init__(self) -> None:
        if min(self.candidates, self.move, self.groups) < 1:
            raise ValueError(f"impossible counts: {self.candidates} values, {self.move} rows, {self.groups} groups")
        if self.move > MOST_MOVE:
            raise ValueError(f"too many rows of one unit: {self.move}")
        if not (math.isfinite(self.amount) and self.amount > 0):
            raise ValueError(f"rho or epsilon must be finite and positive: {self.amount}")

    @property
    def charge(self) -> float:
        """Rho or epsilon of one group's draw for neighbours that fill the group, rounded down."""
        return self.amount / self.groups * _DOWN

    @property
    def epsilon(self) -> float:
        """The logarithm of a choice's odds moves by at most this between such neighbours; rounded down."""
        return epsilon_of(self.distribution, self.charge)

    @property
    def draw(self) -> Draw:
        """How a candidate is drawn.

        The odds of two candidates move by what their scores move apart: by the move of one of them if all move the same
        way, else by twice as much.
        """
        sensitivity = self.move * ROW_WEIGHT
        apart = sensitivity if self.is_monotone else 2 * sensitivity
        return Draw(
            distribution=self.distribution,
            sensitivity=sensitivity,
            scale=apart / self.epsilon * UP,
            charge=self.charge,
            is_monotone=self.is_monotone,
        )

    @property
    def steepness(self) -> float:
        """lambda: what is k rows short of the best is given with a probability of at most exp(-lambda k)."""
        return ROW_WEIGHT / self.draw.scale

    def short_up(self, chance: float) -> int:
        """How many rows short of the best a value is that is given with at most this probability, rounded up."""
        return math.ceil(-math.log(chance) / self.steepness * UP)

    @property
    def least(self) -> int:
        """Rows of which, all with one value, the others together may be given as often; rounded up."""
        return math.ceil(math.log(self.candidates) / self.steepness * UP)


def elect(poll: Poll, histogram: Weights, choose: Choose) -> int:
    """The number of the chosen candidate.

    Claim: for histograms of one group that differ by units of which all come or all go (otherwise: that come and go),
    with weights of at most a * move * ROW_WEIGHT in all that come and in all that go, the result is a^2 * charge-zCDP
    (pure: a * charge-DP), if `choose` draws as its Draw says. See docs/claims/modes.md.
    """
    if histogram.shape != (poll.candidates,) or histogram.dtype != np.int64:
        raise ValueError("a histogram has one weight for each candidate")
    if histogram.min() < 0:
        raise ValueError("a weight is not negative")
    return choose(histogram, poll.draw)
