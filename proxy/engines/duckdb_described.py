"""What does a DuckDB database, or a CSV or Parquet file, say about its tables?"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import duckdb

from proxy.engines.described import ForeignKey, FoundColumn, FoundTable, LookingProgress, Unservable, about
from proxy.engines.duckdb_facts import accepts
from proxy.errors import ConfigError
from proxy.sql.conditions.checks import Said, said
from proxy.sql.render.dialect import text_literal
from proxy.sqltypes import SqlType

# The narrowest type that holds a column's values is proposed; `char` and `varchar` are no types of their own here.
_PROPOSED = tuple(t for t in SqlType if t not in (SqlType.VARCHAR, SqlType.BPCHAR, SqlType.INTERVAL))
_ENUM_VALUE = re.compile(r"'((?:[^']|'')*)'")


def describe_database(path: Path, progress: LookingProgress) -> tuple[FoundTable, ...]:
    """The tables of a DuckDB file, which is opened read-only. Raises ConfigError."""
    with _opened(path) as connection:
        names = connection.execute(
            "select schema_name, table_name from duckdb_tables() where not internal and not temporary"
            " and database_name = current_database() order by all"
        ).fetchall()
        tables = []
        for number, (schema, name) in enumerate(names, start=1):
            tables.append(_in_small_letters(_table(connection, str(schema), str(name))))
            progress(number, len(names))
        return tuple(tables)


def describe_file(path: Path) -> FoundTable:
    """The columns of a CSV or Parquet file; those of CSV are text, as only rows could say more. Raises ConfigError."""
    if not path.is_file():
        raise ConfigError(f"{path} is no file")
    is_csv = not path.name.lower().endswith((".parquet", ".pq"))
    reader = "read_csv({}, header = true, all_varchar = true)" if is_csv else "read_parquet({})"
    failure = False
    with contextlib.closing(duckdb.connect(":memory:")) as connection:
        try:
            rows = connection.execute(f"describe from {reader.format(text_literal(str(path)))}").fetchall()
        except duckdb.Error:
            rows, failure = [], True
    if failure:  # outside the handler: the words of a reader quote rows
        raise ConfigError(f"{path} cannot be read as {'CSV with a header' if is_csv else 'Parquet'}")
    columns = (_column(str(row[0]), str(row[1]), is_nullable=True, checked=Said()) for row in rows)
    found = FoundTable(
        relation=(path.name.split(".")[0],), columns=tuple(replace(c, is_untyped=is_csv) for c in columns)
    )
    return _in_small_letters(found)


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    settings: dict[str, str | bool | int | float | list[str]] = {
        "autoinstall_known_extensions": False,
        "autoload_known_extensions": False,
    }
    try:
        connection = duckdb.connect(str(path), read_only=True, config=settings)
    except duckdb.Error as error:
        raise ConfigError(
            f"{path} cannot be opened as a DuckDB database", hint="Is it readable, and not open for writing elsewhere?"
        ) from error
    with contextlib.closing(connection):
        yield connection


def _table(connection: duckdb.DuckDBPyConnection, schema: str, name: str) -> FoundTable:
    of_table = "where database_name = current_database() and schema_name = ? and table_name = ?"
    constraints = connection.execute(
        "select constraint_type, constraint_column_names, referenced_table, referenced_column_names, expression"
        f" from duckdb_constraints() {of_table} order by constraint_index",
        [schema, name],
    ).fetchall()
    checked: dict[str, Said] = {}
    for _, _, _, _, expression in (c for c in constraints if c[0] == "CHECK"):
        for column, one in said(str(expression)).items():
            checked[column] = checked.get(column, Said()).and_also(one)
    columns = connection.execute(
        f"select column_name, data_type, is_nullable from duckdb_columns() {of_table} order by column_index",
        [schema, name],
    ).fetchall()
    keys = [(kind, tuple(map(str, names))) for kind, names, *_ in constraints if kind in ("PRIMARY KEY", "UNIQUE")]
    references = (
        ForeignKey(tuple(map(str, names)), (schema, str(other)), tuple(map(str, their)))
        for kind, names, other, their, _ in constraints
        if kind == "FOREIGN KEY" and other is not None
    )
    return FoundTable(
        relation=(schema, name),
        columns=tuple(
            _column(str(c), str(kind), is_nullable=bool(is_nullable), checked=about(str(c), checked))
            for c, kind, is_nullable in columns
        ),
        primary=next((names for kind, names in keys if kind == "PRIMARY KEY"), ()),
        unique=tuple(dict.fromkeys(names for _, names in keys)),
        references=tuple(dict.fromkeys(references)),
    )


def _column(name: str, stated: str, *, is_nullable: bool, checked: Said) -> FoundColumn:
    found = next((kind for kind in _PROPOSED if accepts(kind, stated)), Unservable())
    if stated.startswith("ENUM("):
        values = tuple(v.replace("''", "'") for v in _ENUM_VALUE.findall(stated))
        checked = Said(values=values).and_also(checked)
        stated = "ENUM"
    return FoundColumn(name=name, stated_type=stated, type=found, is_nullable=is_nullable, said=checked)


def _in_small_letters(table: FoundTable) -> FoundTable:
    """The table with its columns' names in small letters, as clients write them; DuckDB reads them as the same.

    Tables that references name keep theirs.
    """

    def small(names: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(name.lower() for name in names)

    return replace(
        table,
        columns=tuple(replace(c, name=c.name.lower(), called=c.name) for c in table.columns),
        primary=small(table.primary),
        unique=tuple(map(small, table.unique)),
        references=tuple(ForeignKey(small(r.columns), r.table, small(r.ref_columns)) for r in table.references),
    )
