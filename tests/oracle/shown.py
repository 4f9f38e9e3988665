"""With which probability does a release show a group that only a few units are in? A second definition: the promise's.

Reads nothing of how the planner finds a threshold: what a unit may hold and how far a release may move follow from the
policy and the charge, and the law of the noise is summed up over the integers that are released.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction

SCALE = 2**40  # of the noise of every released integer
PICO = 10**12
ROOM = 1 - Fraction(1, 2**30)  # that the grid leaves for the rounding of doubles, which takes far less


def unit_length(pico: int, units: int, *, is_exchanged: bool, is_pure: bool = False) -> float:
    """The longest vector of one unit, in released integers, with which so many of them move by what is paid for.

    pico: 1e-12 of rho, or of epsilon. is_exchanged: neighbours have other units in their place.
    """
    paid = Fraction(pico, PICO)
    together = units * (2 if is_exchanged else 1)
    return SCALE * (float(paid) if is_pure else math.sqrt(2 * paid)) / together * float(ROOM)


@dataclass(frozen=True, slots=True, kw_only=True)
class Few:
    """Units that are in groups of their own.

    units: how many. length: of the vector of one, at most. keys: groups that one may be in. fewest: units that a group
    has at least, by `min_units`.
    """

    units: int
    length: float
    keys: int
    fewest: int

    def chance(self, each: int, least: int) -> float:
        """Of showing any of their groups, if they make the most of it.

        each: what a unit adds that is in one group. least: of the noisy numbers that are shown.
        """
        return max(self._chance(t, each, least) for t in range(1, self.keys + 1))

    def _chance(self, held: int, each: int, least: int) -> float:
        """If each unit is in so many groups. All share them, and there are as many chances as all have groups."""
        count = math.floor(self.units * min(float(each), self.length / math.sqrt(held)))
        left = least - max(0, self.fewest - 1) * each
        return of_any([count] * (self.units * held), left)


def of_any(counts: Iterable[int], least: int) -> float:
    """The probability that noise lifts one of these counts, or more, to `least`."""
    return -math.expm1(math.fsum(math.log1p(-min(tail(least - c), 1.0 - 2.0**-53)) for c in counts))


def tail(least: int) -> float:
    """P(X >= least) of the discrete Gaussian of scale 2**40.

    The sum over integers is the integral and half the first term, but for a share of less than 2**-70 (Euler and
    Maclaurin), and the weights of all integers add up to that of the continuous law, but for far less (Poisson).
    """
    if least <= 0:
        return 1.0 - tail(1 - least)
    z = least / SCALE
    return 0.5 * math.erfc(z / math.sqrt(2)) + math.exp(-z * z / 2) / math.sqrt(2 * math.pi) / SCALE / 2
