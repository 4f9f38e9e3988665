"""Do the data keep what the policy declares about them?

Every relation and column exists with a type the policy's type can stand for, tables with one row per unit have one, and
the keys that rows follow to their unit are unique. Problems name tables and columns; no value is ever read out.
"""

from __future__ import annotations

from collections.abc import Iterator

import duckdb

from proxy.engines.base import EngineColumn, Facts, JoinFact
from proxy.engines.randomized_facts import not_randomized_so
from proxy.errors import ConfigError
from proxy.policy.model import Policy, Table, UnitColumns, UnitVia
from proxy.sql.render.dialect import quote, text_literal
from proxy.sql.render.duckdb.dialect import DUCKDB
from proxy.sql.render.exact import MOST_DECIMALS
from proxy.sqltypes import SqlType

_INT2 = ("TINYINT", "UTINYINT", "SMALLINT")
_INT4 = (*_INT2, "USMALLINT", "INTEGER")
_INT8 = (*_INT4, "UINTEGER", "BIGINT")
_TEXT = ("VARCHAR", "ENUM")

#: Engine types whose every value the policy's type can hold. Parameters, as in DECIMAL(10,2), are left off.
ACCEPTED: dict[SqlType, tuple[str, ...]] = {
    SqlType.BOOL: ("BOOLEAN",),
    SqlType.INT2: _INT2,
    SqlType.INT4: _INT4,
    SqlType.INT8: _INT8,
    SqlType.NUMERIC: (*_INT8, "UBIGINT", "HUGEINT", "UHUGEINT", "DECIMAL"),
    SqlType.FLOAT4: ("FLOAT",),
    SqlType.FLOAT8: ("FLOAT", "DOUBLE"),
    SqlType.TEXT: _TEXT,
    SqlType.VARCHAR: _TEXT,
    SqlType.BPCHAR: _TEXT,
    SqlType.UUID: ("UUID",),
    SqlType.DATE: ("DATE",),
    SqlType.TIMESTAMP: ("TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS"),
    SqlType.TIMESTAMPTZ: ("TIMESTAMP WITH TIME ZONE",),
    SqlType.INTERVAL: ("INTERVAL",),
}


def check_facts(connection: duckdb.DuckDBPyConnection, policy: Policy) -> Facts:
    """See `Engine.check_facts`. `connection` uses the source database."""
    columns: list[EngineColumn] = []
    problems: list[str] = []
    for table in policy.tables.values():
        problems += _check_table(connection, table, columns)
    if not problems:  # uniqueness can only be asked of columns that exist
        problems += _duplicate_units(connection, policy)
        problems += _duplicate_parents(connection, policy)
        problems += _incomplete_joins(connection, policy)
        problems += not_randomized_so(
            policy, lambda t: DUCKDB.relation(t.relation), lambda sql: _counts(connection, sql)
        )
    if problems:
        raise ConfigError(
            "the data do not keep what the policy declares: " + "; ".join(problems),
            hint="Correct the policy or the data; the dataset is not served until they agree.",
        )
    return Facts(columns=tuple(columns), joins=tuple(_join_facts(connection, policy)))


def _counts(connection: duckdb.DuckDBPyConnection, sql: str) -> dict[int, int]:
    """Rows by place. Raises ConfigError without the engine's words, which may hold a value."""
    try:
        return {int(place): int(rows) for place, rows in connection.execute(sql).fetchall()}
    except duckdb.Error:
        raise ConfigError("the values of a randomized column cannot be counted") from None


def accepts(wanted: SqlType, engine_type: str) -> bool:
    """Whether every value of the engine's type is one of the policy's type."""
    return engine_type.partition("(")[0] in ACCEPTED[wanted] and not engine_type.endswith("]")


# --- columns --------------------------------------------------------------------------------------


def _check_table(connection: duckdb.DuckDBPyConnection, table: Table, columns: list[EngineColumn]) -> Iterator[str]:
    if len(table.relation) > 2:
        yield f"table {table.name}: write relation as schema.table"
        return
    found = _types(connection, table)
    if not found:
        yield f"table {table.name}: the data have no relation {'.'.join(table.relation)}"
        return
    for column in table.columns:
        name = f"{table.name}.{column.name}"
        engine_type = found.get(column.name.lower())
        if engine_type is None:
            yield f"{name}: the data have no such column"
        elif not accepts(column.type, engine_type):
            yield f"{name}: is {engine_type.partition('(')[0]} in the data, {column.type.pg_name} in the policy"
        elif _decimals(engine_type) > MOST_DECIMALS:
            yield f"{name}: is DECIMAL with more than {MOST_DECIMALS} digits after the point; numeric holds fewer here"
        else:
            columns.append(EngineColumn(table=table.name, column=column.name, engine_type=engine_type))


def _decimals(engine_type: str) -> int:
    """Digits after the point of DECIMAL(width,scale); 0 for other types."""
    _, _, scale = engine_type.removesuffix(")").partition(",")
    return int(scale) if engine_type.startswith("DECIMAL(") else 0


def _types(connection: duckdb.DuckDBPyConnection, table: Table) -> dict[str, str]:
    schema, name = ("main", *table.relation)[-2:]
    rows = connection.execute(
        "select column_name, data_type from duckdb_columns() where database_name = current_database()"
        " and lower(schema_name) = lower(?) and lower(table_name) = lower(?)",
        [schema, name],
    ).fetchall()
    return {str(column).lower(): str(kind) for column, kind in rows}


# --- uniqueness -----------------------------------------------------------------------------------


def _duplicate_units(connection: duckdb.DuckDBPyConnection, policy: Policy) -> Iterator[str]:
    for table in policy.private_tables():
        if table.unit_unique and isinstance(table.ownership, UnitColumns):
            units = table.ownership.columns
            if _has_duplicates(connection, policy, table, units):
                names = ", ".join(f"{table.name}.{unit}" for unit in units)
                yield f"{names}: 'unit_unique' is declared, and a unit has more than one row"


def _duplicate_parents(connection: duckdb.DuckDBPyConnection, policy: Policy) -> Iterator[str]:
    paths = [t.ownership for t in policy.private_tables() if isinstance(t.ownership, UnitVia)]
    for parent, key in dict.fromkeys((path.parent, path.parent_key) for path in paths):
        if _has_duplicates(connection, policy, policy.tables[parent], (key,)):
            yield f"{parent}.{key}: rows find their unit through this key, and it is not unique"


def _incomplete_joins(connection: duckdb.DuckDBPyConnection, policy: Policy) -> Iterator[str]:
    for table in policy.tables.values():
        for join in table.complete_joins:
            other, zone = policy.tables[join.table], policy.privacy.time_zone
            ours, theirs = _compared(table, join.column, zone), _compared(other, join.ref_column, zone)
            rows = f"select {ours} as ours from {DUCKDB.relation(table.relation)}"
            met = f"select {theirs} from {DUCKDB.relation(other.relation)} where {theirs} is not null"
            sql = f"select 1 from ({rows}) where ours is null or ours not in ({met}) limit 1"
            if _found_any(connection, sql, f"{table.name}.{join.column} meets a row of {other.name}"):
                yield f"{table.name}.{join.column}: 'complete_joins' names it, and a row meets none of {other.name}"


def _join_facts(connection: duckdb.DuckDBPyConnection, policy: Policy) -> Iterator[JoinFact]:
    for table in policy.tables.values():
        for join in table.joins:
            other = policy.tables[join.table]
            if not other.is_promised:
                is_unique = not _has_duplicates(connection, policy, other, (join.ref_column,))
                yield JoinFact(
                    table=table.name,
                    column=join.column,
                    ref_table=join.table,
                    ref_column=join.ref_column,
                    is_unique=is_unique,
                )


def _has_duplicates(
    connection: duckdb.DuckDBPyConnection, policy: Policy, table: Table, columns: tuple[str, ...]
) -> bool:
    """Whether two rows agree in all `columns`, none of them NULL. Raises ConfigError if it cannot be found out."""
    compared = [_compared(table, column, policy.privacy.time_zone) for column in columns]
    sql = (
        f"select 1 from {DUCKDB.relation(table.relation)}"
        f" where {' and '.join(f'{value} is not null' for value in compared)}"
        f" group by {', '.join(compared)} having count(*) > 1 limit 1"
    )
    return _found_any(connection, sql, f"{table.name} ({', '.join(columns)}) is unique")


def _found_any(connection: duckdb.DuckDBPyConnection, sql: str, what: str) -> bool:
    """Whether a query has a row. Raises ConfigError if it cannot be found out."""
    found: list[tuple[object, ...]] | str
    try:
        found = connection.execute(sql).fetchall()
    except duckdb.Error as error:
        found = type(error).__name__
    if isinstance(found, str):
        raise ConfigError(f"whether {what} could not be found out: {found}")
    return bool(found)


def _compared(table: Table, name: str, zone: str) -> str:
    """The value that private statements compare: coarser than the stored one where they compute in another type."""
    column, stored = table.column(name), quote(name)
    match column.type if column else SqlType.TEXT:
        case SqlType.NUMERIC:
            return f"{stored}::double"
        case SqlType.BPCHAR:
            return f"rtrim({stored}::varchar)"
        case SqlType.TIMESTAMPTZ:
            return f"({stored} at time zone {text_literal(zone)})"
        case _:
            return stored
