"""Moments that follow from others, and those that do not."""

from __future__ import annotations

import pytest

from proxy.plan.reuse.expressed import Expressed, NotExpressed
from proxy.plan.vector.moments import HalfSum, Moment, QuarterSum, RowCount, ScaledSum
from proxy.plan.vector.recipes import NOTHING, Count, Linear, Mean, Measured, Relation, RelationKind, Total
from proxy.sql.algebra.nodes import TRUE, ColumnRef
from proxy.sqltypes import SqlType as T

X, Y = ColumnRef(0, "x", T.FLOAT8), ColumnRef(0, "y", T.FLOAT8)
ROWS, WITH, WITHOUT = RowCount(TRUE, TRUE), RowCount(TRUE, X), RowCount(TRUE, X, absent=True)
SUM = ScaledSum(TRUE, X, 0.0, 10.0, 0.2, 1.0)
CENTRED = ScaledSum(TRUE, X, 6.0, 4.0)
HALVES = (HalfSum(CENTRED, 1), HalfSum(CENTRED, -1))
QUARTERS = tuple(QuarterSum(CENTRED, sign) for sign in (1, -1, 0))
MEAN = Mean(Linear(((0, 1.0),)), Linear(((1, 1.0),)), 6.0, 4.0)


def known(*moments: Moment, sds: tuple[float, ...] = ()) -> Expressed:
    return Expressed(moments, sds or (1.0,) * len(moments), lambda scalar: scalar == X)


def form(of: Expressed, moment: Moment) -> dict[int, float]:
    found = of.near(Total(Linear(((0, 1.0),))), (moment,))
    assert isinstance(found, Total)
    return {i: round(c, 9) for i, c in found.value.terms}


@pytest.mark.parametrize(
    ("given", "wanted", "terms"),
    [
        ((WITH, WITHOUT), ROWS, {0: 1.0, 1: 1.0}),
        ((ROWS, WITHOUT), WITH, {0: 1.0, 1: -1.0}),
        ((ROWS, WITH), WITHOUT, {0: 1.0, 1: -1.0}),
        ((SUM, WITH), CENTRED, {0: 2.5, 1: -1.5}),
        ((CENTRED, WITH), SUM, {0: 0.4, 1: 0.6}),
        (HALVES, SUM, {0: 1.0, 1: 0.2}),
        (HALVES, WITH, {0: 1.0, 1: 1.0}),
        (QUARTERS, CENTRED, {0: 1.0, 1: -1.0}),
        (QUARTERS, WITH, {0: 1.0, 1: 1.0, 2: 1.0}),
        ((*HALVES, WITHOUT), ROWS, {0: 1.0, 1: 1.0, 2: 1.0}),
        ((SUM, ROWS, WITHOUT), HALVES[1], {0: -1.25, 1: 1.25, 2: -1.25}),
    ],
)
def test_moments_follow_from_others(given: tuple[Moment, ...], wanted: Moment, terms: dict[int, float]) -> None:
    assert form(known(*given), wanted) == terms


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ((SUM, ROWS), CENTRED),
        ((HALVES[0], WITHOUT), CENTRED),
        ((QUARTERS[0], QUARTERS[1]), WITH),
        ((ScaledSum(TRUE, X, 0.0, 10.0), WITH), CENTRED),
        ((ScaledSum(TRUE, Y, 6.0, 4.0), WITH), CENTRED),
        ((ScaledSum(TRUE, Y, 6.0, 4.0, given=X), WITH), ScaledSum(TRUE, Y, 6.0, 4.0)),
        ((RowCount(TRUE, Y, absent=True), ROWS), WITH),
        ((WITHOUT,), ROWS),
        ((WITH, SUM), QUARTERS[2]),
    ],
)
def test_others_do_not(given: tuple[Moment, ...], wanted: Moment) -> None:
    with pytest.raises(NotExpressed):
        form(known(*given), wanted)


def test_of_two_alike_the_less_noisy_is_read() -> None:
    assert form(known(ROWS, ROWS, ROWS, sds=(2.0, 1.0, 3.0)), ROWS) == {1: 1.0}


def test_an_average_is_centred_where_its_noises_are_apart() -> None:
    """Its total has the noise of its number of rows in it where it is brought to its own middle."""
    found = known(SUM, WITH).finish(MEAN, (WITH, CENTRED))
    assert isinstance(found, Mean)
    assert (found.number, found.total) == (Linear(((1, 1.0),)), Linear(((0, 1.0),)))
    assert (found.middle, found.half) == (0.0, 10.0)
    assert found.ends == pytest.approx((2.0, 10.0))
    assert known(*HALVES).finish(MEAN, (WITH, CENTRED)) == Mean(
        Linear(((0, 1.0), (1, 1.0))), Linear(((0, 1.0), (1, -1.0))), 6.0, 4.0
    )
    with pytest.raises(NotExpressed):
        known(*HALVES, sds=(1.0, 2.0)).finish(MEAN, (WITH, CENTRED))
    uneven = known(*HALVES, SUM, sds=(1.0, 2.0, 1.0)).finish(MEAN, (WITH, CENTRED))
    assert isinstance(uneven, Mean)
    assert uneven.total == Linear(((2, 1.0),))


def test_all_parts_of_a_recipe_are_read() -> None:
    of = Measured(Linear(((1, 1.0),)), NOTHING, 6.0, 4.0)
    recipe = Relation(RelationKind.COVARIANCE, Linear(((0, 1.0),)), of, of, Linear(((1, 1.0),)), is_sample=False)
    found = known(CENTRED, WITH).finish(recipe, (WITH, CENTRED))
    assert isinstance(found, Relation)
    assert (found.number, found.y.total, found.products) == tuple(Linear(((i, 1.0),)) for i in (1, 0, 0))
    assert known(CENTRED, WITH).finish(Count(Linear(((0, 1.0),))), (WITH,)) == Count(Linear(((1, 1.0),)))
