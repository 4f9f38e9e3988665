"""Intervals have the coverage they state, and projections are the nearest admissible counts."""

from __future__ import annotations

import math
from itertools import pairwise
from statistics import NormalDist

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.dp.accuracy import (
    Interval,
    Noisy,
    SharedNoise,
    half_width_95,
    half_width_beside_95,
    half_width_up,
    mean_interval_95,
    project_nonnegative,
    ratio_interval,
    ratio_sd,
    sum_widths_95,
)
from proxy.dp.mechanisms import SCALE, Distribution, sd_grid

confidences = st.floats(0.01, 0.9999)
counts = st.lists(st.floats(-1e6, 1e6), max_size=30)


# --- half widths ------------------------------------------------------------------------------------


@given(confidences)
def test_discrete_noise_stays_within_the_half_width_with_the_stated_confidence(confidence: float) -> None:
    gaussian = half_width_up(Distribution.GAUSSIAN, sd_grid(Distribution.GAUSSIAN), confidence)
    laplace = half_width_up(Distribution.LAPLACE, sd_grid(Distribution.LAPLACE), confidence)
    # P(|X| > h) for integers: the discrete Gaussian by its continuous bound, discrete Laplace exactly
    beyond_gaussian = math.erfc(math.floor(gaussian) / SCALE / math.sqrt(2))
    beyond_laplace = 2 * math.exp(-(math.floor(laplace) + 1) / SCALE) / (1 + math.exp(-1 / SCALE))
    assert 1 - confidence == pytest.approx(beyond_gaussian, rel=1e-8)
    assert beyond_gaussian <= 1 - confidence
    assert 1 - confidence == pytest.approx(beyond_laplace, rel=1e-8)
    assert beyond_laplace <= 1 - confidence


def test_half_widths_at_95_percent_are_the_known_factors() -> None:
    assert half_width_95(Distribution.GAUSSIAN, 10.0) == pytest.approx(19.59963984540054)
    assert half_width_95(Distribution.LAPLACE, math.sqrt(2)) == pytest.approx(math.log(20))
    assert half_width_95(Distribution.GAUSSIAN, 0.0) == 0.0


@pytest.mark.parametrize("sd", [-1.0, math.nan, math.inf])
def test_an_impossible_sd_is_refused(sd: float) -> None:
    with pytest.raises(ValueError):
        half_width_95(Distribution.GAUSSIAN, sd)


@pytest.mark.parametrize("confidence", [0.0, 1.0, -0.1, math.nan])
def test_an_impossible_confidence_is_refused(confidence: float) -> None:
    with pytest.raises(ValueError):
        half_width_up(Distribution.LAPLACE, 1.0, confidence)


def test_an_interval_upside_down_is_refused() -> None:
    assert Interval(1.0, 1.0).low == 1.0
    assert math.isinf(Interval(-math.inf, 0.0).low)
    for low, high in ((1.0, 0.0), (math.nan, 1.0)):
        with pytest.raises(ValueError):
            Interval(low, high)


# --- averages ---------------------------------------------------------------------------------------


NORMAL = SharedNoise(Distribution.GAUSSIAN)


def coverage_of_halves(total: float, count: float, scale: float) -> float:
    """The same for the pair (count + total)/2, (count - total)/2 with Laplace noise of one scale each.

    Exact but for the grid: each noise is one of 160 equally likely values.
    """
    draws = [math.copysign(scale * math.log1p(-abs(2 * u - 1)), 0.5 - u) for u in ((i + 0.5) / 160 for i in range(160))]
    sd, one = 2 * scale, math.sqrt(2) * scale
    halves = SharedNoise(Distribution.LAPLACE, ((one, one), (-one, one)))
    hit = 0
    for a in draws:
        for b in draws:
            seen = mean_interval_95(
                total=Noisy(total + a - b, sd), count=Noisy(count + a + b, sd), middle=0.0, half=1.0, noises=halves
            )
            hit += seen.low <= total / count <= seen.high
    return hit / len(draws) ** 2


@pytest.mark.parametrize("ratio", [0.0, 0.3, -0.7, 0.95])
def test_the_interval_of_an_average_covers_95_percent_under_laplace_noise(ratio: float) -> None:
    """With a normal quantile it would be 94.1 at a ratio of 0."""
    assert coverage_of_halves(total=1000.0 * ratio, count=1000.0, scale=5.0) == pytest.approx(0.95, abs=0.004)


def beyond(t: float, scales: tuple[float, ...]) -> float:
    """How often a sum of Laplace noises of different scales is beyond t, by partial fractions."""
    return math.fsum(math.exp(-t / s) * math.prod(s * s / (s * s - o * o) for o in scales if o != s) for s in scales)


@pytest.mark.parametrize("scales", [(1.0,), (1.0, 0.001), (1.0, 0.25), (1.0, 0.7), (1.0, 0.99), (2.0, 1.999)])
def test_a_sum_of_laplace_noises_is_within_its_width_95_times_in_100(scales: tuple[float, ...]) -> None:
    sds = [math.sqrt(2) * s for s in scales]
    t = sum_widths_95(Distribution.LAPLACE, [*sds, 0.0]) * math.hypot(*sds)
    assert beyond(t, scales) == pytest.approx(0.05, abs=2e-4)
    assert beyond(t, scales) <= 0.05 + 1e-9


@pytest.mark.parametrize("scales", [(1.0, 0.9, 0.8), (1.0, 0.1, 0.05), (1.0, 0.95, 0.6, 0.3)])
def test_of_more_noises_it_is_at_least_as_often(scales: tuple[float, ...]) -> None:
    sds = [math.sqrt(2) * s for s in scales]
    assert beyond(sum_widths_95(Distribution.LAPLACE, sds) * math.hypot(*sds), scales) <= 0.05


def test_two_equal_laplace_noises_are_wider_than_normal_ones_of_the_same_sd() -> None:
    assert sum_widths_95(Distribution.LAPLACE, [1.0, 1.0]) == pytest.approx(2.0556, abs=1e-3)
    assert sum_widths_95(Distribution.GAUSSIAN, [1.0, 1.0]) == pytest.approx(1.95996, abs=1e-4)


def coverage(total: float, count: float, sd: float) -> float:
    """Probability that the interval contains the true ratio, integrated over both noises on a fine grid."""
    steps = [(i + 0.5) / 20 for i in range(-100, 100)]
    density = [math.exp(-z * z / 2) for z in steps]
    hit = 0.0
    for z, p in zip(steps, density, strict=True):
        for w, q in zip(steps, density, strict=True):
            seen = mean_interval_95(
                total=Noisy(total + z * sd, sd), count=Noisy(count + w * sd, sd), middle=0.0, half=1.0, noises=NORMAL
            )
            hit += p * q * (seen.low <= total / count <= seen.high)
    return hit / math.fsum(density) ** 2


def test_the_interval_of_an_average_covers_95_percent() -> None:
    # computed by integration, not sampled; what is cut to the range holds more often
    assert coverage(total=300.0, count=1000.0, sd=10.0) == pytest.approx(0.95, abs=0.005)
    assert coverage(total=30.0, count=100.0, sd=10.0) == pytest.approx(0.95, abs=0.005)
    assert coverage(total=-5.0, count=35.0, sd=10.0) == pytest.approx(0.96, abs=0.012)


def test_the_interval_of_a_ratio_holds_whatever_its_noises_have_in_common() -> None:
    """x is within it exactly where over - x * under is within so many of its standard deviations of 0."""
    over, under, covariance, widths = Noisy(40.0, 9.0), Noisy(30.0, 8.0), 33.0, 1.96
    crossed = (over.value * under.sd) ** 2 + (under.value * over.sd) ** 2 - 2 * over.value * under.value * covariance
    seen = ratio_interval(over, under, covariance, crossed, widths)
    assert seen.low < 40.0 / 30.0 < seen.high
    for end in (seen.low, seen.high):
        sd = math.sqrt(over.sd**2 + (end * under.sd) ** 2 - 2 * end * covariance)
        assert abs(over.value - end * under.value) == pytest.approx(widths * sd)


@pytest.mark.parametrize(("over", "under"), [(3.0, 5.0), (1e200, 1e3), (-1e308, 1e308)])
def test_the_interval_of_a_ratio_to_noise_is_everything(over: float, under: float) -> None:
    seen = ratio_interval(Noisy(over, 5.0), Noisy(under, 5.0), 0.0, over * over, 1.96)
    assert seen == Interval(-math.inf, math.inf)


def test_the_ratios_sd_is_that_of_the_delta_method() -> None:
    assert ratio_sd(Noisy(0.0, 3.0), Noisy(100.0, 3.0)) == pytest.approx(0.03)
    assert ratio_sd(Noisy(-100.0, 3.0), Noisy(100.0, 4.0)) == pytest.approx(0.05)
    assert ratio_sd(Noisy(1.0, 1.0), Noisy(0.0, 1.0)) == math.inf
    assert ratio_sd(Noisy(1.0, 1.0), Noisy(-5.0, 1.0)) == math.inf


@given(
    st.floats(-1e3, 1e3),
    st.floats(-1e3, 1e3),
    st.floats(0, 1e3),
    st.floats(-1e6, 1e6),
    st.floats(0, 1e6),
)
def test_the_interval_of_an_average_stays_in_its_range(
    total: float, count: float, sd: float, middle: float, half: float
) -> None:
    seen = mean_interval_95(total=Noisy(total, sd), count=Noisy(count, sd), middle=middle, half=half, noises=NORMAL)
    assert middle - half <= seen.low <= seen.high <= middle + half


def test_an_average_drowned_in_noise_may_be_anything_in_its_range() -> None:
    seen = mean_interval_95(total=Noisy(3.0, 5.0), count=Noisy(-1.0, 5.0), middle=50.0, half=50.0, noises=NORMAL)
    assert seen == Interval(0.0, 100.0)


def test_the_interval_of_an_average_is_in_the_columns_unit() -> None:
    seen = mean_interval_95(total=Noisy(200.0, 10.0), count=Noisy(1000.0, 10.0), middle=50.0, half=50.0, noises=NORMAL)
    reach = 50 * 1.959963984540054 * math.hypot(10, 0.2 * 10) / 1000
    assert (seen.low, seen.high) == pytest.approx((60 - reach, 60 + reach), abs=0.005)


# --- projection -------------------------------------------------------------------------------------


@given(counts, st.floats(1e-3, 1e6))
def test_projected_counts_are_not_negative_and_add_up(values: list[float], total: float) -> None:
    projected = project_nonnegative(values, total)
    assert len(projected) == len(values)
    assert all(value >= 0 for value in projected)
    if values:
        assert math.fsum(projected) == pytest.approx(total, rel=1e-9, abs=1e-6)


@given(counts, st.floats(1e-3, 1e6))
def test_projected_counts_are_the_nearest(values: list[float], total: float) -> None:
    # Karush, Kuhn and Tucker: positive entries all moved by one shift, zero entries would have moved by less
    projected = project_nonnegative(values, total)
    shifts = [value - kept for value, kept in zip(values, projected, strict=True) if kept > 0]
    if shifts:
        assert max(shifts) - min(shifts) <= 1e-6
        assert all(value <= max(shifts) + 1e-6 for value, kept in zip(values, projected, strict=True) if kept == 0)


@given(counts, st.floats(1e-3, 1e6))
def test_projection_keeps_the_order_of_counts(values: list[float], total: float) -> None:
    ordered = sorted(zip(values, project_nonnegative(values, total), strict=True))
    assert all(low[1] <= high[1] for low, high in pairwise(ordered))


def test_counts_that_are_admissible_stay() -> None:
    assert project_nonnegative([5.0, 0.0, 3.0], 8.0) == (5.0, 0.0, 3.0)


def test_negative_noise_is_taken_from_the_others() -> None:
    assert project_nonnegative([10.0, -4.0, 6.0], 12.0) == (8.0, 0.0, 4.0)


def test_a_total_that_is_not_positive_gives_zeros() -> None:
    assert project_nonnegative([5.0, -7.0], -2.0) == (0.0, 0.0)
    assert project_nonnegative([1.0], 0.0) == (0.0,)
    assert project_nonnegative([], 3.0) == ()


@pytest.mark.parametrize("values, total", [([math.nan], 1.0), ([math.inf], 1.0), ([1.0], math.nan)])
def test_counts_that_are_not_finite_are_refused(values: list[float], total: float) -> None:
    with pytest.raises(ValueError):
        project_nonnegative(values, total)


@pytest.mark.parametrize("distribution", [Distribution.GAUSSIAN, Distribution.LAPLACE])
@pytest.mark.parametrize("missing", [0.0, 1e-9, 0.3, 1.0, 2.5, 40.0])
def test_what_lacks_from_nothing_to_all_is_held_in_95_of_100(distribution: Distribution, missing: float) -> None:
    """Noise of sd 3 within [-h, h + m] with 95 %, whether nothing or all of m is missing; hardly more often."""
    sd = 3.0
    h = half_width_beside_95(distribution, sd, sd * missing)

    def above(x: float) -> float:
        if distribution is Distribution.GAUSSIAN:
            return NormalDist().cdf(-x)
        return math.exp(-math.sqrt(2.0) * x) / 2.0

    held = 1.0 - above(h / sd) - above(h / sd + missing)
    assert 0.95 - 1e-9 <= held <= 0.955
    assert h <= half_width_95(distribution, sd)
    assert h >= half_width_up(distribution, sd, 0.9)


def test_without_noise_or_anything_missing_the_width_is_that_of_noise() -> None:
    assert half_width_beside_95(Distribution.GAUSSIAN, 0.0, 5.0) == 0.0
    assert half_width_beside_95(Distribution.LAPLACE, 2.0, 0.0) == half_width_95(Distribution.LAPLACE, 2.0)
    for missing in (-1.0, math.inf, math.nan):
        with pytest.raises(ValueError, match="finite and not negative"):
            half_width_beside_95(Distribution.GAUSSIAN, 1.0, missing)
