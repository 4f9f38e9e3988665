"""What does a database say about its tables, rows left out?

Read from its catalogue alone, so that what is proposed from it can be shown to anybody who may see the catalogue.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from proxy.sql.conditions.checks import Said
from proxy.sqltypes import SqlType

#: Told how many tables were read, and of how many.
LookingProgress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class Unservable:
    """A type that no policy can name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundColumn:
    """stated_type: as the database calls it. said: by an enumeration or by CHECK constraints.

    called: the name as the database writes it, where `name` has other letters. is_untyped: a column of CSV, whose type
    the rows alone could tell. comment: what people say of it.
    """

    name: str
    stated_type: str
    type: SqlType | Unservable
    is_nullable: bool = True
    said: Said = field(default_factory=Said)
    called: str = ""
    is_untyped: bool = False
    comment: str = ""


@dataclass(frozen=True, slots=True)
class ForeignKey:
    """A foreign key."""

    columns: tuple[str, ...]
    table: tuple[str, ...]
    ref_columns: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundTable:
    """relation: schema and name. unique: columns of constraints, the primary key's among them.

    reads: the tables that a view reads. comment: what people say of it.
    """

    relation: tuple[str, ...]
    columns: tuple[FoundColumn, ...]
    primary: tuple[str, ...] = ()
    unique: tuple[tuple[str, ...], ...] = ()
    references: tuple[ForeignKey, ...] = ()
    is_view: bool = False
    reads: tuple[tuple[str, ...], ...] = ()
    comment: str = ""


def about(name: str, facts: Mapping[str, Said]) -> Said:
    """What constraints say about a column; names that were not quoted may have lost their case."""
    return facts.get(name) or facts.get(name.lower()) or Said()
