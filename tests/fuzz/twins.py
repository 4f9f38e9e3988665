"""The same units under other types: what one table calls 1 another calls 1.0, and a collation would merge spellings."""

from __future__ import annotations

import random
from dataclasses import replace
from types import MappingProxyType

from proxy.policy.model import Column, Table
from proxy.sqltypes import SqlType
from tests.fuzz.examine import Examiner
from tests.fuzz.worlds import World

_OTHERS: dict[SqlType, tuple[tuple[SqlType, str], ...]] = {
    SqlType.INT4: ((SqlType.INT8, "BIGINT"), (SqlType.INT2, "SMALLINT"), (SqlType.NUMERIC, "DECIMAL(12,3)")),
    SqlType.INT8: ((SqlType.INT8, "BIGINT"), (SqlType.NUMERIC, "DECIMAL(38,5)")),
    SqlType.TEXT: ((SqlType.VARCHAR, "VARCHAR COLLATE NOCASE"), (SqlType.VARCHAR, "VARCHAR COLLATE NOACCENT"),
                   (SqlType.TEXT, "VARCHAR")),
    SqlType.BPCHAR: ((SqlType.BPCHAR, "VARCHAR COLLATE NOCASE"),),
}  # fmt: skip


class TwinExaminer(Examiner):
    """Examines queries over a world whose tables hold the unit in different types and collations."""

    def __init__(self, world: World) -> None:
        super().__init__(with_twins(world))


def with_twins(world: World) -> World:
    """The world with the unit columns of events in another type than those of people, compared in lower case or not."""
    rng = random.Random(f"twins {world.seed}")
    table, kinds = world.tables["e"], dict(world.engine_types)
    columns = []
    for column in table.columns:
        if column.name.startswith("u"):
            kind, kinds["e", column.name] = rng.choice(_OTHERS[column.type])
            columns.append(replace(column, type=kind, case_blind=kind.is_text and rng.random() < 0.5))
        else:
            columns.append(column)
    tables = {**world.tables, "e": _with(table, columns), "p": _blind(world.tables["p"], rng)}
    return replace(world, tables=MappingProxyType(tables), engine_types=MappingProxyType(kinds))


def _with(table: Table, columns: list[Column]) -> Table:
    return replace(table, columns=tuple(columns))


def _blind(table: Table, rng: random.Random) -> Table:
    """Its unit compared in lower case, if it is a text: which says how groups are told apart, never units."""
    if rng.random() < 0.5:
        return table
    return _with(table, [replace(c, case_blind=c.type.is_text) if c.name.startswith("u") else c for c in table.columns])
