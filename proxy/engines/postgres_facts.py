"""Does a PostgreSQL database keep what the policy declares about it?

Its rows may change while they are served, so a fact that privacy rests on must be one that the database keeps by
itself: a unique index, or the precision of a type. Problems name tables and columns; rows are read to count the values
of randomized columns alone.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from proxy.engines.base import EngineColumn, Facts, JoinFact
from proxy.engines.postgres_open import EngineConnection
from proxy.engines.randomized_facts import not_randomized_so
from proxy.errors import ConfigError
from proxy.policy.model import Policy, Table, UnitColumns, UnitVia
from proxy.sql.render.dialect import quote, text_literal
from proxy.sql.render.postgres.dialect import DEFAULT_SCHEMA, POSTGRES
from proxy.sqltypes import SqlType

_INT2, _INT4, _INT8 = ("int2",), ("int2", "int4"), ("int2", "int4", "int8")
_ENUM = "enum"

#: Types of the server whose every value the policy's type can hold; domains count as what they are made of.
ACCEPTED: dict[SqlType, tuple[str, ...]] = {
    SqlType.BOOL: ("bool",),
    SqlType.INT2: _INT2,
    SqlType.INT4: _INT4,
    SqlType.INT8: _INT8,
    SqlType.NUMERIC: (*_INT8, "numeric"),
    SqlType.FLOAT4: ("float4",),
    SqlType.FLOAT8: ("float4", "float8"),
    SqlType.TEXT: ("text", "varchar", _ENUM),
    SqlType.VARCHAR: ("text", "varchar", _ENUM),
    SqlType.BPCHAR: ("bpchar", "text", "varchar", _ENUM),
    SqlType.UUID: ("uuid",),
    SqlType.DATE: ("date",),
    SqlType.TIMESTAMP: ("timestamp",),
    SqlType.TIMESTAMPTZ: ("timestamptz",),
    SqlType.INTERVAL: ("interval",),
}

_COLUMNS = """
with recursive base(column_number, type) as (
  select attnum, atttypid from pg_attribute where attrelid = $1 and attnum > 0 and not attisdropped
  union all
  select base.column_number, t.typbasetype from base join pg_type t on t.oid = base.type where t.typtype = 'd')
select a.attname, case when t.typtype = 'e' then 'enum' when n.nspname = 'pg_catalog' then t.typname
  else format_type(t.oid, null) end, has_column_privilege($1::oid, a.attnum, 'select'),
  format_type(a.atttypid, a.atttypmod)
from pg_attribute a join base on base.column_number = a.attnum join pg_type t on t.oid = base.type
join pg_namespace n on n.oid = t.typnamespace
where a.attrelid = $1 and t.typtype <> 'd'"""

_KEY = """array(select attname::text from unnest(i.indkey[0:i.indnkeyatts - 1]) as key(number)
  join pg_attribute on attrelid = i.indrelid and attnum = number)"""
# rows of tables that inherit are rows of the table, and its index knows nothing of them
_INDICES = """pg_index i join pg_class c on c.oid = i.indrelid
where i.indisunique and i.indisvalid and i.indpred is null and i.indexprs is null
  and not (c.relkind = 'r' and exists (select from pg_inherits where inhparent = c.oid))"""
_UNIQUE = f"select {_KEY} from {_INDICES} and i.indrelid = $1"

# Whether each row of one table meets one of another by a key: a constraint that was checked and is never put off.
_IS_COMPLETE = """exists (select from pg_constraint f
    join pg_attribute a on a.attrelid = f.conrelid and a.attnum = f.conkey[1] and cardinality(f.conkey) = 1
    join pg_attribute r on r.attrelid = f.confrelid and r.attnum = f.confkey[1]
  where f.contype = 'f' and f.convalidated and not f.condeferrable and a.attnotnull
    and (select relkind = 'r' and not exists (select from pg_inherits where inhparent = oid)
         from pg_class where oid = f.conrelid)
    and f.conrelid = to_regclass({}) and a.attname = {} and f.confrelid = to_regclass({}) and r.attname = {})"""
_COMPLETE = f"select {_IS_COMPLETE.format('$1', '$2', '$3', '$4')}"

# Whether all rows of c are stored by this server: rows of a foreign table are not checked against its declared types.
_IS_KEPT_HERE = """(c.relkind = 'r' and not exists (select from pg_inherits where inhparent = c.oid)
  or c.relkind = 'p' and not exists (select from pg_partition_tree(c.oid) p join pg_class l on l.oid = p.relid
    where l.relkind not in ('r', 'p')))"""
_KEPT_HERE = f"select {_IS_KEPT_HERE} from pg_class c where c.oid = $1"

# A name is looked up as it is now, and nobody gives it to another table while a transaction is open that has read the
# one that bears it. The indices and types are those of the transaction's snapshot, as its rows are.
_TYPES_STILL_SO = f"""(select coalesce(bool_and(exists (
    select from pg_attribute a join pg_class c on c.oid = a.attrelid where c.oid = to_regclass(t.relation)
      and a.attname = t.name and format_type(a.atttypid, a.atttypmod) = t.type and {_IS_KEPT_HERE})), true)
  from jsonb_to_recordset($2::jsonb) as t(relation text, name text, type text))"""
_STILL_SO = f"""
select (select coalesce(bool_and(exists (
    select from {_INDICES} and i.indrelid = to_regclass(k.relation) and {_KEY} <@ k.columns)), true)
  from jsonb_to_recordset($1::jsonb) as k(relation text, columns text[]))
and {_TYPES_STILL_SO}
and (select coalesce(bool_and({_IS_COMPLETE.format("j.relation", "j.name", "j.other", "j.other_name")}), true)
  from jsonb_to_recordset($3::jsonb) as j(relation text, name text, other text, other_name text))"""

_DECLARED = re.compile(r"numeric\((\d+),(-?\d+)\)")
_MOST_DIGITS = 150  # before the point and behind it: beyond, `postgres_dialect` gives a numeric no double

_UniqueKey = tuple[str, tuple[str, ...]]  # a table and its columns

# a name in a schema that the login may not use raises, and says no table
_RELATION = """
select case when may_use then to_regclass($1)::oid end, may_use
from (select coalesce(has_schema_privilege(to_regnamespace($2), 'usage'), true) as may_use offset 0) as s"""
_RIGHTS = (
    "select has_table_privilege($1::oid, 'insert, update, delete, truncate, trigger'), row_security_active($1::oid)"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Found:
    """A relation of the server. types: the base type by column. declared: the type as declared, with its precision.

    limited: columns whose precision gives each number a double. unique: the columns of each unique index.
    """

    types: dict[str, str]
    declared: dict[str, str]
    unreadable: frozenset[str]
    limited: frozenset[str]
    unique: tuple[frozenset[str], ...]
    is_writable: bool
    hides_rows: bool

    def is_unique(self, columns: tuple[str, ...]) -> bool:
        """Whether no two rows can agree in all `columns`, none of them NULL."""
        return any(index and index <= frozenset(columns) for index in self.unique)


@dataclass(frozen=True, slots=True)
class Checked:
    """warnings: what an administrator should know. relied_on: what has to stay so."""

    facts: Facts
    warnings: tuple[str, ...]
    relied_on: ReliedOn


@dataclass(frozen=True, slots=True)
class ReliedOn:
    """What statements rely on: keys that are unique, types of columns with limited digits, joins that are complete.

    All in JSON. names: relations as statements write them, and their columns so too.
    """

    keys: str = "[]"
    types: str = "[]"
    joins: str = "[]"
    names: tuple[tuple[str, tuple[str, ...]], ...] = ()

    def look(self, statements: Sequence[str]) -> str:
        """Statements that read no row, and fail if what others name is not there or may not be read.

        They are read, planned and begun as any other, and end before a table is opened: FALSE is known beforehand. The
        last may give a row: whether types are as they were. Whether there is an index is not asked: that its rows keep
        it is what built it.
        """
        named = ((r, [c for c in columns if any(c in s for s in statements)])
                 for r, columns in self.names if any(r in s for s in statements))  # fmt: skip
        looks = [f"select {', '.join(columns)} from {relation} where false" for relation, columns in named]
        if self.types != "[]":
            looks.append(f"select {_TYPES_STILL_SO.replace('$2', text_literal(self.types))}")
        return "".join(f"; {look}" for look in looks)

    def is_still_so(self, connection: EngineConnection) -> bool:
        """Whether it is so of all that this transaction has read. Raises psycopg.Error.

        A table may be replaced by another of its name, as jobs that load data do.
        """
        row = connection.execute(_STILL_SO, [self.keys, self.types, self.joins]).fetchone()
        return row is not None and row[0] is True


def check_facts(connection: EngineConnection, policy: Policy) -> Checked:
    """What was found. Raises ConfigError with everything that is wrong."""
    found: dict[str, _Found] = {}
    columns: list[EngineColumn] = []
    problems: list[str] = []
    for table in policy.tables.values():
        problems += _check_table(connection, table, found, columns)
    if not problems:
        problems += _not_unique(policy, found)
        problems += _incomplete_joins(connection, policy)
        problems += not_randomized_so(policy, lambda t: POSTGRES.relation(t.relation), lambda s: _counts(connection, s))
    if problems:
        raise ConfigError(
            "the data do not keep what the policy declares: " + "; ".join(problems),
            hint="Correct the policy or the database; the dataset is not served until they agree.",
        )
    facts = Facts(columns=tuple(columns), joins=tuple(_join_facts(policy, found)))
    names = tuple(
        (POSTGRES.relation(t.relation), tuple(quote(c.name) for c in t.columns)) for t in policy.tables.values()
    )
    relied_on = ReliedOn(_keys(policy, facts), _types(policy, facts, found), json.dumps(_complete(policy)), names)
    return Checked(facts, tuple(_warnings(found)), relied_on)


def _counts(connection: EngineConnection, sql: str) -> dict[int, int]:
    """Rows by place."""
    return {int(str(place)): int(str(rows)) for place, rows in connection.execute(sql).fetchall()}


def _warnings(found: dict[str, _Found]) -> Iterator[str]:
    if writable := [name for name, one in found.items() if one.is_writable]:
        yield f"the login of source.dsn may change the rows of {', '.join(writable)}"
    if hiding := [name for name, one in found.items() if one.hides_rows]:
        yield f"row-level security may hide rows of {', '.join(hiding)} from the login of source.dsn"


def _keys(policy: Policy, facts: Facts) -> str:
    """Relations and their unique columns, in JSON."""
    keys = [
        *_unit_keys(policy),
        *_parent_keys(policy),
        *((j.ref_table, (j.ref_column,)) for j in facts.joins if j.is_unique),
    ]
    return json.dumps([
        {"relation": POSTGRES.relation(policy.tables[table].relation), "columns": columns}
        for table, columns in dict.fromkeys(keys)
    ])  # fmt: skip


def _types(policy: Policy, facts: Facts, found: dict[str, _Found]) -> str:
    """Relations, and their columns of limited digits with their types, in JSON."""
    return json.dumps([
        {
            "relation": POSTGRES.relation(policy.tables[one.table].relation),
            "name": one.column, "type": found[one.table].declared[one.column],
        }
        for one in facts.columns if one.limited_digits
    ])  # fmt: skip


def _has_few_digits(declared: str) -> bool:
    """Whether a type says that its numbers have few digits before the point, and few behind it."""
    match = _DECLARED.fullmatch(declared)
    return match is not None and int(match[1]) - int(match[2]) <= _MOST_DIGITS and 0 <= int(match[2]) <= _MOST_DIGITS


def _check_table(
    connection: EngineConnection, table: Table, found: dict[str, _Found], columns: list[EngineColumn]
) -> Iterator[str]:
    if len(table.relation) > 2:
        yield f"table {table.name}: write relation as schema.table"
        return
    schema = table.relation[0] if len(table.relation) > 1 else DEFAULT_SCHEMA
    row = connection.execute(_RELATION, [POSTGRES.relation(table.relation), quote(schema)]).fetchone()
    if row is None or row[1] is False:
        yield f"table {table.name}: the login may not use the schema {schema}"
        return
    if row[0] is None:
        yield f"table {table.name}: the data have no relation {'.'.join(table.relation)} that this login may see"
        return
    known = found[table.name] = _look_up(connection, row[0])
    for column in table.columns:
        name, kind = f"{table.name}.{column.name}", known.types.get(column.name)
        if kind is None:
            yield f"{name}: the data have no such column"
        elif kind not in ACCEPTED[column.type]:
            yield f"{name}: is {kind} in the data, {column.type.pg_name} in the policy"
        elif column.name in known.unreadable:
            yield f"{name}: the login may not read it"
        else:
            columns.append(EngineColumn(
                table=table.name, column=column.name, engine_type=kind,
                limited_digits=column.type is SqlType.NUMERIC and column.name in known.limited,
            ))  # fmt: skip


def _look_up(connection: EngineConnection, oid: object) -> _Found:
    rows = connection.execute(_COLUMNS, [oid]).fetchall()
    declared = {str(name): str(full) for name, *_, full in rows}
    is_kept_here = (connection.execute(_KEPT_HERE, [oid]).fetchone() or (False,))[0] is True
    is_writable, hides_rows = connection.execute(_RIGHTS, [oid]).fetchone() or (True, True)
    return _Found(
        types={str(name): str(kind) for name, kind, *_ in rows}, declared=declared,
        unreadable=frozenset(str(name) for name, _, is_readable, _ in rows if not is_readable),
        limited=frozenset(name for name, full in declared.items() if is_kept_here and _has_few_digits(full)),
        unique=tuple(frozenset(map(str, keys)) for (keys,) in connection.execute(_UNIQUE, [oid]).fetchall()
                     if isinstance(keys, list)),
        is_writable=bool(is_writable), hides_rows=bool(hides_rows),
    )  # fmt: skip


def _unit_keys(policy: Policy) -> Iterator[_UniqueKey]:
    for table in policy.private_tables():
        if table.unit_unique and isinstance(table.ownership, UnitColumns):
            yield table.name, table.ownership.columns


def _parent_keys(policy: Policy) -> Iterator[_UniqueKey]:
    for table in policy.private_tables():
        if isinstance(table.ownership, UnitVia):
            yield table.ownership.parent, (table.ownership.parent_key,)


def _not_unique(policy: Policy, found: dict[str, _Found]) -> Iterator[str]:
    for table, columns in _unit_keys(policy):
        if not found[table].is_unique(columns):
            names = ", ".join(f"{table}.{unit}" for unit in columns)
            yield f"{names}: 'unit_unique' is declared, and no unique index says so"
    for parent, columns in dict.fromkeys(_parent_keys(policy)):
        if not found[parent].is_unique(columns):
            name = f"{parent}.{columns[0]}"
            yield f"{name}: rows find their unit through this key, and no unique index says that it is unique"


def _complete(policy: Policy) -> list[dict[str, str]]:
    """The joins that are declared to be complete."""
    return [
        {"relation": POSTGRES.relation(table.relation), "name": join.column,
         "other": POSTGRES.relation(policy.tables[join.table].relation), "other_name": join.ref_column}
        for table in policy.tables.values() for join in table.complete_joins
    ]  # fmt: skip


def _incomplete_joins(connection: EngineConnection, policy: Policy) -> Iterator[str]:
    every = ((table, join) for table in policy.tables.values() for join in table.complete_joins)
    for (table, join), one in zip(every, _complete(policy), strict=True):
        row = connection.execute(_COMPLETE, [one["relation"], one["name"], one["other"], one["other_name"]]).fetchone()
        if row is None or row[0] is not True:
            name = f"{table.name}.{join.column}"
            yield f"{name}: 'complete_joins' names it, and no validated foreign key and NOT NULL say so"


def _join_facts(policy: Policy, found: dict[str, _Found]) -> Iterator[JoinFact]:
    for table in policy.tables.values():
        for join in table.joins:
            if not policy.tables[join.table].is_promised:
                yield JoinFact(
                    table=table.name, column=join.column, ref_table=join.table, ref_column=join.ref_column,
                    is_unique=found[join.table].is_unique((join.ref_column,)),
                )  # fmt: skip
