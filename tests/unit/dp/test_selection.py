"""The chance that a key of one unit alone appears is computed, not sampled, and stays within its delta."""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.dp.accounting import ATTO
from proxy.dp.mechanisms import SCALE
from proxy.dp.selection import KeyRule, delta_share, key_rule, shown_atto_up, threshold
from proxy.errors import BadGroups

deltas = st.floats(-17.0, -2.0).map(lambda exponent: 10.0**exponent)
sigmas = st.floats(-3.0, 4.0).map(lambda exponent: 10.0**exponent)
ratios = st.floats(-1.0, 2.0).map(lambda exponent: 10.0**exponent)


def weight(norm_ratio: float, keys: int) -> float:
    """The most that a unit with this many keys adds to each of its counts."""
    return min(1.0, norm_ratio / math.sqrt(keys))


def passing(tau: float, count: float, sigma_n: float) -> float:
    """Exact probability that discrete Gaussian noise lifts `count` to `tau`.

    P(X >= m) for integer noise of scale 2**40: the integral, half the first term and, beyond that,
    less than 2**-78 of the value (Euler and Maclaurin).
    """
    grid = Fraction(SCALE) / Fraction(sigma_n)  # grid units per unit
    first = math.ceil(Fraction(tau) * grid) - math.floor(Fraction(count) * grid)
    z = first / SCALE
    density = math.exp(-z * z / 2) / math.sqrt(2 * math.pi) / SCALE
    return 0.5 * math.erfc(z / math.sqrt(2)) + density / 2


def any_passes(chances: list[float]) -> float:
    return -math.expm1(math.fsum(math.log1p(-chance) for chance in chances))


@pytest.mark.parametrize("sigma", [1.0, 3.0, 20.0])
def test_a_discrete_tail_is_below_the_continuous_tail_one_step_earlier(sigma: float) -> None:
    # the fact that one grid step in `threshold` rests on
    reach = int(40 * sigma)
    density = [math.exp(-x * x / (2 * sigma * sigma)) for x in range(reach)]
    total = density[0] + 2 * math.fsum(density[1:])
    for m in range(1, int(8 * sigma)):
        assert math.fsum(density[m:]) / total <= 0.5 * math.erfc((m - 1) / sigma / math.sqrt(2))


@given(deltas, sigmas, ratios, st.integers(1, 1000))
def test_a_key_held_only_by_one_unit_appears_with_at_most_delta(
    delta_r: float, sigma_n: float, norm_ratio: float, keys_per_unit: int
) -> None:
    tau = threshold(delta_r=delta_r, sigma_n=sigma_n, norm_ratio=norm_ratio, keys_per_unit=keys_per_unit)
    worst = max(
        any_passes([passing(tau, weight(norm_ratio, keys), sigma_n)] * keys)
        for keys in {*range(1, min(keys_per_unit, 40) + 1), keys_per_unit // 2 or 1, keys_per_unit}
    )
    assert worst <= delta_r


@given(deltas, sigmas, ratios, st.integers(1, 60))
def test_the_threshold_is_no_higher_than_needed(
    delta_r: float, sigma_n: float, norm_ratio: float, keys_per_unit: int
) -> None:
    tau = threshold(delta_r=delta_r, sigma_n=sigma_n, norm_ratio=norm_ratio, keys_per_unit=keys_per_unit)
    lower = tau - 1e-9 * (tau + sigma_n)
    assert delta_r < max(
        any_passes([passing(lower, weight(norm_ratio, keys), sigma_n)] * keys) for keys in range(1, keys_per_unit + 1)
    )


@given(
    deltas,
    sigmas,
    ratios,
    st.lists(st.sets(st.integers(0, 11), min_size=1), min_size=1, max_size=5),
)
def test_keys_held_only_by_a_group_of_units_appear_with_at_most_delta(
    delta_r: float, sigma_n: float, norm_ratio: float, held: list[set[int]]
) -> None:
    # any way in which k units may share any keys
    tau = threshold(delta_r=delta_r, sigma_n=sigma_n, norm_ratio=norm_ratio, keys_per_unit=12, group_size=len(held))
    counts: Counter[int] = Counter()
    totals: dict[int, float] = {}
    for keys in held:
        counts.update(keys)
        for key in keys:
            totals[key] = totals.get(key, 0.0) + weight(norm_ratio, len(keys))
    assert max(counts.values()) <= len(held)
    assert any_passes([passing(tau, total, sigma_n) for total in totals.values()]) <= delta_r


@pytest.mark.parametrize("group_size", [2, 5])
def test_a_group_with_the_same_keys_nearly_uses_its_delta(group_size: int) -> None:
    # k units with one key each, all the same: the formula allows for k keys, so it is within a factor k
    tau = threshold(delta_r=1e-6, sigma_n=10.0, norm_ratio=50.0, keys_per_unit=1, group_size=group_size)
    assert passing(tau, group_size, 10.0) == pytest.approx(1e-6 / group_size, rel=1e-6)


@given(deltas, sigmas, ratios, st.integers(1, 30), st.integers(1, 50))
def test_dropping_keys_below_min_units_in_the_engine_is_covered(
    delta_r: float, sigma_n: float, norm_ratio: float, keys_per_unit: int, min_units: int
) -> None:
    # each of the unit's keys is held by min_units - 1 others: with the unit it passes the engine's filter
    tau = threshold(
        delta_r=delta_r,
        sigma_n=sigma_n,
        norm_ratio=norm_ratio,
        keys_per_unit=keys_per_unit,
        min_units=min_units,
    )
    for keys in range(1, keys_per_unit + 1):
        count = min_units - 1 + weight(norm_ratio, keys)
        assert any_passes([passing(tau, count, sigma_n)] * keys) <= delta_r


def test_min_units_shifts_the_threshold_by_one_unit_each() -> None:
    def tau(min_units: int) -> float:
        return threshold(delta_r=1e-7, sigma_n=12.0, norm_ratio=3.0, keys_per_unit=20, min_units=min_units)

    assert tau(0) == tau(1)
    assert [round(tau(m) - tau(1), 6) for m in (2, 3, 100)] == [1, 2, 99]


@given(deltas, sigmas, ratios, st.integers(1, 400), st.integers(1, 4))
def test_the_threshold_is_the_maximum_over_every_number_of_keys(
    delta_r: float, sigma_n: float, norm_ratio: float, keys_per_unit: int, group_size: int
) -> None:
    tau = threshold(
        delta_r=delta_r,
        sigma_n=sigma_n,
        norm_ratio=norm_ratio,
        keys_per_unit=keys_per_unit,
        group_size=group_size,
    )
    brute = max(
        group_size * weight(norm_ratio, keys) + sigma_n * bisected_quantile(delta_r, group_size * keys)
        for keys in (range(1, keys_per_unit + 1) if keys_per_unit <= 30 else (1, keys_per_unit // 2, keys_per_unit))
    )
    assert tau >= brute
    if keys_per_unit <= 30:
        assert tau <= brute * (1 + 1e-10)


def bisected_quantile(delta_r: float, power: int) -> float:
    """z with 1 - Phi(z) = 1 - (1 - delta)^(1/power), by bisection of the tail."""
    tail = -math.expm1(math.log1p(-delta_r) / power)
    low, high = 0.0, 40.0
    for _ in range(100):
        z = (low + high) / 2
        if 0.5 * math.erfc(z / math.sqrt(2)) > tail:
            low = z
        else:
            high = z
    return low


def test_an_inner_maximum_is_found_among_very_many_keys() -> None:
    # up to norm_ratio**2 = 2500 keys the weight is 1; far beyond, the falling weight loses to the quantile
    arguments = {"delta_r": 1e-7, "sigma_n": 0.5, "norm_ratio": 50.0}
    inner = threshold(keys_per_unit=2500, **arguments)
    assert threshold(keys_per_unit=1_000_000, **arguments) == inner
    assert threshold(keys_per_unit=2499, **arguments) < inner


def test_the_threshold_rises_with_noise_keys_units_and_falls_with_delta() -> None:
    def tau(delta_r: float = 1e-7, sigma_n: float = 10.0, keys: int = 10, group_size: int = 1) -> float:
        return threshold(delta_r=delta_r, sigma_n=sigma_n, norm_ratio=3.0, keys_per_unit=keys, group_size=group_size)

    for rising in (
        [tau(sigma_n=s) for s in (0.1, 1, 10, 100)],
        [tau(keys=k) for k in (1, 10, 100, 1000)],
        [tau(group_size=k) for k in (1, 2, 3)],
        [tau(delta_r=d) for d in (1e-2, 1e-5, 1e-9, 1e-13, 1e-18)],
    ):
        assert all(low < high for low, high in pairwise(rising))


def test_a_typical_threshold_has_its_textbook_value() -> None:
    # one key per unit: 1 + sigma * z(1e-7), z = 5.199337582 from tables
    tau = threshold(delta_r=1e-7, sigma_n=2.0, norm_ratio=1.0, keys_per_unit=1)
    assert tau == pytest.approx(1 + 2 * 5.199337582187471, rel=1e-11)


@pytest.mark.parametrize("delta_r", [0.0, -1e-9, 1.0001e-2, 1.0, math.inf, math.nan, 1e-19])
def test_a_delta_out_of_range_is_refused(delta_r: float) -> None:
    with pytest.raises(BadGroups) as refusal:
        threshold(delta_r=delta_r, sigma_n=1.0, norm_ratio=1.0, keys_per_unit=1)
    assert refusal.value.sqlstate == "DP005"
    assert refusal.value.hint


@pytest.mark.parametrize(
    "wrong",
    [
        {"sigma_n": 0.0},
        {"sigma_n": math.nan},
        {"sigma_n": math.inf},
        {"norm_ratio": 0.0},
        {"norm_ratio": math.nan},
        {"norm_ratio": -1.0},
    ],
)
def test_impossible_noise_or_weights_are_refused(wrong: dict[str, float]) -> None:
    good = {"delta_r": 1e-7, "sigma_n": 1.0, "norm_ratio": 1.0}
    with pytest.raises(ValueError):
        threshold(keys_per_unit=3, **{**good, **wrong})


@pytest.mark.parametrize("keys_per_unit, group_size, min_units", [(0, 1, 0), (1, 0, 0), (1, 1, -1)])
def test_impossible_counts_are_refused(keys_per_unit: int, group_size: int, min_units: int) -> None:
    with pytest.raises(ValueError):
        threshold(
            delta_r=1e-7,
            sigma_n=1.0,
            norm_ratio=1.0,
            keys_per_unit=keys_per_unit,
            group_size=group_size,
            min_units=min_units,
        )


# --- a rule, and another group of units --------------------------------------------------------------


def rule(
    delta_r: float, sigma_n: float, norm_ratio: float, keys_per_unit: int, group_size: int = 1, min_units: int = 0
) -> KeyRule:
    return key_rule(
        delta_r=delta_r, sigma_n=sigma_n, norm_ratio=norm_ratio, keys_per_unit=keys_per_unit, group_size=group_size,
        min_units=min_units,
    )  # fmt: skip


@given(
    deltas, sigmas, ratios,
    st.lists(st.sets(st.integers(0, 11), min_size=1), min_size=1, max_size=5), st.integers(1, 5), st.integers(0, 9),
)  # fmt: skip
def test_a_rule_shows_keys_of_another_group_of_units_with_at_most_what_is_counted(
    delta_r: float, sigma_n: float, norm_ratio: float, held: list[set[int]], made_for: int, min_units: int
) -> None:
    # any way in which k units may share any keys, beside min_units - 1 others that hold them too
    of = rule(delta_r, sigma_n, norm_ratio, 12, made_for, min_units)
    totals: dict[int, float] = {}
    for keys in held:
        for key in keys:
            totals[key] = totals.get(key, max(0.0, min_units - 1.0)) + weight(norm_ratio, len(keys))
    chances = [min(1.0 - 2**-53, passing(of.tau, total, sigma_n)) for total in totals.values()]
    assert any_passes(chances) * ATTO <= shown_atto_up(of, len(held))


@given(deltas, sigmas, ratios, st.integers(1, 60), st.integers(1, 9), st.integers(1, 9), st.integers(0, 5))
def test_what_is_counted_for_a_group_is_the_largest_sum_over_numbers_of_keys(
    delta_r: float, sigma_n: float, norm_ratio: float, keys: int, made_for: int, group: int, min_units: int
) -> None:
    of = rule(delta_r, sigma_n, norm_ratio, keys, made_for, min_units)
    others = max(0, min_units - 1)
    brute = max(
        group * t * passing(of.tau, others + group * weight(norm_ratio, t), sigma_n) for t in range(1, keys + 1)
    )
    found = shown_atto_up(of, group) / ATTO
    assert min(1.0, brute) <= found
    assert found <= min(1.0, brute * (1 + 1e-6)) + 1 / ATTO


@given(deltas, sigmas, ratios, st.integers(1, 1000), st.integers(1, 9))
def test_a_rule_counts_for_its_own_group_what_it_was_charged_and_more_for_a_larger_one(
    delta_r: float, sigma_n: float, norm_ratio: float, keys: int, made_for: int
) -> None:
    of = rule(delta_r, sigma_n, norm_ratio, keys, made_for)
    own, larger = (shown_atto_up(of, k) for k in (made_for, made_for + 1))
    assert own <= min(1.0, delta_r * (1 + delta_r)) * ATTO * (1 + 1e-9) + 1
    assert own <= larger <= ATTO


@pytest.mark.parametrize(("sigma_n", "times"), [(10.0, 7), (3.0, 373), (1.5, 26_000)])
def test_a_larger_group_is_shown_far_more_often_where_noise_is_small(sigma_n: float, times: int) -> None:
    # times: of a key that all five hold; what is counted allows for five keys
    of = rule(5e-7, sigma_n, 1.0, 1)
    assert passing(of.tau, 5.0, sigma_n) / 5e-7 == pytest.approx(times, rel=0.02)
    assert shown_atto_up(of, 5) / 5e11 == pytest.approx(5 * times, rel=0.02)


def test_a_group_that_reaches_the_threshold_by_itself_counts_as_certain() -> None:
    assert shown_atto_up(rule(1e-7, 0.01, 1.0, 1), 50) == ATTO


def test_very_many_keys_are_counted_without_looking_at_each() -> None:
    of = rule(1e-9, 3.0, 30.0, 1_000_000_000)
    assert shown_atto_up(of, 1) == pytest.approx(1e9, rel=1e-6)
    assert shown_atto_up(of, 5) > shown_atto_up(of, 4)


@pytest.mark.parametrize("wrong", [{"sigma_n": 0.0}, {"norm_ratio": math.nan}, {"keys_per_unit": 0}, {"min_units": -1}])
def test_an_impossible_rule_cannot_be_made(wrong: dict[str, float]) -> None:
    good = {"tau": 9.0, "sigma_n": 1.0, "norm_ratio": 1.0, "keys_per_unit": 1, "min_units": 0}
    with pytest.raises(ValueError):
        KeyRule(**{**good, **wrong})  # type: ignore[arg-type]  # some are integers


def test_a_group_of_nobody_cannot_be_counted() -> None:
    with pytest.raises(ValueError):
        shown_atto_up(rule(1e-7, 3.0, 1.0, 1), 0)


# --- shares of the pool -----------------------------------------------------------------------------


@given(st.integers(0, 10**16), st.lists(st.integers(1, 10**12), min_size=1, max_size=40), st.integers(0, 10**12))
def test_releases_that_fit_the_account_fit_its_pool(pool: int, charges: list[int], left: int) -> None:
    account = sum(charges) + left
    shares = [delta_share(pool, charge, account) for charge in charges]
    assert sum(shares) <= pool
    # and nearly all of it is used when the account is
    assert sum(shares) >= Fraction(pool) * sum(charges) / account - len(charges)


def test_a_release_dearer_than_its_account_gets_the_whole_pool() -> None:
    assert delta_share(500, 30, 10) == 500


@pytest.mark.parametrize("pool, pico_r, account", [(-1, 1, 1), (1, -1, 1), (1, 1, 0)])
def test_impossible_shares_are_refused(pool: int, pico_r: int, account: int) -> None:
    with pytest.raises(ValueError):
        delta_share(pool, pico_r, account)
