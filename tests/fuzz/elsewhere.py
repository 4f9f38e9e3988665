"""The same search with the rows in PostgreSQL, as its engine opens and asks it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import date, datetime
from decimal import Decimal
from functools import cache
from types import MappingProxyType

import psycopg

from proxy.engines.postgres_open import connect
from proxy.errors import Unsupported
from proxy.plan.release_plan import PlanContext, ReleasePlan
from proxy.plan.sets.sets import SetsPlan
from proxy.policy.model import PostgresSource
from proxy.sql.query.block import BoundBlock
from proxy.sql.render.postgres.dialect import POSTGRES
from tests.fuzz.duck import Databases
from tests.fuzz.examine import Examiner
from tests.fuzz.ranked import Engine
from tests.fuzz.sets import SetsExaminer
from tests.fuzz.worlds import NOBODY, SORTS, Cell, World
from tests.postgres_server import private_server

_TYPES = MappingProxyType({
    "INTEGER": "integer", "BIGINT": "bigint", "DOUBLE": "double precision", "FLOAT": "real",
    "DECIMAL(12,3)": "numeric(12,3)", "DECIMAL(38,5)": "numeric", "VARCHAR": "text",
    "VARCHAR COLLATE NOCASE": 'text collate "C"', "BOOLEAN": "boolean", "DATE": "date",
    "TIMESTAMP": "timestamp", "TIMESTAMPTZ": "timestamptz",
})  # fmt: skip


def rehoused(world: World) -> World:
    """The world as PostgreSQL can hold it: no text has a NUL in it, and none is compared without case."""
    declared = {place for place, kind in world.engine_types.items() if kind == "DECIMAL(12,3)"}
    tables = {
        name: replace(table, columns=tuple(
            replace(c, case_blind=False, limited_digits=(name, c.name) in declared) for c in table.columns
        ))
        for name, table in world.tables.items()
    }  # fmt: skip
    data = {
        name: replace(stored, rows=tuple(tuple(_without_nul(v) for v in row) for row in stored.rows))
        for name, stored in world.data.items()
    }
    return replace(world, tables=MappingProxyType(tables), data=MappingProxyType(data))


def _without_nul(value: Cell) -> Cell:
    return value.replace("\0", "\x01") if isinstance(value, str) else value


@cache
def _source() -> PostgresSource:
    """A database for all worlds of this process, one after the other."""
    server = private_server()
    server.create("worlds", "")
    return PostgresSource(dsn=server.dsn("worlds"))


class PostgresDatabases(Databases):
    """What `duck.Databases` is for DuckDB: each chosen set of units is a schema of new tables."""

    errors: type[Exception] = psycopg.Error

    def __init__(self, world: World) -> None:
        self._world = world
        self._built: dict[frozenset[int], str] = {}
        self._asked = ""
        self._found: dict[frozenset[int], list[tuple[object, ...]]] = {}
        self._server = connect(_source(), world.privacy.time_zone)
        self._server.execute("set default_transaction_read_only = off")
        self._server.execute("begin")  # which nothing ends: closing takes back whatever was made
        self._create("base", owner=True)
        for name, stored in world.data.items():
            kinds = [world.engine_types[name, c.name] for c in world.tables[name].columns]
            rows = zip(stored.rows, stored.owners, strict=True)
            written = [f"({', '.join([*map(_literal, row, kinds), str(owner)])})" for row, owner in rows]
            if written:
                self._execute(f"insert into base.{name} values {', '.join(written)}")

    def close(self) -> None:
        self._server.close()

    def _run(self, sql: str, units: frozenset[int], kept: Sequence[list[object]]) -> list[tuple[object, ...]]:
        there = sql.replace('"public".', f'"{self._schema(units)}".')
        self._execute("savepoint asked")
        try:
            return self._server.execute(there.encode(), list(kept), binary=True).fetchall()
        finally:
            self._execute("rollback to asked")

    def _schema(self, units: frozenset[int]) -> str:
        if units not in self._built:
            name = f"x{len(self._built)}"
            self._create(name, owner=False)
            present = ", ".join(map(str, (NOBODY, *sorted(units))))
            for table in self._world.tables.values():
                columns = ", ".join(f'"{c.name}"' for c in table.columns)
                self._execute(f"insert into {name}.{table.name} select {columns} from base.{table.name}"
                              f" where o in ({present})")  # fmt: skip
            self._built[units] = name
        return self._built[units]

    def _create(self, schema: str, *, owner: bool) -> None:
        self._execute(f"create schema {schema}")
        for table in self._world.tables.values():
            kinds = (_TYPES[self._world.engine_types[table.name, c.name]] for c in table.columns)
            columns = [f'"{c.name}" {kind}' for c, kind in zip(table.columns, kinds, strict=True)]
            columns += ["o integer"] * owner
            self._execute(f"create table {schema}.{table.name} ({', '.join(columns)})")

    def _execute(self, sql: str) -> None:
        self._server.execute(sql.encode())


def _literal(value: Cell, kind: str) -> str:
    match value:
        case None:
            return "NULL"
        case float() | int() | Decimal():
            return f"'{value}'"
        case datetime():
            return f"'{value.isoformat(sep=' ')}+00'"
        case date():
            return f"'{value.isoformat()}'"
        case str():
            text = value.replace("'", "''")
            zone = "+00" if kind == "TIMESTAMPTZ" and "infinity" not in value else ""
            return f"'{text.replace('(BC)', 'BC')}{zone}'"


class PostgresExaminer(Examiner):
    """Examines queries that PostgreSQL computes; what it does not compute is refused."""

    def __init__(self, world: World) -> None:
        super().__init__(rehoused(world), PostgresDatabases)

    def _plan(self, query: str, context: PlanContext) -> tuple[ReleasePlan, BoundBlock]:
        tables = self.world.tables
        return super()._plan(query, replace(context, tables=tables, dialect=POSTGRES))


class PostgresSetsExaminer(SetsExaminer):
    """The same for queries with grouping sets."""

    def __init__(self, world: World) -> None:
        super().__init__(rehoused(world), PostgresDatabases)

    def _planned(self, query: str, context: PlanContext) -> tuple[SetsPlan, BoundBlock]:
        return super()._planned(query, replace(context, dialect=POSTGRES))


class PlainPostgresExaminer(PostgresExaminer):
    """Examines what both engines mean alike, so that the oracle, which speaks of DuckDB, speaks of PostgreSQL too.

    There what could raise is NULL: sums with infinite numbers, numbers near the ends of doubles, remainders
    after huge quotients, times far from ours.
    """

    def __init__(self, world: World) -> None:
        super().__init__(plain(world))

    def _plan(self, query: str, context: PlanContext) -> tuple[ReleasePlan, BoundBlock]:
        if not _is_alike(query):
            raise Unsupported("the engines mean other things")
        return super()._plan(query, context)


class PlainPostgresSetsExaminer(PostgresSetsExaminer):
    """The same for queries with grouping sets."""

    def __init__(self, world: World) -> None:
        super().__init__(plain(world))

    def _planned(self, query: str, context: PlanContext) -> tuple[SetsPlan, BoundBlock]:
        if not _is_alike(query):
            raise Unsupported("the engines mean other things")
        return super()._planned(query, context)


_FAR = re.compile(r"interval '[0-9]{3,} |exp\(|1e[0-9]{3}|numeric(\([0-9, ]+\))? % ", re.IGNORECASE)


def _is_alike(query: str) -> bool:
    """Whether both engines mean the same by what is asked."""
    return not _FAR.search(query)


def plain(world: World) -> World:
    """The world with ordinary values in the place of extreme ones."""
    data = {}
    for name, stored in world.data.items():
        tame = [SORTS[c.name].tame[0] if c.name in SORTS else None for c in world.tables[name].columns]
        rows = (tuple(t if _is_extreme(v) else v for v, t in zip(row, tame, strict=True)) for row in stored.rows)
        data[name] = replace(stored, rows=tuple(rows))
    return replace(world, data=MappingProxyType(data))


#: Quantiles of rows in PostgreSQL, and of those that mean the same there.
RANKS = Engine(PostgresDatabases, POSTGRES, rehoused)
PLAIN_RANKS = Engine(PostgresDatabases, POSTGRES, lambda world: rehoused(plain(world)), _is_alike)


def _is_extreme(value: Cell) -> bool:
    match value:
        case float():
            return not (value == 0 or 1e-100 < abs(value) < 1e100)
        case date():
            return not 1000 < value.year < 3000
        case str():
            return bool(re.match("-?infinity|20000-|0044-", value))
        case _:
            return False
