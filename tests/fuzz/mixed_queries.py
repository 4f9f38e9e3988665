"""Statements that ask much at once of worlds with wide limits, so that profiles choose their bounds, and hard rows.

Averages about a centre stand beside sums of both signs, counts of units, nullable measures and conditions of single
aggregates, over joins that may be declared complete though they are not, and units whose rows have no end.
"""

from __future__ import annotations

import random
from dataclasses import replace
from types import MappingProxyType

from proxy.policy.model import (
    Bounded,
    BoundSource,
    ByProfile,
    Neighbors,
    NotGiven,
    PerKey,
    RowsPer,
    RowUnit,
    Table,
    Unknown,
    WrittenBound,
)
from proxy.sqltypes import Family
from tests.fuzz.expressions import NUMBERS
from tests.fuzz.grammar import Writer
from tests.fuzz.worlds import Cell, Stored, World, make_world

_PERIODS = ("day", "week", "month", "quarter", "year")


def make_hard_world(seed: int) -> World:
    """A random world with wide limits, ceilings, rows bounded for each value, false completeness and heavy units."""
    world, rng = make_world(seed), random.Random(f"hard {seed}")
    tables = {name: _limited(t, rng) for name, t in world.tables.items()}
    privacy = replace(
        world.privacy, group_size=rng.choice((1, 1, 3)),
        neighbors=rng.choice((Neighbors.ADD_REMOVE, Neighbors.REPLACE_ONE)),
    )  # fmt: skip
    data = dict(world.data)
    if rng.random() < 0.5:
        data["e"] = _with_heavy_unit(tables["e"], data["e"], rng)
    return replace(world, tables=MappingProxyType(tables), privacy=privacy, data=MappingProxyType(data))


def _limited(table: Table, rng: random.Random) -> Table:
    if table.is_public:
        return table
    if not isinstance(table.ownership, RowUnit) and not table.unit_unique:
        ceilings = (WrittenBound(60, is_ceiling=True), WrittenBound(10**5, is_ceiling=True))
        several = (WrittenBound(10**6), WrittenBound(10**6), ByProfile(7, "1"), ByProfile(2**20, "1"), *ceilings)
        rows: BoundSource = rng.choice(several)
        table = replace(
            table,
            rows_per_unit=rows,
            rows_per_group=_limit(rng),
            groups_per_unit=_limit(rng),
            rows_per=_rows_per(table, rng),
        )
    joins = tuple(j for j in table.joins if rng.random() < 0.5)
    return replace(table, complete_joins=joins)


def _limit(rng: random.Random) -> BoundSource:
    return rng.choice((*((NotGiven(),) * 6), WrittenBound(3), WrittenBound(10**4), WrittenBound(2, is_ceiling=True)))


def _rows_per(table: Table, rng: random.Random) -> tuple[RowsPer, ...]:
    """Of one or several columns together, of times by a period."""
    found = []
    for _ in range(rng.choice((0, 0, 1, 2))):
        columns = rng.sample([c for c in table.columns if not c.key], 1 if rng.random() < 0.6 else 2)
        parts = tuple(
            PerKey(c.name, rng.choice(_PERIODS) if c.type.family is Family.TIME and rng.random() < 0.7 else "")
            for c in columns
        )
        found.append(RowsPer(parts, rng.choice((1, 2, 3))))
    return tuple(found)


def _with_heavy_unit(table: Table, stored: Stored, rng: random.Random) -> Stored:
    """One unit's rows again and again, without the keys that others find them by."""
    place = [c.name for c in table.columns].index("id")
    own: list[tuple[Cell, ...]] = [
        (*row[:place], None, *row[place + 1 :])
        for row, owner in zip(stored.rows, stored.owners, strict=True) if owner == 0
    ]  # fmt: skip
    more = own * rng.choice((10, 60))
    return Stored((*stored.rows, *more), (*stored.owners, *((0,) * len(more))))


def make_mixed_query(world: World, rng: random.Random) -> str:
    """One random aggregate query."""
    return _MixedWriter(world, rng).query()


class _MixedWriter(Writer):
    def query(self) -> str:
        rng = self._rng
        keys = [self._key() if rng.random() < 0.7 else self._public_key() for _ in range(rng.choice((0, 1, 1, 2, 3)))]
        unlisted = [c.text for c in self._from.columns if isinstance(c.domain, Unknown)]
        if unlisted and rng.random() < 0.4:
            keys = rng.sample(unlisted, min(len(unlisted), rng.choice((1, 1, 2))))
        aggregates = [self._one_of() for _ in range(rng.choice((2, 3, 4, 6)))]
        where = [*self._from.conditions, *(self._bool(1) for _ in range(rng.choice((0, 0, 1))))]
        text = f"{self._from.prefix}select {', '.join([*keys, *aggregates])} from {self._from.text}"
        if where:
            text += " where " + " and ".join(f"({w})" for w in where)
        return f"{text} group by {', '.join(str(i + 1) for i in range(len(keys)))}" if keys else text

    def _one_of(self) -> str:
        rng, x, y = self._rng, self._bounded(), self._bounded()
        unit = f"count(distinct {self._from.unit})" if self._from.unit else "count(*)"
        found = rng.choice((
            f"avg({x})", f"avg({x})", f"avg({x})", f"sum({x})", f"sum({x})", "count(*)", f"count({x})", unit, unit,
            f"sum(case when {self._bool(1)} then {x} else -({x}) end)",
            f"sum(least(greatest({x}, -5), 3))",
            f"var_samp({y})" if rng.random() < 0.2 else f"avg({y})",
        ))  # fmt: skip
        return f"{found} filter (where {self._bool(1)})" if rng.random() < 0.4 else found

    def _bounded(self) -> str:
        """A column with bounds, else a number that is clamped."""
        known = [c.text for c in self._from.columns if c.type in NUMBERS and isinstance(c.domain, Bounded)]
        return self._rng.choice(known) if known else "1"
