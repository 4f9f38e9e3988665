"""Which relation stands in the place of a private table whose rows are made up?

Sees names, types and texts of values, never where they come from. Keys of public tables are drawn where those tables
are: in PostgreSQL, from rows that everybody may see.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from proxy.sql.query.front.splice import InjectedColumn, Patch, array_type
from proxy.sql.query.probe import EmptyTable
from proxy.sql.query.split import RESERVED
from proxy.sql.render.dialect import quote
from proxy.sqltypes import SqlType

_MOST_DRAWN = 1000


@dataclass(frozen=True, slots=True)
class DrawnKey:
    """Values of `column` come from a public table's column, at places from 0; its own stay where that has no rows."""

    column: str
    table: str
    source: str
    places: tuple[int, ...]


def made_table(place: EmptyTable, columns: Sequence[InjectedColumn], drawn: Sequence[DrawnKey]) -> Patch:
    """A sub-select with these columns, in order, in the place of a table's name."""
    marker = f'"hush_system" AS "{RESERVED}"'
    sources = {d.column: n for n, d in enumerate(drawn, 1)}
    places = _unlike([c.name for c in columns], len(drawn))
    items = [
        _item(c, f"{RESERVED}_{sources[c.name]}", places[sources[c.name] - 1]) if c.name in sources
        else f"{quote(RESERVED)}.{quote(c.name)}"
        for c in columns
    ]  # fmt: skip
    joined = "".join(_source(d, f"{RESERVED}_{n}") for n, d in enumerate(drawn, 1))
    alias = f" AS {quote(place.table.name)}" if place.needs_alias else ""
    numbers = [
        InjectedColumn(name, SqlType.INT4, tuple(map(str, d.places))) for name, d in zip(places, drawn, strict=True)
    ]
    template = f"(SELECT {', '.join(items)} FROM {marker}{joined}){alias}"
    return Patch(place.span, template, marker, (*columns, *numbers))


def _item(column: InjectedColumn, source: str, place: str) -> str:
    """A value at its place, round and round; no rows have no places."""
    found = f"{quote(source)}.found"
    count = f"NULLIF(pg_catalog.cardinality({found}), 0)"
    at = f"1 OPERATOR(pg_catalog.+) pg_catalog.mod({quote(RESERVED)}.{quote(place)}, {count})"
    own = f"{quote(RESERVED)}.{quote(column.name)}"
    kind = array_type(column.type).removesuffix("[]")
    return f"COALESCE(CAST({found}[{at}] AS {kind}), {own}) AS {quote(column.name)}"


def _source(drawn: DrawnKey, name: str) -> str:
    value, table = quote(drawn.source), f"public.{quote(drawn.table)}"
    values = f"SELECT DISTINCT {value} FROM {table} WHERE {value} IS NOT NULL ORDER BY {value} LIMIT {_MOST_DRAWN}"
    return f" CROSS JOIN (SELECT ARRAY({values})) AS {quote(name)}(found)"


def _unlike(names: Sequence[str], count: int) -> list[str]:
    """Names that no column has."""
    found, number = list[str](), 0
    while len(found) < count:
        number += 1
        if f"place_{number}" not in names:
            found.append(f"place_{number}")
    return found
