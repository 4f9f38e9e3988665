"""How far may a noisy number be from the exact one, and what may be done to noisy numbers for free?

Sees noisy values and public parameters only, so nothing here costs anything. Intervals describe the noise
alone: not bounding, not the sample's own uncertainty.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from statistics import NormalDist
from typing import assert_never

from proxy.dp.mechanisms import Distribution

_STANDARD = NormalDist()
_CONFIDENCE = 0.95
# Integer noise of scale 2**40 is wider than its continuous twin by less than this, relative to its sd.
_DISCRETE = 2.0**-38
_STEPS = 256  # between which ratios of two noises the larger width is taken
_ROUNDS = 4
_PARTS = 16  # of an sd, to which what is missing is rounded down
_FAR = 8.0  # sd: where more is missing the farther end does not matter
_HALVINGS = 40  # of the range that holds a width


@dataclass(frozen=True, slots=True)
class Interval:
    """Where an exact value lies with a stated confidence; either end may be infinite."""

    low: float
    high: float

    def __post_init__(self) -> None:
        if not self.low <= self.high:
            raise ValueError(f"an interval's low end is not above its high end: {self.low}, {self.high}")


def half_width_up(distribution: Distribution, sd: float, confidence: float) -> float:
    """The h, rounded up, such that noise of this sd lies within [-h, h] with at least this probability.

    ValueError unless sd is finite and not negative and 0 < confidence < 1.
    """
    if not (math.isfinite(sd) and sd >= 0):
        raise ValueError(f"a standard deviation is finite and not negative: {sd}")
    if not 0 < confidence < 1:
        raise ValueError(f"a confidence lies strictly between 0 and 1: {confidence}")
    return sd * (_width_in_sd(distribution, (1.0 - confidence) / 2.0) + _DISCRETE)


def half_width_95(distribution: Distribution, sd: float) -> float:
    """`half_width_up` at 95 %."""
    return half_width_up(distribution, sd, _CONFIDENCE)


def half_width_beside_95(distribution: Distribution, sd: float, missing: float) -> float:
    """The h, rounded up, such that noise of this sd lies within [-h, h + missing] with at least 95 %.

    So [x - h, x + missing + h] holds with at least 95 % a number of which x lacks anything from 0 to `missing`, beside
    noise: at most one of the ends is near (Imbens and Manski 2004). ValueError unless both are finite and not negative.
    """
    if not (math.isfinite(missing) and missing >= 0):
        raise ValueError(f"what is missing is finite and not negative: {missing}")
    if not sd or not missing:
        return half_width_95(distribution, sd)
    return sd * (_width_beside(distribution, math.floor(min(missing / sd, _FAR) * _PARTS)) + _DISCRETE)


@cache
def _width_beside(distribution: Distribution, parts: int) -> float:
    """Of what `half_width_beside_95` is a multiple, where so many parts of an sd are missing."""
    tail, missing = 1.0 - _CONFIDENCE, parts / _PARTS
    low, high = _width_in_sd(distribution, tail), _width_in_sd(distribution, tail / 2.0)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2.0
        beyond = _beyond(distribution, middle) + _beyond(distribution, middle + missing)
        low, high = (middle, high) if beyond > tail else (low, middle)
    return high


def _beyond(distribution: Distribution, width: float) -> float:
    """The chance of noise of sd 1 to exceed a width, which is not negative."""
    match distribution:
        case Distribution.GAUSSIAN:
            return math.erfc(width / math.sqrt(2.0)) / 2.0
        case Distribution.LAPLACE:
            return math.exp(-math.sqrt(2.0) * width) / 2.0
        case _ as never:
            assert_never(never)


def _width_in_sd(distribution: Distribution, tail: float) -> float:
    match distribution:
        case Distribution.GAUSSIAN:
            return -_STANDARD.inv_cdf(tail)
        case Distribution.LAPLACE:
            return -math.log(2.0 * tail) / math.sqrt(2.0)
        case _ as never:
            assert_never(never)


@dataclass(frozen=True, slots=True)
class Noisy:
    """A noisy number and the standard deviation of its noise."""

    value: float
    sd: float


def ratio_sd(numerator: Noisy, denominator: Noisy) -> float:
    """Standard deviation of numerator/denominator by the delta method, for uncorrelated noises.

    Also holds for the pair (n + s)/2, (n - s)/2 released with equal noise: s and n are then uncorrelated.
    Infinite when the denominator is not positive.
    """
    if denominator.value <= 0:
        return math.inf
    ratio = numerator.value / denominator.value
    return math.hypot(numerator.sd, ratio * denominator.sd) / denominator.value


def ratio_interval(over: Noisy, under: Noisy, covariance: float, crossed: float, widths: float) -> Interval:
    """All x for which over - x * under may be 0: where its value is within `widths` of its standard deviations.

    Fieller's interval of over/under (1954): holds as often as that says however noisy the denominator is, for normal
    noise. Everything where the denominator may be 0. covariance: of the two noises. crossed: the variance of
    over.value * (noise of under) - under.value * (noise of over), which the caller can add up without cancellation.
    """
    square = widths * widths
    a = under.value * under.value - square * under.sd * under.sd
    b = over.value * under.value - square * covariance
    apart = over.sd * under.sd
    inside = crossed - square * (apart * apart - covariance * covariance)
    if not (a > 0.0 and math.isfinite(b) and math.isfinite(inside)):
        return Interval(-math.inf, math.inf)
    root = widths * math.sqrt(max(0.0, inside))
    return Interval((b - root) / a, (b + root) / a)


@dataclass(frozen=True, slots=True)
class SharedNoise:
    """Independent noises of one law, each with its standard deviation in a total and, with a sign, in a count.

    parts: none if how they are made up is not known.
    """

    distribution: Distribution
    parts: tuple[tuple[float, float], ...] = ()

    def widths(self, ratio: float) -> float:
        """How many standard deviations hold total - ratio * count 95 times in 100."""
        return sum_widths_95(self.distribution, [abs(t - ratio * c) for t, c in self.parts])


def sum_widths_95(distribution: Distribution, sds: Sequence[float]) -> float:
    """How many standard deviations hold a sum of independent noises 95 times in 100, given that of each.

    Exact for normal noises and for one or two Laplace noises; of more of these, at least as often, since their sum
    comes the nearer to a normal noise the more there are.
    """
    used = sorted(sd for sd in sds if sd > 0.0)
    if distribution is Distribution.GAUSSIAN or len(used) != 2:
        return half_width_95(distribution, 1.0)
    step = used[0] / used[1] * _STEPS
    return max(_widths_of_two(math.floor(step)), _widths_of_two(math.ceil(step))) + _DISCRETE


@cache
def _widths_of_two(step: int) -> float:
    """Of two Laplace noises of scales 1 and step/_STEPS; by partial fractions, how often their sum is beyond t."""
    ratio = step / _STEPS
    low, high = 0.0, 8.0
    for _ in range(60):
        t = (low + high) / 2
        if ratio == 1.0:
            beyond = math.exp(-t) * (1 + t / 2)
        else:
            second = ratio * ratio * math.exp(-t / ratio) if ratio else 0.0
            beyond = (math.exp(-t) - second) / (1 - ratio * ratio)
        low, high = (t, high) if beyond > 1 - _CONFIDENCE else (low, t)
    return high / math.sqrt(2 * (1 + ratio * ratio))


def mean_interval_95(*, total: Noisy, count: Noisy, middle: float, half: float, noises: SharedNoise) -> Interval:
    """The 95 % interval of an average middle + half * total/count, within its range [middle - half, middle + half].

    Claim: it holds the average 95 times in 100, or more often where it is cut to the range. total: sum of the values
    scaled to [-1, 1], whose noise is uncorrelated with that of the count. `ratio_interval` with the quantile of
    total - x * count at each end x, which under two Laplace noises depends on x; the whole range when the noise
    swallows the count.
    """
    whole = Interval(middle - half, middle + half)
    crossed = math.hypot(total.value * count.sd, count.value * total.sd)

    def at(widths: float) -> Interval:
        return ratio_interval(total, count, 0.0, crossed * crossed, widths)

    of = at(half_width_95(noises.distribution, 1.0))
    if count.value <= 0.0 or math.isinf(of.low):
        return whole
    low, high = of.low, of.high
    for _ in range(_ROUNDS if noises.parts else 0):  # the quantile changes by a thirtieth over the whole range
        low = at(noises.widths(min(max(low, -1.0), 1.0))).low
        high = at(noises.widths(min(max(high, -1.0), 1.0))).high
    return Interval(_within(middle + half * low, whole), _within(middle + half * high, whole))


def _within(value: float, range_: Interval) -> float:
    return min(max(value, range_.low), range_.high)


def project_nonnegative(values: Sequence[float], total: float) -> tuple[float, ...]:
    """The nearest numbers (least squares) to noisy counts or sums of groups, not negative, that add up to `total`.

    total: the noisy sum that shall be kept; all zeros when it is not positive. Keeps the order of the values.
    The solution is max(0, value - shift) for one shift (Held, Wolfe and Crowder 1974).
    ValueError when a number is not finite.
    """
    if not (math.isfinite(total) and all(map(math.isfinite, values))):
        raise ValueError("numbers and their total are finite")
    if total <= 0:
        return (0.0,) * len(values)
    shift = max(values, default=0.0) - total
    running = 0.0
    for used, value in enumerate(sorted(values, reverse=True), start=1):
        running += value
        candidate = (running - total) / used
        if candidate >= value:
            break
        shift = candidate
    return tuple(max(0.0, value - shift) for value in values)
