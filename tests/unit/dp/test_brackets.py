"""Do the drawn ends of a quantile's interval cost what is charged, and hold the quantile 19 times in 20?

Laws are computed, not sampled, so that coverage is exact; that the library draws by them, `test_quantiles` samples.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from proxy.dp.brackets import brackets, draw_of_end, end_scores, reach_of
from proxy.dp.mechanisms import Distribution
from proxy.dp.quantiles import MOST_MOVE, ROW_WEIGHT, Draw, Ladder, Weights
from proxy.dp.samplers import choose
from tests.unit.dp.test_quantiles import (
    HALF,
    QUARTERS,
    Law,
    best,
    gumbel_law,
    histogram,
    ladder,
    neighbours,
    permute_and_flip_law,
    renyi,
)

FRACTIONS = (Fraction(0), Fraction(1, 100), Fraction(1, 3), HALF, Fraction(9, 10), Fraction(1))


def bracketed(*fractions: Fraction, cells: int = 4, amount: float = 0.4, move: int = 1, pure: bool = False) -> Ladder:
    return replace(ladder(*fractions, cells=cells, amount=amount, move=move, pure=pure), bracketed=fractions)


def laws(of: Ladder, found: Weights, fraction: Fraction) -> Iterator[list[float]]:
    """The laws of the two ends, of candidates in their order."""
    law = gumbel_law if of.distribution is Distribution.GAUSSIAN else permute_and_flip_law
    for away in (-reach_of(of, fraction), reach_of(of, fraction)):
        yield law(end_scores(found, fraction, away), draw_of_end(of, fraction))


@pytest.mark.parametrize("fraction", FRACTIONS)
@pytest.mark.parametrize("move", [1, 3])
def test_an_end_is_as_private_as_its_charge(fraction: Fraction, move: int) -> None:
    for amount in (0.4, 40.0):  # little noise as well, so that ends are within the data
        of = bracketed(fraction, move=move, amount=amount)
        for base, more in neighbours(move, 4):
            for left, right in zip(laws(of, base, fraction), laws(of, more, fraction), strict=True):
                pair: list[Law] = [{(i,): p for i, p in enumerate(law)} for law in (left, right)]
                for order in (1.01, 2.0, 8.0):
                    assert renyi(pair[0], pair[1], order) <= order * of.charge * (1 + 1e-9)
                    assert renyi(pair[1], pair[0], order) <= order * of.charge * (1 + 1e-9)


@pytest.mark.parametrize("fraction", FRACTIONS)
def test_a_pure_end_is_as_private_as_its_epsilon(fraction: Fraction) -> None:
    for amount in (0.8, 30.0):
        of = bracketed(fraction, amount=amount, pure=True)
        for base, more in neighbours(1, 4):
            for left, right in zip(laws(of, base, fraction), laws(of, more, fraction), strict=True):
                assert max(abs(math.log(p / q)) for p, q in zip(left, right, strict=True)) <= of.charge * (1 + 1e-9)


def test_ends_are_paid_with_the_answers() -> None:
    """Nothing below the least value nor above the largest is looked for."""
    for of, draws in (
        (bracketed(HALF), 3),
        (bracketed(Fraction(0)), 2),
        (bracketed(Fraction(1)), 2),
        (bracketed(*QUARTERS), 8),
        (replace(ladder(*QUARTERS), bracketed=(HALF,)), 4),
        (ladder(*QUARTERS), 2),
    ):
        made: list[Draw] = []

        def count(given: Weights, draw: Draw, made: list[Draw] = made) -> int:
            made.append(draw)
            return best(given, draw)

        ends = brackets(of, histogram(5, 5, 5, 5), count)
        assert len(ends) == 2 * len(of.bracketed)
        assert (len(made), of.draws) == (of.ends, draws)
        for draw in made:
            assert Fraction(draw.charge) * draws <= Fraction(of.amount)


def coverage(of: Ladder, found: Weights, fraction: Fraction) -> float:
    """How likely the two ends have the quantile between them: that of a row of PostgreSQL's percentile_disc."""
    rank = fraction * int(found.sum())
    cell = next(i for i, up_to in enumerate(np.cumsum(found)) if up_to >= rank and up_to > 0)
    low, high = laws(of, found, fraction)
    below = math.fsum(low[: cell + 2]) if fraction > 0 else 1.0  # the first candidate is below the first cell
    return below * (math.fsum(high[cell:]) if fraction < 1 else 1.0)


def gap(left: int, middle: int, right: int, cells: int = 200) -> Weights:
    """All rows in three cells with nothing between: the hardest data, since every empty cell is as near."""
    found = histogram(*[0.0] * cells)
    found[[0, cells // 2, cells - 1]] = np.array([left, middle, right]) * ROW_WEIGHT
    return found


@pytest.mark.parametrize("fraction", FRACTIONS)
def test_the_ends_hold_the_quantile_19_times_in_20(fraction: Fraction) -> None:
    """Of 95 %, at least; on easy data nearly always."""
    rows = 20_000
    around = (round(rows * fraction) - 1, 2, rows - round(rows * fraction) - 1)
    worlds = [histogram(*[100.0] * 200), histogram(*np.geomspace(1, 2000, 200)), histogram(*[0.0] * 199, 9.0)]
    worlds += [gap(*around)] if min(around) >= 0 else []
    for move in (1, 7):
        for found in worlds:
            assert coverage(bracketed(fraction, cells=200, amount=0.02, move=move), found, fraction) >= 0.95
    assert coverage(bracketed(fraction, cells=200, amount=2.0), worlds[0], fraction) > 0.99


def test_on_the_hardest_data_no_more_is_promised_than_needed() -> None:
    """Within 2 % of 95 %."""
    for move in (5, 20):
        for found in (gap(5_000, 2, 5_000), gap(5_001, 0, 5_000)):
            assert 0.95 <= coverage(bracketed(HALF, cells=200, amount=0.02, move=move), found, HALF) <= 0.97


@pytest.mark.long
def test_2000_intervals_of_the_library_hold_the_quantile() -> None:
    """2,000 draws on the hardest data, where 96.2 % of them should; fewer than 93 % in one of 10^10 runs."""
    of, found = bracketed(HALF, cells=200, amount=0.02, move=5), gap(5_000, 2, 5_000)
    held = 0
    for _ in range(2_000):
        low, high = brackets(of, found, choose)
        held += low <= 100 <= high
    assert 0.93 <= held / 2_000 < 0.99


@pytest.mark.parametrize("pure", [False, True])
@pytest.mark.parametrize("amount", [1e-9, 0.01, 30.0])
def test_the_library_grants_the_charge_of_ends(pure: bool, amount: float) -> None:
    for move in (1, MOST_MOVE):
        for fraction in (*FRACTIONS, Fraction(1, 999_983)):
            low, high = brackets(
                bracketed(fraction, amount=amount, move=move, pure=pure), histogram(1, 2, 3, 4), choose
            )
            assert -1 <= low < 4
            assert 0 <= high <= 4


def test_where_noise_is_larger_than_any_data_nothing_is_drawn() -> None:
    of = bracketed(HALF, amount=1e-30)

    def never(*_: object) -> int:
        raise AssertionError("drawn")

    assert brackets(of, histogram(1, 2, 3, 4), never) == (-1, 4)


def test_scores_of_ends_are_exact_and_end_far_away() -> None:
    third = end_scores(histogram(1, 1, 1, 4), Fraction(1, 3), -ROW_WEIGHT) / ROW_WEIGHT
    assert third.tolist() == [-4.0, -1.0, 0.0, -2.0, -5.0]  # thirds of rows from 4/3: below the data, and the cells
    up = end_scores(histogram(1, 1, 1, 4), Fraction(1, 3), 4 * ROW_WEIGHT) / ROW_WEIGHT
    assert up.tolist() == [-16.0, -13.0, -10.0, 0.0, -2.0]  # from 19/3, with what is behind the data
    for away in (-(2**40), 2**40):
        far = end_scores(np.array([2**58, 1, 2**58, 1], dtype=np.int64), Fraction(1, 999_983), away)
        assert far.min() > -(2**61)
        assert far.max() == 0


def test_ends_are_those_of_fractions() -> None:
    for wrong in ((HALF, Fraction(1, 4)), (Fraction(1, 5),), (HALF, HALF)):
        with pytest.raises(ValueError, match="ends are those of fractions"):
            replace(ladder(*QUARTERS), bracketed=wrong)
