"""A failing query over a random world, made smaller: fewer rows first, then fewer parts of the query."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from types import MappingProxyType

import sqlglot
from sqlglot.errors import SqlglotError

from proxy.errors import HushError
from proxy.plan.release_plan import PlanContext
from tests.fuzz.checks import Broken
from tests.fuzz.examine import Examiner, Failure
from tests.fuzz.grammar import make_query
from tests.fuzz.planning import make_context
from tests.fuzz.worlds import Stored, World, make_world


def shrunk(failure: Failure, how: str) -> str:
    """The smallest failing case found, as text: the query and the rows that are left."""
    world, rng = make_world(failure.seed), random.Random(f"query {failure.seed} {failure.number}")
    query = make_query(world, rng)
    context = make_context(world, rng)
    world = _smaller_data(world, query, context, how)
    query = _smaller_query(world, query, context, how)
    world = _smaller_data(world, query, context, how)
    lines = [f"  {name}: {stored.rows}" for name, stored in world.data.items() if stored.rows and name in query.split()]
    return "\n".join([f"smallest: {query}", *lines])


def fails(world: World, query: str, context: PlanContext, how: str) -> bool:
    """Whether a promise is still broken; a refusal is none."""
    try:
        with Examiner(world) as examiner:
            if how in ("meaning", "both"):
                examiner.meaning(query, context)
            if how in ("sensitivity", "both"):
                examiner.sensitivity(query, context)
    except Broken:
        return True
    except HushError:
        return False
    return False


def _smaller_data(world: World, query: str, context: PlanContext, how: str) -> World:
    for name in world.data:
        size = len(world.data[name].rows)
        while size >= 1:
            start = 0
            while start < len(world.data[name].rows):
                smaller = _without(world, name, start, size)
                if fails(smaller, query, context, how):
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


def _smaller_query(world: World, query: str, context: PlanContext, how: str) -> str:
    progress = True
    while progress:
        progress = False
        for candidate in _candidates(query):
            if len(candidate) < len(query) and fails(world, candidate, context, how):
                query, progress = candidate, True
                break
    return query


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
            elif choice <= len(parts):
                node.replace(parts[choice - 1].copy())
            else:
                continue
            try:
                yield tree.sql(dialect="postgres")
            except (SqlglotError, ValueError, AttributeError, TypeError):
                continue
