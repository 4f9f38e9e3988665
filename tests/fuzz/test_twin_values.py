"""Values that are equal and differ, or are there and are not: can a person be in two places that seem to be apart?"""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import date
from decimal import Decimal
from itertools import product
from types import MappingProxyType

import pytest

from proxy.analysis import patterns
from proxy.analysis.analyse import Lowered
from proxy.analysis.units import UniqueKeys
from proxy.plan.sql.moment_sql import MomentTerms
from proxy.policy.model import Accounting, Bounded, Column, Neighbors, Privacy, Table, UnitColumns, WrittenBound
from proxy.sqltypes import SqlType
from tests.fuzz.checks import Broken
from tests.fuzz.elsewhere import PostgresExaminer
from tests.fuzz.examine import Examiner
from tests.fuzz.planning import context_of
from tests.fuzz.worlds import Cell, Stored, World

Kinds = dict[str, tuple[SqlType, str]]
_EXAMINERS = (Examiner, PostgresExaminer)


def _world(table: Table, kinds: Kinds, rows: list[tuple[Cell, ...]], accounting: Accounting) -> World:
    """One table. kinds: of its columns, the first of which is the unit, numbered from 0."""
    delta = 1e-6 if accounting is Accounting.ZCDP else 0.0
    return World(
        seed=0, tables=MappingProxyType({"p": table}), unique=UniqueKeys(frozenset()),
        data=MappingProxyType({"p": Stored(tuple(rows), tuple(int(str(row[0])) for row in rows))}),
        engine_types=MappingProxyType({("p", name): stored for name, (_, stored) in kinds.items()}),
        privacy=Privacy(unit="unit", accounting=accounting, neighbors=Neighbors.ADD_REMOVE, group_size=1, delta=delta,
                        delta_pool=delta / 2, time_zone="UTC"),
        units=len({row[0] for row in rows}),
    )  # fmt: skip


def _columns(kinds: Kinds, bounded: dict[str, Bounded]) -> tuple[Column, ...]:
    return tuple(
        Column(name=name, type=kind, key=True) if name == "u"
        else Column(name=name, type=kind, domain=bounded[name]) if name in bounded else Column(name=name, type=kind)
        for name, (kind, _) in kinds.items()
    )  # fmt: skip


@pytest.fixture
def unexcluded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Statements leave no row out of a filter because it passes another: what is told apart has to be apart."""
    monkeypatch.setattr(MomentTerms, "_without", lambda *_: [])


_PEOPLE: Kinds = {
    "u": (SqlType.INT4, "INTEGER"), "name": (SqlType.TEXT, "VARCHAR"), "age": (SqlType.INT4, "INTEGER"),
    "f": (SqlType.FLOAT8, "DOUBLE"), "d": (SqlType.DATE, "DATE"),
}  # fmt: skip
_FAR = date(9999, 12, 31)
_SIGNS = [f"CASE WHEN name = 'ann' THEN 0.0e0 ELSE {n}.0e0 END" for n in (1, 2, 3)]
_EVERY_SIGN = ", ".join(
    "count(*) FILTER (WHERE "
    + " AND ".join(f"atan2({x}, '{'-' * is_low}0'::float8) {'> 3' if is_low else '< 3'}" for x, is_low in pairs)
    + ")"
    for pairs in (tuple(zip(_SIGNS, lows, strict=True)) for lows in product((False, True), repeat=len(_SIGNS)))
)
_APART = (
    (
        "SELECT count(*) FILTER (WHERE atan2(age::float8, '0'::float8) < 3),"
        " count(*) FILTER (WHERE atan2(age::float8, '-0'::float8) > 3) FROM p"
    ),
    f"SELECT {_EVERY_SIGN} FROM p",
    "SELECT count(*) FILTER (WHERE atan2(f, 0.0e0) < 3), count(*) FILTER (WHERE atan2(f, -0.0e0) > 3) FROM p",
    "SELECT count(*) FILTER (WHERE d::timestamp > '2024-02-29'), count(*) FILTER (WHERE d::timestamp IS NULL) FROM p",
)


@pytest.mark.parametrize("accounting", Accounting)
@pytest.mark.parametrize("of", _EXAMINERS)
@pytest.mark.usefixtures("unexcluded")
def test_filters_that_seem_apart_are(of: type[Examiner], accounting: Accounting) -> None:
    rows: list[tuple[Cell, ...]] = [
        (0, "ann", 0, 0.0, _FAR),
        (1, "bob", 40, -0.0, date(2024, 5, 5)),
        (2, "eve", 7, 1.0, None),
    ]
    table = Table(name="p", relation=("p",), ownership=UnitColumns(("u",)), rows_per_unit=WrittenBound(1),
                  unit_unique=True, columns=_columns(_PEOPLE, {"age": Bounded(0, 110)}))  # fmt: skip
    with of(_world(table, _PEOPLE, rows, accounting)) as examiner:
        for query in _APART:
            examiner.sensitivity(query, context_of(examiner.world, Lowered()))


_OVERLAPPING = (
    (
        "SELECT count(*) FILTER (WHERE age > 1), count(*) FILTER (WHERE age < 9), count(*) FILTER (WHERE f > -5),"
        " count(*) FILTER (WHERE name IS NOT NULL) FROM p"
    ),
    "SELECT count(*) FILTER (WHERE age > 1), sum(age) FILTER (WHERE f < 9), avg(age) FILTER (WHERE f > -5) FROM p",
    "SELECT " + ", ".join(f"count(*) FILTER (WHERE age > {n})" for n in range(-20, 0)) + " FROM p",
    "SELECT sum(CASE WHEN age > 1 THEN f END), variance(age) FILTER (WHERE f < 9), corr(age, f) FROM p",
)


@pytest.mark.parametrize("accounting", Accounting)
@pytest.mark.parametrize("of", _EXAMINERS)
@pytest.mark.parametrize("is_unique", [True, False])
def test_filters_that_are_taken_for_apart_count_a_row_once(
    of: type[Examiner], accounting: Accounting, is_unique: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Here any two of them are. Numbers mean something else then, and no unit moves them further than is paid for."""
    rows: list[tuple[Cell, ...]] = [(n % 7, "ann", 1 + n % 4, -0.5 * n, None) for n in range(7 if is_unique else 30)]
    table = Table(name="p", relation=("p",), ownership=UnitColumns(("u",)), rows_per_unit=WrittenBound(1),
                  unit_unique=is_unique,
                  columns=_columns(_PEOPLE, {"age": Bounded(0, 110), "f": Bounded(-20, 20)}))  # fmt: skip
    monkeypatch.setattr(patterns, "_contradict", lambda left, _ours, right, _theirs: left != right)
    monkeypatch.setattr(patterns, "_is_sure", lambda *_: False)
    with of(_world(table, _PEOPLE, rows, accounting)) as examiner:
        for query in _OVERLAPPING:
            examiner.sensitivity(query, context_of(examiner.world, Lowered()))
        monkeypatch.setattr(MomentTerms, "_without", lambda *_: [])
        for query in _OVERLAPPING:
            with pytest.raises(Broken):
                examiner.sensitivity(query, context_of(examiner.world, Lowered()))


_NUMBERS: Kinds = {
    "u": (SqlType.INT4, "INTEGER"), "x": (SqlType.NUMERIC, "DECIMAL(38,5)"), "y": (SqlType.NUMERIC, "DECIMAL(38,5)")
}  # fmt: skip
_FOUR = ", ".join(
    f"count(*) FILTER (WHERE x IS {left}NULL AND y IS {right}NULL)" for left in ("", "NOT ") for right in ("", "NOT ")
)
_THERE = (
    "SELECT count(*) FILTER (WHERE x IS NULL), count(*) FILTER (WHERE x IS NOT NULL) FROM p",
    "SELECT count(*) FILTER (WHERE x IS NULL), count(*) FILTER (WHERE x > 5) FROM p",
    "SELECT count(*) FILTER (WHERE x IS NULL), count(*) FILTER (WHERE x <> 5) FROM p",
    "SELECT count(*) FILTER (WHERE x IS NULL), count(*) FILTER (WHERE x < 5) FROM p",
    "SELECT count(*) FILTER (WHERE x IS NULL), count(*) FILTER (WHERE x > y) FROM p",
    "SELECT sum(CASE WHEN x IS NULL THEN 1 ELSE 0 END), sum(CASE WHEN x IS NOT NULL THEN 1 ELSE 0 END) FROM p",
    f"SELECT {_FOUR} FROM p",
)


@pytest.mark.parametrize("accounting", Accounting)
@pytest.mark.usefixtures("unexcluded")
def test_a_number_that_no_double_holds_is_absent_everywhere(accounting: Accounting) -> None:
    odd = (
        Decimal("NaN"),
        Decimal("Infinity"),
        Decimal("-Infinity"),
        Decimal("1e200"),
        Decimal("-1e200"),
        Decimal(7),
        None,
    )
    rows: list[tuple[Cell, ...]] = [(n, x, y) for n, (x, y) in enumerate(product(odd, odd))]
    table = Table(name="p", relation=("p",), ownership=UnitColumns(("u",)), rows_per_unit=WrittenBound(1),
                  unit_unique=True, columns=_columns(_NUMBERS, {}))  # fmt: skip
    with PostgresExaminer(_world(table, _NUMBERS, rows, accounting)) as examiner:
        for query in _THERE:
            examiner.sensitivity(query, context_of(examiner.world, Lowered()))


_MEASURES: Kinds = {
    "u": (SqlType.INT4, "INTEGER"), "k": (SqlType.INT4, "INTEGER"), "x": (SqlType.NUMERIC, "DECIMAL(12,3)"),
    "y": (SqlType.NUMERIC, "DECIMAL(38,5)"), "z": (SqlType.NUMERIC, "DECIMAL(12,3)"),
}  # fmt: skip
_OF_MEASURES = [
    f"{aggregate}{' FILTER (WHERE k > 1)' if filtered else ''}{beside}"
    for aggregate in ("sum(x)", "avg(x)", "variance(x)", "avg(y)", "variance(y)", "corr(x, z)", "regr_sxx(z, x)")
    for filtered in (False, True)
    for beside in ("", ", count(*)", ", count(*) FILTER (WHERE k > 1)")
]


@pytest.mark.parametrize("accounting", Accounting)
@pytest.mark.parametrize("low", [-100, 0])
@pytest.mark.parametrize("is_unique", [True, False])
def test_a_row_without_a_measure_has_none_of_its_moments(accounting: Accounting, low: int, is_unique: bool) -> None:
    """NULL or NaN, with a declared precision and without, and however short the statement is."""
    odd = (None, Decimal("NaN"), None, Decimal(100), Decimal(-100), Decimal(3))
    rows: list[tuple[Cell, ...]] = [
        (n if is_unique else n % 5, n % 4, x, odd[(n + 1) % 6], odd[(n + n // 6) % 6]) for n, x in enumerate(odd * 3)
    ]
    bounded = {name: Bounded(low, 100) for name in "xyz"}
    table = Table(name="p", relation=("p",), ownership=UnitColumns(("u",)), rows_per_unit=WrittenBound(1),
                  unit_unique=is_unique, columns=_columns(_MEASURES, bounded))  # fmt: skip
    with PostgresExaminer(_world(table, _MEASURES, rows, accounting)) as examiner:
        for asked in _OF_MEASURES:
            examiner.sensitivity(f"SELECT {asked} FROM p", context_of(examiner.world, Lowered()))
    tame = [tuple(None if isinstance(v, Decimal) and v.is_nan() else v for v in row) for row in rows]
    with PostgresExaminer(_world(table, _MEASURES, tame, accounting)) as examiner:
        for asked in _OF_MEASURES:
            examiner.meaning(f"SELECT {asked} FROM p", context_of(examiner.world, Lowered()))


_EVENTS: Kinds = {"u": (SqlType.INT4, "INTEGER"), "k": (SqlType.INT4, "INTEGER"), "f": (SqlType.FLOAT8, "DOUBLE")}
_ITSELF = "OVER (PARTITION BY u ORDER BY k ROWS BETWEEN CURRENT ROW AND CURRENT ROW)"
_TIES = (
    "SELECT count(*) FROM (SELECT u, lag(f) OVER (PARTITION BY u ORDER BY k) AS w FROM p) x WHERE atan2(w, -1) > 0",
    (
        "SELECT count(*) FROM (SELECT u, first_value(f) OVER (PARTITION BY u ORDER BY k) AS w FROM p) x"
        " WHERE atan2(w, -1) > 0"
    ),
    (
        "SELECT count(*) FROM (SELECT u, f, row_number() OVER (PARTITION BY u ORDER BY k) AS w FROM p) x"
        " WHERE w = 1 AND atan2(f, -1) > 0"
    ),
    (
        "SELECT count(*) FILTER (WHERE atan2(v, -1) > 0)"
        " FROM (SELECT u, first_value(w) OVER (PARTITION BY u ORDER BY g) v"
        f" FROM (SELECT u, first_value(k * 0) {_ITSELF} AS g, first_value(CASE WHEN k % 2 = 0 THEN '0'::float8"
        f" ELSE '-0'::float8 END) {_ITSELF} AS w FROM p) a) b"
    ),
)


def _events(units: int) -> Iterator[tuple[Cell, ...]]:
    rng = random.Random(units)
    rows = [
        (u, rng.randrange(2), f) for u in range(units) for f in rng.sample((0.0, -0.0, 0.0, -0.0), rng.choice((2, 3)))
    ]
    rng.shuffle(rows)
    yield from rows


@pytest.mark.parametrize("of", _EXAMINERS)
def test_a_units_values_do_not_depend_on_others_where_zeros_have_signs(of: type[Examiner]) -> None:
    table = Table(name="p", relation=("p",), ownership=UnitColumns(("u",)), rows_per_unit=WrittenBound(5),
                  columns=_columns(_EVENTS, {"k": Bounded(0, 3)}))  # fmt: skip
    for units in (6, 200):
        with of(_world(table, _EVENTS, list(_events(units)), Accounting.ZCDP)) as examiner:
            for query in _TIES:
                examiner.sensitivity(query, context_of(examiner.world, Lowered()))
