"""What does a visibility look like as a PostgreSQL database?

Pure text from the policy: tables without rows, their types, keys and comments, the guard, and the schema
`hush`. Nothing here depends on private data.
"""

from __future__ import annotations

from proxy.front.quoting import quote_name, quote_names, quote_text
from proxy.front.relations import (
    ADMIN_RELATIONS,
    CALL_COMMENTS,
    CALLS,
    FUNCTIONS,
    RELATION_COMMENTS,
    RELATIONS,
    SCHEMA,
    setting_defaults,
)
from proxy.front.temporary import temporary_sql
from proxy.front.visibility import (
    Visibility,
    primary_key,
    references,
    unique_keys,
    visible_columns,
)
from proxy.policy.model import (
    Bounded,
    BoundSource,
    Column,
    Listed,
    LocalTable,
    Policy,
    PublicTable,
    RowUnit,
    Table,
    UnitColumns,
    UnitVia,
    Unknown,
    WrittenBound,
)
from proxy.sqltypes import SqlType

OWNER = "hush_owner"  # owns every object; nobody logs in as it
READER = "hush_reader"  # reads texts of clients, on connections of the proxy's own
SUPERUSER = "hush_front"  # the proxy's own role
GUARD = "only_aggregates"  # its name stands in the front's error text, which the relay replaces
GUARD_RELATION = f"information_schema.{GUARD}"  # a schema that listings leave out
ADMIN_GUARD_RELATION = "information_schema.only_administrators"
_SHADOW_CHECK = "information_schema.hush_refuse_shadow"
_MAX_LISTED = 20  # values of a domain that a comment spells out
_TIMES = (SqlType.DATE, SqlType.TIMESTAMP, SqlType.TIMESTAMPTZ)


def schema_sql(policy: Policy, visible: Visibility) -> str:
    """The script that fills an empty database, run once as superuser in one transaction.

    Claim: a statement whose plan refers to a private table raises `permission denied for table
    only_aggregates` for every role that is neither owner nor superuser; none of them is a login.
    Raises PolicyError for names that PostgreSQL cannot hold.
    """
    tables = [policy.tables[name] for name in visible.tables]
    parts = [
        *_guard_sql(GUARD_RELATION),
        *_guard_sql(ADMIN_GUARD_RELATION),
        *(_table_sql(policy, visible, t) for t in tables),
        *(_references_sql(policy, visible, t) for t in tables),
        _hush_sql(),
        _shadow_sql(),
        temporary_sql(),
    ]
    return "\n".join(p for p in parts if p)


def database_sql(policy: Policy, visible: Visibility) -> tuple[str, ...]:
    """Settings of the database, one statement each."""
    database, settings = quote_name(policy.dataset), dict(setting_defaults(policy)) | dict(visible.settings)
    return tuple(f"ALTER DATABASE {database} SET {name} = {quote_text(v)}" for name, v in settings.items())


def copy_sql(table: Table) -> str:
    """The statement that loads a public table's rows, columns in `visible_columns` order."""
    columns = quote_names(tuple(c.name for c in visible_columns(table)))
    return f"COPY public.{quote_name(table.name)} ({columns}) FROM STDIN"


# --- tables -----------------------------------------------------------------------------------


def _table_sql(policy: Policy, visible: Visibility, table: Table) -> str:
    name = f"public.{quote_name(table.name)}"
    lines = [_column_sql(c) for c in visible_columns(table)]
    if not table.shows_rows:
        key = primary_key(policy, visible, table)
        lines += [f"PRIMARY KEY ({quote_names(key)})"] if key else []
        lines += [f"UNIQUE ({quote_name(k)})" for k in unique_keys(policy, visible, table)]
    statements = [
        f"CREATE TABLE {name} ({', '.join(lines)});",
        _comment("TABLE", name, _table_comment(policy, visible, table)),
        *(
            _comment("COLUMN", f"{name}.{quote_name(c.name)}", _column_comment(policy, table, c))
            for c in visible_columns(table)
        ),
        *_access_sql(name, None if table.shows_rows else GUARD_RELATION),
    ]
    return "\n".join(s for s in statements if s)


def _guard_sql(guard: str) -> tuple[str, ...]:
    return (
        f"CREATE TABLE {guard} (never boolean);",
        f"ALTER TABLE {guard} OWNER TO {OWNER};",
        f"REVOKE ALL ON {guard} FROM PUBLIC;",
    )


def _access_sql(name: str, guard: str | None) -> tuple[str, ...]:
    """Described to every login, which pg_dump locks, too, and read by those who may read the guard, if there is one.

    REFERENCES because information_schema hides constraints without it.
    """
    guarded = () if guard is None else (
        f"ALTER TABLE {name} ENABLE ROW LEVEL SECURITY;",
        f"CREATE POLICY private ON {name} USING (EXISTS (SELECT 1 FROM {guard}));",
    )  # fmt: skip
    return (
        *guarded, f"ALTER TABLE {name} OWNER TO {OWNER};", f"GRANT SELECT, REFERENCES ON {name} TO PUBLIC;"
    )  # fmt: skip


def _column_sql(column: Column) -> str:
    # `character` alone would mean one character; without a length it is spelled bpchar
    type_name = "bpchar" if column.type is SqlType.BPCHAR else column.type.pg_name
    return f"{quote_name(column.name)} {type_name}{'' if column.nullable else ' NOT NULL'}"


def _references_sql(policy: Policy, visible: Visibility, table: Table) -> str:
    return "\n".join(
        f"ALTER TABLE public.{quote_name(table.name)} ADD FOREIGN KEY ({quote_name(r.column)})"
        f" REFERENCES public.{quote_name(r.table)} ({quote_name(r.ref_column)});"
        for r in references(policy, visible, table)
    )


# --- comments ---------------------------------------------------------------------------------


def _comment(kind: str, name: str, text: str) -> str:
    return f"COMMENT ON {kind} {name} IS {quote_text(text)};" if text else ""


def _table_comment(policy: Policy, visible: Visibility, table: Table) -> str:
    return "; ".join(p for p in (table.comment, _ownership(policy, visible, table), *_limits(policy, table)) if p)


def _ownership(policy: Policy, visible: Visibility, table: Table) -> str:
    unit, shown = policy.privacy.unit, {c.name for c in visible_columns(table)}
    match table.ownership:
        case PublicTable():
            return "public: answered exactly and free"
        case LocalTable(shows_rows=shows_rows):
            how = ", shown as it was stored" if shows_rows else ""
            return f"local: randomized before it was stored{how}; aggregates are estimates and free"
        case RowUnit():
            return "private: aggregates only, each row is protected"
        case UnitColumns(columns=columns):
            by = f" ({', '.join(columns)})" if shown.issuperset(columns) else ""
            return f"private: aggregates only, each {unit}{by} is protected"
        case UnitVia(parent=parent, on=on):
            path = f" (found by {on} in {parent})" if parent in visible.tables and on in shown else ""
            return f"private: aggregates only, each {unit}{path} is protected"


def _limits(policy: Policy, table: Table) -> tuple[str, ...]:
    unit = policy.privacy.unit
    named: tuple[tuple[str, BoundSource], ...] = (
        (f"rows per {unit}", table.rows_per_unit),
        (f"rows per {unit} and group", table.rows_per_group),
        (f"groups per {unit}", table.groups_per_unit),
    )
    return tuple(f"at most {limit.limit} {what}" for what, limit in named if isinstance(limit, WrittenBound))


def _column_comment(policy: Policy, table: Table, column: Column) -> str:
    parts: list[str] = []
    if isinstance(table.ownership, UnitColumns) and column.name in table.ownership.columns:
        parts.append(f"identifies the {policy.privacy.unit}: for joins and count(distinct), never shown")
    elif column.key:
        parts.append("key: for joins, never shown")
    match column.domain:
        case Bounded(lo=lo, hi=hi):
            parts.append(f"bounds [{lo}, {hi}]")
        case Listed() as listed:
            words = listed.words()
            more = ", ..." if len(words) > _MAX_LISTED else ""
            parts.append("values " + ", ".join(words[:_MAX_LISTED]) + more)
        case Unknown():
            pass
    return "; ".join(parts)


# --- the schema hush --------------------------------------------------------------------------


def _hush_sql() -> str:
    statements = [
        f"CREATE SCHEMA {SCHEMA} AUTHORIZATION {OWNER};",
        f"GRANT USAGE ON SCHEMA {SCHEMA} TO PUBLIC;",
        f"COMMENT ON SCHEMA {SCHEMA} IS 'budget, history and policy of private queries';",
    ]
    for name, columns in {**RELATIONS, **ADMIN_RELATIONS}.items():
        relation = f"{SCHEMA}.{quote_name(name)}"
        body = ", ".join(f"{quote_name(c)} {t.pg_name}" for c, t in columns)
        statements.append(f"CREATE TABLE {relation} ({body});")
        statements.append(_comment("TABLE", relation, RELATION_COMMENTS[name]))
        statements.extend(_access_sql(relation, GUARD_RELATION if name in RELATIONS else ADMIN_GUARD_RELATION))
    for name, meaning in FUNCTIONS.items():
        statements.append(_function_sql(name, meaning, "anyelement", SqlType.FLOAT8.pg_name))
        # the ends of an interval of times are times
        times = (t.pg_name for t in _TIMES if name != "sd")
        statements.extend(_function_sql(name, meaning, t, t) for t in times)
    for name, columns in CALLS.items():
        statements.append(_call_sql(name, columns))
    return "\n".join(statements)


def _call_sql(name: str, columns: tuple[tuple[str, SqlType], ...]) -> str:
    """A function that describes itself and raises where the proxy did not answer in its place."""
    function = f"{SCHEMA}.{quote_name(name)}(statements text)"
    result = ", ".join(f"{quote_name(c)} {t.pg_name}" for c, t in columns)
    return (
        f"CREATE FUNCTION {function} RETURNS TABLE ({result}) LANGUAGE plpgsql VOLATILE PARALLEL SAFE"
        f" SET search_path = pg_catalog AS $body$BEGIN RAISE EXCEPTION USING ERRCODE = 'DP006',"
        f" MESSAGE = 'hush.{name} must stand in the FROM clause, with a constant text',"
        f" HINT = 'For example: SELECT * FROM hush.{name}(''SELECT count(*) FROM a_private_table'').'; END$body$;\n"
        f"ALTER FUNCTION {function} OWNER TO {OWNER};\n"
        f"COMMENT ON FUNCTION {function} IS {quote_text(CALL_COMMENTS[name])};"
    )


def _function_sql(name: str, meaning: str, of: str, returns: str) -> str:
    """VOLATILE, so that planning never runs the body: Parse, Describe and EXPLAIN work, execution raises."""
    function = f"{SCHEMA}.{quote_name(name)}({of})"
    return (
        f"CREATE FUNCTION {function} RETURNS {returns} LANGUAGE plpgsql VOLATILE PARALLEL SAFE"
        f" SET search_path = pg_catalog AS $body$BEGIN RAISE EXCEPTION USING ERRCODE = 'DP006',"
        f" MESSAGE = 'hush.{name} must stand around an aggregate of a private table in the select list',"
        f" HINT = 'For example: SELECT count(*), hush.{name}(count(*)) FROM a_private_table.'; END$body$;\n"
        f"ALTER FUNCTION {function} OWNER TO {OWNER};\n"
        f"COMMENT ON FUNCTION {function} IS {quote_text(meaning)};"
    )


def _shadow_sql() -> str:
    """A temporary object with the name of a table would be found before it, and its rows would seem
    to be answered privately: such names are refused where they are made."""
    return f"""CREATE FUNCTION {_SHADOW_CHECK}() RETURNS event_trigger LANGUAGE plpgsql
SET search_path = pg_catalog AS $body$
DECLARE taken text;
BEGIN
  SELECT made.relname INTO taken FROM pg_catalog.pg_event_trigger_ddl_commands() AS command
    JOIN pg_catalog.pg_class AS made ON made.oid = command.objid
    JOIN pg_catalog.pg_class AS kept ON kept.relname = made.relname
    WHERE command.schema_name = 'pg_temp' AND kept.relnamespace = 'public'::pg_catalog.regnamespace LIMIT 1;
  IF taken IS NOT NULL THEN
    RAISE EXCEPTION USING ERRCODE = 'DP007',
      MESSAGE = pg_catalog.format('a temporary object may not be called %I', taken),
      HINT = 'It would hide the table of that name. Choose another name.';
  END IF;
END$body$;
REVOKE ALL ON FUNCTION {_SHADOW_CHECK}() FROM PUBLIC;
CREATE EVENT TRIGGER hush_refuse_shadow ON ddl_command_end EXECUTE FUNCTION {_SHADOW_CHECK}();"""
