"""What does a PostgreSQL database say about its tables?"""

from __future__ import annotations

from collections.abc import Sequence

import psycopg

from proxy.engines.described import ForeignKey, FoundColumn, FoundTable, LookingProgress, Unservable, about
from proxy.engines.postgres_open import EngineConnection
from proxy.errors import ConfigError
from proxy.sql.conditions.checks import DOMAIN_VALUE, Said, said
from proxy.sqltypes import BY_OID, SqlType

_CONNECT_S = 20
_READ_ONLY = "-c default_transaction_read_only=on -c statement_timeout=60s"

_TABLES = """
select c.oid, n.nspname, c.relname, c.relkind in ('v', 'm') from pg_catalog.pg_class c
join pg_catalog.pg_namespace n on n.oid = c.relnamespace
where c.relkind in ('r', 'p', 'f', 'v', 'm') and not c.relispartition
  and n.nspname !~ '^pg_' and n.nspname <> 'information_schema'
  and pg_catalog.has_schema_privilege(n.oid, 'usage') and pg_catalog.has_any_column_privilege(c.oid, 'select')
order by 2, 3"""

_COLUMNS = """
with recursive base(column_number, type, domain) as (
  select attnum, atttypid, 0::oid from pg_catalog.pg_attribute
  where attrelid = %(table)s and attnum > 0 and not attisdropped
  union all
  select base.column_number, t.typbasetype, t.oid from base
  join pg_catalog.pg_type t on t.oid = base.type where t.typtype = 'd')
select a.attname, pg_catalog.format_type(a.atttypid, a.atttypmod), a.attnotnull, t.oid, t.typtype::text,
  array(select enumlabel::text from pg_catalog.pg_enum where enumtypid = t.oid order by enumsortorder),
  array(select case when k.conrelid = 0 then pg_catalog.pg_get_expr(k.conbin, 0) end from base of_domain
    join pg_catalog.pg_constraint k on k.contypid = of_domain.domain
    where of_domain.column_number = a.attnum and k.contype = 'c' and k.convalidated)
from pg_catalog.pg_attribute a join base on base.column_number = a.attnum join pg_catalog.pg_type t on t.oid = base.type
where a.attrelid = %(table)s and t.typtype <> 'd' and pg_catalog.has_column_privilege(a.attrelid, a.attnum, 'select')
order by a.attnum"""

_CONSTRAINTS = """
select k.contype::text, pg_catalog.pg_get_expr(k.conbin, k.conrelid),
  array(select attname::text from unnest(k.conkey) with ordinality as key(number, place)
    join pg_catalog.pg_attribute on attrelid = k.conrelid and attnum = number order by place),
  n.nspname, other.relname,
  array(select attname::text from unnest(k.confkey) with ordinality as key(number, place)
    join pg_catalog.pg_attribute on attrelid = k.confrelid and attnum = number order by place)
from pg_catalog.pg_constraint k
left join pg_catalog.pg_class other on other.oid = k.confrelid
left join pg_catalog.pg_namespace n on n.oid = other.relnamespace
where k.conrelid = %(table)s and k.contype in ('c', 'f', 'p', 'u') and k.convalidated and k.conparentid = 0
order by k.contype, k.conname"""

_READS = """
with recursive read(oid) as (
  select %(table)s::oid
  union
  select d.refobjid from read join pg_catalog.pg_rewrite r on r.ev_class = read.oid
  join pg_catalog.pg_depend d on d.objid = r.oid and d.classid = 'pg_catalog.pg_rewrite'::regclass
    and d.refclassid = 'pg_catalog.pg_class'::regclass)
select n.nspname, c.relname from read join pg_catalog.pg_class c on c.oid = read.oid
join pg_catalog.pg_namespace n on n.oid = c.relnamespace where c.relkind in ('r', 'p', 'f') order by 1, 2"""

_ENUM = "e"
#: What libpq says of a connection that fails, of which none repeats a part of the connection string.
_REASONS = (
    "Connection refused", "No such file or directory", "could not translate host name", "timeout expired",
    "password authentication failed", "no password supplied", "does not support SSL", "certificate verify failed",
    "no pg_hba.conf entry", "does not exist",
)  # fmt: skip


def describe_server(dsn: str, progress: LookingProgress) -> tuple[FoundTable, ...]:
    """The tables and views that the login may read, in all schemas. Raises ConfigError, which never shows the DSN."""
    failure = ""
    try:
        with psycopg.connect(dsn, connect_timeout=_CONNECT_S, options=_READ_ONLY, autocommit=True) as connection:
            names = connection.execute(_TABLES).fetchall()
            tables = []
            for number, (oid, schema, name, is_view) in enumerate(names, start=1):
                tables.append(_table(connection, oid, (str(schema), str(name)), is_view=bool(is_view)))
                progress(number, len(names))
            return tuple(tables)
    except psycopg.Error as error:
        other = f"{type(error).__name__} {error.sqlstate or ''}".strip()
        failure = next((reason for reason in _REASONS if reason in str(error)), other)
    raise ConfigError(  # outside the handler: libpq's words may repeat the password
        f"the PostgreSQL database cannot be read: {failure}", hint="Does `psql` reach it with this connection string?"
    )


def _table(connection: EngineConnection, oid: object, relation: tuple[str, ...], *, is_view: bool) -> FoundTable:
    constraints = connection.execute(_CONSTRAINTS, {"table": oid}).fetchall()
    checked = _combined([str(row[1]) for row in constraints if row[0] == "c"])
    rows = connection.execute(_COLUMNS, {"table": oid}).fetchall()
    reads = connection.execute(_READS, {"table": oid}).fetchall() if is_view else []
    keys = [(row[0], _names(row[2])) for row in constraints if row[0] in ("p", "u")]
    return FoundTable(
        relation=relation,
        columns=tuple(_column(row, checked) for row in rows),
        primary=next((names for kind, names in keys if kind == "p"), ()),
        unique=tuple(dict.fromkeys(names for _, names in keys)),
        references=tuple(
            ForeignKey(_names(row[2]), (str(row[3]), str(row[4])), _names(row[5]))
            for row in constraints
            if row[0] == "f"
        ),
        is_view=is_view,
        reads=tuple((str(schema), str(name)) for schema, name in reads),
    )


def _column(row: Sequence[object], checked: dict[str, Said]) -> FoundColumn:
    name, stated, is_not_null, oid, kind, labels, of_domain = row
    about_type = _combined(list(_names(of_domain))).get(DOMAIN_VALUE.upper(), Said())
    facts = about_type.and_also(about(str(name), checked))
    found: SqlType | Unservable = BY_OID.get(oid, Unservable()) if isinstance(oid, int) else Unservable()
    if kind == _ENUM:
        found, facts = SqlType.TEXT, Said(values=_names(labels)).and_also(facts)
    if found is SqlType.INTERVAL:
        found = Unservable()
    return FoundColumn(name=str(name), stated_type=str(stated), type=found, is_nullable=not is_not_null, said=facts)


def _combined(checks: list[str]) -> dict[str, Said]:
    found: dict[str, Said] = {}
    for check in checks:
        for column, one in said(check).items():
            found[column] = found.get(column, Said()).and_also(one)
    return found


def _names(value: object) -> tuple[str, ...]:
    return tuple(str(one) for one in value if one is not None) if isinstance(value, list) else ()
