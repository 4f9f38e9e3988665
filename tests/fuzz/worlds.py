"""Random policies with data that try to break them: twins, extremes, NULLs, ties, owners of everything.

A world is small: a handful of units, each with few rows, some with far more than the policy allows.
Every row knows its owner, so that databases of chosen units can be built physically.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from types import MappingProxyType

from proxy.analysis.units import UniqueKeys
from proxy.policy.model import (
    Accounting,
    Bounded,
    BoundSource,
    Column,
    Domain,
    JoinKey,
    Listed,
    Neighbors,
    NotGiven,
    Ownership,
    PerKey,
    Privacy,
    PublicTable,
    RowsPer,
    RowUnit,
    Table,
    UnitColumns,
    UnitVia,
    Unknown,
    WrittenBound,
)
from proxy.sql.functions.domains.intervals import number_range
from proxy.sqltypes import SqlType

Cell = None | bool | int | float | Decimal | str | date
Row = tuple[Cell, ...]
NOBODY = -1  # owner of rows without a unit: they stay whoever leaves

NOW = datetime(2024, 6, 15, 12, 30)


@dataclass(frozen=True, slots=True)
class Stored:
    """A table's rows with the owner of each."""

    rows: tuple[Row, ...]
    owners: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """A policy, its data and how many units own them."""

    seed: int
    tables: Mapping[str, Table]
    data: Mapping[str, Stored]
    engine_types: Mapping[tuple[str, str], str]
    unique: UniqueKeys
    privacy: Privacy
    units: int


def make_world(seed: int) -> World:
    """The world of a seed; equal seeds give equal worlds."""
    return _Maker(random.Random(f"world {seed}"), seed).make()


# --- columns ------------------------------------------------------------------------------------------

_TWINS = ("a", "A", "a ", " a", "é", "e\u0301", "É", "", "ß", "o'hara", '"', "{0}", "%", "_", "\\", "zz", "ab", "aB")
_INTS = (0, 1, -1, 2, 3, 5, 7, 10, 12, 100, -100)
_BIG = (2**31 - 1, -(2**31), 2**31, 2**53, 2**53 + 1, 2**62, 2**63 - 1, -(2**63), -(2**63) + 1)
_REALS = (0.0, -0.0, 0.1, 0.5, 1.5, 2.5, -2.5, 3.25, 9.75, 10.0, -10.0, 1e-300, 100.25)
_WILD_REALS = (float("nan"), float("inf"), float("-inf"), 1.7e308, -1.7e308, 5e-324, 2.0**53, 2.0**62)
_DATES = (date(2024, 1, 1), date(2024, 2, 29), date(2024, 3, 31), date(2024, 12, 31), date(2023, 12, 31))
_WILD_DATES = (date(1, 1, 1), date(9999, 12, 31), "infinity", "-infinity", "20000-01-01", "0044-03-15 (BC)")
_TIMES = (
    datetime(2024, 1, 1), datetime(2024, 2, 29, 23, 59, 59, 999999), datetime(2024, 3, 31, 1, 30),
    datetime(2024, 3, 31, 2, 30), datetime(2024, 10, 27, 0, 30), datetime(2024, 10, 27, 1, 30),
    datetime(2024, 6, 1, 12),
)  # fmt: skip
_WILD_TIMES = (datetime(1, 1, 1), datetime(9999, 12, 31, 23, 59, 59), "infinity", "-infinity", "20000-01-01 00:00:00")

_OLD = datetime(1970, 1, 1)  # calendars of time zones differ for older times


@dataclass(frozen=True, slots=True)
class Sort:
    """A kind of column: its type, how DuckDB may store it, its domains, tame and wild values."""

    type: SqlType
    engine: tuple[str, ...]
    domains: tuple[Domain, ...]
    tame: tuple[Cell, ...]
    wild: tuple[Cell, ...]


_DAYS = Bounded(date(2024, 1, 1), date(2024, 3, 31))
_MOMENTS = Bounded(datetime(2024, 1, 1), datetime(2024, 12, 31))
_TEXTS = ("VARCHAR", "VARCHAR", "VARCHAR COLLATE NOCASE")

SORTS: Mapping[str, Sort] = MappingProxyType(
    {
        "i": Sort(SqlType.INT4, ("INTEGER",), (Bounded(0, 10), Bounded(-3, 12), Unknown(), Listed((1, 2, 3))),
                  _INTS, _BIG[:2]),
        "j": Sort(SqlType.INT8, ("BIGINT",), (Unknown(), Bounded(0, 2**53), Bounded(-5, 5)), _INTS, _BIG),
        "f": Sort(SqlType.FLOAT8, ("DOUBLE",), (Bounded(0, 10), Bounded(-2.5, 2.5), Unknown(), Bounded(5, 5)),
                  _REALS, _WILD_REALS),
        "g": Sort(SqlType.FLOAT4, ("FLOAT",), (Bounded(0, 10), Unknown()), (0.5, 1.5, 2.5, 9.75), _WILD_REALS[:3]),
        "n": Sort(SqlType.NUMERIC, ("DECIMAL(12,3)", "DECIMAL(38,5)"),
                  (Bounded(0, 100), Bounded(Decimal("-1.5"), Decimal("9.25")), Unknown()),
                  (Decimal("0.1"), Decimal(3), Decimal("9.25"), Decimal("-1.5"), Decimal("0.001")),
                  (Decimal("999999999.999"), Decimal("-999999999.999"))),
        "t": Sort(SqlType.TEXT, _TEXTS, (Unknown(), Listed(("a", "A", "zz"))), _TWINS, ("\x00", "x" * 300)),
        "l": Sort(SqlType.VARCHAR, _TEXTS, (Listed(("a", "zz", "é")), Listed(("a", "b"))), ("a", "zz", "b"), _TWINS),
        "c": Sort(SqlType.BPCHAR, ("VARCHAR",), (Unknown(), Listed(("a", "zz"))), ("a", "a ", "zz", "zz  "), ("A", "")),
        "b": Sort(SqlType.BOOL, ("BOOLEAN",), (Listed((False, True)),), (True, False), (True,)),
        "d": Sort(SqlType.DATE, ("DATE",), (_DAYS, Unknown()), _DATES, _WILD_DATES),
        "s": Sort(SqlType.TIMESTAMP, ("TIMESTAMP",), (_MOMENTS, Unknown()), _TIMES, _WILD_TIMES),
        "z": Sort(SqlType.TIMESTAMPTZ, ("TIMESTAMPTZ",), (_MOMENTS, Unknown()), _TIMES, (*_WILD_TIMES[2:], _OLD)),
    }
)  # fmt: skip

_UNITS: tuple[tuple[tuple[SqlType, str, tuple[Cell, ...]], ...], ...] = (
    ((SqlType.INT4, "INTEGER", (1, 2, 3, 4, 0, -7)),),
    ((SqlType.INT8, "BIGINT", (2**53, 2**53 + 1, 2**63 - 1, -(2**63), 0, 5)),),
    ((SqlType.TEXT, "VARCHAR", ("a", "A", "a ", "é", "e\u0301", "")),),
    ((SqlType.TEXT, "VARCHAR COLLATE NOCASE", ("a", "A", "a ", "é", "É", "")),),
    ((SqlType.BPCHAR, "VARCHAR", ("a", "b", "c", "d", "e", "f")),),
    ((SqlType.INT4, "INTEGER", (1, 1, 2, 2, 3, 3)), (SqlType.TEXT, "VARCHAR", ("x", "y", "x", "y", "x", "X"))),
)


def _sum_bounds(of: str, domain: Domain) -> Bounded | Unknown:
    """Bounds of a unit's total for some columns; told by the column, so that nothing else of a world changes."""
    rng = random.Random(of)
    ends = number_range(domain) if isinstance(domain, Bounded) else None
    if ends is None or rng.random() < 0.5:
        return Unknown()
    most = max(abs(ends[0]), abs(ends[1])) * rng.choice((0.3, 1.0, 2.5))
    return Bounded(rng.choice((0.0, -most, -most / 7)), most)


class _Maker:
    def __init__(self, rng: random.Random, seed: int) -> None:
        self._rng = rng
        self._seed = seed
        self._units = rng.choice((1, 2, 3, 4, 5, 6))
        self._identity = rng.choice(_UNITS)
        self._engine: dict[tuple[str, str], str] = {}
        self._wildness = rng.choice((0.0, 0.05, 0.3))
        self._nulls = rng.choice((0.0, 0.1, 0.4))

    def make(self) -> World:
        rng = self._rng
        public = self._public()
        people = self._table("p", self._ownership("p"), unit_unique=rng.random() < 0.7)
        events = self._table("e", self._ownership("e"))
        details = self._table("d", UnitVia("e", "ref", "id"))
        rows = self._table("w", RowUnit())
        tables = {t.name: t for t in (people, events, details, rows, public)}
        data = self._data(tables)
        unique = {("e", "id")}
        codes = [r[0] for r in data["s"].rows if r[0] is not None]
        if len(set(codes)) == len(codes):
            unique.add(("s", "code"))
        return World(
            seed=self._seed, tables=MappingProxyType(tables), data=MappingProxyType(data),
            engine_types=MappingProxyType(self._engine), unique=UniqueKeys(frozenset(unique)),
            privacy=self._privacy(), units=self._units,
        )  # fmt: skip

    def _privacy(self) -> Privacy:
        rng, own = self._rng, random.Random(f"promise {self._seed}")  # apart, so that nothing else of a world changes
        pure = rng.random() < 0.3
        return Privacy(
            unit="unit",
            accounting=Accounting.PURE if pure else Accounting.ZCDP,
            neighbors=rng.choice((Neighbors.ADD_REMOVE, Neighbors.ADD_REMOVE, Neighbors.REPLACE_ONE)),
            group_size=own.choice((rng.choice((1, 1, 2)), 1, 2, 5)),
            min_units=own.choice((0, 0, 1, 3)),
            delta=0.0 if pure else 1e-6,
            delta_pool=0.0 if pure else 5e-7,
            time_zone=rng.choice(("UTC", "UTC", "Europe/Berlin", "America/New_York")),
            tell_cut=own.random() < 0.9,
        )

    # --- schema ---------------------------------------------------------------------------------------

    def _ownership(self, table: str) -> Ownership:
        for number, (_, engine, _) in enumerate(self._identity):
            self._engine[table, f"u{number}"] = engine
        return UnitColumns(tuple(f"u{i}" for i in range(len(self._identity))))

    def _public(self) -> Table:
        self._engine["s", "code"] = "INTEGER"
        self._engine["s", "region"] = "VARCHAR"
        columns = (Column(name="code", type=SqlType.INT4), Column(name="region", type=SqlType.TEXT))
        return Table(name="s", relation=("s",), ownership=PublicTable(), columns=columns)

    def _table(self, name: str, ownership: Ownership, *, unit_unique: bool = False) -> Table:
        rng = self._rng
        columns = []
        if isinstance(ownership, UnitColumns):
            columns += [Column(name=u, type=t, key=True) for u, (t, _, _) in
                        zip(ownership.columns, self._identity, strict=True)]  # fmt: skip
        if name == "e":
            columns.append(self._plain(name, "id", SqlType.INT8, "BIGINT"))
        if name == "d":
            columns.append(self._plain(name, "ref", SqlType.INT8, "BIGINT"))
        if name in ("e", "w", "p"):
            domain = rng.choice((Unknown(), Bounded(0, 3)))
            columns.append(Column(name="code", type=SqlType.INT4, domain=domain))
            self._engine[name, "code"] = "INTEGER"
        for sort in rng.sample(sorted(SORTS), rng.randint(3, 6)):
            columns.append(self._column(name, sort))
        constants = tuple(c.name for c in columns if c.name in SORTS and rng.random() < 0.15)
        return Table(
            name=name, relation=(name,), ownership=ownership, columns=tuple(columns), unit_unique=unit_unique,
            joins=(JoinKey("code", "s", "code"),) if name != "d" else (),
            rows_per_unit=WrittenBound(rng.choice((1, 2, 3, 8, 40))), rows_per_group=self._limit(),
            groups_per_unit=self._limit(), rows_per=self._rows_per(name, columns),
            keys_per_unit=rng.choice((1, 2, 3, 1000)),
            unit_filter_allowed=rng.random() < 0.2,
            unit_constant=constants if isinstance(ownership, UnitColumns) and not unit_unique else (),
        )  # fmt: skip

    def _limit(self) -> BoundSource:
        return NotGiven() if self._rng.random() < 0.3 else WrittenBound(self._rng.choice((1, 2, 3, 10)))

    def _rows_per(self, table: str, columns: list[Column]) -> tuple[RowsPer, ...]:
        """Of some columns, so narrow that many units exceed them."""
        rng = random.Random(f"rows per {self._seed} {table}")  # apart, so that nothing else of a world changes
        chosen = rng.sample(columns, rng.choice((0, 0, 1, 2)))
        return tuple(RowsPer((PerKey(c.name),), rng.choice((1, 2, 3))) for c in chosen)

    def _plain(self, table: str, name: str, kind: SqlType, engine: str) -> Column:
        self._engine[table, name] = engine
        return Column(name=name, type=kind)

    def _column(self, table: str, name: str) -> Column:
        rng, sort = self._rng, SORTS[name]
        self._engine[table, name] = rng.choice(sort.engine)
        domain = rng.choice(sort.domains)
        nullable = rng.random() < 0.6 or isinstance(domain, Unknown)
        blind = sort.type.is_text and sort.type is not SqlType.BPCHAR and rng.random() < 0.2
        return Column(
            name=name, type=sort.type, domain=domain, nullable=nullable, case_blind=blind,
            sum_bounds=_sum_bounds(f"{table} {name} {self._engine[table, name]} {nullable}", domain),
        )  # fmt: skip

    # --- data -----------------------------------------------------------------------------------------

    def _data(self, tables: Mapping[str, Table]) -> dict[str, Stored]:
        rng = self._rng
        favourite = rng.randrange(self._units) if rng.random() < 0.3 else NOBODY
        people = self._owned_rows(tables["p"], self._counts(most=1 if tables["p"].unit_unique else 3, favourite=NOBODY))
        events = self._owned_rows(tables["e"], self._counts(most=6, favourite=favourite))
        ids = [row[len(self._identity)] for row in events.rows]
        details = self._detail_rows(tables["d"], ids, events.owners)
        lonely = Stored(*self._rows(tables["w"], [(i, ()) for i in range(self._units)]))
        codes: list[Row] = [(c, rng.choice(("north", "south"))) for c in range(3)]
        if rng.random() < 0.3:
            codes.append((1, "twin"))
        codes.append((None, "nowhere"))
        return {"p": people, "e": events, "d": details, "w": lonely,
                "s": Stored(tuple(codes), (NOBODY,) * len(codes))}  # fmt: skip

    def _counts(self, *, most: int, favourite: int) -> list[tuple[int, tuple[Cell, ...]]]:
        """(owner, unit) of each row to make; rows of NULL units belong to nobody."""
        rng = self._rng
        wanted: list[tuple[int, tuple[Cell, ...]]] = []
        if rng.random() < 0.05:
            return wanted  # an empty table
        for owner in range(self._units):
            unit = tuple(values[owner] for _, _, values in self._identity)
            count = rng.choice((0, 1, 1, most, most))
            if owner == favourite:
                count = 4 * most
            wanted += [(owner, unit)] * count
        for _ in range(rng.choice((0, 0, 1, 2))):
            part = rng.randrange(len(self._identity))
            unit = tuple(None if i == part else values[0] for i, (_, _, values) in enumerate(self._identity))
            wanted.append((NOBODY, unit))
        rng.shuffle(wanted)
        return wanted

    def _owned_rows(self, table: Table, wanted: list[tuple[int, tuple[Cell, ...]]]) -> Stored:
        return Stored(*self._rows(table, wanted))

    def _rows(
        self, table: Table, wanted: list[tuple[int, tuple[Cell, ...]]]
    ) -> tuple[tuple[Row, ...], tuple[int, ...]]:
        rng = self._rng
        ids = iter(rng.sample(range(1000), len(wanted)))
        names = [c.name for c in table.columns][len(self._identity) if table.name in "pe" else 0 :]
        rows: list[Row] = []
        for _, unit in wanted:
            if rows and rng.random() < 0.15:
                copy = dict(zip([c.name for c in table.columns], rng.choice(rows), strict=True))
            else:
                copy = {name: self._value(table, name) for name in names}
            if table.name == "e":
                copy["id"] = next(ids) if rng.random() < 0.95 else None
            rows.append((*unit, *(copy[name] for name in names)))
        return tuple(rows), tuple(owner for owner, _ in wanted)

    def _detail_rows(self, table: Table, ids: list[Cell], owners: tuple[int, ...]) -> Stored:
        rng = self._rng
        owner_of: dict[Cell, int] = {i: o for i, o in zip(ids, owners, strict=True) if i is not None}
        choices: list[Cell] = [*owner_of, 5000, None]
        rows: list[Row] = []
        for _ in range(rng.choice((0, 3, 12, 30))):
            row = {c.name: self._value(table, c.name) for c in table.columns}
            row["ref"] = rng.choice(choices)
            rows.append(tuple(row.values()))
        return Stored(tuple(rows), tuple(owner_of.get(r[0], NOBODY) for r in rows))

    def _value(self, table: Table, name: str) -> Cell:
        rng = self._rng
        if name == "code":
            return rng.choice((0, 1, 2, 3, None))
        if name not in SORTS:
            return 0
        sort = SORTS[name]
        if rng.random() < self._nulls:
            return None
        if rng.random() < self._wildness:
            return rng.choice(sort.wild)
        column = table.column(name)
        if column is not None and rng.random() < 0.3:
            return self._edge(column, sort)
        return rng.choice(sort.tame)

    def _edge(self, column: Column, sort: Sort) -> Cell:
        match column.domain:
            case Bounded(lo, hi):
                return self._rng.choice((lo, hi))
            case Listed(values):
                return self._rng.choice(values)
            case _:
                return self._rng.choice(sort.tame)
