"""Is the law of a drawn mode the one that is charged for, and is a value as seldom given as is said?

Laws are computed exactly from given numbers of rows. That OpenDP draws by the law of its stated cost is tested in
`test_quantiles` and here on samples.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from proxy.dp.mechanisms import Distribution
from proxy.dp.modes import Poll, elect
from proxy.dp.quantiles import MOST_MOVE, ROW_WEIGHT, Draw, Weights
from proxy.dp.samplers import choose
from tests.unit.dp.test_quantiles import gumbel_law, histogram, permute_and_flip_law

ORDERS = (1.01, 1.5, 2.0, 8.0, 40.0)
Exact = list[float]


def poll(*, candidates: int = 3, move: int = 1, groups: int = 1, amount: float = 0.4, pure: bool = False,
         replaced: bool = False) -> Poll:  # fmt: skip
    return Poll(
        distribution=Distribution.LAPLACE if pure else Distribution.GAUSSIAN, candidates=candidates, move=move,
        is_monotone=not replaced, groups=groups, amount=amount,
    )  # fmt: skip


def law_of(of: Poll, rows: Weights) -> Exact:
    """The probability of each candidate."""
    found: Exact = []

    def note(scores: Weights, draw: Draw) -> int:
        is_gaussian = draw.distribution is Distribution.GAUSSIAN
        found.extend((gumbel_law if is_gaussian else permute_and_flip_law)(scores, draw))
        return 0

    elect(of, rows, note)
    assert math.isclose(math.fsum(found), 1.0)
    return found


def renyi(left: Exact, right: Exact, order: float) -> float:
    return math.log(math.fsum(p**order * q ** (1 - order) for p, q in zip(left, right, strict=True))) / (order - 1)


def databases(size: int) -> Iterator[Weights]:
    yield from (histogram(*rows) for rows in product((0, 1, 4), repeat=size))


def units(weight: float, size: int) -> Iterator[Weights]:
    """What a unit of so many rows may add: all of it to some candidates, in equal parts."""
    for chosen in product((False, True), repeat=size):
        if any(chosen):
            yield histogram(*(weight * c / sum(chosen) for c in chosen))


def check_zcdp(one: Exact, other: Exact, rho: float) -> None:
    for order in ORDERS:
        assert renyi(one, other, order) <= order * rho * (1 + 1e-9)
        assert renyi(other, one, order) <= order * rho * (1 + 1e-9)


def check_pure(one: Exact, other: Exact, epsilon: float) -> None:
    assert max(abs(math.log(p / q)) for p, q in zip(one, other, strict=True)) <= epsilon * (1 + 1e-9)


# --- laws ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rows", [(3, 2, 0), (0, 0, 0), (7, 7, 6.5, 1), (12,)])
def test_a_value_is_as_likely_as_the_exponential_of_its_rows(rows: tuple[float, ...]) -> None:
    of = poll(candidates=len(rows), move=2, groups=3)
    steepness = math.sqrt(8 * 0.4 / 3) / 2
    odds = [math.exp(steepness * r) for r in rows]
    expected = [o / math.fsum(odds) for o in odds]
    assert law_of(of, histogram(*rows)) == pytest.approx(expected, rel=1e-9)
    assert of.steepness == pytest.approx(steepness, rel=1e-9)
    assert of.steepness < steepness, "never less noise than is charged for"


@pytest.mark.parametrize("move", [1, 3])
def test_a_mode_is_as_private_as_its_charge(move: int) -> None:
    of = poll(move=move)
    for base in databases(3):
        for unit in units(move, 3):
            check_zcdp(law_of(of, base), law_of(of, base + unit), 0.4)


def test_several_units_that_all_come_cost_no_more_than_is_charged() -> None:
    of = poll(move=2)
    for base in databases(3):
        for one, other in product(units(1, 3), repeat=2):
            check_zcdp(law_of(of, base), law_of(of, base + one + other), 0.4)
            check_zcdp(law_of(of, base + one), law_of(of, base + other), 0.4)


def test_a_unit_that_weighs_less_costs_its_square() -> None:
    of = poll(move=2, amount=0.4, groups=4)
    for share in (1.0, 0.5):
        for unit in units(2 * share, 3):
            check_zcdp(law_of(of, histogram(2, 1, 0)), law_of(of, histogram(2, 1, 0) + unit), 0.1 * share**2)


def test_a_replaced_unit_moves_scores_either_way_and_is_charged_for_it() -> None:
    of = poll(replaced=True)
    for base in databases(3):
        for one, other in product(units(1, 3), repeat=2):
            check_zcdp(law_of(of, base + one), law_of(of, base + other), 0.4)
    assert of.draw.sensitivity == poll().draw.sensitivity, "the factor of two is the library's"
    assert of.draw.scale == pytest.approx(2 * poll().draw.scale)


@pytest.mark.parametrize("replaced", [False, True])
def test_pure_modes_are_as_private_as_their_epsilon(replaced: bool) -> None:
    of = poll(pure=True, replaced=replaced, amount=0.7, move=2)
    for base in databases(3):
        for one, other in product(units(2, 3), repeat=2):
            gone = base + other if replaced else base
            check_pure(law_of(of, base + one), law_of(of, gone), 0.7)


def test_the_charge_is_spent() -> None:
    """With less noise a neighbour would be told apart: the odds of two candidates move by epsilon."""
    for replaced in (False, True):
        of = poll(candidates=2, amount=2.0, replaced=replaced)
        pair = [(4, 3), (3, 4)] if replaced else [(4, 3), (3, 3)]
        odds = [math.log(a / b) for a, b in (law_of(of, histogram(*rows)) for rows in pair)]
        assert abs(odds[0] - odds[1]) == pytest.approx(of.epsilon, rel=1e-9)
        assert of.epsilon == pytest.approx(4.0, rel=1e-9)


# --- what is told ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("pure", [False, True])
def test_a_value_that_is_short_of_the_best_is_given_at_most_as_often_as_is_said(pure: bool) -> None:
    of = poll(candidates=4, move=2, amount=0.3, pure=pure)
    for chance in (0.5, 0.05, 0.001):
        short = of.short_up(chance)
        assert math.exp(-of.steepness * short) <= chance < math.exp(-of.steepness * (short - 1))
        for others in ((0, 0), (short, 2 * short)):
            best = 2 * short
            law = law_of(of, histogram(best, best - short, *others))
            assert law[1] <= chance


def test_rows_of_one_value_outweigh_all_others_from_the_stated_number_on() -> None:
    of = poll(candidates=6, move=2, amount=0.3)
    law = law_of(of, histogram(of.least, 0, 0, 0, 0, 0))
    assert law[0] > 0.5
    few = law_of(of, histogram(of.least - 2, 0, 0, 0, 0, 0))
    assert few[0] < 0.55
    assert poll(candidates=1).least == 0


# --- the library ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("pure", [False, True])
@pytest.mark.parametrize("replaced", [False, True])
def test_the_library_grants_the_charge_of_modes(pure: bool, replaced: bool) -> None:
    for move, groups, amount in ((1, 1, 0.5), (7, 3, 1e-4), (1000, 40, 2.0)):
        of = poll(move=move, groups=groups, amount=amount, pure=pure, replaced=replaced)
        assert choose(histogram(1, 2, 3), of.draw) in (0, 1, 2)


def test_a_draw_that_is_not_monotone_is_not_granted_the_price_of_one_that_is() -> None:
    draw = poll(replaced=True).draw
    with pytest.raises(RuntimeError, match="grants"):
        choose(histogram(1, 2), replace(draw, is_monotone=True))
    with pytest.raises(RuntimeError, match="grants"):
        choose(histogram(1, 2), replace(poll().draw, is_monotone=False))


@pytest.mark.parametrize("pure", [False, True])
def test_the_library_draws_modes_by_the_law(pure: bool) -> None:
    """1,500 draws: each share is within 5 deviations of its probability, a false alarm below 1e-5."""
    of, times = poll(amount=0.5, pure=pure), 1_500
    rows = histogram(2, 1, 0)
    found = Counter(elect(of, rows, choose) for _ in range(times))
    for place, chance in enumerate(law_of(of, rows)):
        assert abs(found[place] / times - chance) <= 5 * math.sqrt(chance * (1 - chance) / times)


@pytest.mark.parametrize(
    "facts",
    [{"candidates": 0}, {"move": 0}, {"groups": 0}, {"move": MOST_MOVE + 1}, {"amount": 0.0}, {"amount": math.inf}],
)
def test_impossible_facts_are_refused(facts: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=r"impossible|too many|finite"):
        poll(**facts)  # type: ignore[arg-type]  # of each test its own


@pytest.mark.parametrize(
    "rows", [histogram(1, 2), np.array([1.0, 2.0, 3.0]), np.array([-1, 2, ROW_WEIGHT], dtype=np.int64)]
)
def test_impossible_histograms_are_refused(rows: Weights) -> None:
    with pytest.raises(ValueError, match=r"one weight|negative"):
        elect(poll(), rows, lambda *_: 0)
