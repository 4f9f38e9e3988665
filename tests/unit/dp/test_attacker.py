"""What somebody who knows everybody else learns of one person is never more than what is said."""

from __future__ import annotations

import math
from itertools import pairwise
from statistics import NormalDist

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from proxy.dp.accounting import ATTO, PICO, limit_pico, pool_atto
from proxy.dp.attacker import fewest_accounts, right_guess_of_secret_up, right_guess_up
from proxy.policy.model import Accounting, Neighbors, Privacy

ZCDP = Privacy(unit="person")
PURE = Privacy(unit="person", accounting=Accounting.PURE, delta=0.0, delta_pool=0.0)
weights = st.lists(st.integers(1, 1000), min_size=2, max_size=6)


def shares(numbers: list[int]) -> list[float]:
    return [n / sum(numbers) for n in numbers]


def best_guess(p: list[float], q: list[float]) -> float:
    """Exactly how often the best of all guesses is right."""
    return sum(max(a, b) for a, b in zip(p, q, strict=True)) / 2


def rho_of(p: list[float], q: list[float]) -> float:
    """At least the smallest rho of two laws: Renyi divergences over many orders, both ways, with room between these."""
    orders = [1 + 10 ** (k / 20) for k in range(-80, 60)]
    divergences = [_divergence(p, q, a) / a for a in orders] + [_divergence(q, p, a) / a for a in orders]
    return max(divergences) * 1.02 + 1e-9


def _divergence(p: list[float], q: list[float], order: float) -> float:
    logs = [order * math.log(x) + (1 - order) * math.log(y) for x, y in zip(p, q, strict=True)]
    most = max(logs)
    return (most + math.log(sum(math.exp(x - most) for x in logs))) / (order - 1)


@given(weights, weights)
def test_no_pair_of_laws_of_that_rho_is_told_apart_more_often(first: list[int], second: list[int]) -> None:
    size = min(len(first), len(second))
    p, q = shares(first[:size]), shares(second[:size])
    rho = rho_of(p, q)
    assume(rho < 50)
    assert best_guess(p, q) <= right_guess_up(ZCDP, math.ceil(rho * PICO), 0)


@pytest.mark.parametrize("rho", [0.0001, 0.01, 0.1, 0.5, 1.0, 2.0, 5.0])
def test_gaussian_noise_of_that_rho_is_told_apart_less_often_but_nearly_so(rho: float) -> None:
    exact = NormalDist().cdf(math.sqrt(2 * rho) / 2)
    bound = right_guess_up(ZCDP, math.ceil(rho * PICO), 0)
    assert exact <= bound <= exact + 0.15


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
def test_randomized_response_reaches_the_bound_of_epsilon(epsilon: float) -> None:
    exact = math.exp(epsilon) / (1 + math.exp(epsilon))
    assert right_guess_up(PURE, limit_pico(PURE, epsilon), 0) == pytest.approx(exact, abs=1e-8)


@given(st.integers(0, 10**13), st.integers(0, 10**13), st.integers(0, 10**13))
def test_more_charges_never_say_less(first: int, second: int, third: int) -> None:
    for privacy in (ZCDP, PURE):
        said = [right_guess_up(privacy, pico, 0) for pico in sorted((first, second, third))]
        assert all(a <= b for a, b in pairwise(said))
        assert all(0.5 <= s <= 1 for s in said)


def test_the_delta_of_keys_is_added() -> None:
    assert right_guess_up(ZCDP, 0, ATTO // 10) == pytest.approx(0.6, abs=1e-6)
    assert right_guess_up(ZCDP, 10**15, ATTO) == 1


def test_a_secret_of_somebody_there_is_an_exchange() -> None:
    exchanged = Privacy(unit="person", neighbors=Neighbors.REPLACE_ONE)
    assert right_guess_of_secret_up(ZCDP, PICO // 10, 0) == right_guess_up(ZCDP, 4 * PICO // 10, 0)
    assert right_guess_of_secret_up(exchanged, PICO // 10, 0) == right_guess_up(exchanged, PICO // 10, 0)
    assert right_guess_of_secret_up(PURE, PICO, 0) == right_guess_up(PURE, 2 * PICO, 0)


@pytest.mark.parametrize("privacy", [ZCDP, PURE])
@pytest.mark.parametrize("level", [0.6, 0.95])
def test_one_account_fewer_does_not_reach_the_level(privacy: Privacy, level: float) -> None:
    pico, atto = limit_pico(privacy, 0.1), pool_atto(privacy)
    needed = fewest_accounts(privacy, pico, atto, level)
    assert right_guess_of_secret_up(privacy, needed * pico, needed * atto) >= level
    assert right_guess_of_secret_up(privacy, (needed - 1) * pico, (needed - 1) * atto) < level


def test_accounts_of_nothing_never_reach_it() -> None:
    assert fewest_accounts(ZCDP, 0, 0, 0.95) == 1_000_000


def test_what_is_no_charge_and_no_level_is_refused() -> None:
    for pico, atto in ((-1, 0), (0, -1)):
        with pytest.raises(ValueError, match="not negative"):
            right_guess_up(ZCDP, pico, atto)
    for level in (0.5, 1.0):
        with pytest.raises(ValueError, match="between one half and one"):
            fewest_accounts(ZCDP, 1, 0, level)
