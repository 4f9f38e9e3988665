"""Made-up values are of their column's type, and within what is declared of it."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal

import pytest

from proxy.policy.made_values import any_value, nth_value, word
from proxy.policy.model import Bounded, Column, Listed
from proxy.policy.values import read_value
from proxy.sqltypes import TYPE_NAMES, SqlType, Value

TYPES = tuple(dict.fromkeys(TYPE_NAMES.values()))
NUMBERS = (0, 1, 7, 10**6, 2**127 - 1, 2**128 - 1, *(k * 12345678901234567 for k in range(40)))


def parsed(kind: SqlType, text: str) -> Value:
    """A text as a value of the type."""
    if kind is SqlType.BOOL:
        return {"true": True, "false": False}[text]
    if kind.is_integer:
        return read_value(int(text), kind)
    if kind.is_number:
        return Decimal(text)
    return read_value(text, kind)


@pytest.mark.parametrize("kind", TYPES, ids=repr)
def test_a_column_of_which_nothing_is_declared_has_harmless_values(kind: SqlType) -> None:
    column = Column(name="city", type=kind)
    found = [any_value(column, number) for number in NUMBERS]
    assert len({parsed(kind, text) for text in found}) > 1
    if kind.is_text and kind is not SqlType.UUID:
        assert all(text.startswith("city ") for text in found)
    places = [text for place in range(300) if (text := nth_value(column, place)) is not None]
    assert len({parsed(kind, text) for text in places}) == len(places) == (2 if kind is SqlType.BOOL else 300)


BOUNDS: tuple[tuple[SqlType, Value, Value], ...] = (
    (SqlType.INT2, -3, 5), (SqlType.INT8, -(2**63), 2**63 - 1), (SqlType.INT4, 7, 7),
    (SqlType.NUMERIC, Decimal("-0.25"), 10**37), (SqlType.NUMERIC, 0, 1), (SqlType.FLOAT8, -1.7e308, 1.7e308),
    (SqlType.FLOAT8, 0.1, 0.1), (SqlType.FLOAT4, -3.4028234663852886e38, 3.4028234663852886e38),
    (SqlType.DATE, date(1, 1, 1), date(9999, 12, 31)), (SqlType.DATE, date(9999, 12, 31), date(9999, 12, 31)),
    (SqlType.TIMESTAMP, datetime(2024, 1, 1), datetime(2024, 1, 2, 23, 59, 59, 999999)),
    (SqlType.TIMESTAMP, datetime(9999, 12, 31, 23), datetime(9999, 12, 31, 23, 59)),
    (SqlType.TIMESTAMPTZ, datetime(2024, 1, 1, tzinfo=UTC), datetime(2025, 12, 31, tzinfo=UTC)),
)  # fmt: skip


@pytest.mark.parametrize("kind, lo, hi", BOUNDS)
def test_values_lie_within_their_bounds(kind: SqlType, lo: Value, hi: Value) -> None:
    column = Column(name="x", type=kind, domain=Bounded(lo, hi))
    ends = sorted([parsed(kind, word(lo)), parsed(kind, word(hi))], key=lambda v: v)
    for number in NUMBERS:
        assert ends[0] <= parsed(kind, any_value(column, number)) <= ends[1]  # type: ignore[operator]  # of one type
    places = [text for place in range(400) if (text := nth_value(column, place)) is not None]
    assert len(set(places)) == len(places)
    assert all(ends[0] <= parsed(kind, text) <= ends[1] for text in places)  # type: ignore[operator]  # of one type


def test_numbers_that_are_not_whole_are_not_told_apart_by_places() -> None:
    assert nth_value(Column(name="x", type=SqlType.FLOAT8, domain=Bounded(0.0, 9.0)), 0) is None
    assert nth_value(Column(name="x", type=SqlType.NUMERIC, domain=Bounded(0, 9)), 0) is None


def test_listed_values_are_those_that_are_listed() -> None:
    column = Column(name="x", type=SqlType.TEXT, domain=Listed(("it's", "b")))
    assert {any_value(column, n) for n in NUMBERS} == {"it's", "b"}
    assert [nth_value(column, n) for n in range(3)] == ["it's", "b", None]


def test_texts_of_a_case_blind_column_are_lower_case() -> None:
    assert any_value(Column(name="City", type=SqlType.TEXT, case_blind=True), 3) == "city 4"


@pytest.mark.parametrize("value, text", [
    (True, "true"), (1.5, "1.5"), (1e300, "1e+300"), (Decimal("1E+3"), "1000"), (date(5, 1, 2), "0005-01-02"),
    (datetime(2024, 1, 2, 3, tzinfo=UTC), "2024-01-02 03:00:00+00:00"), (-4, "-4"), ("a", "a"),
])  # fmt: skip
def test_values_are_spelled_for_postgresql(value: Value, text: str) -> None:
    assert word(value) == text
