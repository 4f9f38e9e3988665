"""Does noise reach what is computed as the derivative says?"""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest

from proxy.dp.estimate import Estimate

STEP = 1e-6

FORMULAS: tuple[Callable[[Estimate, Estimate], Estimate], ...] = (
    lambda a, b: a.plus(b),
    lambda a, b: a.plus(b, -2.5),
    lambda a, _: a.plus_constant(4.0),
    lambda _, b: b.scaled(-3.0),
    lambda a, b: a.times(b),
    lambda a, b: a.over(b),
    lambda a, b: b.over(a.plus_constant(-1.0)),
    lambda a, _: a.root(),
    lambda a, b: a.times(a).plus(b.times(b)).root().over(a),
)


def numbers(a: float, b: float) -> tuple[Estimate, Estimate]:
    return Estimate(a, (1.0, 0.0)), Estimate(b, (0.0, 1.0))


@pytest.mark.parametrize("formula", FORMULAS)
def test_slopes_are_the_derivatives(formula: Callable[[Estimate, Estimate], Estimate]) -> None:
    found = formula(*numbers(3.0, -2.0))
    for place, (a, b) in enumerate(((STEP, 0.0), (0.0, STEP))):
        above, below = formula(*numbers(3.0 + a, -2.0 + b)), formula(*numbers(3.0 - a, -2.0 - b))
        assert found.slopes[place] == pytest.approx((above.value - below.value) / (2 * STEP), abs=1e-6)


def test_independent_noises_add_in_squares() -> None:
    a, b = numbers(3.0, -2.0)
    assert a.plus(b, 2.0).sd((0.3, 0.2)) == pytest.approx(0.5)
    assert a.plus(a, -1.0).sd((0.3, 0.2)) == 0.0
    assert a.times(b).sd((0.1, 0.1)) == pytest.approx(0.1 * math.sqrt(13))


@pytest.mark.parametrize("value", [0.0, -1.0, math.nan])
def test_only_positive_numbers_have_a_root(value: float) -> None:
    with pytest.raises(ValueError, match="positive"):
        Estimate(value, ()).root()


def test_nothing_is_divided_by_zero() -> None:
    with pytest.raises(ZeroDivisionError):
        Estimate(1.0, ()).over(Estimate(0.0, ()))
