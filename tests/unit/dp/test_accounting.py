"""Costs are exact integers, and the conversion between rho and epsilon never promises too much."""

from __future__ import annotations

import math
from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import pairwise

import pytest
from dp_accounting import dp_event, rdp
from dp_accounting.pld import privacy_loss_distribution
from hypothesis import given
from hypothesis import strategies as st

from proxy.dp.accounting import (
    as_written,
    atto_down,
    conversion_delta_down,
    epsilon_of_rho,
    epsilon_spent,
    for_reach_down,
    for_reach_up,
    knob_pico,
    limit_pico,
    of_atto_down,
    of_pico_down,
    pico_down,
    pool_atto,
    questions_held,
    rho_of_epsilon,
    usual_epsilon,
)
from proxy.errors import InvalidSetting
from proxy.policy.model import MIN_QUERY_EPSILON, Accounting, Privacy

ZCDP = Privacy(unit="person")
PURE = Privacy(unit="person", accounting=Accounting.PURE, delta=0.0, delta_pool=0.0)

epsilons = st.floats(1e-4, 100.0)
deltas = st.floats(1e-12, 1e-2)
rhos = st.floats(1e-9, 50.0)


# --- integers ---------------------------------------------------------------------------------------


@given(st.one_of(st.floats(0, 1e6), st.fractions(0, 1000), st.integers(0, 10**6), st.decimals(0, 1000, places=20)))
def test_integers_are_the_most_that_an_exact_amount_contains(amount: float | Fraction | int | Decimal) -> None:
    for down, unit in ((pico_down, 10**12), (atto_down, 10**18)):
        assert Fraction(down(amount), unit) <= Fraction(amount) < Fraction(down(amount) + 1, unit)


@given(st.integers(0, 10**22))
def test_floats_of_integers_are_never_above_them(count: int) -> None:
    for convert, unit in ((of_pico_down, 10**12), (of_atto_down, 10**18)):
        value = convert(count)
        assert Fraction(value) <= Fraction(count, unit) < Fraction(math.nextafter(value, math.inf))


@pytest.mark.parametrize("bad", [-1e-300, -1, math.nan, math.inf, Decimal("NaN")])
def test_a_cost_that_is_negative_or_not_finite_is_refused(bad: float | Decimal) -> None:
    for convert in (pico_down, atto_down):
        with pytest.raises(ValueError):
            convert(bad)


def test_a_negative_count_is_refused() -> None:
    for convert in (of_pico_down, of_atto_down):
        with pytest.raises(ValueError):
            convert(-1)
    with pytest.raises(ValueError):
        epsilon_spent(ZCDP, -1)


def test_a_number_means_the_decimal_it_was_written_as() -> None:
    assert as_written(0.3) == Fraction(3, 10)
    assert as_written(1e-6) == Fraction(1, 10**6)
    assert as_written(5) == 5


# --- the conversion ---------------------------------------------------------------------------------


def published_delta(rho: float, epsilon: float) -> tuple[float, float]:
    """The conversion as its authors compute it: bisect the derivative of log delta in alpha. (log delta, alpha)"""
    low, high = 1 + 1e-12, (epsilon + 1) / (2 * rho) + 2
    for _ in range(120):
        alpha = (low + high) / 2
        if (2 * alpha - 1) * rho - epsilon + math.log1p(-1 / alpha) < 0:
            low = alpha
        else:
            high = alpha
    alpha = high
    log_delta = (alpha - 1) * (alpha * rho - epsilon) + alpha * math.log1p(-1 / alpha) - math.log(alpha - 1)
    return log_delta, alpha


def published_rho(epsilon: float, delta: float) -> float:
    """The largest rho by bisection of `published_delta`."""
    low, high = 0.0, epsilon + 1.0
    for _ in range(80):
        rho = (low + high) / 2
        if published_delta(rho, epsilon)[0] <= math.log(delta):
            low = rho
        else:
            high = rho
    return low


def proven_delta(rho: float, epsilon: float, alpha: float) -> Decimal:
    """The bound on delta at one order, with 60 digits."""
    with localcontext(prec=60):
        r, e, a = Decimal(rho), Decimal(epsilon), Decimal(alpha)
        return ((a - 1) * (a * r - e)).exp() / (a - 1) * (a * (1 - 1 / a).ln()).exp()


@pytest.mark.parametrize(
    "epsilon, rho", [(0.1, 0.00030), (0.5, 0.00622), (1, 0.02294), (2, 0.08344), (5, 0.44173), (10, 1.47844)]
)
def test_rho_of_epsilon_gives_the_figures_of_the_documentation(epsilon: float, rho: float) -> None:
    assert round(rho_of_epsilon(epsilon, 5e-7), 5) == rho


@given(epsilons, deltas)
def test_rho_of_epsilon_agrees_with_an_independent_minimisation(epsilon: float, delta: float) -> None:
    assert rho_of_epsilon(epsilon, delta) == pytest.approx(published_rho(epsilon, delta), rel=1e-9)


@given(epsilons, deltas)
def test_rho_of_epsilon_is_proven_by_some_order(epsilon: float, delta: float) -> None:
    rho = rho_of_epsilon(epsilon, delta)
    _, alpha = published_delta(rho, epsilon)
    assert proven_delta(rho, epsilon, alpha) <= Decimal(delta)


@given(rhos, deltas)
def test_epsilon_of_rho_is_proven_by_some_order(rho: float, delta: float) -> None:
    epsilon = epsilon_of_rho(rho, delta)
    if epsilon > 0:
        _, alpha = published_delta(rho, epsilon)
        assert proven_delta(rho, epsilon, alpha) <= Decimal(delta)


@given(epsilons, deltas)
def test_converting_there_and_back_loses_little_and_never_gains(epsilon: float, delta: float) -> None:
    back = epsilon_of_rho(rho_of_epsilon(epsilon, delta), delta)
    assert back <= epsilon
    assert back == pytest.approx(epsilon, rel=1e-7)


@given(epsilons, epsilons, deltas)
def test_more_epsilon_is_more_rho(one: float, other: float, delta: float) -> None:
    low, high = sorted((one, other))
    assert rho_of_epsilon(low, delta) <= rho_of_epsilon(high, delta) * (1 + 1e-9)


@given(epsilons, deltas, deltas)
def test_more_delta_is_more_rho(epsilon: float, one: float, other: float) -> None:
    low, high = sorted((one, other))
    assert rho_of_epsilon(epsilon, low) <= rho_of_epsilon(epsilon, high) * (1 + 1e-9)


@given(rhos, rhos, deltas)
def test_more_rho_is_more_epsilon(one: float, other: float, delta: float) -> None:
    low, high = sorted((one, other))
    assert epsilon_of_rho(low, delta) <= epsilon_of_rho(high, delta) * (1 + 1e-9)


@pytest.mark.parametrize("queries, rho", [(1, 0.02), (10, 0.01), (70, 0.00622)])
def test_epsilon_of_rho_bounds_the_exact_composition_of_gaussians_closely(queries: int, rho: float) -> None:
    def exact(pessimistic: bool) -> float:
        one = privacy_loss_distribution.from_gaussian_mechanism(
            1 / math.sqrt(2 * rho), value_discretization_interval=1e-4, pessimistic_estimate=pessimistic
        )
        return float(one.self_compose(queries).get_epsilon_for_delta(5e-7))

    bound = epsilon_of_rho(queries * rho, 5e-7)
    assert exact(pessimistic=False) <= bound <= 1.15 * exact(pessimistic=True)


@given(st.lists(st.floats(0.01, 4.0), min_size=1, max_size=40))
def test_what_a_random_history_spent_is_what_an_independent_accountant_says(history: list[float]) -> None:
    """Google's accountant composes the same Gaussian mechanisms; its orders are refined around the best one."""
    charges = [knob_pico(ZCDP, epsilon) for epsilon in history]
    delta, best, orders = conversion_delta_down(ZCDP), math.inf, [1 + 10 ** (k / 10) for k in range(-30, 60)]
    for _ in range(5):
        accountant = rdp.RdpAccountant(orders)
        for pico in charges:
            accountant.compose(dp_event.GaussianDpEvent(math.sqrt(0.5 / (pico / 10**12))))
        best, order = accountant.get_epsilon_and_optimal_order(delta)
        width = max(b - a for a, b in pairwise(sorted(orders)) if a <= order <= b)
        orders = [max(1 + 1e-9, order + width * k / 30) for k in range(-30, 31)]
    assert best - 1e-9 <= epsilon_spent(ZCDP, sum(charges)) <= best + 2e-9  # shown in steps of 1e-9, rounded up


def test_nothing_spent_is_no_epsilon() -> None:
    assert epsilon_of_rho(0.0, 1e-6) == 0.0
    assert epsilon_of_rho(1e-18, 1e-2) == 0.0  # delta alone covers it


@pytest.mark.parametrize("amount, delta", [(0.0, 1e-6), (-1.0, 1e-6), (math.nan, 1e-6), (math.inf, 1e-6)])
def test_an_impossible_epsilon_is_refused(amount: float, delta: float) -> None:
    with pytest.raises(ValueError):
        rho_of_epsilon(amount, delta)


@pytest.mark.parametrize("delta", [0.0, 1.0, -1e-6, math.nan])
def test_an_impossible_delta_is_refused(delta: float) -> None:
    with pytest.raises(ValueError):
        rho_of_epsilon(1.0, delta)
    with pytest.raises(ValueError):
        epsilon_of_rho(1.0, delta)


# --- prices -----------------------------------------------------------------------------------------


def test_an_account_of_5_holds_exactly_70_queries_of_one_half() -> None:
    limit, knob = limit_pico(ZCDP, 5.0), knob_pico(ZCDP, 0.5)
    assert limit // knob == 70
    assert knob * 70 <= limit < knob * 71
    assert epsilon_spent(ZCDP, knob * 70) <= 5.0 < epsilon_spent(ZCDP, knob * 71)


@given(epsilons)
def test_an_account_holds_one_query_of_its_own_epsilon(epsilon: float) -> None:
    for privacy in (ZCDP, PURE):
        assert limit_pico(privacy, epsilon) == knob_pico(privacy, epsilon) > 0


def test_pure_accounts_add_epsilon_as_decimals() -> None:
    assert limit_pico(PURE, 0.3) == 3 * knob_pico(PURE, 0.1) == 3 * 10**11
    assert epsilon_spent(PURE, 3 * 10**11) == 0.3


@given(st.integers(10**5, 10**12))
def test_what_fits_an_account_is_never_shown_as_more_than_its_epsilon(billionths: int) -> None:
    written = billionths / 10**9
    for privacy in (ZCDP, PURE):
        assert epsilon_spent(privacy, limit_pico(privacy, written)) <= written


@given(st.integers(0, 10**13))
def test_the_epsilon_shown_is_never_below_what_was_spent(pico: int) -> None:
    delta = conversion_delta_down(ZCDP)
    assert epsilon_spent(ZCDP, pico) >= epsilon_of_rho(pico / 1e12, delta)
    assert epsilon_spent(PURE, pico) >= pico / 1e12 - 1e-15
    assert epsilon_spent(PURE, pico) <= pico / 1e12 + 1.1e-9


@pytest.mark.parametrize("epsilon", [0.0, -1.0, 9.9e-5, 100.1, math.inf, -math.inf, math.nan])
@pytest.mark.parametrize("privacy", [ZCDP, PURE])
def test_a_knob_outside_its_range_is_refused(privacy: Privacy, epsilon: float) -> None:
    with pytest.raises(InvalidSetting) as refusal:
        knob_pico(privacy, epsilon)
    assert refusal.value.sqlstate == "22023"
    assert "0.0001 to 100" in refusal.value.detail


@pytest.mark.parametrize("accounting", [*Accounting])
@pytest.mark.parametrize(
    "questions", [((10.0, 100),), ((20.0, 1), (10.0, 50), (5.0, 200)), ((0.001, 1), (1e6, 1)), ((30.0, 100_000),)]
)
def test_the_usual_epsilon_is_the_largest_of_two_digits_at_which_accounts_hold_their_questions(
    accounting: Accounting, questions: tuple[tuple[float, int], ...]
) -> None:
    privacy = Privacy(unit="person", accounting=accounting, questions=questions)
    usual = usual_epsilon(privacy)
    assert float(f"{usual:.1e}") == usual
    assert all(questions_held(privacy, epsilon) >= number for epsilon, number in questions)
    more = usual + 10.0 ** (math.floor(math.log10(usual)) - 1)
    assert any(limit_pico(privacy, epsilon) < number * limit_pico(privacy, more) for epsilon, number in questions)


def test_the_usual_epsilon_is_one_that_a_client_may_choose() -> None:
    assert usual_epsilon(Privacy(unit="person", query_epsilon=0.3)) == 0.3
    assert usual_epsilon(Privacy(unit="person", max_query_epsilon=0.2, questions=((10.0, 1),))) == 0.2
    few = Privacy(unit="person", accounting=Accounting.PURE, questions=((1e-4, 1000),))
    assert usual_epsilon(few) == MIN_QUERY_EPSILON


def test_a_knob_above_the_policys_maximum_is_refused() -> None:
    strict = Privacy(unit="person", max_query_epsilon=2.0)
    assert knob_pico(strict, 2.0) == knob_pico(ZCDP, 2.0)
    with pytest.raises(InvalidSetting) as refusal:
        knob_pico(strict, 2.0000001)
    assert "to 2." in refusal.value.detail


def test_an_account_of_nothing_pays_for_nothing() -> None:
    assert limit_pico(ZCDP, 0.0) == limit_pico(PURE, 0.0) == 0
    assert epsilon_spent(ZCDP, 0) == epsilon_spent(PURE, 0) == 0.0


@pytest.mark.parametrize("epsilon", [-1.0, math.nan, math.inf])
def test_an_impossible_account_is_refused(epsilon: float) -> None:
    with pytest.raises(ValueError):
        limit_pico(ZCDP, epsilon)


def test_pool_and_conversion_together_stay_within_delta() -> None:
    for delta, pool in ((1e-6, 5e-7), (1e-6, 0.0), (1e-6, 3e-7), (1e-5, 9.999e-6)):
        privacy = Privacy(unit="person", delta=delta, delta_pool=pool)
        together = Fraction(conversion_delta_down(privacy)) + Fraction(pool)
        assert Fraction(delta) * (1 - Fraction(1, 2**50)) < together <= Fraction(delta)
        assert Fraction(pool_atto(privacy), 10**18) <= as_written(pool)
    assert pool_atto(ZCDP) == 5 * 10**11
    assert pool_atto(PURE) == 0


def test_a_pool_that_leaves_no_delta_is_refused() -> None:
    with pytest.raises(ValueError):
        conversion_delta_down(Privacy(unit="person", delta=1e-6, delta_pool=1e-6))
    with pytest.raises(ValueError):
        limit_pico(Privacy(unit="person", delta=0.0, delta_pool=0.0), 1.0)


# --- other neighbours ---------------------------------------------------------------------------------


@pytest.mark.parametrize(("made_for", "reach", "rho", "epsilon"), [
    (1, 5, 25 * 7, 5 * 7), (1, 2, 28, 14), (2, 10, 25 * 7, 35), (2, 3, 16, 11), (5, 1, 7, 7), (3, 3, 7, 7),
])  # fmt: skip
def test_rho_grows_with_the_square_of_the_reach_and_epsilon_with_the_reach(
    made_for: int, reach: int, rho: int, epsilon: int
) -> None:
    assert for_reach_up(Accounting.ZCDP, 7, made_for, reach) == rho
    assert for_reach_up(Accounting.PURE, 7, made_for, reach) == epsilon


@given(st.integers(0, 10**30), st.integers(1, 2000), st.integers(1, 2000), st.integers(1, 2000))
def test_a_charge_counts_at_least_as_much_for_more_and_never_less_than_it_was(
    pico: int, made_for: int, reach: int, further: int
) -> None:
    for accounting, power in ((Accounting.ZCDP, 2), (Accounting.PURE, 1)):
        counted = for_reach_up(accounting, pico, made_for, reach)
        exact = pico * max(Fraction(1), Fraction(reach, made_for) ** power)
        assert exact <= counted < exact + 1
        assert pico <= counted <= for_reach_up(accounting, pico, made_for, max(reach, further))
        most = for_reach_down(accounting, pico, made_for, reach)
        assert (
            for_reach_up(accounting, most, made_for, reach)
            <= pico
            < for_reach_up(accounting, most + 1, made_for, reach)
        )


@pytest.mark.parametrize(("pico", "made_for", "reach"), [(-1, 1, 2), (1, 0, 1), (1, 1, 0)])
def test_impossible_neighbours_are_refused(pico: int, made_for: int, reach: int) -> None:
    for accounting in Accounting:
        with pytest.raises(ValueError):
            for_reach_up(accounting, pico, made_for, reach)
