"""Tables whose totals agree: against least squares by the book, and by what whole numbers must keep."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from proxy.dp.margins import MOST_EXACT, MarginKeys, MarginTable, agreed_sds, agreeing, descent, margin, settle

SIZES = {0: 3, 1: 2, 2: 4}
CUBE = [(), (0,), (1,), (2,), (0, 1), (0, 2), (1, 2), (0, 1, 2)]
ORDERED = [
    [(), (0,), (0, 1)],
    [(0,), (1,)],
    [(), (0,), (1,), (0, 1)],
    [(0, 1), (2,), (1,)],
    CUBE,
    [(2,)],
    [()],
]
UNORDERED = [[(0, 1), (1, 2), (0,), (1,), (2,)], [(0,), (1,), (2,), (0, 1), (0, 2)]]
SETS = [*ORDERED, *UNORDERED, [(0, 1), (1, 2), (0, 2)]]


def shape(keys: MarginKeys, places: int = 1) -> tuple[int, ...]:
    return (places, *(SIZES[k] for k in keys))


def drawn(sets: list[MarginKeys], *, around: float, places: int = 1) -> dict[MarginKeys, MarginTable]:
    rng = np.random.default_rng(len(sets))
    return {s: rng.normal(around, 10, shape(s, places)) for s in sets}


def by_the_book(tables: dict[MarginKeys, MarginTable], sds: dict[MarginKeys, float]) -> dict[MarginKeys, MarginTable]:
    """Least squares over the whole table, one equation for each cell."""
    rows, values = [], []
    for keys, table in tables.items():
        for cell in product(*(range(SIZES[k]) for k in keys)):
            chosen = np.zeros([SIZES[k] for k in SIZES])
            fixed = dict(zip(keys, cell, strict=True))
            chosen[tuple(fixed.get(k, slice(None)) for k in SIZES)] = 1.0
            rows.append(chosen.ravel() / sds[keys])
            values.append(table[(0, *cell)] / sds[keys])
    whole = np.linalg.lstsq(np.array(rows), np.array(values), rcond=None)[0]
    return {keys: margin(whole.reshape(shape((0, 1, 2))), (0, 1, 2), keys) for keys in tables}


@pytest.mark.parametrize("sets", SETS, ids=str)
def test_tables_are_brought_together_by_least_squares(sets: list[MarginKeys]) -> None:
    tables = drawn(sets, around=20)
    sds = {s: 1.5 ** (i % 3) for i, s in enumerate(sets)}
    found, expected = agreeing(tables, sds), by_the_book(tables, sds)
    for keys in sets:
        assert np.allclose(found[keys], expected[keys], rtol=0, atol=1e-9), keys


@pytest.mark.parametrize("sets", SETS, ids=str)
def test_the_noise_of_tables_that_agree_is_what_comes_through(sets: list[MarginKeys]) -> None:
    """Each noise by itself: a cell of what agrees is a sum of them with fixed factors."""
    sds = {s: 3.0 + 2.0 * n for n, s in enumerate(sets)}
    nothing = {s: np.zeros(shape(s)) for s in sets}
    variances = {s: np.zeros(shape(s)) for s in sets}
    for keys in sets:
        for cell in product(*(range(SIZES[k]) for k in keys)):
            noise = {**nothing, keys: np.zeros(shape(keys))}
            noise[keys][(0, *cell)] = sds[keys]
            for s, table in agreeing(noise, sds).items():
                variances[s] += table**2
    for s, sd in agreed_sds(nothing, sds).items():
        assert np.sqrt(variances[s]) == pytest.approx(sd)
        assert sd <= sds[s] * (1 + 1e-9)


def test_tables_that_agree_stay_and_each_place_is_on_its_own() -> None:
    whole = np.random.default_rng(1).normal(5, 3, shape((0, 1, 2), 2))
    tables = {s: margin(whole, (0, 1, 2), s) for s in CUBE}
    assert all(np.allclose(f, tables[s]) for s, f in agreeing(tables, dict.fromkeys(CUBE, 2.0)).items())
    moved = {s: t + np.array([0.0, 7.0]).reshape(2, *([1] * len(s))) for s, t in tables.items()}
    found = agreeing(moved, dict.fromkeys(CUBE, 2.0))
    assert all(np.allclose(found[s][0], tables[s][0]) for s in CUBE)
    assert not np.allclose(found[()][1], tables[()][1])


def test_a_total_gains_from_its_parts_and_loses_nothing() -> None:
    """Ten parts with the noise of their total: its variance becomes 10/11, theirs 1 - 1/11 of what it was."""
    rng = np.random.default_rng(5)
    tables = {(): rng.normal(0, 1, (200_000,)), (0,): rng.normal(0, 1, (200_000, 10))}
    found = agreeing(tables, {(): 1.0, (0,): 1.0})
    assert found[()].var() == pytest.approx(10 / 11, rel=0.02)  # 8 deviations of the sample's
    assert found[(0,)].var() == pytest.approx(10 / 11, rel=0.02)
    uneven = agreeing(tables, {(): 1.0, (0,): 1e-6})
    assert np.allclose(uneven[()], tables[(0,)].sum(axis=1), atol=1e-6)


@pytest.mark.parametrize("is_nonnegative", [True, False])
@pytest.mark.parametrize("sets", ORDERED, ids=str)
def test_whole_numbers_add_up(sets: list[MarginKeys], is_nonnegative: bool) -> None:
    tables = agreeing(drawn(sets, around=2, places=3), dict.fromkeys(sets, 1.0))
    found = settle(tables, nonnegative=is_nonnegative)
    assert found is not None
    for keys in sets:
        assert found[keys].shape == tables[keys].shape
        assert np.array_equal(found[keys], np.rint(found[keys]))
        assert not is_nonnegative or found[keys].min() >= 0
    for keys, other in product(sets, sets):
        if set(keys) <= set(other):
            assert np.array_equal(margin(found[other], other, keys), found[keys]), (keys, other)
    if not is_nonnegative:
        largest = max(sets, key=len)
        assert np.abs(found[largest] - tables[largest]).max() < 2


def test_whole_numbers_are_near() -> None:
    """A total of 10 keeps its parts; one of -3 has none, and one that is a little off moves each part alike."""
    tables = {(): np.array([10.2, -3.0, 9.9]), (0,): np.array([[7.1, 4.2, -1.1], [1.0, 1.0, -5.0], [3.3, 3.3, 3.3]])}
    found = settle(tables, nonnegative=True)
    assert found is not None
    assert found[()].tolist() == [10, 0, 10]
    assert found[(0,)].tolist() == [[6, 4, 0], [0, 0, 0], [4, 3, 3]]


@pytest.mark.parametrize("sets", ORDERED, ids=str)
def test_numbers_that_are_not_whole_add_up(sets: list[MarginKeys]) -> None:
    tables = agreeing(drawn(sets, around=2, places=3), dict.fromkeys(sets, 1.0))
    found = settle(tables, nonnegative=True, whole=False)
    assert found is not None
    assert all(table.min() >= 0 for table in found.values())
    for keys, other in product(sets, sets):
        if set(keys) <= set(other):
            assert np.allclose(margin(found[other], other, keys), found[keys], rtol=0, atol=1e-9), (keys, other)
    far = {keys: table + 1000.0 for keys, table in tables.items() if keys == max(sets, key=len)}
    left = settle(far, nonnegative=True, whole=False)
    assert left is not None
    assert all(np.allclose(left[keys], far[keys]) for keys in far), "what is admissible stays"


@pytest.mark.parametrize("sets", UNORDERED, ids=str)
def test_some_sets_have_no_order(sets: list[MarginKeys]) -> None:
    assert descent(sets) is None
    assert settle(agreeing(drawn(sets, around=2), dict.fromkeys(sets, 1.0)), nonnegative=True) is None


def test_numbers_too_large_for_fractions_are_left() -> None:
    assert settle({(): np.array([2 * MOST_EXACT])}, nonnegative=True) is None
