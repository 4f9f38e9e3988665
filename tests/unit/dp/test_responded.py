"""What is drawn for each row has the law that is declared, and is what the formulas of the guide draw.

Sample sizes are n = 40,000 for each test; each comparison of counts fails a right sampler with a chance below 1e-8.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import opendp.prelude as opendp
import pytest

from proxy.dp import samplers
from proxy.dp.response import KeptOrUniform, Response, TwoCoins, best_response
from proxy.dp.samplers import Distribution, noised, order_keys, responded

N = 40_000
SDS = 6.0


def theirs(value: int, response: Response, chance: random.Random) -> int:
    """The formulas of the guide, in plain Python."""
    match response:
        case KeptOrUniform(keep, choices):
            return value if chance.random() < keep else chance.randrange(choices)
        case TwoCoins(truth, yes):
            return value if chance.random() < truth else int(chance.random() < yes)


def check_shares(answers: Sequence[int], expected: Sequence[float]) -> None:
    counts = np.bincount(np.array(answers), minlength=len(expected))
    for count, share in zip(counts, expected, strict=True):
        assert abs(count - N * share) <= SDS * math.sqrt(N * share * (1 - share)) + 6


@pytest.mark.parametrize(
    "response",
    [KeptOrUniform(Fraction(3, 4), 2), KeptOrUniform(Fraction(1, 4), 5),
     best_response(Fraction(1), 50), TwoCoins(Fraction(1, 2), Fraction(1, 3)),
     TwoCoins(Fraction(1, 10), Fraction(9, 10))],
)  # fmt: skip
def test_our_way_and_theirs_have_the_declared_law(response: Response) -> None:
    """n = 40,000 each; six standard deviations and six rows: a false alarm below 1e-8 for each value."""
    choices = response.choices if isinstance(response, KeptOrUniform) else 2
    chance = random.Random(7)
    for value in (0, choices - 1):
        p, q = float(response.p), float(response.q)
        law = [p if j == value else q for j in range(choices)]
        if isinstance(response, TwoCoins):
            law = [1 - p, p] if value else [1 - q, q]
        check_shares(responded(np.full(N, value, dtype=np.int64), response).tolist(), law)
        check_shares([theirs(value, response, chance) for _ in range(N)], law)


@pytest.mark.parametrize("distribution", Distribution)
def test_noise_on_a_grid_has_the_declared_variance_and_is_centred(distribution: Distribution) -> None:
    """n = 40,000: a mean within six of its standard deviations (2e-9), a variance within 10 % (more than eight)."""
    found = noised(np.full(N, 1000, dtype=np.int64), distribution, 1000.0, lo=0, hi=2000, most=2.0) - 1000
    variance = 1000.0**2 * (2 if distribution is Distribution.LAPLACE else 1)
    assert abs(found.mean()) <= SDS * math.sqrt(variance / N)
    assert found.var() == pytest.approx(variance, rel=0.1)


def test_the_library_grants_what_is_declared_for_noise() -> None:
    values = np.zeros(3, dtype=np.int64)
    with pytest.raises(RuntimeError, match="grants"):
        noised(values, Distribution.LAPLACE, 1000.0, lo=0, hi=2000, most=1.999)
    with pytest.raises(ValueError, match="protects nobody"):
        noised(values, Distribution.LAPLACE, 0.5, lo=0, hi=2000, most=1e9)
    with pytest.raises(ValueError, match="outside"):
        noised(values - 1, Distribution.GAUSSIAN, 1000.0, lo=0, hi=2000, most=2.0)


@pytest.mark.parametrize("response", [KeptOrUniform(Fraction(1, 2), 3), TwoCoins(Fraction(1, 2), Fraction(1, 2))])
def test_a_value_that_is_not_listed_is_never_drawn_for(response: Response) -> None:
    for value in (-1, 3):
        with pytest.raises(ValueError, match="not listed"):
            responded(np.array([value], dtype=np.int64), response)
    assert len(responded(np.array([], dtype=np.int64), response)) == 0


class _Grants:
    """A library that grants something else."""

    def map(self, moved: int) -> float:
        return 99.0 * moved


def test_another_grant_of_the_library_stops_a_response(monkeypatch: pytest.MonkeyPatch) -> None:
    response = KeptOrUniform(Fraction(123, 1000), 7)
    with monkeypatch.context() as patched:
        patched.setattr(opendp.m, "make_randomized_response", lambda *_, **__: _Grants())
        with pytest.raises(RuntimeError, match="grants"):
            responded(np.zeros(1, dtype=np.int64), response)
    with monkeypatch.context() as patched:
        patched.setattr(opendp.m, "make_randomized_response_bitvec", lambda *_, **__: _Grants())
        with pytest.raises(RuntimeError, match="grants"):
            responded(np.zeros(1, dtype=np.int64), TwoCoins(Fraction(123, 1001), Fraction(1, 2)))


def test_numbers_that_would_make_a_value_likelier_are_drawn_again(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = iter(([2**64 - 1, 4], [2**64 - 1], [8]))
    monkeypatch.setattr(samplers, "order_keys", lambda count: np.array(next(drawn), dtype=np.uint64)[:count])
    assert samplers._below(3, 2).tolist() == [1, 2]


def test_chances_are_rounded_towards_protection() -> None:
    for number in (Fraction(1, 3), Fraction(2, 3), Fraction(1, 10), Fraction(1, 2)):
        assert (
            Fraction(samplers._double(number, is_up=False)) <= number <= Fraction(samplers._double(number, is_up=True))
        )


def test_rows_are_sorted_by_numbers_that_do_not_repeat() -> None:
    """n = 1,000 of 64 bits: a repetition by chance has the probability 3e-14."""
    assert len({*order_keys(1000).tolist()}) == 1000
