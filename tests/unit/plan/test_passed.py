"""Which share of a cell's values passes a condition?"""

from __future__ import annotations

from datetime import date

import numpy as np
import pytest

from proxy.plan.parts.cells import Cells, cells_of
from proxy.plan.profile.passed import passed
from proxy.policy.model import Bounded, Column, Listed
from proxy.sql.algebra.nodes import Call, ColumnRef, Literal, Member, Scalar, conjunction, is_null, is_present
from proxy.sqltypes import SqlType as T
from proxy.sqltypes import Value

STATUS = Column(name="x", type=T.TEXT, domain=Listed(("paid", "open", "refunded")))
AMOUNT = Column(name="x", type=T.FLOAT8, domain=Bounded(1.0, 65.0))
YEAR = Column(name="x", type=T.INT4, domain=Bounded(1, 128))
DAY = Column(name="x", type=T.DATE, domain=Bounded(date(2024, 1, 1), date(2024, 12, 31)))


def about(column: Column, *conditions: Scalar) -> list[float] | None:
    found = passed(conjunction(conditions), ColumnRef(0, "x", column.type), cells_of(column))
    return None if found is None else [round(float(x), 6) for x in found]


def compare(name: str, column: Column, value: Value, *, mirrored: bool = False) -> Scalar:
    args = (ColumnRef(0, "x", column.type), Literal(value, column.type))
    return Call(name, args[::-1] if mirrored else args, T.BOOL)


def test_listed_values_pass_or_do_not() -> None:
    x = ColumnRef(0, "x", T.TEXT)
    assert about(STATUS, compare("=", STATUS, "paid")) == [0, 1, 0, 0]
    assert about(STATUS, compare("<>", STATUS, "paid")) == [0, 0, 1, 1]
    assert about(STATUS, Member(x, (Literal("open", T.TEXT), Literal("paid", T.TEXT)))) == [0, 1, 1, 0]
    assert about(STATUS, is_null(x)) == [1, 0, 0, 0]
    assert about(STATUS, is_present(x)) == [0, 1, 1, 1]
    either = Call("or", (compare("=", STATUS, "open"), is_null(x)), T.BOOL)
    assert about(STATUS, either) == [1, 0, 1, 0]
    assert about(STATUS, compare("=", STATUS, "elsewhere")) == [0, 0, 0, 0]


def test_truth_values() -> None:
    column = Column(name="x", type=T.BOOL)
    x = ColumnRef(0, "x", T.BOOL)
    assert about(column, x) == [0, 0, 1]
    assert about(column, Call("not", (x,), T.BOOL)) == [0, 1, 0]


def test_of_ranges_a_part_of_a_cell_passes() -> None:
    assert cells_of(AMOUNT).ends[:3] == (1.0, 2.0, 3.0)
    found = about(AMOUNT, compare(">", AMOUNT, 2.25), compare("<=", AMOUNT, 2.5))
    assert found is not None
    assert (found[:4], sum(found)) == ([0, 0, 0.25, 0], 0.25)
    for one, other in ((("<", False), (">", True)), (("<=", False), (">=", True))):
        pair = [about(AMOUNT, compare(name, AMOUNT, 10.5, mirrored=m)) for name, m in (one, other)]
        assert pair[0] == pair[1]
        assert sum(pair[0] or ()) == 9.5


def test_what_one_value_of_a_range_has_may_be_all_of_its_cell() -> None:
    equal, other = (about(AMOUNT, compare(name, AMOUNT, 2.5)) for name in ("=", "<>"))
    assert equal is not None
    assert other is not None
    assert (sum(equal), sum(other)) == (1.0, 64.0)


@pytest.mark.parametrize(
    ("name", "value", "numbers"),
    [
        ("=", 7, 1),
        ("<>", 7, 127),
        ("<", 7, 6),
        ("<=", 7, 7),
        (">", 7, 121),
        (">=", 7, 122),
        ("<", 7.5, 7),
        ("=", 500, 0),
    ],
)
def test_whole_numbers_are_counted(name: str, value: Value, numbers: int) -> None:
    found = passed(compare(name, YEAR, value), ColumnRef(0, "x", T.INT4), cells_of(YEAR))
    assert found is not None
    ends = np.array(cells_of(YEAR).ends, dtype=float)
    of = np.diff(np.floor(np.concatenate(([0.0], ends[1:]))))
    assert float(found[1:] @ of) == pytest.approx(numbers)
    assert found[0] == 0


def test_days_are_counted() -> None:
    january = about(DAY, compare(">=", DAY, date(2024, 1, 1)), compare("<", DAY, date(2024, 2, 1)))
    assert january is not None
    assert sum(january) == pytest.approx(31 / 366 * 64, rel=0.05)


def test_or_and_not_and_in_are_understood_of_ranges() -> None:
    x = ColumnRef(0, "x", T.FLOAT8)
    either = Call("or", (compare("<", AMOUNT, 5.0), compare(">", AMOUNT, 61.0)), T.BOOL)
    assert sum(about(AMOUNT, either) or ()) == 8
    assert sum(about(AMOUNT, Call("not", (either,), T.BOOL)) or ()) == 56
    assert sum(about(AMOUNT, Member(x, (Literal(2.5, T.FLOAT8), Literal(9.5, T.FLOAT8)))) or ()) == 2
    assert about(AMOUNT, is_null(x)) == [1, *([0] * 64)]
    assert sum(about(AMOUNT, is_present(x)) or ()) == 64
    assert sum(about(AMOUNT) or ()) == 65, "without a condition all pass"


def test_elsewhere_the_middle_of_a_cell_counts_for_all() -> None:
    x = ColumnRef(0, "x", T.DATE)
    month = Call("date_trunc month", (x,), T.TIMESTAMP)
    condition = Call("=", (month, Literal(date(2024, 3, 1), T.DATE)), T.BOOL)
    found = about(DAY, condition)
    assert found is not None
    assert 4 <= sum(found) <= 7


@pytest.mark.parametrize(
    "condition",
    [
        Call("=", (Call("sqrt", (ColumnRef(0, "x", T.FLOAT8),), T.FLOAT8), Literal(1.0, T.FLOAT8)), T.BOOL),
        Call("<", (ColumnRef(0, "x", T.FLOAT8), ColumnRef(0, "y", T.FLOAT8)), T.BOOL),
    ],
)
def test_what_cannot_be_told_is_not_guessed(condition: Scalar) -> None:
    assert about(AMOUNT, condition) is None
    assert passed(condition, ColumnRef(0, "x", T.TEXT), Cells(values=("a",))) is None


def test_a_part_that_is_not_understood_leaves_the_middles() -> None:
    x = ColumnRef(0, "x", T.FLOAT8)
    root = Call("=", (Call("sqrt", (x,), T.FLOAT8), Literal(1.0, T.FLOAT8)), T.BOOL)
    assert about(AMOUNT, compare("<", AMOUNT, 5.0), root) == [0, *([1] * 4), *([0] * 60)]
    assert sum(about(AMOUNT, compare("<", AMOUNT, float("nan"))) or ()) == 64, "what may pass counts"


def test_long_lists_are_not_looked_at() -> None:
    items = tuple(Literal(str(k), T.TEXT) for k in range(65))
    assert about(STATUS, Member(ColumnRef(0, "x", T.TEXT), items[:64])) == [0, 0, 0, 0]
    assert about(STATUS, Member(ColumnRef(0, "x", T.TEXT), items)) is None
