"""Which private group keys may appear: how high must a noisy unit count be?

Computes thresholds and their share of delta, and which delta a threshold amounts to for another group of units;
the noise and the comparison happen elsewhere. Counts are in units, sigma in units, delta as a float or in atto
(1e-18). Source: Gopi, Gulhane, Kulkarni, Shen, Shokouhi and Yekhanin 2020 (weighted Gaussian set union), extended
to groups of units here.
The argument is in docs/claims/key-selection.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from statistics import NormalDist

from proxy.dp.accounting import ATTO
from proxy.dp.mechanisms import SCALE_BITS
from proxy.errors import BadGroups

MAX_DELTA = 1e-2
MIN_DELTA = 1e-18  # one atto, the smallest charge

_UP = 1.0 + 2.0**-40  # relative; doubles lose less than 2**-48 in each place where it is applied
_DOWN = 1.0 - 2.0**-40
_STANDARD = NormalDist()
_FAR = 30.0  # a normal tail beyond is below 1e-197


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyRule:
    """When a release shows a private key: if its noisy unit count, in units, reaches tau.

    The rest is what tau was computed from, as `threshold` has it, without the group of units and its delta: enough to
    tell the probability that keys of any number of units show.
    """

    tau: float
    sigma_n: float
    norm_ratio: float
    keys_per_unit: int
    min_units: int

    def __post_init__(self) -> None:
        _check_noise(self.sigma_n, self.norm_ratio)
        _check_counts(self.keys_per_unit, 1, self.min_units)


def key_rule(
    *, delta_r: float, sigma_n: float, norm_ratio: float, keys_per_unit: int, group_size: int, min_units: int
) -> KeyRule:
    """The rule with the threshold that follows from the figures. Raises as `threshold` does."""
    tau = threshold(
        delta_r=delta_r, sigma_n=sigma_n, norm_ratio=norm_ratio, keys_per_unit=keys_per_unit, group_size=group_size,
        min_units=min_units,
    )  # fmt: skip
    return KeyRule(tau=tau, sigma_n=sigma_n, norm_ratio=norm_ratio, keys_per_unit=keys_per_unit, min_units=min_units)


@lru_cache(maxsize=4096)
def threshold(
    *, delta_r: float, sigma_n: float, norm_ratio: float, keys_per_unit: int, group_size: int = 1, min_units: int = 0
) -> float:
    """The least noisy unit count (tau, in units, rounded up) at which a private key is shown.

    sigma_n: standard deviation of the unit count's discrete Gaussian noise, in units; the noise has scale
    2**40 on its own grid. norm_ratio: B/w_n, the bound on a unit's weighted vector over the weight of the
    unit count. keys_per_unit: K, the most keys one unit may hold.

    Claim: for inputs that differ in at most `group_size` units, the probability that any key held only by
    those units is shown is at most delta_r, when every other coordinate is released with its own noise.
    Assumes that a unit holding t keys adds at most a(t) = min(1, norm_ratio/sqrt(t)) to each of its t counts
    and that t <= K. With min_units = m > 1 the claim also holds if the engine drops keys held by
    fewer than m units, and any key held by fewer than m units is shown with probability at most delta_r.

    BadGroups when delta_r is outside [1e-18, 1e-2] (nothing left in the pool, or no protection);
    ValueError when another argument is impossible.
    """
    if not MIN_DELTA <= delta_r <= MAX_DELTA:
        raise BadGroups(
            f"the delta available for private group keys is out of range: {delta_r:g}",
            detail=f"A release of keys needs a delta from {MIN_DELTA:g} to {MAX_DELTA:g}; "
            "its share of the pool is proportional to its share of the account's budget.",
            hint="Raise the query's epsilon, or group by a column whose values the policy lists.",
        )
    _check_noise(sigma_n, norm_ratio)
    _check_counts(keys_per_unit, group_size, min_units)
    log_hidden = math.log1p(-delta_r)

    def weight_up(keys: int) -> float:
        return _weight_up(norm_ratio, keys, group_size)

    def noise_up(keys: int) -> float:
        return sigma_n * _quantile_up(log_hidden / (group_size * keys))

    tau = _max_of_sum(weight_up, noise_up, keys_per_unit)
    return (tau + sigma_n * 2.0 ** (1 - SCALE_BITS) + max(0, min_units - 1)) * _UP


@lru_cache(maxsize=65536)
def shown_atto_up(rule: KeyRule, group_size: int) -> int:
    """The delta, in atto and at most 1, with which a rule shows keys that only `group_size` units hold.

    Claim: for inputs that differ in at most `group_size` units, the probability that the rule shows any key which only
    those units hold is at most the result. Assumes what `threshold` does, for any group size, that of the rule or not.
    """
    margin = rule.tau - max(0, rule.min_units - 1)

    def log_tail_up(keys: int) -> float:
        weight = _weight_up(rule.norm_ratio, keys, group_size)
        lost = 2.0 ** (1 - SCALE_BITS) + (rule.tau + weight) / rule.sigma_n * 2.0**-48
        z_down = min((margin - weight) / rule.sigma_n - lost, _FAR)
        return math.log(math.erfc(z_down / math.sqrt(2.0)) / 2.0)

    _check_counts(rule.keys_per_unit, group_size, rule.min_units)
    each = math.exp(_max_of_sum(log_tail_up, math.log, rule.keys_per_unit))
    return min(ATTO, math.ceil(group_size * each * _UP * ATTO))


def delta_share(delta_pool_atto: int, pico_r: int, pico_account: int) -> int:
    """The atto of an account's pool that a release costing pico_r of pico_account may use.

    Charge this integer and use no more than this integer (`accounting.of_atto_down`): rounding it down
    makes the shares of any releases that fit into the account fit into its pool, so that a pool never
    runs out before its account. Several accounts: the smallest share, charged to each.
    A release dearer than the account gets the whole pool; the account refuses it.
    """
    if delta_pool_atto < 0 or pico_r < 0 or pico_account < 1:
        raise ValueError(f"impossible share: {delta_pool_atto} atto, {pico_r} of {pico_account} pico")
    return min(delta_pool_atto, delta_pool_atto * pico_r // pico_account)


def _check_noise(sigma_n: float, norm_ratio: float) -> None:
    if not (math.isfinite(sigma_n) and sigma_n > 0):
        raise ValueError(f"a unit count has positive noise: {sigma_n}")
    if not (math.isfinite(norm_ratio) and norm_ratio > 0):
        raise ValueError(f"a unit's bound over its count's weight is positive: {norm_ratio}")


def _check_counts(keys_per_unit: int, group_size: int, min_units: int) -> None:
    if keys_per_unit < 1 or group_size < 1 or min_units < 0:
        raise ValueError(f"impossible counts: {keys_per_unit} keys, {group_size} units, at least {min_units}")


def _weight_up(norm_ratio: float, keys: int, group_size: int) -> float:
    """Most that so many units, each with that number of keys, add to a count: group_size * a(keys)."""
    return group_size * min(1.0, norm_ratio / math.sqrt(keys)) * _UP


def _quantile_up(log_hidden: float) -> float:
    """z, rounded up, with Phi(z) = exp(log_hidden) for a log_hidden just below 0.

    Works with the tail 1 - Phi, whose digits survive: 1 - 1e-13 as a double has lost three of its own.
    """
    tail = -math.expm1(log_hidden) * _DOWN
    z_up = -_STANDARD.inv_cdf(tail) * _UP
    assert 0.5 * math.erfc(z_up / math.sqrt(2.0)) <= tail, "the quantile of the normal law is not accurate"
    return z_up


def _max_of_sum(falling: Callable[[int], float], rising: Callable[[int], float], last: int) -> float:
    """The exact maximum of falling(t) + rising(t) over t = 1..last, without computing every t.

    On lo..hi the sum is at most falling(lo) + rising(hi); a range is split until that is no better
    than the best value seen. The end of every range has been computed, so a range of one is never split.
    """
    best = max(falling(1) + rising(1), falling(last) + rising(last))
    ranges = [(1, last)]
    while ranges:
        lo, hi = ranges.pop()
        if falling(lo) + rising(hi) <= best:
            continue
        middle = (lo + hi) // 2
        best = max(best, falling(middle) + rising(middle))
        ranges += ((lo, middle), (middle + 1, hi))
    return best
