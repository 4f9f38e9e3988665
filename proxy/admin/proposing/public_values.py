"""Which values do the columns of public tables have that the policy says nothing of?

They are everybody's, so a column of few values gets them as its domain: groups by it are public then. They are read
when the policy is loaded, from the rows that the public PostgreSQL is given. They are enforced like declared values: a
row that has others later is left out, and reveals nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import date, datetime

from proxy.policy.model import Column, Listed, Table, Unknown
from proxy.sqltypes import SqlType, Value

MOST_VALUES = 1000  # of one column: each statement that asks about it lists them
MOST_CHARACTERS = 20_000
MOST_ROWS = 100_000  # of a table that is looked through
_TEXTS = (SqlType.TEXT, SqlType.VARCHAR, SqlType.BPCHAR)


def with_found_values(
    tables: Mapping[str, Table], rows: Callable[[Table], Iterator[tuple[object, ...]]]
) -> Mapping[str, Table]:
    """The public tables of which some column got its values, by name. Raises ConfigError if they cannot be read."""
    return {name: found for name, t in tables.items() if t.is_public and (found := _with_values(t, rows)) is not t}


def _with_values(table: Table, rows: Callable[[Table], Iterator[tuple[object, ...]]]) -> Table:
    shown = [c for c in table.columns if not c.hidden]
    held = {c.name: _Held(c) for c in shown if isinstance(c.domain, Unknown) and _is_listed(c)}
    if not held:
        return table
    read = rows(table)
    for number, row in enumerate(read, start=1):
        for column, cell in zip(shown, row, strict=True):
            if column.name in held and not held[column.name].took(cell):
                del held[column.name]
        if not held or number > MOST_ROWS:
            held.clear()
            break
    if isinstance(read, Generator):
        read.close()  # with the engine's cursor
    found = {name: of.listed() for name, of in held.items() if of.values}
    return replace(table, columns=tuple(found.get(c.name, c) for c in table.columns)) if found else table


def _is_listed(column: Column) -> bool:
    return column.type in _TEXTS or column.type.is_integer or column.type is SqlType.DATE


@dataclass(slots=True)
class _Held:
    """The values of a column so far, and whether it has a NULL."""

    column: Column
    values: set[Value] = field(default_factory=set)
    has_null: bool = False
    characters: int = 0

    def took(self, cell: object) -> bool:
        """Whether all values up to this one can be listed."""
        if cell is None:
            self.has_null = True
            return True
        try:
            value = _value(self.column.type, cell)
        except ValueError:
            return False
        if value not in self.values:
            self.values.add(value)
            self.characters += len(str(value))
        return len(self.values) <= MOST_VALUES and self.characters <= MOST_CHARACTERS

    def listed(self) -> Column:
        domain = Listed(tuple(sorted(self.values)))
        return replace(self.column, domain=domain, nullable=self.has_null, found=True)


def _value(kind: SqlType, cell: object) -> Value:
    """A cell as a constant. Raises ValueError for what is no constant of the type, as an infinite date."""
    if kind in _TEXTS:
        text = str(cell)
        return text.rstrip(" ") if kind is SqlType.BPCHAR else text
    if kind.is_integer:
        return int(str(cell))
    if isinstance(cell, date) and not isinstance(cell, datetime):
        return cell
    return date.fromisoformat(str(cell))
