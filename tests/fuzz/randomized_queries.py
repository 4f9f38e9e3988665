"""Worlds whose columns with listed values are taken to have been randomized, and random queries over them."""

from __future__ import annotations

import random
from dataclasses import replace
from fractions import Fraction
from types import MappingProxyType

from proxy.policy.model import Column, Listed, Table, UnitColumns
from proxy.policy.response import KeptOrUniform, NotRandomized, Randomized, TwoCoins
from proxy.sqltypes import SqlType
from tests.fuzz.expressions import Name
from tests.fuzz.grammar import Writer
from tests.fuzz.worlds import World, make_world


def randomized_world(seed: int) -> World:
    """The world of a seed where stored values of these columns stand for others."""
    world = make_world(seed)
    tables = {name: _randomized(t) for name, t in world.tables.items()}
    return replace(world, tables=MappingProxyType(tables))


def _randomized(table: Table) -> Table:
    return replace(table, columns=tuple(replace(c, randomized=_mechanism(c)) for c in table.columns))


def _mechanism(column: Column) -> Randomized | NotRandomized:
    if column.key or column.hidden or column.case_blind:
        return NotRandomized()
    if column.type is SqlType.BOOL and not column.nullable:
        return TwoCoins(Fraction("0.5"), Fraction("0.4"))
    values = len(column.domain.values) if isinstance(column.domain, Listed) else 2 * (column.type is SqlType.BOOL)
    choices = values + column.nullable
    return KeptOrUniform(Fraction("0.6"), choices) if values and choices > 1 else NotRandomized()


def make_randomized_query(world: World, rng: random.Random) -> str:
    """One random aggregate query."""
    return _RandomizedWriter(world, rng).query()


class _RandomizedWriter(Writer):
    def query(self) -> str:
        return self._of_units() if self._rng.random() < 0.15 else self._of_rows()

    def _of_units(self) -> str:
        """Of what is counted for each unit."""
        rng = self._rng
        table = rng.choice([t for t in "pe" if self._unit(t, "x")])
        ownership = self._world.tables[table].ownership
        assert isinstance(ownership, UnitColumns)
        unit = ", ".join(f"x.{c}" for c in ownership.columns)
        finite = [n for n in self._columns(table, "x") if n.type is SqlType.BOOL or isinstance(n.domain, Listed)]
        tests = [self._test(rng.choice(finite)) if finite else "true" for _ in range(rng.choice((1, 2)))]
        counts = [f"count(*) filter (where {t}) as c{i}" for i, t in enumerate(tests)]
        asked = ", ".join(rng.choice((f"sum(c{i})", f"avg(c{i})")) for i in range(len(tests)))
        return f"select {asked}, count(*) from (select {unit}, {', '.join(counts)} from {table} x group by {unit}) q"

    def _of_rows(self) -> str:
        rng, names = self._rng, self._from.columns
        finite = [n for n in names if n.type is SqlType.BOOL or isinstance(n.domain, Listed)] or list(names)
        keys = [self._public_key()] if rng.random() < 0.2 else []
        if rng.random() < 0.3:
            keys.append(rng.choice(finite).text)
        if rng.random() < 0.15:
            keys.append(self._key())
        aggregates = [self._estimate(finite) for _ in range(rng.choice((1, 1, 2)))]
        where = [*self._from.conditions]
        if rng.random() < 0.4:
            where.append(self._test(rng.choice(finite)))
        if rng.random() < 0.3:
            where.append(self._bool(1))
        text = f"{self._from.prefix}select {', '.join([*keys, *aggregates])} from {self._from.text}"
        if where:
            text += " where " + " and ".join(f"({w})" for w in where)
        return f"{text} group by {', '.join(str(i + 1) for i in range(len(keys)))}" if keys else text

    def _estimate(self, finite: list[Name]) -> str:
        rng = self._rng
        tests = [self._test(n) for n in rng.sample(finite, min(len(finite), rng.choice((1, 1, 2))))]
        condition = f" {rng.choice(('and', 'and', 'or'))} ".join(f"({t})" for t in tests)
        numbers = [n for n in self._from.columns if n.type.is_number and n not in finite]
        measure = rng.choice(numbers).text if numbers else "1"
        forms = [
            f"count(*) filter (where {condition})",
            f"count({measure}) filter (where {condition})",
            f"sum({measure}) filter (where {condition})",
            f"avg({measure}) filter (where {condition})",
            f"stddev({measure}) filter (where {condition})",
            f"var_pop(case when {condition} then 1 else 0 end)",
            f"sum(case when {condition} then 1 else 0 end)",
            f"avg(case when {condition} then 1 else 0 end)",
            f"avg(case when {condition} then {measure} end)",
            f"count(case when {condition} then 1 end)",
            "count(*)",
        ]
        return rng.choice(forms)

    def _test(self, name: Name) -> str:
        rng, column = self._rng, name.text
        listed = name.domain.values if isinstance(name.domain, Listed) else (True, False)
        values = [self._written(v) for v in listed]
        one = rng.choice(values)
        forms = [
            f"{column} = {one}", f"{column} <> {one}", f"not ({column} = {one})", f"{column} is distinct from {one}",
            f"{column} in ({', '.join(values[:2])})", f"{column} is null", f"{column} is not null",
            f"coalesce({column}, {one}) = {one}",
        ]  # fmt: skip
        if name.type is SqlType.BOOL:
            forms += [column, f"not {column}", f"{column} is true", f"{column} is not true"]
        return rng.choice(forms)

    def _written(self, value: object) -> str:
        return (
            str(value).lower()
            if isinstance(value, bool)
            else str(value)
            if isinstance(value, (int, float))
            else ("'" + str(value).replace("'", "''") + "'")
        )
