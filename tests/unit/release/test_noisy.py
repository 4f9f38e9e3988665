"""Is noise added to every coordinate once, and does nothing but noisy numbers decide what is shown?"""

from __future__ import annotations

import math
from datetime import date, datetime
from decimal import Decimal

import pytest

from proxy.analysis.keys import NULL_KEY, KeyValue
from proxy.plan.release_plan import ReleasePlan, Threshold
from proxy.release.noisy import NoisyCell, NoisyCells, publish
from proxy.release.raw import RawResult
from tests.thresholds import lowered
from tests.unit.plan.shop import context, plan
from tests.unit.release.make import Counted, Scripted


def raw(*rows: tuple[object, ...]) -> RawResult:
    return RawResult(len(rows[0]) if rows else 0, tuple(rows))


PUBLIC = "select status, count(*), sum(amount) from orders group by 1"
PRIVATE = "select city, count(*), avg(age) from users group by 1"
MIXED = "select city, plan, count(*) from users group by 1, 2"


def least(of: ReleasePlan) -> int:
    """The smallest integer count that is shown, by the definition of tau."""
    assert isinstance(of.selection, Threshold)
    weight = of.allocation.weights[of.selection.moment]
    return math.ceil(of.selection.tau * of.scale * weight)


def test_every_public_key_is_shown_once_whatever_the_engine_returns() -> None:
    of = plan(PUBLIC)
    zeros = (0,) * len(of.vector.moments)
    for rows in ([], [(0, "paid", *zeros)], [(0, "elsewhere", *zeros), (0, "refunded", *zeros)], [(0, None, *zeros)]):
        cells = publish(of, raw(*rows), Counted()).cells
        assert [c.key for c in cells] == [("paid",), ("refunded",), (NULL_KEY,)]


def test_keys_outside_the_public_domain_change_nothing() -> None:
    of = plan(PUBLIC)
    many = tuple(10**12 for _ in of.vector.moments)
    assert publish(of, raw((0, "elsewhere", *many)), Counted()) == publish(of, raw(), Counted())


def test_each_coordinate_gets_its_own_noise() -> None:
    of = plan(PUBLIC)
    noise = Counted()
    cells = publish(of, raw(), noise).cells
    shown = [m for c in cells for m in c.moments]
    assert sorted(shown) == noise.taken
    assert len(set(shown)) == len(cells) * len(of.vector.moments)


def test_noise_is_added_to_the_exact_integers() -> None:
    of = plan(PUBLIC)
    exact = tuple(1000 * (i + 1) for i in range(len(of.vector.moments)))
    quiet = {c.key: c.moments for c in publish(of, raw(), Counted()).cells}
    loud = {c.key: c.moments for c in publish(of, raw((0, "paid", *exact)), Counted()).cells}
    assert tuple(a - b for a, b in zip(loud["paid",], quiet["paid",], strict=True)) == exact
    assert loud["refunded",] == quiet["refunded",]


def test_the_order_of_engine_rows_does_not_show() -> None:
    of = plan(PRIVATE)
    assert isinstance(of.selection, Threshold)
    rows = [(0, city, *(2 * least(of) + i for _ in of.vector.moments)) for i, city in enumerate("zayb")]
    with_noise = [publish(of, raw(*order), Scripted([])) for order in (rows, rows[::-1])]
    assert with_noise[0] == with_noise[1]
    assert [c.key[0] for c in with_noise[0].cells] == ["a", "b", "y", "z"]


@pytest.mark.parametrize("noise", [0, 5, -5, 10**14, -(10**14)])
def test_a_private_key_is_shown_iff_its_noisy_count_reaches_tau(noise: int) -> None:
    of = plan(PRIVATE)
    assert isinstance(of.selection, Threshold)
    tolerance = least(of) // 2**38  # tau is rounded up a little before it is compared
    for count, expected in ((least(of) - 1 - noise, 0), (least(of) + tolerance + 1 - noise, 1)):
        moments = tuple(count if i == of.selection.moment else 7 for i in range(len(of.vector.moments)))
        assert len(publish(of, raw((0, "Paris", *moments)), Scripted([noise])).cells) == expected


def test_the_count_that_was_compared_is_the_count_that_is_shown() -> None:
    of = plan(PRIVATE)
    assert isinstance(of.selection, Threshold)
    size, chosen = len(of.vector.moments), of.selection.moment
    start = 10 * least(of)
    noise = Counted()
    (cell,) = publish(of, raw((0, "Paris", *(start,) * size)), noise).cells
    drawn = [m - start for m in cell.moments]
    assert drawn[chosen] == 1, "the first value, drawn for the comparison"
    assert len(set(drawn)) == size
    assert set(drawn) <= set(noise.taken)


def test_a_hidden_key_leaves_no_trace_but_its_draw() -> None:
    of = plan(PRIVATE)
    assert isinstance(of.selection, Threshold)
    rows = [(0, city, *(1,) * len(of.vector.moments)) for city in ("a", "b", "c")]
    noise = Counted()
    assert publish(of, raw(*rows), noise).cells == ()
    assert len(noise.taken) == len(rows)


def test_a_kept_part_is_shown_with_every_public_key() -> None:
    of = plan(MIXED)
    assert isinstance(of.selection, Threshold)
    chosen, size = of.selection.moment, len(of.vector.moments)
    cell = tuple(None if i == chosen else 50 for i in range(size))
    part = tuple(10 * least(of) if i == chosen else None for i in range(size))
    for order in (1, -1):
        rows = [(0, "Paris", "pro", *cell), (1, "Paris", None, *part), (0, "Rome", "pro", *cell)][::order]
        cells = publish(of, raw(*rows), Scripted([])).cells
        assert [c.key for c in cells] == [("Paris", "free"), ("Paris", "pro")]
        by_key = {c.key[1]: c.moments for c in cells}
        others = [i for i in range(size) if i != chosen]
        assert [by_key["free"][i] for i in others] == [0] * len(others)
        assert [by_key["pro"][i] for i in others] == [50] * len(others)
        assert by_key["free"][chosen] == by_key["pro"][chosen] == 10 * least(of)


def test_neighbouring_large_integers_are_two_keys() -> None:
    of = plan("select order_id, count(*) from orders group by 1")
    assert isinstance(of.selection, Threshold)
    size = len(of.vector.moments)
    rows = [(0, 2**53, *(10 * least(of),) * size), (0, 2**53 + 1, *(20 * least(of),) * size)]
    cells = publish(of, raw(*rows), Scripted([])).cells
    assert [(c.key[0], c.moments[0]) for c in cells] == [(2**53, 10 * least(of)), (2**53 + 1, 20 * least(of))]


def test_nan_is_one_key() -> None:
    of = plan("select weight, count(*), sum(age) from users group by 1")
    size = len(of.vector.moments)
    (cell,) = publish(of, raw((0, float("nan"), *(10**15,) * size)), Scripted([])).cells
    assert cell.moments == (10**15,) * size


def test_infinity_and_nan_stand_in_one_order_whatever_the_engines() -> None:
    of = plan("select weight, count(*) from users group by 1")
    size = len(of.vector.moments)
    rows = [(0, key, *(10**15,) * size) for key in (float("nan"), None, float("inf"), 2.0, float("-inf"))]
    forwards, backwards = (publish(of, raw(*r), Scripted([])) for r in (rows, rows[::-1]))
    assert forwards.payload() == backwards.payload()
    assert [str(c.key[0]) for c in forwards.cells[:4]] == ["-inf", "2.0", "inf", "nan"]


def test_moments_are_whole_numbers_or_the_release_fails() -> None:
    of = plan(PUBLIC)
    size = len(of.vector.moments)
    with pytest.raises(TypeError):
        publish(of, raw((0, "paid", *(1.5,) * size)), Counted())
    with pytest.raises(TypeError):
        publish(of, raw((0, object(), *(1,) * size)), Counted())
    decimals = publish(of, raw((0, "paid", *(Decimal(7),) * size)), Scripted([])).cells[0]
    assert decimals.moments == (7,) * size


def test_a_stored_release_reads_back_equal() -> None:

    keys: tuple[KeyValue, ...] = (
        NULL_KEY,
        True,
        7,
        -0.5,
        float("inf"),
        Decimal("1.50"),
        "é\x00'",
        date(2024, 2, 29),
        datetime(2024, 1, 1, 5),
    )
    cells = NoisyCells(tuple(NoisyCell((k,), (i, -(2**90))) for i, k in enumerate(keys)))
    assert NoisyCells.of_payload(cells.payload()) == cells


def test_pure_accounting_shows_all_public_keys() -> None:
    of = plan(PUBLIC, context(pure=True))
    assert len(publish(of, raw(), Counted()).cells) == 3


def test_a_lower_threshold_shows_more() -> None:
    of = plan(PRIVATE)
    lower = lowered(of, 1.0)
    row = (0, "Paris", *(least(of) // 2,) * len(of.vector.moments))
    assert publish(of, raw(row), Scripted([])).cells == ()
    assert len(publish(lower, raw(row), Scripted([])).cells) == 1
