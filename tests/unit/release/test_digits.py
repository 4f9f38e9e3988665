"""Numbers end at the second digit of their noise, in every type, and totals are the sums of their parts still."""

from __future__ import annotations

import math

import pytest

from proxy.release.digits import decimal_text, last_digit, rounded, rounded_up, with_digits
from proxy.release.figure import Figure
from proxy.release.finish import Release, finish
from proxy.release.noisy import NoisyCell, NoisyCells
from proxy.release.sets import finish_plan
from proxy.sqltypes import SqlType
from tests.unit.release.make import planned
from tests.unit.release.test_sets import both, published


@pytest.mark.parametrize(
    ("sd", "place"),
    [(1700.0, -2), (99.0, 0), (100.0, -1), (12.0, 0), (1.0, 1), (0.034, 3), (1e-20, 12), (1e300, -299)],
)
def test_the_last_digit_is_the_second_of_the_noise(sd: float, place: int) -> None:
    assert last_digit(sd) == place
    assert round(sd, place) == pytest.approx(sd, rel=0.05) or place == 12


@pytest.mark.parametrize("sd", [0.0, math.inf, math.nan])
def test_what_has_no_known_noise_keeps_all_digits(sd: float) -> None:
    assert last_digit(sd) is None
    assert rounded(Figure(1 / 3, sd, 0.0, 1.0)).value == 1 / 3
    assert rounded_up(1 / 3, None) == 1 / 3


@pytest.mark.parametrize(("sd", "place"), [(1700.0, 0), (12.0, 1), (0.034, 4), (1e-20, 12)])
def test_unrounded_numbers_have_one_digit_more_and_all_before_the_point(sd: float, place: int) -> None:
    assert last_digit(sd, is_rounded=False) == place


def test_rounding_adds_less_than_a_thousandth_to_the_noise() -> None:
    """An error evenly spread over a step has its square over 12: at most (sd / 10)^2 / 12 beside sd^2."""
    for sd in (1.0, 3.0, 9.99, 10.0, 470.0):
        place = last_digit(sd)
        assert place is not None
        assert math.hypot(sd, 10.0**-place / math.sqrt(12)) < 1.001 * sd


@pytest.mark.parametrize(
    ("value", "place", "expected"),
    [(49_352.0, -2, 49_400.0), (-3.0, -1, 0.0), (math.inf, -2, math.inf), (0.12345, 3, 0.123), (7.0, None, 7.0)],
)
def test_numbers_are_rounded_to_the_nearest(value: float, place: int | None, expected: float) -> None:
    found = with_digits(value, place)
    assert (found, math.copysign(1.0, found)) == (expected, math.copysign(1.0, expected))


@pytest.mark.parametrize(
    ("value", "place", "is_rounded", "text"),
    [
        (12.25, 1, False, "12.2"),
        (12.2, 1, True, "12.2"),
        (49_400.0, -2, True, "49400"),
        (0.07, 1, True, "0.07"),
        (12.5, None, True, "12.500000"),
        (1e20, -2, True, "100000000000000000000"),
    ],
)
def test_decimals_are_written_out(value: float, place: int | None, is_rounded: bool, text: str) -> None:
    assert decimal_text(value, place, is_rounded=is_rounded) == text


def _shown(query: str, moments: tuple[float, ...], *, is_rounded: bool = True) -> list[str | None]:
    plan, bound = planned(query)
    cell = NoisyCell((), tuple(round(m / u) for m, u in zip(moments, plan.units_per_grid, strict=True)))
    release = finish(plan, NoisyCells((cell,)), bound.columns, nonnegative=True, time_zone="UTC", is_rounded=is_rounded)
    return [c.values[0] for c in release.columns]


_OF_ONE = "select sum(amount), hush.sd(sum(amount)), hush.low(sum(amount)), hush.high(sum(amount)) from orders"


def test_an_answer_has_the_digits_of_its_interval() -> None:
    value, sd, low, high = (float(v or "nan") for v in _shown(_OF_ONE, (123.456789,)))
    place = last_digit(sd)
    assert place is not None
    assert place < 0, "this sum has a noise of more than 100"
    assert [v == round(v, place) for v in (value, low, high)] == [True] * 3
    assert low <= value <= high
    raw, _, exact_low, exact_high = (float(v or "nan") for v in _shown(_OF_ONE, (123.456789,), is_rounded=False))
    assert raw != round(raw, place)
    assert low <= exact_low <= exact_high <= high
    assert abs(value - raw) <= 10.0**-place / 2


def test_parts_add_up_to_their_total_in_rounded_numbers_too() -> None:
    plan, block = both("SELECT plan, count(*), sum(height) FROM users GROUP BY ROLLUP (plan)")
    cells = published(plan, [(0, 3_333)], [(0, "free", 1_234), (0, "pro", 2_111)])
    release: Release = finish_plan(
        plan, cells, block.columns, is_consistent=True, nonnegative=True, time_zone="UTC", is_rounded=True
    )
    for column in release.columns[1:]:
        *parts, total = (float(v or "nan") for v in column.values)
        assert math.fsum(parts) == pytest.approx(total, rel=1e-12)
    sums = next(c for c in release.columns if c.column.type is not SqlType.INT8 and c.column.number == 1)
    assert all(float(v or "nan") == round(float(v or "nan"), 0) for v in sums.values), "their noise is above 10"
