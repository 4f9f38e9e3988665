"""Does the auditor's arithmetic prove what is true and no more? The audit itself is `make audit`.

Samples are drawn with fixed seeds, so that nothing here is left to chance.
"""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np
import pytest

from tests.audit.evidence import FALSE_ALARM, Counts, Promise, at_least, at_most, loss_down, power, proven

ANSWERS = 2_000


@pytest.mark.parametrize(("successes", "of"), [(0, 10), (3, 10), (500, 1000), (1, 1000)])
def test_ends_are_where_such_counts_are_as_rare_as_the_false_alarm(successes: int, of: int) -> None:
    end = at_most(successes, of)
    tail = sum(math.comb(of, k) * end**k * (1 - end) ** (of - k) for k in range(successes + 1))
    assert tail == pytest.approx(FALSE_ALARM / 2, rel=1e-6)
    assert at_least(of - successes, of) == pytest.approx(1 - end)


def test_nothing_and_everything_have_ends() -> None:
    assert at_most(10, 10) == 1
    assert at_least(0, 10) == 0
    assert loss_down(Promise.MU, Counts(0, 0, 10)) == 0


@pytest.mark.parametrize("seed", range(2))
def test_normal_noise_is_passed_at_its_scale_and_flagged_at_half_of_it(seed: int) -> None:
    random = np.random.default_rng(seed)
    for sd, is_flagged in ((1.0, False), (0.5, True)):
        scores = random.normal(1, sd, ANSWERS), random.normal(0, sd, ANSWERS)
        assert (proven(Promise.MU, *scores)[0] > 1.0) is is_flagged
        assert (proven(Promise.RHO, *scores)[0] > 0.5) is is_flagged


@pytest.mark.parametrize("seed", range(2))
def test_laplace_noise_is_passed_at_its_scale_and_flagged_at_half_of_it(seed: int) -> None:
    random = np.random.default_rng(seed)
    for scale, is_flagged in ((1.0, False), (0.5, True)):
        scores = random.laplace(1, scale, ANSWERS), random.laplace(0, scale, ANSWERS)
        assert (proven(Promise.EPSILON, *scores)[0] > 1.0) is is_flagged


def test_no_event_of_normal_laws_proves_more_than_their_distance() -> None:
    of, mu, normal = 10_000, 0.7, NormalDist()
    for limit in (-1.0, 0.0, 0.35, 2.0):
        counts = Counts(round(of * normal.cdf(mu - limit)), round(of * normal.cdf(-limit)), of)
        assert mu - 0.3 < loss_down(Promise.MU, counts) < mu
        assert loss_down(Promise.MU, counts.reversed) == loss_down(Promise.MU, counts)
        assert 0 < loss_down(Promise.RHO, counts) < mu**2 / 2


def test_power_is_the_share_of_samples_that_flag() -> None:
    random = np.random.default_rng(0)
    scores = random.normal(1, 0.5, 400), random.normal(0, 0.5, 400)
    assert power(Promise.MU, *scores, 0.5, 20) == 1
    assert power(Promise.MU, *scores, 3.0, 20) == 0
    assert 0 < power(Promise.MU, *scores, proven(Promise.MU, *scores)[0], 20) < 1
