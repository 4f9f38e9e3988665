"""The same promises in a crowd: a world's rows among hundreds of thousands of others, computed by several threads.

Small tables are one row group in one thread; an engine reads large ones in pieces, with statistics of their own, and in
an order that changes from run to run. Everybody else is a copy of the world's units under other numbers.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager

import duckdb

from proxy.plan.release_plan import ReleasePlan
from proxy.policy.model import UnitColumns
from proxy.sqltypes import SqlType
from tests.fuzz.checks import Broken, difference, keys_of, vector_of
from tests.fuzz.duck import Databases
from tests.fuzz.worlds import NOBODY, World, make_world

COPIES = 12_000  # with some fifteen rows of each in the largest table, more than a row group of 122,880
_APART = 1000  # numbers of units and rows of a world are below this
_NUMBERS = frozenset((("p", "u0"), ("e", "u0"), ("e", "id"), ("d", "ref")))


def worlds_of_numbers(first: int) -> Iterator[World]:
    """Worlds from a seed on whose units are single whole numbers with room for others."""
    seed = first
    while True:
        world = make_world(seed)
        owner, unit = world.tables["e"].ownership, world.tables["e"].column("u0")
        if isinstance(owner, UnitColumns) and len(owner.columns) == 1 and unit and unit.type is SqlType.INT4:
            yield world
        seed += 1


class Crowd(Databases):
    """Databases of a world's units, in which everybody else always stays."""

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self._connection.execute("set threads = 2")
        for name, table in world.tables.items():
            if table.is_public:
                continue
            columns = ", ".join(
                f'"{c.name}"::bigint + {_APART} * k' if (name, c.name) in _NUMBERS else f'"{c.name}"'
                for c in table.columns
            )
            self._connection.execute(
                f"insert into base.{name} select {columns}, {NOBODY} from base.{name}, range(1, {COPIES}) t(k)"
                " where o >= 0 order by hash(k, o)"
            )


@contextmanager
def databases(world: World) -> Iterator[tuple[Databases, Databases]]:
    """The world by itself, and in a crowd."""
    with closing(Databases(world)) as alone, closing(Crowd(world)) as crowd:
        yield alone, crowd


def check_in_crowd(plan: ReleasePlan, alone: Databases, crowd: Databases) -> None:
    """Who leaves a crowd takes exactly what they have alone. Raises Broken; an engine error is a broken promise."""
    everybody = alone.everybody()
    try:
        whole = crowd.run(plan.sql, everybody)
        for unit in sorted(everybody)[:2]:
            less, own = crowd.run(plan.sql, everybody - {unit}), alone.run(plan.sql, (unit,))
            moved = difference(vector_of(plan, whole), vector_of(plan, less))
            if difference(moved, vector_of(plan, own)):
                raise Broken(f"unit {unit} takes other numbers out of a crowd than it has alone")
            if keys_of(plan, whole) != keys_of(plan, less) | keys_of(plan, own):
                raise Broken("keys that others in a crowd hold depend on who leaves")
    except duckdb.Error as error:
        raise Broken(f"the engine raised {type(error).__name__}: {error}") from error
