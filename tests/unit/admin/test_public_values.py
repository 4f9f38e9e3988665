"""Columns of public tables get the values that they hold, where these are few."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date

import pytest

from proxy.admin.proposing import public_values
from proxy.admin.proposing.public_values import MOST_VALUES, with_found_values
from proxy.policy.model import Bounded, Column, Listed, PublicTable, RowUnit, Table, Unknown
from proxy.sqltypes import SqlType

NAMES = ("text", "padded", "whole", "day", "exact", "declared", "hidden")
TYPES = (SqlType.TEXT, SqlType.BPCHAR, SqlType.INT8, SqlType.DATE, SqlType.NUMERIC, SqlType.INT4, SqlType.TEXT)
COLUMNS = tuple(
    Column(name=n, type=t, hidden=n == "hidden", domain=Bounded(0, 9) if n == "declared" else Unknown())
    for n, t in zip(NAMES, TYPES, strict=True)
)
DAY = date(2024, 2, 29)
FULL = ("b", "x ", 2, DAY, 1.5, 3)


def table(*columns: Column) -> Table:
    return Table(name="s", relation=("s",), ownership=PublicTable(), columns=columns or COLUMNS)


def domains(*rows: tuple[object, ...], of: Table | None = None) -> dict[str, object]:
    found = with_found_values({"s": of or table()}, lambda _: (row for row in rows))
    return {c.name: c.domain for c in found["s"].columns if c.found} if found else {}


def test_few_values_are_listed_in_order() -> None:
    found = domains(FULL, ("a", "x", 10, "2024-01-31", 2.5, 4), ("b", None, "-1", None, None, None))
    assert found == {
        "text": Listed(("a", "b")), "padded": Listed(("x",)), "whole": Listed((-1, 2, 10)),
        "day": Listed((date(2024, 1, 31), DAY)),
    }  # fmt: skip


def test_a_column_is_nullable_if_it_has_a_null() -> None:
    found = with_found_values({"s": table()}, lambda _: iter((FULL, ("a", None, 2, DAY, 1.5, 3))))["s"]
    assert {c.name: c.nullable for c in found.columns if c.found} == {
        "text": False, "padded": True, "whole": False, "day": False,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("column", "rows"),
    [
        ("text", [(str(i), "x", 1, DAY, 1, 1) for i in range(MOST_VALUES + 1)]),
        ("text", [(c * 15_000, "x", 1, DAY, 1, 1) for c in "ab"]),
        ("day", [("a", "x", 1, "infinity", 1, 1)]),
        ("text", [(None, "x", 1, DAY, 1, 1)]),
    ],
    ids=("many", "long", "endless", "none"),
)
def test_what_cannot_be_listed_stays_unknown(column: str, rows: list[tuple[object, ...]]) -> None:
    assert set(domains(*rows)) == {"text", "padded", "whole", "day"} - {column}


def test_as_many_values_as_are_listed() -> None:
    values = domains(*((i,) for i in range(MOST_VALUES)), of=table(Column(name="n", type=SqlType.INT4)))["n"]
    assert values == Listed(tuple(range(MOST_VALUES)))


def test_large_tables_are_not_looked_through_and_private_ones_never(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(public_values, "MOST_ROWS", 1)
    assert domains(FULL)
    assert domains(FULL, FULL) == {}
    private = Table(name="p", relation=("p",), ownership=RowUnit(), columns=COLUMNS)

    def rows(_: Table) -> Iterator[tuple[object, ...]]:
        raise AssertionError("no row of it may be read")

    declared = table(Column(name="declared", type=SqlType.TEXT, domain=Listed(("a",))))
    assert with_found_values({"p": private, "s": declared}, rows) == {}


def test_nothing_is_left_open_when_a_table_is_too_large() -> None:
    ended = []

    def rows(_: Table) -> Iterator[tuple[object, ...]]:
        try:
            yield from ((str(i),) for i in range(MOST_VALUES + 2))
        finally:
            ended.append(True)

    assert with_found_values({"s": table(Column(name="t", type=SqlType.TEXT))}, rows) == {}
    assert ended == [True]
