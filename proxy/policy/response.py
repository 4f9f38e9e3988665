"""How was a column randomized before it was stored, and what does that protect?

Exact arithmetic alone: nothing here draws, and nothing here knows a column. A chance is an exact fraction; what is no
fraction is rounded up. Sources: Warner 1965 (coins); Kairouz, Oh and Viswanath 2014 (the best k-ary response).
The argument is in docs/claims/local-model.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Context, Decimal
from fractions import Fraction

_PRECISE = Context(prec=60)
_SLACK = Fraction(1, 10**50)  # far above what 60 digits lose, far below what a double shows
_KEPT_DIGITS = 15  # of a kept chance that was solved for an epsilon
LAPLACE_REACH = Fraction("9.210340371976184")  # of its scales: beyond lies e**-reach, one value in 10,000
GAUSSIAN_REACH = Fraction(4)  # of its standard deviations


@dataclass(frozen=True, slots=True)
class KeptOrUniform:
    """The value is kept with the chance `keep`, else any of the `choices` is taken, all equally likely.

    Claim: for two values of one row the chances of any answer are at most exp(epsilon) apart, and for some answer
    exactly p/q.
    """

    keep: Fraction
    choices: int

    def __post_init__(self) -> None:
        if not 0 < self.keep < 1:
            raise ValueError(f"a chance to keep lies strictly between 0 and 1: {self.keep}")
        if self.choices < 2:
            raise ValueError(f"a response has at least two values, not {self.choices}")

    @property
    def p(self) -> Fraction:
        """The chance that a value is stored as itself."""
        return self.keep + self.q

    @property
    def q(self) -> Fraction:
        """The chance that a value is stored as one certain other value."""
        return (1 - self.keep) / self.choices

    @property
    def epsilon(self) -> float:
        """ln(p/q), rounded up."""
        return _log_up(self.p / self.q)

    @property
    def rho(self) -> float:
        """What is epsilon-DP is epsilon^2/2-zCDP; rounded up."""
        return rho_of_pure_up(self.epsilon)


@dataclass(frozen=True, slots=True)
class TwoCoins:
    """The truth is told with the chance `truth`, else yes with the chance `yes`, and no otherwise.

    Claim: for the two values of one row the chances of any answer are at most exp(epsilon) apart, and for the worse of
    the two answers exactly so.
    """

    truth: Fraction
    yes: Fraction

    def __post_init__(self) -> None:
        if not 0 < self.truth < 1 or not 0 < self.yes < 1:
            raise ValueError(f"chances of coins lie strictly between 0 and 1: {self.truth}, {self.yes}")

    @property
    def p(self) -> Fraction:
        """The chance that a yes is stored as yes."""
        return self.truth + self.q

    @property
    def q(self) -> Fraction:
        """The chance that a no is stored as yes."""
        return (1 - self.truth) * self.yes

    @property
    def epsilon(self) -> float:
        """The larger of ln(p/q) and ln((1 - q)/(1 - p)), rounded up."""
        return _log_up(max(self.p / self.q, (1 - self.q) / (1 - self.p)))

    @property
    def rho(self) -> float:
        """What is epsilon-DP is epsilon^2/2-zCDP; rounded up."""
        return rho_of_pure_up(self.epsilon)


@dataclass(frozen=True, slots=True)
class LaplaceNoise:
    """Laplace noise of this scale on a number that was first clamped to [lo, hi].

    Claim: for two values of one row the densities of any answer are at most exp((hi - lo)/scale) apart.
    """

    scale: Fraction
    lo: Fraction
    hi: Fraction

    def __post_init__(self) -> None:
        _check_noise(self.scale, self.lo, self.hi)

    @property
    def epsilon(self) -> float:
        """(hi - lo)/scale, rounded up."""
        return _float_up((self.hi - self.lo) / self.scale)

    @property
    def rho(self) -> float:
        """What is epsilon-DP is epsilon^2/2-zCDP; rounded up."""
        return rho_of_pure_up(self.epsilon)

    @property
    def variance(self) -> Fraction:
        """Of the noise."""
        return 2 * self.scale**2

    @property
    def variance_of_square(self) -> Fraction:
        """Of the noise: 24 scale^4 less the square of its variance."""
        return 20 * self.scale**4

    @property
    def stored(self) -> tuple[Fraction, Fraction]:
        """The bounds of what is stored: one value in 10,000 at an end lies beyond."""
        return self.lo - LAPLACE_REACH * self.scale, self.hi + LAPLACE_REACH * self.scale


@dataclass(frozen=True, slots=True)
class GaussianNoise:
    """Gaussian noise of this standard deviation on a number that was first clamped to [lo, hi].

    Claim: for two values of one row this is (hi - lo)^2/(2 sd^2)-zCDP. It has no epsilon of its own.
    """

    sd: Fraction
    lo: Fraction
    hi: Fraction

    def __post_init__(self) -> None:
        _check_noise(self.sd, self.lo, self.hi)

    @property
    def rho(self) -> float:
        """(hi - lo)^2/(2 sd^2), rounded up."""
        return _float_up((self.hi - self.lo) ** 2 / (2 * self.sd**2))

    @property
    def variance(self) -> Fraction:
        """Of the noise."""
        return self.sd**2

    @property
    def variance_of_square(self) -> Fraction:
        """Of the noise: 3 sd^4 less the square of its variance."""
        return 2 * self.sd**4

    @property
    def stored(self) -> tuple[Fraction, Fraction]:
        """The bounds of what is stored: four standard deviations beyond the true ones."""
        return self.lo - GAUSSIAN_REACH * self.sd, self.hi + GAUSSIAN_REACH * self.sd


Response = KeptOrUniform | TwoCoins
Noised = LaplaceNoise | GaussianNoise
Randomized = Response | Noised


@dataclass(frozen=True, slots=True)
class NotRandomized:
    """The stored value is the true one."""


def best_response(epsilon: Fraction, choices: int) -> KeptOrUniform:
    """The k-ary response that keeps most for this epsilon: keep = (e^epsilon - 1)/(e^epsilon + k - 1).

    Rounded down to 15 digits after the point, so that it never protects less. ValueError where nothing is left.
    """
    grown = _PRECISE.exp(_decimal(epsilon))
    keep = (Fraction(grown) - 1) / (Fraction(grown) + choices - 1) - _SLACK
    return KeptOrUniform(Fraction(math.floor(keep * 10**_KEPT_DIGITS), 10**_KEPT_DIGITS), choices)


def rho_of_pure_up(epsilon: float) -> float:
    """The rho of what is epsilon-DP: epsilon^2/2 (Bun and Steinke 2016, Proposition 1.4), rounded up."""
    return _float_up(Fraction(epsilon) ** 2 / 2)


def _check_noise(size: Fraction, lo: Fraction, hi: Fraction) -> None:
    if size <= 0:
        raise ValueError(f"noise of size {size} protects nobody")
    if lo >= hi:
        raise ValueError(f"true bounds are a low and a high end: {lo}, {hi}")


def _log_up(ratio: Fraction) -> float:
    """The natural logarithm, rounded up. `ln` of decimals is right in its last digit."""
    return _float_up(Fraction(_PRECISE.ln(_decimal(ratio))) + _SLACK)


def _decimal(number: Fraction) -> Decimal:
    return _PRECISE.divide(Decimal(number.numerator), Decimal(number.denominator))


def _float_up(number: Fraction) -> float:
    value = float(number)
    return math.nextafter(value, math.inf) if Fraction(value) < number else value
