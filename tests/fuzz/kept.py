"""A query with its whole world as text, so that it stays the same whatever random queries and worlds become.

A file holds {"how", "query", "lowered": [rows, groups], "world"}; what equals a default is left out. A dataclass is
{"is": name, field: value}, a mapping is a list of pairs, and other values that JSON has no word for are {type: text}.
With "rows" instead of a world it is one of the shop, as those of the corpus are: easier to write by hand.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import MISSING, dataclass
from datetime import date, datetime
from decimal import Decimal
from enum import Enum
from pathlib import Path
from types import MappingProxyType
from typing import Any

from proxy.analysis.analyse import Lowered
from proxy.analysis.units import UniqueKeys
from proxy.plan.release_plan import PlanContext
from proxy.policy import model
from proxy.sqltypes import SqlType
from tests.fuzz import corpus_world
from tests.fuzz.planning import context_of
from tests.fuzz.worlds import Stored, World

FOLDER = Path(__file__).parent / "planted"
_CLASSES: Mapping[str, Any] = {
    **{name: found for name, found in vars(model).items() if isinstance(found, type)},
    **{c.__name__: c for c in (World, Stored, UniqueKeys, SqlType)},
}


@dataclass(frozen=True, slots=True)
class Kept:
    """A query over a world, and the check that it is for: "sensitivity" or "meaning"."""

    how: str
    query: str
    world: World
    context: PlanContext


def read(path: Path) -> Kept:
    found = json.loads(path.read_text(encoding="utf-8"))
    if "rows" in found:
        world, query, context = corpus_world.load(path)
        return Kept(found["how"], query, world, context)
    world, (rows, groups) = _unpack(found["world"]), found["lowered"]
    context = context_of(world, Lowered(rows_per_group=rows, groups=groups))
    return Kept(found["how"], found["query"], world, context)


def write(path: Path, kept: Kept) -> None:
    """One line for each table, column and row."""
    lowered = [kept.context.lowered.rows_per_group, kept.context.lowered.groups]
    head = {"how": kept.how, "query": kept.query, "lowered": lowered, "world": _pack(kept.world)}
    path.write_text(_lines(head, 0) + "\n", encoding="utf-8")


def _lines(value: Any, depth: int) -> str:
    """JSON that breaks lines only where a line would be too long."""
    flat = json.dumps(value, ensure_ascii=True)
    if len(flat) + depth < 120 or not isinstance(value, dict | list):
        return flat
    indent = " " * (depth + 1)
    if isinstance(value, dict):
        parts = [f"{indent}{json.dumps(k)}: {_lines(v, depth + 1)}" for k, v in value.items()]
        return "{\n" + ",\n".join(parts) + f"\n{' ' * depth}}}"
    return "[\n" + ",\n".join(indent + _lines(v, depth + 1) for v in value) + f"\n{' ' * depth}]"


def _pack(value: Any) -> Any:
    match value:
        case Enum():
            return {type(value).__name__: value.name}
        case None | bool() | int() | str():
            return value
        case float() | Decimal():
            return {type(value).__name__: repr(value) if isinstance(value, float) else str(value)}
        case date():
            return {type(value).__name__: value.isoformat()}
        case tuple():
            return [_pack(v) for v in value]
        case frozenset():
            return {"frozenset": sorted(_pack(v) for v in value)}
        case Mapping():
            return {"mapping": [[_pack(k), _pack(v)] for k, v in value.items()]}
        case _:
            told = {f.name: getattr(value, f.name) for f in dataclasses.fields(value) if not _is_default(value, f)}
            return {"is": type(value).__name__, **{name: _pack(v) for name, v in told.items()}}


def _is_default(value: Any, field: dataclasses.Field[Any]) -> bool:
    if field.default is not MISSING:
        return bool(getattr(value, field.name) == field.default)
    return field.default_factory is not MISSING and bool(getattr(value, field.name) == field.default_factory())


def _unpack(value: Any) -> Any:
    match value:
        case list():
            return tuple(_unpack(v) for v in value)
        case {"is": name, **fields}:
            return _CLASSES[name](**{str(k): _unpack(v) for k, v in fields.items()})
        case dict():
            ((kind, told),) = value.items()
            return _unpack_value(kind, told)
        case _:
            return value


def _unpack_value(kind: str, told: Any) -> Any:
    match kind:
        case "mapping":
            return MappingProxyType({_unpack(k): _unpack(v) for k, v in told})
        case "frozenset":
            return frozenset(_unpack(told))
        case "float":
            return float(told)
        case "Decimal":
            return Decimal(told)
        case "date":
            return date.fromisoformat(told)
        case "datetime":
            return datetime.fromisoformat(told)
        case _:
            return _CLASSES[kind][told]
