"""What does a dbt project say about the tables of a database?

Read from its manifest.json: descriptions, and the tests `not_null`, `unique`, `accepted_values` and `relationships`.
They are taken as constraints of the database are; what a policy says because of them is enforced or checked against the
data.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from proxy.admin.files import read_text
from proxy.engines.described import ForeignKey, FoundColumn, FoundTable
from proxy.errors import ConfigError
from proxy.sql.conditions.checks import Said

_RELATIONS = frozenset(("model", "seed", "snapshot", "source"))


class _Part(BaseModel):
    """A part of a manifest. Of its many keys those below are read; all others are let be."""

    model_config = ConfigDict(extra="ignore", frozen=True)


class _Column(_Part):
    description: str = ""


class _TestMetadata(_Part):
    name: str = ""
    kwargs: dict[str, Any] = {}


class _DependsOn(_Part):
    nodes: tuple[str, ...] = ()


class _Node(_Part):
    resource_type: str
    name: str = ""
    alias: str | None = None
    identifier: str | None = None
    schema_name: str | None = Field(default=None, alias="schema")
    description: str = ""
    columns: dict[str, _Column] = {}
    test_metadata: _TestMetadata | None = None
    column_name: str | None = None
    attached_node: str | None = None
    depends_on: _DependsOn = _DependsOn()


class _Manifest(_Part):
    nodes: dict[str, _Node]
    sources: dict[str, _Node]


@dataclass(frozen=True, slots=True)
class Project:
    """Tables and tests of a dbt project, by dbt's own keys.

    relations: schema and name of each table, in small letters. described: what the project says of it.
    """

    relations: Mapping[str, tuple[str, str]]
    described: Mapping[str, _Node]
    tests: tuple[_Node, ...]


def read_project(path: Path) -> Project:
    """The project of a manifest.json. Raises ConfigError."""
    text = read_text(path, "dbt manifest")
    try:
        found = _Manifest.model_validate_json(text)
    except ValidationError as error:
        raise ConfigError(
            f"{path} is no manifest of dbt", hint="Run 'dbt parse' and give the target/manifest.json that it writes."
        ) from error
    every = {**found.nodes, **found.sources}
    tables = {key: node for key, node in every.items() if node.resource_type in _RELATIONS}
    return Project(
        relations={key: _relation(node) for key, node in tables.items()}, described=tables,
        tests=tuple(node for node in every.values() if node.resource_type == "test" and node.test_metadata is not None),
    )  # fmt: skip


def with_dbt(tables: Sequence[FoundTable], project: Project) -> tuple[FoundTable, ...]:
    """The tables with what the project says of them. Raises ConfigError if it says nothing of any."""
    of = {key: table for key, relation in project.relations.items() for table in tables if _is(table, relation)}
    if not of:
        raise ConfigError(
            "the dbt project has no model, seed, snapshot or source among these tables",
            hint="Give the manifest of the target that this database is.",
        )
    found = {table.relation: table for table in tables}
    for key, table in of.items():
        found[table.relation] = _described(found[table.relation], project.described[key])
    for test in project.tests:
        key = test.attached_node or (test.depends_on.nodes[-1] if test.depends_on.nodes else "")
        if key in of:
            relation = of[key].relation
            found[relation] = _tested(found[relation], test, key, of)
    return tuple(_with_primary(found[table.relation]) for table in tables)


def _relation(node: _Node) -> tuple[str, str]:
    return (node.schema_name or "").lower(), (node.alias or node.identifier or node.name).lower()


def _is(table: FoundTable, relation: tuple[str, str]) -> bool:
    """Whether dbt means the table; those of files have no schema."""
    parts = tuple(part.lower() for part in table.relation)
    return parts[-1] == relation[1] and (len(parts) == 1 or parts[-2] == relation[0])


def _described(table: FoundTable, node: _Node) -> FoundTable:
    words = {name.lower(): column.description for name, column in node.columns.items()}
    columns = tuple(replace(c, comment=words.get(c.name.lower(), "") or c.comment) for c in table.columns)
    return replace(table, comment=node.description or table.comment, columns=columns)


def _tested(table: FoundTable, test: _Node, key: str, of: Mapping[str, FoundTable]) -> FoundTable:
    """The table with the one fact of a test; others than the four say nothing that a policy knows."""
    assert test.test_metadata is not None
    name, given = test.test_metadata.name, test.test_metadata.kwargs
    called = str(given.get("column_name") or test.column_name or "").strip('"`').lower()
    column = next((c for c in table.columns if c.name.lower() == called), None)
    if column is None or given.get("where") or (given.get("config") or {}).get("where"):
        return table  # of some rows alone it is no fact of the column
    match name:
        case "not_null":
            return _with_column(table, replace(column, is_nullable=False))
        case "unique" if (column.name,) not in table.unique:
            return replace(table, unique=(*table.unique, (column.name,)))
        case "accepted_values" if not column.said.values:
            values = tuple(str(value) for value in given.get("values") or ())
            return _with_column(table, replace(column, said=Said(values=values)))
        case "relationships":
            return replace(table, references=(*table.references, *_references(table, column, test, key, of)))
        case _:
            return table


def _with_primary(table: FoundTable) -> FoundTable:
    """The table with the first column that is unique and not null as its key, where the database declares none."""
    present = {(column.name,) for column in table.columns if not column.is_nullable}
    key = next((columns for columns in table.unique if columns in present), ())
    return table if table.primary or not key else replace(table, primary=key)


def _with_column(table: FoundTable, column: FoundColumn) -> FoundTable:
    return replace(table, columns=tuple(column if c.name == column.name else c for c in table.columns))


def _references(
    table: FoundTable, column: FoundColumn, test: _Node, key: str, of: Mapping[str, FoundTable]
) -> Iterator[ForeignKey]:
    """The foreign key that a test of relationships is about, unless the database declares it."""
    assert test.test_metadata is not None
    others = [node for node in test.depends_on.nodes if node != key] or [key]
    field = str(test.test_metadata.kwargs.get("field") or "").strip('"`').lower()
    other = of.get(others[0])
    theirs = next((c.name for c in other.columns if c.name.lower() == field), "") if other is not None else ""
    if other is not None and theirs and all(r.columns != (column.name,) for r in table.references):
        yield ForeignKey((column.name,), other.relation, (theirs,))
