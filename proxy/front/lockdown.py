"""What is taken away from logins that PostgreSQL gives to everybody?

Pure text. Nothing in the front is worth stealing; this list keeps one login from storing data in it,
stalling it, or reaching another login's session. What stays allowed is said in `docs/decisions`.
"""

from __future__ import annotations

from proxy.front.quoting import quote_text

# Functions that PUBLIC may execute in a fresh cluster and that no client needs for queries.
# One line per reason; a name covers all its overloads, and a missing one (other version) is no error.
REVOKED_FUNCTIONS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("holds a backend without work", ("pg_sleep", "pg_sleep_for", "pg_sleep_until")),
    (
        "stores data outside the limits on temporary files",
        (
            "lo_create", "lo_creat", "lo_open", "lo_close", "lo_get", "lo_put", "lo_from_bytea", "lo_unlink",
            "lo_lseek", "lo_lseek64", "lo_tell", "lo_tell64", "lo_truncate", "lo_truncate64", "loread", "lowrite",
            "lo_import", "lo_export",
        ),
    ),
    (
        "locks shared by all logins",
        (
            "pg_advisory_lock", "pg_advisory_lock_shared", "pg_advisory_unlock", "pg_advisory_unlock_shared",
            "pg_advisory_xact_lock", "pg_advisory_xact_lock_shared", "pg_try_advisory_lock",
            "pg_try_advisory_lock_shared", "pg_try_advisory_xact_lock", "pg_try_advisory_xact_lock_shared",
        ),  # not pg_advisory_unlock_all: pools call it when a connection comes back, and it finds no lock
    ),
    ("ends or disturbs other sessions of the login", ("pg_terminate_backend", "pg_cancel_backend")),
    (
        "runs SQL that stands in a text, unseen by the proxy",
        (
            "query_to_xml", "query_to_xmlschema", "query_to_xml_and_xmlschema", "table_to_xml", "table_to_xmlschema",
            "table_to_xml_and_xmlschema", "schema_to_xml", "schema_to_xmlschema", "schema_to_xml_and_xmlschema",
            "database_to_xml", "database_to_xmlschema", "database_to_xml_and_xmlschema", "cursor_to_xml",
            "cursor_to_xmlschema", "ts_stat",
        ),
    ),
    ("talks to other sessions", ("pg_notify",)),
    ("writes to the log of changes", ("pg_logical_emit_message",)),
    ("leaves files behind", ("pg_export_snapshot",)),
    (
        "reads files and directories of the server",
        (
            "pg_read_file", "pg_read_file_old", "pg_read_binary_file", "pg_stat_file", "pg_ls_dir", "pg_ls_logdir",
            "pg_ls_waldir", "pg_ls_tmpdir", "pg_ls_archive_statusdir", "pg_ls_logicalsnapdir", "pg_ls_logicalmapdir",
            "pg_ls_replslotdir", "pg_ls_summariesdir", "pg_current_logfile",
        ),
    ),
)  # fmt: skip

# Overloads of a name whose other overloads stay: these take a query as text.
REVOKED_SIGNATURES = ("pg_catalog.ts_rewrite(tsquery, text)",)

# An aggregate calls any function, set_config too, by a name that the proxy does not see.
_NO_AGGREGATES = """CREATE FUNCTION information_schema.hush_refuse_aggregate() RETURNS event_trigger LANGUAGE plpgsql
SET search_path = pg_catalog AS $body$
BEGIN
  RAISE EXCEPTION USING ERRCODE = 'DP007', MESSAGE = 'aggregates cannot be created';
END$body$;
REVOKE ALL ON FUNCTION information_schema.hush_refuse_aggregate() FROM PUBLIC;
CREATE EVENT TRIGGER hush_refuse_aggregate ON ddl_command_start WHEN TAG IN ('CREATE AGGREGATE')
EXECUTE FUNCTION information_schema.hush_refuse_aggregate();"""

REVOKED_LANGUAGES = ("plpgsql", "sql")


def revoked_names() -> tuple[str, ...]:
    return tuple(name for _, names in REVOKED_FUNCTIONS for name in names)


def lockdown_sql() -> str:
    """The script run once in a fresh database as superuser, before any login exists."""
    names = ", ".join(quote_text(n) for n in revoked_names())
    return "\n".join(
        (
            "REVOKE CREATE ON SCHEMA public FROM PUBLIC;",
            *(f"REVOKE USAGE ON LANGUAGE {language} FROM PUBLIC;" for language in REVOKED_LANGUAGES),
            *(f"REVOKE EXECUTE ON FUNCTION {signature} FROM PUBLIC;" for signature in REVOKED_SIGNATURES),
            "REVOKE UPDATE ON pg_catalog.pg_settings FROM PUBLIC;",  # a SET that the proxy does not see
            "DO $body$ DECLARE found record; BEGIN FOR found IN SELECT p.oid::regprocedure AS signature",
            "FROM pg_catalog.pg_proc AS p WHERE p.pronamespace = 'pg_catalog'::regnamespace",
            f"AND p.proname IN ({names})",
            "LOOP EXECUTE format('REVOKE EXECUTE ON FUNCTION %s FROM PUBLIC', found.signature); END LOOP; END $body$;",
            _NO_AGGREGATES,
        )
    )
