"""The grid is chosen so that noise of scale 2**40 is never too small."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.dp.mechanisms import SCALE, Distribution, distribution_of, grid_scale, noise_sd, sd_grid
from proxy.policy.model import Accounting

budgets = st.floats(1e-9, 100.0)
sensitivities = st.floats(1e-9, 1e12)
SLACK = 1 - Fraction(1, 2**30)


def test_accounting_decides_the_distribution() -> None:
    assert distribution_of(Accounting.ZCDP) is Distribution.GAUSSIAN
    assert distribution_of(Accounting.PURE) is Distribution.LAPLACE


@given(budgets, sensitivities)
def test_gaussian_noise_on_the_grid_is_within_rho(rho: float, sensitivity: float) -> None:
    # exact: the grid's sensitivity, made larger by the permitted 2**-30, gives at most rho
    move = Fraction(grid_scale(Distribution.GAUSSIAN, rho, sensitivity)) * Fraction(sensitivity) / SLACK
    spent = move**2 / (2 * SCALE**2)
    assert Fraction(rho) * (1 - Fraction(1, 2**40)) < spent < Fraction(rho) * (1 - Fraction(1, 2**47))


@given(budgets, sensitivities)
def test_laplace_noise_on_the_grid_is_within_epsilon(epsilon: float, sensitivity: float) -> None:
    move = Fraction(grid_scale(Distribution.LAPLACE, epsilon, sensitivity)) * Fraction(sensitivity) / SLACK
    spent = move / SCALE
    assert Fraction(epsilon) * (1 - Fraction(1, 2**40)) < spent < Fraction(epsilon) * (1 - Fraction(1, 2**47))


@pytest.mark.parametrize("distribution", Distribution)
@pytest.mark.parametrize("bad", [0.0, -1.0, math.nan, math.inf])
def test_an_impossible_budget_or_sensitivity_is_refused(distribution: Distribution, bad: float) -> None:
    with pytest.raises(ValueError):
        grid_scale(distribution, bad, 1.0)
    with pytest.raises(ValueError):
        grid_scale(distribution, 1.0, bad)


def test_a_grid_that_overflows_or_vanishes_is_refused() -> None:
    with pytest.raises(ValueError):
        grid_scale(Distribution.LAPLACE, 1e300, 1e-300)
    with pytest.raises(ValueError):
        grid_scale(Distribution.LAPLACE, 1e-320, 1e300)


def exact_sd(weights: list[float]) -> float:
    """Standard deviation of the symmetric law with these weights at 0, 1, 2, ..."""
    total = weights[0] + 2 * math.fsum(weights[1:])
    return math.sqrt(2 * math.fsum(x * x * w for x, w in enumerate(weights)) / total)


@pytest.mark.parametrize("scale", [1, 4, 32])
def test_sd_is_rounded_up_from_the_exact_law(scale: int) -> None:
    # the ratio sd/scale rises with the scale toward 1 and sqrt(2), which is what sd_grid states
    gaussian = exact_sd([math.exp(-(x * x) / (2 * scale * scale)) for x in range(40 * scale)])
    laplace = exact_sd([math.exp(-x / scale) for x in range(60 * scale)])
    assert gaussian / scale <= (sd_grid(Distribution.GAUSSIAN) / SCALE) * (1 + 1e-12)
    assert laplace / scale <= sd_grid(Distribution.LAPLACE) / SCALE
    assert laplace / scale > sd_grid(Distribution.LAPLACE) / SCALE * (1 - 0.05 / scale**2)
    assert gaussian / scale > 1 - 1e-6


def test_sd_is_never_below_the_exact_bound_of_the_law() -> None:
    # variances are below scale^2 (Canonne, Kamath, Steinke 2020) and below 2 scale^2
    assert SCALE == 2**40
    assert Fraction(sd_grid(Distribution.GAUSSIAN)) ** 2 >= SCALE**2
    assert Fraction(sd_grid(Distribution.LAPLACE)) ** 2 >= 2 * SCALE**2


@given(budgets, sensitivities)
def test_noise_in_the_statistics_own_unit_is_the_textbook_formula(budget: float, sensitivity: float) -> None:
    gaussian = noise_sd(Distribution.GAUSSIAN, grid_scale(Distribution.GAUSSIAN, budget, sensitivity))
    laplace = noise_sd(Distribution.LAPLACE, grid_scale(Distribution.LAPLACE, budget, sensitivity))
    assert gaussian == pytest.approx(sensitivity / math.sqrt(2 * budget), rel=1e-8)
    assert laplace == pytest.approx(math.sqrt(2) * sensitivity / budget, rel=1e-8)
