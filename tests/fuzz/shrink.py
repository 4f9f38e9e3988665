"""A failing query over a random world, made smaller: fewer rows, then fewer parts of the query, then less around it."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from types import MappingProxyType

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from proxy.errors import HushError
from proxy.plan.release_plan import PlanContext
from proxy.policy.model import UnitColumns, UnitVia
from tests.fuzz.checks import Broken
from tests.fuzz.examine import Examiner, Failure
from tests.fuzz.grammar import make_query
from tests.fuzz.planning import context_of, make_context
from tests.fuzz.worlds import NOBODY, Stored, World, make_world

Fails = Callable[[World, str], bool]


def shrunk(failure: Failure, how: str, of: type[Examiner] = Examiner) -> str:
    """The smallest failing case found, as text: the query and the rows that are left. of: what it failed in."""
    world, rng = make_world(failure.seed), random.Random(f"query {failure.seed} {failure.number}")
    query = make_query(world, rng)
    lowered = make_context(world, rng).lowered
    world, query = smallest(world, query, lambda w, q: fails(w, q, context_of(w, lowered), how, of))
    lines = [f"  {name}: {stored.rows}" for name, stored in world.data.items() if stored.rows and name in query.split()]
    return "\n".join([f"smallest: {query}", *lines])


def smallest(world: World, query: str, fails: Fails) -> tuple[World, str]:
    """The smallest world and query found that still fail."""
    world = _smaller_data(world, query, fails)
    query = _smaller_query(world, query, fails)
    world = _smaller_data(world, query, fails)
    for smaller in (_without_tables, _without_columns, _without_units):
        candidate = smaller(world, query)
        if fails(candidate, query):
            world = candidate
    return world, query


def fails(world: World, query: str, context: PlanContext, how: str, of: type[Examiner] = Examiner) -> bool:
    """Whether a promise is broken; a refusal is none."""
    try:
        examine(world, query, context, how, of)
    except Broken:
        return True
    except HushError:
        return False
    return False


def examine(world: World, query: str, context: PlanContext, how: str, of: type[Examiner] = Examiner) -> None:
    """Raises Broken, or HushError when the query is refused."""
    with of(world) as examiner:
        if how in ("meaning", "both"):
            examiner.meaning(query, context)
        if how in ("sensitivity", "both"):
            examiner.sensitivity(query, context)


# --- rows -------------------------------------------------------------------------------------------------


def _smaller_data(world: World, query: str, fails: Fails) -> World:
    for name in world.data:
        size = len(world.data[name].rows)
        while size >= 1:
            start = 0
            while start < len(world.data[name].rows):
                smaller = _without(world, name, start, size)
                if fails(smaller, query):
                    world = smaller
                else:
                    start += size
            size //= 2
    return world


def _without(world: World, name: str, start: int, size: int) -> World:
    stored = world.data[name]
    kept = Stored(
        stored.rows[:start] + stored.rows[start + size :], stored.owners[:start] + stored.owners[start + size :]
    )
    return replace(world, data=MappingProxyType({**world.data, name: kept}))


# --- the query --------------------------------------------------------------------------------------------


def _smaller_query(world: World, query: str, fails: Fails) -> str:
    """Go on behind what was left out, and once more from the start until nothing more can be."""
    first, progress = 0, False
    while True:
        for number, candidate in enumerate(_candidates(query)):
            if number >= first and len(candidate) < len(query) and fails(world, candidate):
                query, first, progress = candidate, number, True
                break
        else:
            if not progress:
                return query
            first, progress = 0, False


def _candidates(query: str) -> Iterator[str]:
    """Queries with one expression replaced by a part of itself, or one item left out."""
    count = sum(1 for _ in sqlglot.parse_one(query, dialect="postgres").walk())
    for position in range(1, count):
        for choice in range(3):
            tree = sqlglot.parse_one(query, dialect="postgres")
            node = list(tree.walk())[position]
            parts = list(node.iter_expressions())
            if choice == 0:
                node.pop()
            elif choice <= len(parts) and not isinstance(node, exp.Where):  # without the word it is no SQL
                node.replace(parts[choice - 1].copy())
            else:
                continue
            try:
                yield tree.sql(dialect="postgres")
            except (SqlglotError, ValueError, AttributeError, TypeError, IndexError):
                continue


# --- what the query does not speak of ---------------------------------------------------------------------


def _words(query: str) -> set[str]:
    return set(re.findall(r"\w+", query))


def _without_tables(world: World, query: str) -> World:
    """Only tables that the query names, and those behind them."""
    wanted = _words(query) & set(world.tables)
    wanted |= {o.parent for t in wanted if isinstance(o := world.tables[t].ownership, UnitVia)}
    tables = {
        name: replace(table, joins=tuple(j for j in table.joins if j.table in wanted))
        for name, table in world.tables.items() if name in wanted
    }  # fmt: skip
    return replace(
        world,
        tables=MappingProxyType(tables),
        data=MappingProxyType({name: world.data[name] for name in tables}),
        engine_types=MappingProxyType({c: t for c, t in world.engine_types.items() if c[0] in wanted}),
        unique=replace(world.unique, columns=frozenset(c for c in world.unique.columns if c[0] in wanted)),
    )


def _without_columns(world: World, query: str) -> World:
    """Only columns that the query names, and those that rows are joined or owned by."""
    words = _words(query) | {"id", "ref", "code"}
    for name, table in world.tables.items():
        units = table.ownership.columns if isinstance(table.ownership, UnitColumns) else ()
        places = [i for i, c in enumerate(table.columns) if c.name in words or c.name in units]
        columns = tuple(table.columns[i] for i in places)
        names = {c.name for c in columns}
        constant = tuple(c for c in table.unit_constant if c in names)
        stored = world.data[name]
        rows = tuple(tuple(row[i] for i in places) for row in stored.rows)
        types = {c: t for c, t in world.engine_types.items() if c[0] != name or c[1] in names}
        world = replace(
            world,
            tables=MappingProxyType({**world.tables, name: replace(table, columns=columns, unit_constant=constant)}),
            data=MappingProxyType({**world.data, name: Stored(rows, stored.owners)}),
            engine_types=MappingProxyType(types),
        )
    return world


def _without_units(world: World, query: str) -> World:
    """Only units that own a row, counted anew."""
    owners = sorted({o for stored in world.data.values() for o in stored.owners if o != NOBODY})
    new = {**{owner: number for number, owner in enumerate(owners)}, NOBODY: NOBODY}
    data = {name: Stored(s.rows, tuple(new[o] for o in s.owners)) for name, s in world.data.items()}
    return replace(world, units=max(1, len(owners)), data=MappingProxyType(data))
