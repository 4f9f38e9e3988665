"""The databases of a world in one DuckDB: everybody, everybody but some, and each unit alone."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from datetime import date, datetime
from decimal import Decimal

import duckdb

from proxy.engines.duckdb_open import set_optimizer
from proxy.policy.model import Table
from tests.fuzz.worlds import NOBODY, Cell, Stored, World


class Databases:
    """Opened as the engine opens its data; each chosen set of units is a schema of new tables."""

    errors: type[Exception] = duckdb.Error

    def __init__(self, world: World) -> None:
        self._world = world
        self._built: dict[frozenset[int], str] = {}
        self._asked = ""
        self._found: dict[frozenset[int], list[tuple[object, ...]]] = {}
        self._parsed: dict[str, duckdb.Statement] = {}
        self._connection = duckdb.connect(config={"threads": 1, "preserve_insertion_order": False})
        self._connection.execute(f"set TimeZone = '{world.privacy.time_zone}'")
        set_optimizer(self._connection)
        self._create("base", owner=True)
        for name, stored in world.data.items():
            self._insert(f"base.{name}", name, stored)

    def close(self) -> None:
        self._connection.close()

    def run(self, sql: str, units: Iterable[int], kept: Sequence[list[object]] = ()) -> list[tuple[object, ...]]:
        """Rows of one statement over the data of these units (and of nobody). Raises duckdb.Error.

        kept: its parameters, columns of keys. Without them the rows of the last statement are remembered: several
        checks ask for those of everybody.
        """
        chosen = frozenset(units)
        if kept:
            return self._run(sql, chosen, kept)
        if sql != self._asked:
            self._asked, self._found = sql, {}
        if chosen not in self._found:
            self._found[chosen] = self._run(sql, chosen, ())
        return self._found[chosen]

    def _run(self, sql: str, units: frozenset[int], kept: Sequence[list[object]]) -> list[tuple[object, ...]]:
        if sql not in self._parsed:  # a third of the time of one statement, and each is asked of many units
            (self._parsed[sql],) = self._connection.extract_statements(sql)
        self._connection.execute(f"set search_path = '{self._schema(units)}'")
        return self._connection.execute(self._parsed[sql], list(kept)).fetchall()

    def everybody(self) -> frozenset[int]:
        return frozenset(range(self._world.units))

    def _schema(self, units: frozenset[int]) -> str:
        if units not in self._built:
            name = f"x{len(self._built)}"
            self._create(name, owner=False)
            present = ", ".join(map(str, (NOBODY, *sorted(units))))
            for table in self._world.tables:
                self._connection.execute(
                    f"insert into {name}.{table} select * exclude (o) from base.{table} where o in ({present})"
                )
            self._built[units] = name
        return self._built[units]

    def _create(self, schema: str, *, owner: bool) -> None:
        self._connection.execute(f"create schema {schema}")
        for table in self._world.tables.values():
            columns = [f'"{c.name}" {self._world.engine_types[table.name, c.name]}' for c in table.columns]
            columns += ["o integer"] * owner
            self._connection.execute(f"create table {schema}.{table.name} ({', '.join(columns)})")

    def _insert(self, target: str, name: str, stored: Stored) -> None:
        if not stored.rows:
            return
        table = self._world.tables[name]
        rows = [
            f"({', '.join([*(self._literal(table, i, v) for i, v in enumerate(row)), str(owner)])})"
            for row, owner in zip(stored.rows, stored.owners, strict=True)
        ]
        self._connection.execute(f"insert into {target} values {', '.join(rows)}")

    def _literal(self, table: Table, index: int, value: Cell) -> str:
        kind = self._world.engine_types[table.name, table.columns[index].name]
        match value:
            case None:
                return "NULL"
            case float() if not math.isfinite(value):
                return f"'{value}'::{kind}"
            case float() | int() | Decimal():
                return f"'{value}'::{kind}"
            case datetime():
                zone = "+00" if kind == "TIMESTAMPTZ" else ""
                return f"'{value.isoformat(sep=' ')}{zone}'::{kind}"
            case date():
                return f"'{value.isoformat()}'::{kind}"
            case str():
                if kind == "TIMESTAMPTZ" and "infinity" not in value:
                    value += "+00"
                escaped = value.replace("'", "''")
                text = " || chr(0) || ".join(f"'{part}'" for part in escaped.split("\x00"))
                return f"({text})::{kind.removesuffix(' COLLATE NOCASE')}"
