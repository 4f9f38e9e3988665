"""Is the law of chosen quantiles the one that is charged for, and do the chosen cells hold them?

Laws are enumerated: every cell that the mechanism could draw is followed with its exact probability, so that privacy is
compared on whole distributions. That OpenDP draws by that law is tested on samples.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from proxy.dp.mechanisms import Distribution
from proxy.dp.quantiles import MOST_MOVE, ROW_WEIGHT, Draw, Ladder, Weights, draw_of, scores, select
from proxy.dp.samplers import choose

HALF = Fraction(1, 2)
QUARTERS = (Fraction(1, 4), HALF, Fraction(3, 4))
Law = dict[tuple[int, ...], float]


def ladder(*fractions: Fraction, cells: int = 4, amount: float = 0.4, move: int = 1, groups: int = 1,
           pure: bool = False) -> Ladder:  # fmt: skip
    return Ladder(
        distribution=Distribution.LAPLACE if pure else Distribution.GAUSSIAN, fractions=fractions or (HALF,),
        cells=cells, move=move, groups=groups, amount=amount,
    )  # fmt: skip


def histogram(*rows: float) -> Weights:
    return np.array([round(r * ROW_WEIGHT) for r in rows], dtype=np.int64)


# --- laws ---------------------------------------------------------------------------------------------------


def gumbel_law(found: Weights, draw: Draw) -> list[float]:
    weights = [math.exp(int(s) / draw.scale) for s in found]
    return [w / math.fsum(weights) for w in weights]


def permute_and_flip_law(found: Weights, draw: Draw) -> list[float]:
    """The noisy largest score with exponential noise: an integral over the winner's noise, as a sum over subsets."""
    odds = [math.exp((int(s) - int(found.max())) / draw.scale) for s in found]
    law = []
    for chosen, own in enumerate(odds):
        others = [o for i, o in enumerate(odds) if i != chosen]
        total = 0.0
        for subset in range(1 << len(others)):
            picked = [o for i, o in enumerate(others) if subset >> i & 1]
            total += (-1.0) ** len(picked) * math.prod(picked) / (len(picked) + 1)
        law.append(own * total)
    return law


class Script:
    """Chooses as it is told, and notes how likely that was; past its end, how many candidates there are."""

    def __init__(self, of: Ladder, steps: tuple[int, ...]) -> None:
        self.law = gumbel_law if of.distribution is Distribution.GAUSSIAN else permute_and_flip_law
        self.steps = iter(steps)
        self.probability = 1.0
        self.candidates = 0

    def __call__(self, given: Weights, draw: Draw) -> int:
        step = next(self.steps, None)
        if step is None:
            self.candidates = len(given)
            raise StopIteration
        self.probability *= self.law(given, draw)[step]
        return step


def law_of(of: Ladder, found: Weights) -> Law:
    """Every outcome of `select` with its probability."""
    law: Law = {}
    waiting: list[tuple[int, ...]] = [()]
    while waiting:
        steps = waiting.pop()
        script = Script(of, steps)
        try:
            chosen = select(of, found, script)
        except StopIteration:
            waiting += [(*steps, i) for i in range(script.candidates)]
            continue
        law[chosen] = law.get(chosen, 0.0) + script.probability
    return law


def renyi(left: Law, right: Law, order: float) -> float:
    """The divergence of an order above 1."""
    return math.log(math.fsum(p**order * right[o] ** (1 - order) for o, p in left.items())) / (order - 1)


def neighbours(weight: float, cells: int) -> Iterator[tuple[Weights, Weights]]:
    """Histograms with and without a unit of so many rows: on one cell, or on both ends."""
    for rest in ((0, 0, 0, 0), (2, 0, 0, 1), (0, 3, 0, 3), (1, 1, 1, 1)):
        base = histogram(*rest[:cells])
        for cell in range(cells):
            more = base.copy()
            more[cell] += round(weight * ROW_WEIGHT)
            yield base, more
        both = base.copy()
        both[[0, cells - 1]] += round(weight * ROW_WEIGHT / 2)
        yield base, both


def check_zcdp(of: Ladder, weight: float, amount: float) -> None:
    for base, more in neighbours(weight, of.cells):
        left, right = law_of(of, base), law_of(of, more)
        assert math.isclose(math.fsum(left.values()), 1.0)
        for order in (1.01, 2.0, 8.0, 40.0):
            for one, other in ((left, right), (right, left)):
                assert renyi(one, other, order) <= order * amount * (1 + 1e-9)


@pytest.mark.parametrize("fraction", [Fraction(0), Fraction(1, 100), HALF, Fraction(9, 10), Fraction(1)])
@pytest.mark.parametrize("move", [1, 3])
def test_one_quantile_is_as_private_as_its_charge(fraction: Fraction, move: int) -> None:
    check_zcdp(ladder(fraction, move=move), move, 0.4)


def test_a_unit_that_weighs_less_costs_its_square() -> None:
    of = ladder(Fraction(9, 10), amount=0.4, groups=4)
    check_zcdp(of, 1.0, 0.1)
    check_zcdp(of, 0.5, 0.025)


def test_the_charge_is_spent() -> None:
    """With less noise a neighbour would be told apart: the odds of two cells move by nearly epsilon."""
    of = ladder(Fraction(0), cells=2, amount=2.0)
    odds = [math.log(law[0,] / law[1,]) for law in (law_of(of, histogram(9, 20)), law_of(of, histogram(10, 20)))]
    assert 0.45 * of.epsilon < abs(odds[1] - odds[0]) <= of.epsilon


@pytest.mark.parametrize("fractions", [QUARTERS[:2], QUARTERS, (Fraction(0), HALF, Fraction(1))])
def test_several_quantiles_are_as_private_as_their_charge(
    fractions: tuple[Fraction, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("proxy.dp.quantiles._FINENESS", 2)
    check_zcdp(ladder(*fractions, cells=3, amount=0.6), 1, 0.6)


def test_pure_choices_are_as_private_as_their_epsilon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("proxy.dp.quantiles._FINENESS", 2)
    for fractions, groups in (((HALF,), 1), (QUARTERS[:2], 1), ((HALF,), 2)):
        of = ladder(*fractions, cells=3, amount=0.8, groups=groups, pure=True)
        for base, more in neighbours(1, of.cells):
            left, right = law_of(of, base), law_of(of, more)
            assert math.isclose(math.fsum(left.values()), 1.0)
            assert max(abs(math.log(left[o] / right[o])) for o in left) <= 0.8 / groups * (1 + 1e-9)


# --- what is drawn ------------------------------------------------------------------------------------------


@pytest.mark.statistical
@pytest.mark.parametrize("pure", [False, True])
def test_the_library_draws_by_the_law(pure: bool) -> None:
    """n = 2,500 draws; each frequency is within 7 deviations: a false alarm in 10^10 runs."""
    of = ladder(Fraction(1, 4), amount=0.5, pure=pure)
    found, n = histogram(3, 1, 0, 4), 2_500
    law = law_of(of, found)
    drawn = [select(of, found, choose) for _ in range(n)]
    assert min(law.values()) > 0.01
    for outcome, p in law.items():
        assert abs(drawn.count(outcome) - n * p) < 7 * math.sqrt(n * p * (1 - p))


@pytest.mark.parametrize("pure", [False, True])
@pytest.mark.parametrize("amount", [1e-9, 0.01, 30.0])
@pytest.mark.parametrize("fractions", [(HALF,), (Fraction(1),), QUARTERS, (Fraction(1, 999_983),)])
def test_the_library_grants_the_charge(pure: bool, amount: float, fractions: tuple[Fraction, ...]) -> None:
    for move, groups in ((1, 1), (60, 12), (MOST_MOVE, 10**6)):
        of = ladder(*fractions, amount=amount, move=move, groups=groups, pure=pure)
        spent = Fraction(0)
        for fraction in (HALF, *fractions):  # every draw grants as much as it is charged, or raises
            draw = draw_of(of, fraction)
            assert 0 <= choose(scores(of, histogram(1, 2, 3, 4), fraction), draw) < 4
            spent = Fraction(draw.charge) * of.levels * of.groups
        assert amount * (1 - 2**-30) < spent <= Fraction(amount)


def test_a_choice_without_noise_or_of_another_price_is_refused() -> None:
    fine = draw_of(ladder(), HALF)
    found = histogram(1, 2)
    for scale in (0.0, -1.0, math.inf, math.nan):
        with pytest.raises(ValueError, match="protects nobody"):
            choose(found, replace(fine, scale=scale))
    with pytest.raises(ValueError, match="protects nobody"):
        choose(found, replace(fine, sensitivity=0))
    for change in (1.001, 0.999):
        with pytest.raises(RuntimeError, match="is charged"):
            choose(found, replace(fine, scale=fine.scale * change))
    wrong: list[Any] = [np.zeros(0, dtype=np.int64), np.zeros((2, 2), dtype=np.int64), np.zeros(2)]
    for odd in wrong:
        with pytest.raises(ValueError, match="64-bit"):
            choose(odd, fine)


@pytest.mark.parametrize("answer", ["1", 7, -1])
def test_an_answer_that_is_no_candidate_is_refused(answer: object, monkeypatch: pytest.MonkeyPatch) -> None:
    fine = draw_of(ladder(), HALF)

    class Odd:
        def map(self, _: int) -> float:
            return fine.charge

        def __call__(self, _: Weights) -> object:
            return answer

    monkeypatch.setattr("proxy.dp.samplers._noisy_max", lambda *_: Odd())
    with pytest.raises(RuntimeError, match="none of the candidates"):
        choose(histogram(1, 2), fine)


# --- which cells --------------------------------------------------------------------------------------------


def best(given: Weights, _: Draw) -> int:
    """The choice without noise: the first of the best candidates."""
    return int(given.argmax())


def test_without_noise_the_cell_is_the_one_that_holds_the_rank() -> None:
    exact = ladder(HALF, amount=1e9)
    assert select(exact, histogram(10, 0, 0, 11), best) == (3,)
    assert select(exact, histogram(11, 0, 0, 10), best) == (0,)
    assert select(exact, histogram(4, 1, 5, 0), best) == (1,)
    many = ladder(*(Fraction(i, 20) for i in range(1, 20)), cells=100, amount=1e9)
    flat = histogram(*[7.0] * 100)
    assert select(many, flat, best) == tuple(5 * i - 1 for i in range(1, 20))


def test_many_equal_values_do_not_pull_quantiles_away() -> None:
    """The weight of a cell is divided where the fraction is, not given to one side."""
    of = ladder(Fraction(1, 4), HALF, Fraction(3, 4), cells=5, amount=1e9)
    assert select(of, histogram(10, 80, 5, 5, 0), best) == (1, 1, 1)
    assert select(of, histogram(26, 48, 26, 0, 0), best) == (0, 1, 2)


def test_chosen_cells_rise_with_their_fractions() -> None:
    of = ladder(*(Fraction(i, 8) for i in range(9)), cells=6, amount=1e-6)
    for _ in range(50):
        found = select(of, histogram(1, 0, 0, 5, 0, 0), choose)
        assert all(a <= b for a, b in pairwise(found))


def test_right_of_the_last_cell_nothing_is_drawn() -> None:
    draws = []

    def last(given: Weights, draw: Draw) -> int:
        draws.append(draw)
        return len(given) - 1

    assert select(ladder(*QUARTERS), histogram(1, 1, 1, 1), last) == (3, 3, 3)
    assert len(draws) == 2


def test_ends_are_kept_away_from_the_last_rows() -> None:
    of = ladder(Fraction(0), cells=50, amount=0.5)
    assert of.offset == math.ceil(2 / of.epsilon * math.log(50 * 100) * (1 + 2**-40))
    rows = histogram(*[1.0] * 50)
    assert select(of, rows, best) == (of.offset - 1,)
    top = replace(of, fractions=(Fraction(1),))
    assert select(top, rows, best) == (49 - of.offset,)  # ends where the wanted rank is
    near = replace(of, fractions=(Fraction(1, 1000),))
    assert select(near, rows, best) == (of.offset - 1,)
    assert select(near, histogram(*[1000.0 * of.offset] * 50), best) == (0,)


@pytest.mark.parametrize("amount", [0.005, 0.5, 50.0])
@pytest.mark.parametrize(("fraction", "share"), [(Fraction(1), 0.99), (Fraction(0), 0.99), (Fraction(99, 100), 0.5)])
def test_bounds_that_are_too_loose_seldom_give_what_lies_beyond_all_values(
    amount: float, fraction: Fraction, share: float
) -> None:
    """The exact chance, for bounds of which the values leave so large a share empty."""
    of = ladder(fraction, cells=1000, amount=amount)
    weights, empty = np.zeros(1000, dtype=np.int64), round(1000 * share)
    weights[empty:] = 400 * ROW_WEIGHT
    found = weights if fraction == 0 else weights[::-1].copy()
    chances = np.exp(scores(of, found, fraction) / draw_of(of, fraction).scale)
    assert chances[found == 0].sum() / chances.sum() < 0.01


def test_scores_are_exact_and_end_far_away() -> None:
    of = ladder(Fraction(1, 3))
    found = scores(of, histogram(1, 1, 1, 4), Fraction(1, 3)) / ROW_WEIGHT
    assert found.tolist() == [-4.0, -1.0, 0.0, -2.0]  # thirds of rows between [0,1], [1,2], [2,3], [3,7] and 7/3
    far = scores(of, np.array([2**58, 1, 2**58, 1], dtype=np.int64), Fraction(1, 999_983))
    assert far.min() > -(2**61)
    assert far[0] == 0


def test_the_stated_error_of_ranks_holds() -> None:
    """300 runs; the bound is exceeded by one in 20 at most, here by none."""
    for fractions in ((HALF,), (Fraction(1),), QUARTERS):
        of = ladder(*fractions, cells=1000, amount=0.02)
        rows, wrong = histogram(*[1.0] * 1000), 0
        for _ in range(100):
            for fraction, cell in zip(fractions, select(of, rows, choose), strict=True):
                wanted = 1000 - of.offset if fraction == 1 else 1000 * fraction
                wrong += abs(cell + 0.5 - wanted) > of.rank_error_up(fraction, 0.95) + 0.5
        assert wrong < 5 * len(fractions)


@pytest.mark.parametrize(
    "change",
    [
        {"fractions": ()},
        {"fractions": (HALF, HALF)},
        {"fractions": (HALF, Fraction(1, 4))},
        {"fractions": (Fraction(-1, 4),)},
        {"fractions": (Fraction(5, 4),)},
        {"fractions": (Fraction(1, 10**6 + 1),)},
        {"cells": 0},
        {"move": 0},
        {"move": MOST_MOVE + 1},
        {"groups": 0},
        {"amount": 0.0},
        {"amount": math.inf},
        {"amount": math.nan},
    ],
)
def test_impossible_facts_are_refused(change: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=r"fraction|impossible|rows|finite"):
        replace(ladder(), **change)  # type: ignore[arg-type]  # of the wrong kind on purpose


def test_odd_histograms_are_refused() -> None:
    wrong: list[Any] = [histogram(1, 2), np.zeros(4), np.array([0, 0, 0, -1], dtype=np.int64)]
    for odd in wrong:
        with pytest.raises(ValueError, match="weight"):
            select(ladder(), odd, best)
