"""Worlds whose bounds are met exactly, and from the other side: what random worlds seldom hold.

Units that are in every listed group and in that of NULL, where the policy allows as many groups as are listed; sums
whose longer end lies below 0, or both; units that sit at these ends, some groups of theirs at one, some at the other.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from types import MappingProxyType

from proxy.policy.model import Bounded, Column, Domain, Listed, Unknown, WrittenBound
from proxy.sqltypes import SqlType
from tests.fuzz.worlds import NOBODY, Cell, Row, Stored, World, make_world

AGGREGATES = (
    "count(*)", "sum(f)", "sum(n)", "count(f)", "avg(f)", "sum(f) filter (where n < 0)", "count(distinct {unit})",
    "count(distinct {unit}) filter (where f < 0)", "sum(abs(f))", "sum(-n)",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Key:
    """A column with few listed values."""

    name: str
    type: SqlType
    engine: str
    values: tuple[Cell, ...]


_KEYS = (
    _Key("k", SqlType.TEXT, "VARCHAR", ("a", "b", "zz")),
    _Key("k", SqlType.BOOL, "BOOLEAN", (False, True)),
    _Key("k", SqlType.INT4, "INTEGER", (1, 2, 3, 4)),
)
#: Of a value, and of a unit's sum of them: the longer end is the lower one, or there is no other.
_ENDS: tuple[tuple[tuple[float, float], tuple[float, float]], ...] = (
    ((-50.0, 2.0), (-500.0, 20.0)), ((-50.0, -10.0), (-120.0, -10.0)), ((-8.0, 8.0), (-9.0, 3.0)),
    ((-1.0, 10.0), (-2.0, 15.0)), ((0.0, 10.0), (0.0, 12.0)),
)  # fmt: skip


def make_edge_world(seed: int) -> World:
    """A world of that seed whose table `e` is at the edges of its bounds; equal seeds give equal worlds."""
    world, rng = make_world(seed), random.Random(f"edge {seed}")
    key = rng.choice(_KEYS)
    units = [c for c in world.tables["e"].columns if c.key]
    columns = (*units, _key_column(key, rng), _measure("f", SqlType.FLOAT8, rng), _measure("n", SqlType.NUMERIC, rng))
    table = replace(
        world.tables["e"], columns=columns, joins=(), unit_constant=(), rows_per=(),
        keys_per_unit=rng.choice((2, 1000)), rows_per_unit=WrittenBound(rng.choice((2, 8, 40))),
        rows_per_group=WrittenBound(rng.choice((1, 1, 2))), groups_per_unit=WrittenBound(len(key.values)),
    )  # fmt: skip
    engine = {("e", key.name): key.engine, ("e", "f"): "DOUBLE", ("e", "n"): "DECIMAL(12,3)"}
    kept = {place: how for place, how in world.engine_types.items() if place[0] != "e" or place[1].startswith("u")}
    return replace(
        world, tables=MappingProxyType({**world.tables, "e": table}), unique=replace(world.unique, columns=frozenset()),
        engine_types=MappingProxyType({**kept, **engine}),
        data=MappingProxyType({**world.data, "e": _rows(world, key, columns, rng), "d": Stored((), ())}),
    )  # fmt: skip


def make_edge_query(world: World, rng: random.Random) -> str:
    """A query of the table at the edges."""
    unit = world.tables["e"].columns[0].name
    aggregates = rng.sample(AGGREGATES, rng.choice((1, 1, 1, 2, 3)))
    chosen = ", ".join(f"{a.format(unit=unit)} as a{i}" for i, a in enumerate(aggregates))
    where = rng.choice(("", "", " where f < 5", " where k is not null", " where n <> 0"))
    if rng.random() < 0.35:
        return f"select {chosen} from e{where}"
    return f"select k, {chosen} from e{where} group by k"


def _key_column(key: _Key, rng: random.Random) -> Column:
    values = tuple(v for v in key.values if v is not None and not isinstance(v, float))
    domain: Domain = Listed(values)
    if key.type is SqlType.INT4 and rng.random() < 0.5:
        domain = Bounded(1, len(values))
    return Column(name=key.name, type=key.type, domain=domain, nullable=rng.random() < 0.85)


def _measure(name: str, kind: SqlType, rng: random.Random) -> Column:
    of_row, of_unit = rng.choice(_ENDS)
    sums = Bounded(*of_unit) if rng.random() < 0.8 else Unknown()
    return Column(name=name, type=kind, domain=Bounded(*of_row), nullable=rng.random() < 0.5, sum_bounds=sums)


def _rows(world: World, key: _Key, columns: tuple[Column, ...], rng: random.Random) -> Stored:
    """Each unit is in all groups or in some, with one row or several; some rows are nobody's."""
    units = _units_of(world)
    rows: list[Row] = []
    owners: list[int] = []
    for owner in range(world.units):
        unit = units.get(owner)
        if unit is None:
            continue
        groups: tuple[Cell, ...] = (*key.values, None)
        if rng.random() < 0.4:
            groups = tuple(g for g in groups if rng.random() < 0.6)
        ends = rng.choice((("low",), ("high",), ("low", "high"), ("low", "high", "any")))
        for group in groups:
            for _ in range(rng.choice((1, 1, 1, 2, 5))):
                rows.append((*unit, group, *(_value(c, rng.choice(ends), rng) for c in columns[-2:])))
                owners.append(owner)
    nobody = (*(None for c in columns if c.key), None, 1.0, Decimal(1))
    return Stored((*rows, nobody), (*owners, NOBODY))


def _units_of(world: World) -> Mapping[int, tuple[Cell, ...]]:
    """By owner, what its unit is called in the tables that name it."""
    found: dict[int, tuple[Cell, ...]] = {}
    for name in ("p", "e"):
        width = sum(c.key for c in world.tables[name].columns)
        for row, owner in zip(world.data[name].rows, world.data[name].owners, strict=True):
            if owner != NOBODY:
                found.setdefault(owner, row[:width])
    return found


def _value(column: Column, end: str, rng: random.Random) -> Cell:
    assert isinstance(column.domain, Bounded)
    low, high = column.domain.lo, column.domain.hi
    assert isinstance(low, float)
    assert isinstance(high, float)
    found = rng.choice((None, 0.0, (low + high) / 2, low - 1000.0, high + 1000.0)) if end == "any" else low
    found = high if end == "high" else found
    return Decimal(str(found)) if column.type is SqlType.NUMERIC and found is not None else found
