"""Do the data of a cluster keep what the policy declares about them?

As for the other engines. Numeric columns have few enough digits that each comparison has a common type: see `accepts`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from proxy.engines.base import EngineColumn, EngineStopped, Facts, JoinFact
from proxy.engines.spark_client import SparkConnection
from proxy.errors import ConfigError
from proxy.policy.model import Policy, Table, UnitColumns, UnitVia
from proxy.sql.render.spark.dialect import MOST_DIGITS, SPARK
from proxy.sqltypes import SqlType

_INT2 = ("tinyint", "smallint")
_INT4 = (*_INT2, "int")
_INT8 = (*_INT4, "bigint")
_DECIMAL = re.compile(r"decimal\((\d+),\d+\)")
_MOST_BYTES = 1 << 20

#: Spark's types whose every value the policy's type can hold, as `simpleString` names them.
ACCEPTED: dict[SqlType, tuple[str, ...]] = {
    SqlType.BOOL: ("boolean",),
    SqlType.INT2: _INT2,
    SqlType.INT4: _INT4,
    SqlType.INT8: _INT8,
    SqlType.NUMERIC: _INT8,
    SqlType.FLOAT4: ("float",),
    SqlType.FLOAT8: ("float", "double"),
    SqlType.TEXT: ("string",),
    SqlType.VARCHAR: ("string",),
    SqlType.BPCHAR: ("string",),
    SqlType.UUID: (),
    SqlType.DATE: ("date",),
    SqlType.TIMESTAMP: ("timestamp_ntz",),
    SqlType.TIMESTAMPTZ: ("timestamp",),
    SqlType.INTERVAL: (),
}


def check_facts(connection: SparkConnection, policy: Policy) -> Facts:
    """See `Engine.check_facts`."""
    columns: list[EngineColumn] = []
    problems: list[str] = []
    for table in policy.tables.values():
        problems += _check_table(connection, table, columns)
    if not problems:  # uniqueness can only be asked of columns that exist
        problems += _duplicate_units(connection, policy)
        problems += _duplicate_parents(connection, policy)
        problems += _incomplete_joins(connection, policy)
    if problems:
        raise ConfigError(
            "the data do not keep what the policy declares: " + "; ".join(problems),
            hint="Correct the policy or the data; the dataset is not served until they agree.",
        )
    return Facts(columns=tuple(columns), joins=tuple(_join_facts(connection, policy)))


def accepts(wanted: SqlType, engine_type: str) -> bool:
    """Whether every value of Spark's type is one of the policy's type."""
    decimal = _DECIMAL.fullmatch(engine_type)
    if wanted is SqlType.NUMERIC and decimal is not None:
        return int(decimal[1]) <= MOST_DIGITS
    return engine_type in ACCEPTED[wanted]


# --- columns --------------------------------------------------------------------------------------


def _check_table(connection: SparkConnection, table: Table, columns: list[EngineColumn]) -> Iterator[str]:
    """Servers differ in what they say of files that are not there: some, that they have no columns."""
    try:
        found = dict(connection.columns(f"SELECT * FROM {SPARK.relation(table.relation)}"))
    except EngineStopped:
        found = {}
    if not found:
        yield f"table {table.name}: the server has no relation {'.'.join(table.relation)}, or may not read it"
        return
    for column in table.columns:
        name = f"{table.name}.{column.name}"
        engine_type = found.get(column.name)
        if engine_type is None:
            yield f"{name}: the data have no column that is spelled so"
        elif not accepts(column.type, engine_type):
            yield f"{name}: is {engine_type} in the data, {column.type.pg_name} in the policy"
        else:
            columns.append(EngineColumn(table=table.name, column=column.name, engine_type=engine_type))


# --- uniqueness -----------------------------------------------------------------------------------


def _duplicate_units(connection: SparkConnection, policy: Policy) -> Iterator[str]:
    for table in policy.private_tables():
        if table.unit_unique and isinstance(table.ownership, UnitColumns):
            units = table.ownership.columns
            if _has_duplicates(connection, policy, table, units):
                names = ", ".join(f"{table.name}.{unit}" for unit in units)
                yield f"{names}: 'unit_unique' is declared, and a unit has more than one row"


def _duplicate_parents(connection: SparkConnection, policy: Policy) -> Iterator[str]:
    paths = [t.ownership for t in policy.private_tables() if isinstance(t.ownership, UnitVia)]
    for parent, key in dict.fromkeys((path.parent, path.parent_key) for path in paths):
        if _has_duplicates(connection, policy, policy.tables[parent], (key,)):
            yield f"{parent}.{key}: rows find their unit through this key, and it is not unique"


def _incomplete_joins(connection: SparkConnection, policy: Policy) -> Iterator[str]:
    for table in policy.tables.values():
        for join in table.complete_joins:
            other, zone = policy.tables[join.table], policy.privacy.time_zone
            ours, theirs = _compared(table, join.column, zone), _compared(other, join.ref_column, zone)
            rows = f"SELECT {ours} AS ours FROM {SPARK.relation(table.relation)}"
            met = f"SELECT {theirs} AS theirs FROM {SPARK.relation(other.relation)}"
            sql = f"SELECT 1 FROM ({rows}) AS a LEFT ANTI JOIN ({met}) AS b ON a.ours = b.theirs LIMIT 1"
            if _found_any(connection, sql, f"{table.name}.{join.column} meets a row of {other.name}"):
                yield f"{table.name}.{join.column}: 'complete_joins' names it, and a row meets none of {other.name}"


def _join_facts(connection: SparkConnection, policy: Policy) -> Iterator[JoinFact]:
    for table in policy.tables.values():
        for join in table.joins:
            other = policy.tables[join.table]
            if not other.is_promised:
                yield JoinFact(
                    table=table.name, column=join.column, ref_table=join.table, ref_column=join.ref_column,
                    is_unique=not _has_duplicates(connection, policy, other, (join.ref_column,)),
                )  # fmt: skip


def _has_duplicates(connection: SparkConnection, policy: Policy, table: Table, columns: tuple[str, ...]) -> bool:
    """Whether two rows agree in all `columns`, none of them NULL. Raises ConfigError if it cannot be found out."""
    compared = [_compared(table, column, policy.privacy.time_zone) for column in columns]
    sql = (
        f"SELECT 1 FROM {SPARK.relation(table.relation)}"
        f" WHERE {' AND '.join(f'{value} IS NOT NULL' for value in compared)}"
        f" GROUP BY {', '.join(compared)} HAVING count(*) > 1 LIMIT 1"
    )
    return _found_any(connection, sql, f"{table.name} ({', '.join(columns)}) is unique")


def _found_any(connection: SparkConnection, sql: str, what: str) -> bool:
    """Whether a query has a row. Raises ConfigError if it cannot be found out."""
    try:
        return bool(connection.rows(sql, max_bytes=_MOST_BYTES)[1])
    except EngineStopped as error:
        raise ConfigError(f"whether {what} could not be found out: {error.exception_name}") from error


def _compared(table: Table, name: str, zone: str) -> str:
    """The value that private statements compare: coarser than the stored one where they compute in another type."""
    column, stored = table.column(name), SPARK.quote(name)
    match column.type if column else SqlType.TEXT:
        case SqlType.NUMERIC:
            return SPARK.as_double(stored)
        case SqlType.BPCHAR:
            return f"rtrim({stored})"
        case SqlType.TIMESTAMPTZ:
            return SPARK.local_time(stored, zone)
        case _:
            return stored
