"""What a login cannot do to the front, to others, or to the machine."""

from __future__ import annotations

from collections.abc import Callable

import psycopg
import pytest

from proxy.front.front import Front
from proxy.front.lockdown import revoked_names
from tests.front.conftest import Client

DENIED = (
    "SELECT pg_sleep(0)",
    "SELECT lo_from_bytea(0, 'x')",
    "SELECT lo_create(0)",
    "SELECT pg_advisory_lock(1)",
    "SELECT pg_try_advisory_xact_lock(1, 2)",
    "SELECT pg_terminate_backend(pg_backend_pid())",
    "SELECT pg_cancel_backend(pg_backend_pid())",
    "SELECT pg_notify('a', 'b')",
    "SELECT pg_logical_emit_message(false, 'a', 'b')",
    "SELECT pg_export_snapshot()",
    "SELECT ts_rewrite('a'::tsquery, 'select ''a''::tsquery, ''b''::tsquery')",
    "SELECT pg_read_file('/etc/passwd')",
    "SELECT pg_ls_dir('/')",
    "SELECT pg_stat_file('/etc/passwd')",
    "SELECT pg_reload_conf()",
    "SELECT * FROM pg_hba_file_rules",
    "SELECT * FROM pg_authid",
    "SHOW data_directory",
    "SHOW unix_socket_directories",
    "COPY (SELECT 1) TO '/tmp/x'",
    "COPY (SELECT 1) TO PROGRAM 'id'",
    "DO $$ BEGIN NULL; END $$",
    "CREATE FUNCTION pg_temp.f() RETURNS int LANGUAGE sql AS 'select 1'",
    "CREATE FUNCTION pg_temp.f() RETURNS int LANGUAGE plpgsql AS 'begin return 1; end'",
    "CREATE FUNCTION pg_temp.f() RETURNS int LANGUAGE sql RETURN 1",
    "CREATE FUNCTION pg_temp.f() RETURNS int LANGUAGE internal AS 'now'",
    "CREATE EXTENSION dblink",
    "CREATE EXTENSION file_fdw",
    "CREATE TABLE public.t (a int)",
    "CREATE TABLE hush.t (a int)",
    "CREATE SCHEMA s",
    "CREATE DATABASE d",
    "CREATE ROLE r",
    "CREATE PUBLICATION p",
    "CREATE TABLESPACE s LOCATION '/tmp'",
    "CREATE EVENT TRIGGER e ON ddl_command_end EXECUTE FUNCTION information_schema.hush_refuse_shadow()",
    "ALTER DATABASE shop SET work_mem = '1GB'",
    "ALTER SYSTEM SET work_mem = '1GB'",
    "ALTER ROLE bob PASSWORD 'x'",
    "ALTER ROLE alice CONNECTION LIMIT -1",
    "CHECKPOINT",
    "UPDATE pg_settings SET setting = '8GB' WHERE name = 'work_mem'",
    "UPDATE pg_catalog.U&\"pg\\005fsettings\" SET setting = '8GB' WHERE name = 'work_mem'",
    "SET temp_file_limit = -1",
    "SET log_statement = 'all'",
    "SET track_activities = on",
    "SET session_replication_role = replica",
    "LOAD '/tmp/x.so'",
)


@pytest.mark.parametrize("statement", DENIED)
def test_what_a_login_does_not_need_is_denied(alice: Client, statement: str) -> None:
    with pytest.raises(psycopg.Error) as raised:
        alice.execute(statement.encode())
    assert raised.value.sqlstate in ("42501", "42883", "0A000"), raised.value


def test_every_listed_function_is_revoked_in_all_its_overloads(alice: Client) -> None:
    query = "SELECT DISTINCT proname FROM pg_proc WHERE proname = ANY(%s) AND has_function_privilege(oid, 'EXECUTE')"
    assert alice.execute(query, [list(revoked_names())]).fetchall() == []
    known = "SELECT count(DISTINCT proname) FROM pg_proc WHERE proname = ANY(%s)"
    found = alice.execute(known, [list(revoked_names())]).fetchone()
    assert found is not None
    assert found[0] in range(len(revoked_names()) - 3, len(revoked_names()) + 1)  # three exist in one version only


def test_what_drivers_need_stays_allowed(alice: Client) -> None:
    alice.execute("SELECT set_config('application_name', 'x', false), pg_backend_pid(), version()")
    alice.execute("SELECT pg_get_userbyid(10), pg_encoding_to_char(6), current_setting('server_version')")
    alice.execute("SELECT * FROM pg_stat_user_tables")
    alice.execute("SELECT gss_authenticated FROM pg_stat_gssapi WHERE pid = pg_backend_pid()")
    alice.execute("SELECT pg_database_size(current_database())")


def test_settings_are_not_changed_through_a_view_or_an_aggregate(alice: Client) -> None:
    """Both would call set_config where the proxy, which reads the text, cannot see it."""
    before = alice.execute("SHOW work_mem").fetchone()
    alice.execute("CREATE TEMP VIEW knobs AS SELECT name, setting FROM pg_settings")
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        alice.execute("UPDATE knobs SET setting = '8GB' WHERE name = 'work_mem'")
    for words in ("CREATE AGGREGATE", "CREATE OR REPLACE AGGREGATE"):
        sql = f"{words} pg_temp.knob(text, boolean) (SFUNC = set_config, STYPE = text, INITCOND = 'work_mem')"
        with pytest.raises(psycopg.Error, match="aggregates cannot be created") as raised:
            alice.execute(sql.encode())
        assert raised.value.sqlstate == "DP007"
    assert alice.execute("SHOW work_mem").fetchone() == before


RESETS = (
    "DISCARD ALL",
    # asyncpg, when a connection goes back to its pool
    "SELECT pg_advisory_unlock_all();CLOSE ALL;UNLISTEN *;RESET ALL",
    # Npgsql, likewise, if it keeps prepared statements
    "SET SESSION AUTHORIZATION DEFAULT;CLOSE ALL;SELECT pg_advisory_unlock_all();RESET ALL;DISCARD TEMP",
)


@pytest.mark.parametrize("statements", RESETS)
def test_pools_can_reset_a_connection(alice: Client, statements: str) -> None:
    alice.execute("SET application_name = 'before'")
    alice.execute("DECLARE c CURSOR WITH HOLD FOR SELECT 1")
    for statement in statements.split(";"):
        alice.execute(statement.encode())
    assert alice.execute("SELECT current_setting('application_name'), count(*) FROM pg_cursors").fetchone() == ("", 0)


def test_statements_of_others_are_invisible(connect: Callable[[str], Client]) -> None:
    """Neither another login nor another session of the same login shows what it runs, or how often."""
    other, same, asking = connect("bob"), connect("alice"), connect("alice")
    for busy in (other, same):
        busy.execute("BEGIN")
        busy.execute("SELECT 'released 42', (SELECT count(*) FROM stores)")
    seen = asking.execute("SELECT count(*) FROM pg_stat_activity WHERE query LIKE '%released%'").fetchone()
    assert seen == (0,)
    counted = asking.execute("SELECT sum(seq_scan)::int, sum(n_live_tup)::int FROM pg_stat_user_tables")
    assert counted.fetchone() == (0, 0)


READERS = (
    "SELECT viewname, definition FROM pg_views",
    "SELECT table_name, view_definition FROM information_schema.views",
    "SELECT relname, pg_get_viewdef(oid), pg_get_viewdef(oid, true), pg_get_viewdef(oid, 80) FROM pg_class",
    "SELECT pg_get_viewdef(n), pg_get_viewdef(n, true) FROM (SELECT oid::regclass::text AS n FROM pg_class) AS c",
    "SELECT rulename, pg_get_ruledef(oid), pg_get_ruledef(oid, true) FROM pg_rewrite",
)


@pytest.mark.parametrize("reader", READERS)
def test_a_view_s_query_is_read_by_its_owner_alone(connect: Callable[[str], Client], reader: str) -> None:
    """Claim of `definitions_sql`: no login reads the text of another login's view."""
    owner, other = connect("bob"), connect("alice")
    owner.execute("CREATE TEMP VIEW mine AS SELECT 'of bob' AS x FROM stores")
    assert "of bob" in str(owner.execute(reader.encode()).fetchall())
    seen = other.execute(reader.encode()).fetchall()
    assert len(seen) > 100
    assert "of bob" not in str(seen)


@pytest.mark.parametrize(
    "reader",
    [
        "SELECT ev_action FROM pg_rewrite",
        "SELECT ev_qual FROM pg_rewrite",
        "SELECT r FROM pg_rewrite AS r",
        "SELECT hush_kept_pg_get_viewdef(oid) FROM pg_class",
        "SELECT pg_catalog.hush_kept_pg_get_ruledef(oid, true) FROM pg_rewrite",
    ],
)
def test_the_stored_form_of_views_is_kept_from_logins(alice: Client, reader: str) -> None:
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        alice.execute(reader.encode())


def test_views_of_the_catalogue_are_spelled_out_as_ever(alice: Client) -> None:
    assert "pg_get_viewdef" in str(alice.execute("SELECT pg_get_viewdef('pg_views'::regclass, true)").fetchone())
    missing = "SELECT count(*) FROM pg_views WHERE schemaname IN ('pg_catalog', 'information_schema')"
    assert alice.execute(f"{missing} AND definition IS NULL".encode()).fetchone() == (0,)
    assert alice.execute("SELECT pg_get_viewdef(1::oid), pg_get_viewdef(NULL::oid, true)").fetchone() == (None, None)
    with pytest.raises(psycopg.errors.UndefinedTable):
        alice.execute("SELECT pg_get_viewdef('nowhere_at_all')")


def test_the_log_keeps_no_statement(front: Front, connect: Callable[[str], Client]) -> None:
    client = connect("alice")
    with pytest.raises(psycopg.errors.InvalidTextRepresentation):
        client.execute("SELECT 'secret-literal'::int")
    with pytest.raises(psycopg.errors.UndefinedTable):
        client.execute("SELECT * FROM nowhere_at_all")
    for server in front.servers:
        text = server.blueprint.log.read_text(encoding="utf-8")
        assert "secret-literal" not in text
        assert "nowhere_at_all" not in text


def test_huge_values_fail_without_hurting_others(connect: Callable[[str], Client]) -> None:
    """The processes of this front have 512 MB of address space."""
    witness, greedy = connect("bob"), connect("alice")
    with pytest.raises(psycopg.errors.OutOfMemory):
        greedy.execute("SELECT length(repeat('x', 1000000000))")
    assert witness.execute("SELECT 1").fetchone() == (1,)


def test_a_temporary_table_cannot_fill_the_disk(connect: Callable[[str], Client]) -> None:
    """The front of these tests may write 64 MB per file."""
    witness, greedy = connect("bob"), connect("alice")
    with pytest.raises(psycopg.Error, match="could not extend"):
        greedy.execute("CREATE TEMP TABLE big AS SELECT repeat('x', 1900) FROM generate_series(1, 60000)")
    assert witness.execute("SELECT 1").fetchone() == (1,)


def test_spills_are_limited(alice: Client) -> None:
    with pytest.raises(psycopg.errors.ConfigurationLimitExceeded):
        alice.execute("SELECT count(*) FROM (SELECT g FROM generate_series(1, 9000000) AS g ORDER BY g DESC) AS s")
