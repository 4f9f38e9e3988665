"""The local epsilon of each mechanism is the largest ratio of its probabilities, and a row's is the sum."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product

import pytest

from proxy.dp.accounting import epsilon_of_rho
from proxy.dp.response import (
    ApproximateRow,
    GaussianNoise,
    KeptOrUniform,
    LaplaceNoise,
    PureRow,
    Response,
    RhoRow,
    TwoCoins,
    best_response,
    of_row,
)
from proxy.policy.model import Accounting, Privacy

PRIVACY = Privacy(unit="person")
PURE = Privacy(unit="person", accounting=Accounting.PURE, delta=0.0, delta_pool=0.0)


def chances(response: Response) -> list[list[Fraction]]:
    """The chance of each answer, by true value, from the words of the definition and not from p and q."""
    match response:
        case KeptOrUniform(keep, k):
            return [[keep * (i == j) + (1 - keep) * Fraction(1, k) for j in range(k)] for i in range(k)]
        case TwoCoins(truth, yes):
            said = (1 - yes, yes)
            return [[truth * (i == j) + (1 - truth) * said[j] for j in range(2)] for i in range(2)]


@pytest.mark.parametrize(
    "response",
    [
        *(
            KeptOrUniform(keep, k)
            for keep, k in product((Fraction(1, 100), Fraction(1, 2), Fraction(3, 4), Fraction(999, 1000)), (2, 5, 50))
        ),
        *(
            TwoCoins(t, y)
            for t, y in product(
                (Fraction(1, 10), Fraction(1, 2), Fraction(9, 10)), (Fraction(1, 10), Fraction(1, 2), Fraction(4, 5))
            )
        ),
        *(best_response(Fraction(e), k) for e, k in product((Fraction(1, 10), Fraction(1), Fraction(4)), (2, 5, 50))),
    ],
)
def test_local_epsilon_is_the_largest_ratio_of_probabilities(response: Response) -> None:
    table = chances(response)
    assert all(sum(row) == 1 for row in table)
    assert (table[-1][-1], table[0][-1]) == (response.p, response.q)
    ratio = max(a[j] / b[j] for a, b in product(table, table) for j in range(len(table)))
    exact = math.log(ratio)
    assert exact <= response.epsilon * (1 + 1e-12)
    assert response.epsilon <= exact * (1 + 1e-12) + 1e-15
    assert response.rho >= response.epsilon**2 / 2


@pytest.mark.parametrize("k", [2, 5, 50])
@pytest.mark.parametrize("epsilon", [Fraction(1, 10_000), Fraction(1, 2), Fraction(1), Fraction(20)])
def test_the_best_response_stays_within_its_epsilon_and_keeps_most(epsilon: Fraction, k: int) -> None:
    found = best_response(epsilon, k)
    assert Fraction(found.epsilon) <= epsilon
    assert found.epsilon > float(epsilon) * (1 - 1e-6)
    more = KeptOrUniform(found.keep + Fraction(1, 10**14), k)
    assert Fraction(more.epsilon) > epsilon


def test_keep_three_quarters_of_two_is_not_a_probability_of_three_quarters() -> None:
    response = KeptOrUniform(Fraction(3, 4), 2)
    assert (response.p, response.q) == (Fraction(7, 8), Fraction(1, 8))
    assert response.epsilon == pytest.approx(math.log(7))


def test_laplace_epsilon_is_the_range_by_the_scale_and_gaussian_has_a_rho() -> None:
    laplace, gaussian = (
        LaplaceNoise(Fraction(2), Fraction(0), Fraction(10)),
        GaussianNoise(Fraction(3), Fraction(0), Fraction(10)),
    )
    density = [[math.exp(-abs(y - x) / 2.0) for y in range(-20, 31)] for x in (0, 10)]
    ratio = max(a / b for a, b in zip(*density, strict=True))
    assert laplace.epsilon == 5.0 == pytest.approx(math.log(ratio))
    assert Fraction(gaussian.rho) >= Fraction(100, 18)
    assert gaussian.rho == pytest.approx(100 / 18)
    assert Fraction(LaplaceNoise(Fraction(3), Fraction(0), Fraction(1)).epsilon) >= Fraction(1, 3)
    assert laplace.rho == 12.5
    assert (laplace.variance, gaussian.variance) == (Fraction(8), Fraction(9))


def test_stored_bounds_leave_one_value_in_ten_thousand_beyond() -> None:
    lo, hi = LaplaceNoise(Fraction(2), Fraction(0), Fraction(10)).stored
    assert math.exp(float(lo) / 2) == pytest.approx(1e-4) == pytest.approx(math.exp((10 - float(hi)) / 2))
    assert GaussianNoise(Fraction(3), Fraction(0), Fraction(10)).stored == (Fraction(-12), Fraction(22))


def test_a_row_is_the_sum_of_its_columns() -> None:
    coins, gaussian = TwoCoins(Fraction(1, 2), Fraction(1, 2)), GaussianNoise(Fraction(20), Fraction(0), Fraction(100))
    assert of_row((), PRIVACY) == PureRow(0.0)
    assert of_row((coins, coins), PRIVACY) == PureRow(2 * coins.epsilon)
    found = of_row((coins, gaussian), PRIVACY)
    assert isinstance(found, ApproximateRow)
    assert Fraction(found.rho) >= Fraction(coins.rho) + Fraction(gaussian.rho)
    assert (found.epsilon, found.delta) == (epsilon_of_rho(found.rho, 1e-6), 1e-6)
    assert of_row((coins, gaussian), PURE) == RhoRow(found.rho)
    tenth = KeptOrUniform(Fraction(1, 10), 3)
    assert Fraction(of_row((tenth,) * 3, PRIVACY).epsilon) >= 3 * Fraction(tenth.epsilon)  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("kind", "arguments"),
    [
        (KeptOrUniform, (Fraction(0), 2)),
        (KeptOrUniform, (Fraction(1), 2)),
        (KeptOrUniform, (Fraction(1, 2), 1)),
        (TwoCoins, (Fraction(0), Fraction(1, 2))),
        (TwoCoins, (Fraction(1, 2), Fraction(1))), (TwoCoins, (Fraction(1), Fraction(1, 2))),
        (LaplaceNoise, (Fraction(0), Fraction(0), Fraction(1))),
        (GaussianNoise, (Fraction(1), Fraction(1), Fraction(1))),
    ],
)  # fmt: skip
def test_what_protects_nobody_cannot_be_made(kind: type, arguments: tuple[object, ...]) -> None:
    with pytest.raises(ValueError):
        kind(*arguments)
