"""How much privacy loss do answers on two neighbouring databases prove, and is it more than was charged?

Knows nothing of the product: numbers in, a bound out. An event is chosen on one half of the answers and counted on the
other, so that one event is tested, and its two probabilities are bounded by Clopper and Pearson. A bound is too high
with a probability of at most FALSE_ALARM.
"""

from __future__ import annotations

import enum
import math
from dataclasses import dataclass
from functools import cache
from statistics import NormalDist
from typing import assert_never

import numpy as np
import numpy.typing as npt

FALSE_ALARM = 1e-4  # of one bound: both of its probabilities are inside their intervals but for this
ROUNDS = 200  # for the power
CANDIDATES = 40  # thresholds that are tried on the first half
_NORMAL = NormalDist()
_ORDERS = np.concatenate([np.linspace(1.01, 4, 120), np.linspace(4, 64, 60)])

Scores = npt.NDArray[np.float64]


class Promise(enum.Enum):
    """What a charge promises, and in which number."""

    MU = "mu"  # two normal laws of standard deviation 1, so far apart: what Gaussian noise of rho = mu^2/2 gives
    RHO = "rho"  # zero-concentrated, of whatever law
    EPSILON = "epsilon"
    DELTA = "delta"  # that something is shown at all


@dataclass(frozen=True, slots=True)
class Counts:
    """How often an event happened with the person, and how often without, in so many answers each."""

    with_person: int
    without: int
    of: int

    @property
    def reversed(self) -> Counts:
        return Counts(self.without, self.with_person, self.of)


@dataclass(frozen=True, slots=True)
class Event:
    """That a score is at least, or below, a limit."""

    limit: float
    above: bool

    def count(self, scores: Scores) -> int:
        return int(np.count_nonzero((scores >= self.limit) == self.above))


def proven(promise: Promise, with_person: Scores, without: Scores) -> tuple[float, Counts]:
    """The loss that these scores prove, and the counts that prove it; the first half only chooses what is counted."""
    half = len(with_person) // 2
    event = _chosen(promise, with_person[:half], without[:half])
    counts = Counts(event.count(with_person[half:]), event.count(without[half:]), len(with_person) - half)
    return loss_down(promise, counts), counts


def _chosen(promise: Promise, with_person: Scores, without: Scores) -> Event:
    limits = np.unique(np.quantile(np.concatenate([with_person, without]), np.linspace(0.01, 0.99, CANDIDATES)))
    events = [Event(float(limit), above) for limit in limits for above in (True, False)]

    def promising(event: Event) -> float:
        return loss_down(promise, Counts(event.count(with_person), event.count(without), len(with_person)))

    return max(events, key=promising)


def loss_down(promise: Promise, counts: Counts) -> float:
    """The least loss that is consistent with the counts, whichever of the two databases makes the event likelier."""
    return max(_one_way(promise, counts), _one_way(promise, counts.reversed))


def _one_way(promise: Promise, counts: Counts) -> float:
    high, low = at_least(counts.with_person, counts.of), at_most(counts.without, counts.of)
    if promise is Promise.DELTA:
        return at_least(counts.with_person, counts.of)
    if not 0 < low < high < 1:
        return 0.0
    match promise:
        case Promise.MU:
            return _NORMAL.inv_cdf(high) - _NORMAL.inv_cdf(low)
        case Promise.EPSILON:
            return math.log(high / low)
        case Promise.RHO:
            return _rho(high, low)
        case _ as never:
            assert_never(never)


def _rho(high: float, low: float) -> float:
    """The least rho whose Renyi divergences allow an event of these two probabilities."""
    sums = high**_ORDERS * low ** (1 - _ORDERS) + (1 - high) ** _ORDERS * (1 - low) ** (1 - _ORDERS)
    return float(np.max(np.log(sums) / (_ORDERS - 1) / _ORDERS))


# --- Clopper and Pearson --------------------------------------------------------------------------------


def at_least(successes: int, of: int) -> float:
    """A lower end for the probability; too high with a probability of at most half of FALSE_ALARM."""
    return 1.0 - at_most(of - successes, of)


@cache
def at_most(successes: int, of: int) -> float:
    """An upper end for the probability: that at which so few successes are as rare as half of FALSE_ALARM."""
    if successes >= of:
        return 1.0
    low, high = successes / of, 1.0
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (middle, high) if _at_most_so_many(successes, of, middle) > FALSE_ALARM / 2 else (low, middle)
    return high


def _at_most_so_many(successes: int, of: int, probability: float) -> float:
    """The distribution function of the binomial law."""
    if probability <= 0:
        return 1.0
    if probability >= 1:
        return 0.0
    k = np.arange(successes + 1)
    logs = _log_factorials(of)
    terms = logs[of] - logs[k] - logs[of - k] + k * math.log(probability) + (of - k) * math.log1p(-probability)
    return float(np.exp(terms).sum())


@cache
def _log_factorials(most: int) -> npt.NDArray[np.float64]:
    return np.concatenate([np.zeros(1), np.cumsum(np.log(np.arange(1, most + 1)))])


# --- how sure is it? ------------------------------------------------------------------------------------


def power(promise: Promise, with_person: Scores, without: Scores, claimed: float, rounds: int = ROUNDS) -> float:
    """How often answers drawn from these prove more than was claimed, each time with an event chosen anew."""
    rng = np.random.default_rng(20)
    drawn = ((rng.choice(s, len(s)) for s in (with_person, without)) for _ in range(rounds))
    return sum(proven(promise, *scores)[0] > claimed for scores in drawn) / rounds
