"""Past failures as data: a query over the shop's tables with the rows that showed the mistake.

A file holds {"why", "query", "rows": {table: [{column: value}]}} and, if need be, "pure", "time_zone",
"lowered" [rows, groups] and "engine" {"table.column": type}. Numbers in quotes are doubles (nan, inf).
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from proxy.analysis.analyse import Lowered
from proxy.plan.release_plan import PlanContext
from proxy.sqltypes import SqlType
from tests.fuzz.planning import SALT
from tests.fuzz.worlds import NOBODY, Cell, Stored, World
from tests.unit.plan import shop

FOLDER = Path(__file__).parent / "corpus"
_ENGINE = {
    SqlType.INT4: "INTEGER", SqlType.INT8: "BIGINT", SqlType.NUMERIC: "DECIMAL(20,3)", SqlType.FLOAT8: "DOUBLE",
    SqlType.TEXT: "VARCHAR", SqlType.DATE: "DATE", SqlType.TIMESTAMPTZ: "TIMESTAMPTZ",
}  # fmt: skip


def load(path: Path) -> tuple[World, str, PlanContext]:
    """The world, query and context of one file."""
    entry: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    rows, lowered = entry["rows"], entry.get("lowered", (0, 0))
    context = shop.context(
        pure=entry.get("pure", False), time_zone=entry.get("time_zone", "UTC"),
        lowered=Lowered(rows_per_group=lowered[0], groups=lowered[1]),
    )  # fmt: skip
    units = sorted({r["user_id"] for t in ("users", "orders") for r in rows.get(t, ()) if r.get("user_id") is not None})
    world = World(
        seed=0, tables=shop.TABLES, unique=shop.UNIQUE, privacy=context.privacy, units=max(1, len(units)),
        engine_types=MappingProxyType(_engine_types(entry.get("engine", {}))),
        data=MappingProxyType({name: _stored(name, rows, units) for name in shop.TABLES}),
    )  # fmt: skip
    return world, entry["query"], replace(context, salt=SALT)


def _engine_types(special: dict[str, str]) -> dict[tuple[str, str], str]:
    return {
        (t.name, c.name): special.get(f"{t.name}.{c.name}", _ENGINE[c.type])
        for t in shop.TABLES.values() for c in t.columns
    }  # fmt: skip


def _stored(name: str, rows: dict[str, list[dict[str, Any]]], units: list[int]) -> Stored:
    table = shop.TABLES[name]
    mine = rows.get(name, [])
    cells = tuple(tuple(_cell(r.get(c.name), c.type) for c in table.columns) for r in mine)
    owner_of_order = {r.get("order_id"): r.get("user_id") for r in rows.get("orders", [])}
    owners = []
    for number, row in enumerate(mine):
        unit = owner_of_order.get(row.get("order_id")) if name == "items" else row.get("user_id")
        owners.append(number if name == "census" else units.index(unit) if unit in units else NOBODY)
    return Stored(cells, tuple(owners))


def _cell(value: Any, kind: SqlType) -> Cell:
    cell: Cell = float(value) if isinstance(value, str) and kind is SqlType.FLOAT8 else value
    return cell
