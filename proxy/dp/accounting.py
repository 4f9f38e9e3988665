"""What does an epsilon cost, in the exact integers that accounts add up?

Knows nothing of accounts, queries or noise. Units: pico = 1e-12 of rho (zcdp) or of epsilon (pure),
atto = 1e-18 of delta. A function whose result is rounded says the direction in its name or its first
line. Sources: Bun and Steinke 2016 (zCDP); Canonne, Kamath and Steinke 2020, Proposition 12 (conversion);
Whitehouse, Ramdas, Rogers and Wu 2023 (adding rho and delta is a valid filter under full adaptivity).
The argument is in docs/claims/accounting.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import ROUND_DOWN, Context, Decimal
from fractions import Fraction
from functools import lru_cache
from typing import assert_never

from proxy.errors import InvalidSetting
from proxy.policy.figures import figure
from proxy.policy.model import MIN_QUERY_EPSILON, Accounting, Privacy

Exact = int | float | Decimal | Fraction

PICO = 10**12  # rho and epsilon are counted in 1e-12
ATTO = 10**18  # delta is counted in 1e-18
_SHOWN = 10**9  # an epsilon is displayed in steps of 1e-9

# Rounding of the conversion's formula, relative to the sum of the magnitudes of its terms. Each term is a
# handful of operations good to 2**-52; both constants are far above that. The way from epsilon to rho loses
# 2**-40 and the way back only 2**-48, so that a round trip never ends above where it began.
_TO_RHO_SLACK = 2.0**-40
_TO_EPSILON_SLACK = 2.0**-48
_GOLDEN = (math.sqrt(5.0) - 1.0) / 2.0
_ORDER_PRECISION = 1e-9  # of log(alpha - 1); the optimum is flat, so the value is exact to its square


# --- integers of 1e-12 and 1e-18 --------------------------------------------------------------------


def pico_down(amount: Exact) -> int:
    """The most pico that `amount`, taken at its exact value, contains."""
    return math.floor(_scaled(amount, PICO))


def atto_down(amount: Exact) -> int:
    """The most atto that `amount`, taken at its exact value, contains."""
    return math.floor(_scaled(amount, ATTO))


def of_pico_down(pico: int) -> float:
    """Rho or epsilon of a number of pico, never above it: for calibrating noise to a charge."""
    return _float_down(_whole(pico), PICO)


def of_atto_down(atto: int) -> float:
    """Delta of a number of atto, never above it: for a threshold that was charged `atto`."""
    return _float_down(_whole(atto), ATTO)


def as_written(number: float) -> Fraction:
    """The decimal that a person wrote to get this float: 0.3 is 3/10, so three 0.1 fit into it."""
    return Fraction(repr(float(number)))


def _scaled(amount: Exact, unit: int) -> Fraction:
    if not math.isfinite(amount) or amount < 0:
        raise ValueError(f"a privacy cost is finite and not negative: {amount}")
    return Fraction(amount) * unit


def _whole(count: int) -> int:
    if count < 0:
        raise ValueError(f"a privacy cost is not negative: {count}")
    return count


def _float_down(count: int, unit: int) -> float:
    value = count / unit
    return math.nextafter(value, 0.0) if Fraction(value) > Fraction(count, unit) else value


# --- rho and (epsilon, delta) -----------------------------------------------------------------------


@lru_cache(maxsize=4096)
def rho_of_epsilon(epsilon: float, delta: float) -> float:
    """The largest rho, rounded down, such that every rho-zCDP mechanism is (epsilon, delta)-DP by the conversion.

    Claim: for every order alpha = 1 + x > 1, rho-zCDP gives (epsilon, delta)-DP as soon as
    delta >= exp(x (alpha rho - epsilon)) / x * (1 - 1/alpha)^alpha (Canonne, Kamath, Steinke 2020, Prop. 12).
    Solved for rho this is a closed form, so any order proves its own rho, and the search for the best
    order can lose accuracy but never soundness. ValueError unless epsilon > 0 and 0 < delta < 1.
    """
    _check_pair(epsilon, delta)
    log_miss = -math.log(delta)

    def rho_by_order(log_excess: float) -> float:
        x = math.exp(log_excess)
        terms, size = _order_terms(log_miss, log_excess, x)
        return (epsilon - terms - _TO_RHO_SLACK * (epsilon + size)) / (1.0 + x)

    return max(0.0, _largest(rho_by_order, log_miss))


@lru_cache(maxsize=65536)
def epsilon_of_rho(rho: float, delta: float) -> float:
    """The smallest epsilon, rounded up, such that the conversion proves rho-zCDP to be (epsilon, delta)-DP.

    The same bound as `rho_of_epsilon`, solved for epsilon. ValueError unless rho >= 0 and 0 < delta < 1.
    """
    if rho == 0:
        return 0.0
    _check_pair(rho, delta)
    log_miss = -math.log(delta)

    def minus_epsilon_by_order(log_excess: float) -> float:
        x = math.exp(log_excess)
        terms, size = _order_terms(log_miss, log_excess, x)
        base = (1.0 + x) * rho
        return -(base + terms + _TO_EPSILON_SLACK * (base + size))

    return max(0.0, -_largest(minus_epsilon_by_order, log_miss))


def _check_pair(amount: float, delta: float) -> None:
    if not (math.isfinite(amount) and amount > 0):
        raise ValueError(f"epsilon or rho must be finite and positive: {amount}")
    if not 0 < delta < 1:
        raise ValueError(f"delta must lie strictly between 0 and 1: {delta}")


def _order_terms(log_miss: float, log_excess: float, x: float) -> tuple[float, float]:
    """(log(1/delta) - log x + alpha log(1 - 1/alpha)) / x for alpha = 1 + x, and the size of its parts.

    log(1 - 1/alpha) = -log1p(1/x) keeps its digits at both ends.
    """
    shrink = (1.0 + x) * math.log1p(1.0 / x)
    return (log_miss - log_excess - shrink) / x, (log_miss + abs(log_excess) + shrink) / x


def _largest(value: Callable[[float], float], log_miss: float) -> float:
    """The largest value found over log(alpha - 1) by golden section.

    The logarithm of the bound on delta is convex in alpha, so `value` has a single peak; it lies between
    exp(-20) (for any epsilon below 1e17) and a small multiple of 1/delta.
    """
    low, high = -20.0, log_miss + 5.0
    left, right = high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)
    at_left, at_right = value(left), value(right)
    while high - low > _ORDER_PRECISION:
        if at_left > at_right:
            high, right, at_right = right, left, at_left
            left = high - _GOLDEN * (high - low)
            at_left = value(left)
        else:
            low, left, at_left = left, right, at_right
            right = low + _GOLDEN * (high - low)
            at_right = value(right)
    return max(at_left, at_right)


# --- a policy's prices ------------------------------------------------------------------------------


def knob_pico(privacy: Privacy, epsilon: float) -> int:
    """The charge of one query at this epsilon, rounded down: its noise must be calibrated to this integer.

    Rounded down because it is both the promise (never above epsilon) and the price (exactly what the
    noise spends). An account of the same epsilon therefore holds the query once.
    Raises InvalidSetting when epsilon is below 1e-4, not finite, or above the policy's maximum.
    """
    most = privacy.max_query_epsilon
    if not MIN_QUERY_EPSILON <= epsilon <= most:
        raise InvalidSetting(
            f"epsilon of a query is outside its range: {figure(epsilon, 6)}",
            detail=f"This policy accepts {figure(MIN_QUERY_EPSILON, 6)} to {figure(most, 6)}.",
            hint="SET hush.epsilon to a value in that range.",
        )
    return _price_down(privacy, epsilon)


def limit_pico(privacy: Privacy, epsilon: float) -> int:
    """What an account of this epsilon may spend in all, rounded down. Zero is an account that pays for nothing.

    ValueError when epsilon is negative or not finite: policy loading refuses that with its line.
    """
    if not (math.isfinite(epsilon) and epsilon >= 0):
        raise ValueError(f"an account's epsilon is finite and not negative: {epsilon}")
    return 0 if epsilon == 0 else _price_down(privacy, epsilon)


@lru_cache(maxsize=1024)
def usual_epsilon(privacy: Privacy) -> float:
    """The epsilon of a query that says none.

    Where accounts say for how many questions they are, the largest of two digits at which each holds so many, and at
    most what a client may choose.
    """
    if not privacy.questions:
        return privacy.query_epsilon
    holds = min(_each(privacy, epsilon, number) for epsilon, number in privacy.questions)
    return max(MIN_QUERY_EPSILON, min(_two_digits_down(holds), privacy.max_query_epsilon))


def questions_held(privacy: Privacy, epsilon: float) -> int:
    """How many queries at the usual epsilon an account pays for."""
    return limit_pico(privacy, epsilon) // _price_down(privacy, usual_epsilon(privacy))


def _each(privacy: Privacy, epsilon: float, number: int) -> float:
    """The epsilon of one of so many equal queries that an account of `epsilon` pays for; rounded down, hardly."""
    whole, low, high = limit_pico(privacy, epsilon), 0.0, epsilon
    for _ in range(60):
        middle = (low + high) / 2.0
        if number * _price_down(privacy, middle) <= whole:
            low = middle
        else:
            high = middle
    return low


def _two_digits_down(epsilon: float) -> float:
    """The largest number of two digits that is not above."""
    return float(Context(prec=2, rounding=ROUND_DOWN).create_decimal_from_float(epsilon))


def pool_atto(privacy: Privacy) -> int:
    """The delta that private keys may spend in an account, rounded down; 0 in pure mode."""
    return 0 if privacy.accounting is Accounting.PURE else atto_down(as_written(privacy.delta_pool))


def for_reach_up(accounting: Accounting, pico: int, made_for: int, reach: int) -> int:
    """What a charge counts, rounded up, where neighbours differ by `reach` times one unit instead of `made_for`.

    Claim: every mechanism of this program that is rho-zCDP (epsilon-DP under pure) for neighbours that differ by
    `made_for` times the most that one unit adds is so for `reach` times, with the result in the place of its charge.
    Never less than the charge. ValueError unless both are at least 1.
    """
    if made_for < 1 or reach < 1:
        raise ValueError(f"neighbours differ by one unit at least: {made_for}, {reach}")
    if reach <= made_for:
        return _whole(pico)
    match accounting:
        case Accounting.ZCDP:
            return -(-_whole(pico) * reach**2 // made_for**2)
        case Accounting.PURE:
            return -(-_whole(pico) * reach // made_for)
        case _ as never:
            assert_never(never)


def for_reach_down(accounting: Accounting, counted: int, made_for: int, reach: int) -> int:
    """The largest charge that counts no more than `counted`: see `for_reach_up`."""
    if reach <= made_for:
        return _whole(counted)
    match accounting:
        case Accounting.ZCDP:
            return _whole(counted) * made_for**2 // reach**2
        case Accounting.PURE:
            return _whole(counted) * made_for // reach
        case _ as never:
            assert_never(never)


def epsilon_spent(privacy: Privacy, pico: int) -> float:
    """The epsilon of a spent amount at the policy's delta, for display: rounded up to a multiple of 1e-9.

    Nothing that fits into an account of epsilon E (a multiple of 1e-9) is shown as more than E.
    """
    return math.ceil(_epsilon_up(privacy, _whole(pico)) * _SHOWN) / _SHOWN


def _epsilon_up(privacy: Privacy, pico: int) -> Fraction:
    match privacy.accounting:
        case Accounting.ZCDP:  # the division is rounded by 2**-53, which epsilon_of_rho's slack covers
            return Fraction(epsilon_of_rho(pico / PICO, conversion_delta_down(privacy)))
        case Accounting.PURE:
            return Fraction(pico, PICO)
        case _ as never:
            assert_never(never)


def conversion_delta_down(privacy: Privacy) -> float:
    """What the pool for private keys leaves of the policy's delta, rounded down. ValueError when nothing is left."""
    left = math.nextafter(privacy.delta - privacy.delta_pool, 0.0) if privacy.delta_pool else privacy.delta
    if not 0 < left < 1:
        raise ValueError(f"delta {privacy.delta} leaves nothing beside its pool of {privacy.delta_pool}")
    return left


def _price_down(privacy: Privacy, epsilon: float) -> int:
    match privacy.accounting:
        case Accounting.ZCDP:
            return pico_down(rho_of_epsilon(epsilon, conversion_delta_down(privacy)))
        case Accounting.PURE:
            return pico_down(as_written(epsilon))
        case _ as never:
            assert_never(never)
