"""Into which cells are a column's values put?"""

from __future__ import annotations

import math
from datetime import UTC, date, datetime

import pytest

from proxy.plan.parts.cells import MOST_CELLS, Cells, cells_of, place_of
from proxy.policy.model import Bounded, Column, Domain, Listed, Unknown
from proxy.sqltypes import SqlType as T


def cut(kind: T, domain: Domain | None = None) -> Cells:
    return cells_of(Column(name="x", type=kind, domain=domain or Unknown()))


@pytest.mark.parametrize(
    ("kind", "domain", "values"),
    [
        (T.BOOL, Unknown(), (False, True)),
        (T.TEXT, Listed(("a", "b")), ("a", "b")),
        (T.INT4, Bounded(1, 12), tuple(range(1, 13))),
        (T.TEXT, Listed(tuple(map(str, range(65)))), ()),
        (T.TEXT, Unknown(), ()),
        (T.INT8, Bounded(5, 5), (5,)),
    ],
)
def test_cells_follow_from_what_the_policy_says_of_a_column(
    kind: T, domain: Domain, values: tuple[object, ...]
) -> None:
    cells = cut(kind, domain)
    assert cells.values == values
    assert not cells.ends
    assert cells.are_told == bool(values)
    assert cells.number == 1 + len(values)


@pytest.mark.parametrize(
    ("kind", "domain"),
    [
        (T.INT4, Bounded(1871, 2020)),
        (T.INT4, Bounded(0, 5000)),
        (T.FLOAT8, Bounded(0.0, 1000.0)),
        (T.NUMERIC, Bounded(-50, 1000)),
        (T.FLOAT8, Bounded(-1000.0, -1.0)),
        (T.FLOAT8, Bounded(-8.0, 0.0)),
        (T.DATE, Bounded(date(2019, 1, 1), date(2026, 12, 31))),
        (T.DATE, Bounded(date(2019, 1, 1), date(2019, 1, 9))),
        (T.TIMESTAMP, Bounded(datetime(2024, 1, 1), datetime(2025, 12, 31, 23, 59, 59, 999999))),
        (T.TIMESTAMPTZ, Bounded(datetime(2024, 1, 1, tzinfo=UTC), datetime(2025, 12, 31, tzinfo=UTC))),
    ],
)
def test_ranges_are_cut_in_order_from_end_to_end(kind: T, domain: Bounded) -> None:
    cells = cut(kind, domain)
    places = [place_of(end) for end in cells.ends]
    assert places == sorted(set(places))
    assert (places[0], places[-1]) == pytest.approx((place_of(domain.lo), place_of(domain.hi)))
    assert 2 <= cells.number == len(places) <= MOST_CELLS + 1
    assert cells.are_told


@pytest.mark.parametrize(
    ("kind", "domain"),
    [
        (T.FLOAT8, Bounded(3.0, 3.0)),
        (T.DATE, Bounded(date(2019, 1, 1), date(2019, 1, 1))),
        (T.TIMESTAMPTZ, Bounded(datetime(2024, 1, 1), datetime(2025, 1, 1))),
        (T.TIMESTAMPTZ, Bounded(datetime(2024, 1, 1, tzinfo=UTC), datetime(2024, 1, 1, tzinfo=UTC))),
        (T.TEXT, Bounded("a", "b")),
    ],
)
def test_ranges_that_cannot_be_cut_have_no_cells(kind: T, domain: Bounded) -> None:
    assert not cut(kind, domain).are_told


def test_each_range_has_a_value_in_it() -> None:
    for kind, domain in (
        (T.FLOAT8, Bounded(-50.0, 1000.0)),
        (T.DATE, Bounded(date(2019, 1, 1), date(2020, 1, 9))),
        (T.TIMESTAMP, Bounded(datetime(2024, 1, 1), datetime(2025, 12, 31))),
    ):
        cells = cut(kind, domain)
        places = [place_of(value) for value in cells.middles()]
        ends = [place_of(end) for end in cells.ends]
        assert all(low < p <= high for p, low, high in zip(places, ends, ends[1:], strict=False))
        assert len([*cells.sizes()]) == cells.number


def test_cells_have_words() -> None:
    assert [cut(T.TEXT, Listed(("a", "b"))).words(k) for k in range(3)] == ["NULL or other", "a", "b"]
    assert cut(T.FLOAT8, Bounded(0.0, 1000.0)).words(MOST_CELLS) == "up to 1,000"
    assert cut(T.DATE, Bounded(date(2019, 1, 1), date(2019, 1, 9))).words(1) == "up to 2019-01-02"


def test_words_have_no_place() -> None:
    assert math.isnan(place_of("a"))
