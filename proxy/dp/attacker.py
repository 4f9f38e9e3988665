"""How much can somebody who knows everybody else learn of one person, at most, from what an account allows?

Bounds that follow from the charges alone, whatever was asked and whatever the attacker computes. The argument is in
docs/claims/attacker.md. Units: pico = 1e-12 of rho or epsilon, atto = 1e-18 of delta.
"""

from __future__ import annotations

import math

from proxy.dp.accounting import ATTO, PICO, epsilon_of_rho, for_reach_up
from proxy.policy.model import Accounting, Privacy

#: Any of them proves a bound; the smallest is taken.
_DELTAS = tuple(10.0 ** (-k / 4) for k in range(1, 49))
_SLACK = 1e-9  # far above what the double operations lose; a share is shown to a tenth of a percent
_MOST_ACCOUNTS = 1_000_000


def right_guess_up(privacy: Privacy, pico: int, atto: int) -> float:
    """The most that a guess of whether one unit is there can be right, of two cases that are as likely, rounded up.

    Claim: for two databases that differ as the policy's neighbours do, each with a chance of one half, any function of
    everything that was released for charges of `pico` and `atto` in all names the right one with at most this
    probability. Between 0.5 and 1. ValueError for negative charges.
    """
    if pico < 0 or atto < 0:
        raise ValueError("a charge is not negative")
    amount = math.nextafter(pico / PICO, math.inf) if pico else 0.0
    if privacy.accounting is Accounting.PURE:
        found = _logistic(amount)
    else:
        found = min(_by_divergence(amount), *(_by_conversion(amount, delta) for delta in _DELTAS))
    return min(1.0, found + atto / ATTO + _SLACK)


def right_guess_of_secret_up(privacy: Privacy, pico: int, atto: int) -> float:
    """The same for a yes-no secret of a unit that is known to be there.

    Claim: the two databases differ in one unit that is exchanged. Where the policy's neighbours come or go, that is one
    that goes and one that comes, which counts for a reach of twice the group (docs/claims/promises.md).
    """
    exchanged = for_reach_up(privacy.accounting, pico, privacy.promise.reach, 2 * privacy.group_size)
    return right_guess_up(privacy, exchanged, atto)


def fewest_accounts(privacy: Privacy, pico: int, atto: int, level: float) -> int:
    """How many accounts of `pico` and `atto` each must be pooled before a secret can be guessed at this level.

    Claim: with fewer, such a guess is right with less than this probability. At most a million, which stands for
    that many and more. ValueError unless 0.5 < level < 1.
    """
    if not 0.5 < level < 1:
        raise ValueError(f"a level lies between one half and one: {level}")
    low, high = 0, _MOST_ACCOUNTS
    while high - low > 1:
        middle = (low + high) // 2
        is_enough = right_guess_of_secret_up(privacy, middle * pico, middle * atto) >= level
        low, high = (low, middle) if is_enough else (middle, high)
    return high


def _logistic(epsilon: float) -> float:
    """exp(epsilon) / (1 + exp(epsilon))."""
    return 1.0 / (1.0 + math.exp(-epsilon))


def _by_conversion(rho: float, delta: float) -> float:
    """(exp(epsilon) + delta) / (1 + exp(epsilon)), of a pair that the conversion of rho proves."""
    odds_share = _logistic(epsilon_of_rho(rho, delta))
    return odds_share + delta * (1.0 - odds_share)


def _by_divergence(rho: float) -> float:
    """1/2 + TV/2, with the total variation bounded by Pinsker, and by Bretagnolle and Huber, from KL <= rho."""
    return 0.5 + 0.5 * min(math.sqrt(rho / 2), math.sqrt(-math.expm1(-rho)))
