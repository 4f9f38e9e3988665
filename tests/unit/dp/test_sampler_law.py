"""Do the pools draw the distributions that the claims assume?

n = 40,000 values of each distribution, drawn once. Every check below has a false-alarm rate of at most 1e-9
(stated with it), and each is shown to reject a sample that is planted wrong.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import pytest

from proxy.dp.mechanisms import SCALE, Distribution
from proxy.dp.samplers import NoisePool

pytestmark = pytest.mark.statistical

N = 40_000
ALARM = 1e-9
LOG_ALARM = math.log(2 / ALARM)  # two-sided

Sample = Sequence[int]


@pytest.fixture(scope="module")
def samples() -> dict[Distribution, Sample]:
    drawn: dict[Distribution, Sample] = {}
    for distribution in Distribution:
        pool = NoisePool(distribution, batches_ahead=1)
        drawn[distribution] = pool.take(N)
        pool.close()
    return drawn


def gaussian_cdf(x: float) -> float:
    return 0.5 * math.erfc(-x / math.sqrt(2))


def laplace_cdf(x: float) -> float:
    return 0.5 * math.exp(x) if x < 0 else 1 - 0.5 * math.exp(-x)


CDF: dict[Distribution, Callable[[float], float]] = {
    Distribution.GAUSSIAN: gaussian_cdf,
    Distribution.LAPLACE: laplace_cdf,
}


def has_law(sample: Sample, cdf: Callable[[float], float]) -> bool:
    """Kolmogorov and Smirnov with the Dvoretzky-Kiefer-Wolfowitz-Massart bound, valid for every n.

    The continuous law differs from the law on the grid by less than 2**-40, nothing beside the bound of .016.
    """
    bound = math.sqrt(LOG_ALARM / (2 * len(sample)))
    n = len(sample)
    places = [cdf(value / SCALE) for value in sorted(sample)]
    return all(i / n - bound <= place <= (i + 1) / n + bound for i, place in enumerate(places))


def has_even_low_bits(sample: Sample, bits: int = 8) -> bool:
    """Chi-square over the low bits, which are uniform up to 2**-32 at this scale.

    Bound of Laurent and Massart: P(X >= d + 2 sqrt(d t) + 2 t) <= exp(-t) with d = 255 and exp(-t) = ALARM.
    """
    cells = [0] * (1 << bits)
    for value in sample:
        cells[value % len(cells)] += 1
    expected = len(sample) / len(cells)
    statistic = math.fsum((cell - expected) ** 2 for cell in cells) / expected
    degrees, t = len(cells) - 1, -math.log(ALARM)
    return statistic <= degrees + 2 * math.sqrt(degrees * t) + 2 * t


def has_size(sample: Sample, distribution: Distribution) -> bool:
    """The mean of |x| (Laplace) or x^2 (Gaussian) at scale 1, within 6.2 of its standard errors (alarm 6e-10)."""
    if distribution is Distribution.GAUSSIAN:
        sizes, error = [(x / SCALE) ** 2 for x in sample], math.sqrt(2)
    else:
        sizes, error = [abs(x / SCALE) for x in sample], 1.0
    return abs(math.fsum(sizes) / len(sizes) - 1) <= 6.2 * error / math.sqrt(len(sizes))


def is_uncorrelated(sample: Sample, distribution: Distribution) -> bool:
    """The lag-1 correlation of the values' signs: a fair walk, Hoeffding's bound on each half of the pairs."""
    signs = [1 if x > 0 else -1 for x in sample]
    products = [a * b for a, b in zip(signs[::2], signs[1::2], strict=True)]
    return abs(sum(products)) <= math.sqrt(2 * len(products) * LOG_ALARM)


@pytest.mark.parametrize("distribution", Distribution)
def test_pools_draw_the_stated_distribution(samples: dict[Distribution, Sample], distribution: Distribution) -> None:
    sample = samples[distribution]
    assert has_law(sample, CDF[distribution])
    assert has_even_low_bits(sample)
    assert has_size(sample, distribution)
    assert is_uncorrelated(sample, distribution)


@pytest.mark.parametrize("distribution", Distribution)
def test_wrong_samples_are_recognised(samples: dict[Distribution, Sample], distribution: Distribution) -> None:
    sample = samples[distribution]
    other = samples[Distribution.LAPLACE if distribution is Distribution.GAUSSIAN else Distribution.GAUSSIAN]
    assert not has_law(other, CDF[distribution])
    assert not has_law([x + SCALE // 10 for x in sample], CDF[distribution])
    assert not has_size([x * 9 // 10 for x in sample], distribution)  # passes by chance below 1e-16
    assert not has_even_low_bits([x // 2 * 2 for x in sample])
    assert not has_even_low_bits([int(float(x) / 512) * 512 for x in sample])
    assert not is_uncorrelated([x for x in sample[: N // 2] for _ in range(2)], distribution)
