"""Releases become text of another language on their way to the client: their keys are data there, never syntax."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import psycopg
import pytest

from proxy.wire import messages
from tests.attacks.hostile import Attacked, Client, outcome, refusal, rows, value
from tests.wire.raw import SSL_REQUEST, RawClient, startup_packet, statement

NAMED = "SELECT name, count(*) FROM people GROUP BY name"


def expected(attacked: Attacked) -> set[object]:
    return {*attacked.names, None, "north", "south", "east"}


def names(found: Sequence[Sequence[object]]) -> set[object]:
    assert len(found) == len({row[0] for row in found})
    return {row[0] for row in found}


# --- hostile group keys -----------------------------------------------------------------------------------


def test_hostile_keys_in_the_simple_protocol_are_data(attacked: Attacked, eve: Client) -> None:
    assert names(rows(eve, NAMED)) == expected(attacked)


def test_hostile_keys_in_the_extended_protocol_are_data(attacked: Attacked, eve: Client) -> None:
    for binary in (False, True):
        found = eve.cursor(binary=binary).execute(f"{NAMED} HAVING count(*) > %s", (20,)).fetchall()
        assert names(found) == expected(attacked)


def test_hostile_keys_in_copy_are_data(attacked: Attacked, eve: Client) -> None:
    with eve.cursor() as cursor, cursor.copy(f"COPY ({NAMED}) TO STDOUT".encode()) as copy:
        assert names(list(copy.rows())) == expected(attacked)


def test_hostile_keys_in_a_cursor_are_data(attacked: Attacked, eve: Client) -> None:
    with eve.transaction():
        eve.execute(f"DECLARE found CURSOR FOR {NAMED}".encode())
        assert names(rows(eve, "FETCH ALL FROM found")) == expected(attacked)


def test_hostile_keys_in_a_new_table_are_data(attacked: Attacked, eve: Client) -> None:
    eve.execute(f"CREATE TEMP TABLE kept AS {NAMED}".encode())
    assert names(rows(eve, "SELECT name, count FROM kept")) == expected(attacked)


def test_hostile_keys_in_a_string_of_several_statements_are_data(attacked: Attacked) -> None:
    with attacked.raw() as client:
        replies = client.query(f"SET hush.epsilon = 100; {NAMED}; SELECT 1")
        found = {None if r.row[0] is None else r.row[0].decode() for r in replies if r.kind == "D" and len(r.row) == 2}
        assert found == expected(attacked)


def test_hostile_keys_in_another_encoding_are_data_or_an_error(attacked: Attacked) -> None:
    with attacked.connect(epsilon=100) as client:
        for encoding in ("LATIN1", "EUC_JP", "WIN1252", "SQL_ASCII"):
            client.execute(f"SET client_encoding TO {encoding}".encode())
            with suppress(psycopg.errors.UntranslatableCharacter):
                assert len(client.execute(NAMED.encode()).fetchall()) == len(expected(attacked))
            assert client.execute(b"SELECT 1").fetchall() == [(1,)]


def test_hostile_keys_with_backslashes_do_not_depend_on_a_setting(attacked: Attacked, eve: Client) -> None:
    assert refusal(eve, "SET standard_conforming_strings = off")[0] == "DP007"
    eve.execute("SET backslash_quote = on")
    with eve.cursor() as cursor, cursor.copy(f"COPY ({NAMED}) TO STDOUT".encode()) as copy:
        assert names(list(copy.rows())) == expected(attacked)


# --- names that are not what they seem ----------------------------------------------------------------------


@pytest.mark.parametrize("name", ["people", "PEOPLE", "events"])
@pytest.mark.parametrize("made", ["TABLE {} (pid int)", "VIEW {} AS SELECT 1 AS pid", "SEQUENCE {}"])
def test_a_temporary_object_cannot_shadow_a_private_table(made: str, name: str, eve: Client) -> None:
    quoted = f'"{name}"'
    before = value(eve, "SELECT count(*) FROM people")
    assert refusal(eve, f"CREATE TEMP {made.format(quoted)}")[0] == "DP007"
    assert value(eve, "SELECT count(*) FROM people") == before


def test_a_renamed_temporary_object_cannot_shadow_a_private_table(eve: Client) -> None:
    eve.execute("CREATE TEMP TABLE mine (pid int)")
    assert refusal(eve, "ALTER TABLE mine RENAME TO people")[0] == "DP007"
    assert value(eve, "SELECT count(*) FROM people") > 100


def test_a_temporary_object_cannot_shadow_the_proxy_s_own_relations(eve: Client) -> None:
    eve.execute("CREATE TEMP TABLE budget (kind text, rho_spent numeric)")
    assert {row[0] for row in rows(eve, "SELECT kind FROM hush.budget")} == {"user", "session"}
    for made in ("SCHEMA hush", "TABLE hush.budget (a int)", "VIEW hush.budget AS SELECT 1"):
        assert refusal(eve, f"CREATE {made}")[0] in ("42501", "DP006", "DP007"), made


def test_another_search_path_gives_no_other_table(eve: Client) -> None:
    eve.execute("CREATE TEMP TABLE other (pid int)")
    for path in ("pg_temp, pg_catalog", "''", "hush", "information_schema"):
        eve.execute(f"SET search_path = {path}".encode())
        state, _ = refusal(eve, "SELECT count(*) FROM people")
        assert state in ("42P01", "DP006")
        assert value(eve, "SELECT count(*) FROM public.people") > 100
    eve.execute("RESET search_path")


def test_a_cte_with_the_name_of_a_private_table_is_the_cte(eve: Client) -> None:
    assert rows(eve, "WITH people AS (SELECT 1 AS pid) SELECT count(*) FROM people") == [(1,)]
    shadowed = "WITH people AS (SELECT 1 AS pid) SELECT count(*) FROM events e JOIN people p ON p.pid = e.pid"
    assert refusal(eve, shadowed)[0].startswith("DP")
    labels = "WITH labels AS (SELECT 'a' AS kind, 'zz' AS label) SELECT l.label, count(*) FROM people p"
    assert [label for label, _ in rows(eve, f"{labels} JOIN labels l ON l.kind = p.kind GROUP BY 1")] == ["zz"]


@pytest.mark.parametrize(
    "sql",
    [
        'SELECT count(*) FROM U&"p\\0065ople"',
        "SELECT count(*) FROM public.U&\"!0070eople\" UESCAPE '!'",
        "SELECT count(*) FROM ONLY people",
        "SELECT count(*) FROM people *",
        "TABLE people",
        "SELECT count(*) FROM hostile.public.people",
        "SELECT count(*) FROM (TABLE people) AS t",
        "SELECT count(*) FROM ROWS FROM (generate_series(1, 3)) AS g, people",
        "SELECT count(*) FROM people WHERE (pid, name) = (1, 'x')",
        "SELECT count(*) FROM people WHERE ($1,$2) IS NOT NULL",
        "SELECT count(*) /*! from labels */ FROM people FOR UPDATE",
        "SELECT count(*) FROM people WHERE name OPERATOR(pg_catalog.=) 'x'",
        "SELECT count(*) FROM people p(a, b) WHERE a IS NOT DOCUMENT",
        "SELECT count(*) FROM pg_temp.people",
        "SELECT * FROM (SELECT row_number() OVER () FROM people) AS t",
        "SELECT (people).name FROM people",
        "SELECT p FROM people p",
        "WITH gone AS (DELETE FROM people RETURNING *) SELECT count(*) FROM gone",
        "MERGE INTO labels USING people ON false WHEN NOT MATCHED THEN DO NOTHING",
        "SELECT count(*) INTO TEMP kept FROM people; SELECT count FROM kept",
        "CREATE TEMP VIEW v1 AS SELECT * FROM people; SELECT count(*) FROM v1",
        "PREPARE p1 AS SELECT count(*) FROM people; EXECUTE p1",
        "EXPLAIN EXECUTE p1",
        "SELECT count(*) FROM people NATURAL JOIN events",
    ],
)
def test_what_is_read_otherwise_than_postgresql_reads_it_is_an_error(sql: str, attacked: Attacked) -> None:
    """Never an answer over the empty tables of the front, which would look real."""
    with attacked.raw() as client:
        replies = client.query(sql)
        counted = [r.row for r in replies if r.kind == "D"]
        assert all(len(row) == 1 and int(row[0] or 0) > 100 for row in counted), counted
        assert counted or any(r.kind == "E" for r in replies)


@pytest.mark.parametrize(
    "condition",
    [
        "/* a /* nested */ AND false */ v = 5",
        "-- ' OR\n v = 5",
        "v = 5 AND (name <> $x$' OR '1'='1$x$ OR name IS NULL)",
        "v = 5 AND (name <> E'\\' OR true --' OR name IS NULL)",
        "v = 5 AND (name <> E'a\\\\' OR name IS NULL) -- ')",
        "v = 5 AND (name <> 'a\\' OR name IS NULL) -- ')",
        "v = 5 AND (name <> 'a''; DROP TABLE people; --' OR name IS NULL)",
        "v = 5 AND (name <> 'a'\n'b' OR name IS NULL)",
        "v = 5 AND (name <> U&'\\0061' OR name IS NULL OR v = 5)",
        "v = 5 AND NOT name = 'x' IS NULL OR v = 5",
        "v = 0x5",
        "v = 5_0 - 4_5",
        "v = 5 AND 2 ^ 3 ^ 2 = 64",
        "v = 5 AND (1 < 2) = true",
        "v + - - 0 = 5",
        "v = 5 AND 'a' || 'b' LIKE 'a' || 'b'",
    ],
)
def test_text_that_parsers_read_differently_is_read_as_postgresql_does_or_refused(condition: str, eve: Client) -> None:
    found = outcome(eve, f"SELECT count(*) FROM people WHERE {condition}")
    if isinstance(found, str):
        assert found in ("DP006", "42601")  # a syntax error on older servers
    else:
        assert abs(found - value(eve, "SELECT count(*) FROM people WHERE v = 5")) <= 2


def test_an_alias_with_quotes_is_only_a_name(eve: Client) -> None:
    cursor = eve.execute(b'SELECT count(*) AS "a""; drop", sum(v) AS "$1" FROM people')
    assert [c.name for c in cursor.description or ()] == ['a"; drop', "$1"]


# --- the front ------------------------------------------------------------------------------------------------

DENIED = {
    "superuser": (
        "SET ROLE hush_owner",
        "SET SESSION AUTHORIZATION hush_front",
        "SET ROLE pg_read_all_data",
        "GRANT hush_owner TO eve",
        "ALTER ROLE eve SUPERUSER",
        "CREATE ROLE x",
        "ALTER USER eve PASSWORD 'x'",
        "SELECT set_config('role', 'hush_front', false)",
        "SELECT set_config('session_authorization', 'hush_front', false)",
    ),
    "files": (
        "SELECT pg_read_file('postgresql.conf')",
        "SELECT pg_ls_dir('.')",
        "COPY (SELECT 1) TO '/tmp/x'",
        "COPY (SELECT 1) TO PROGRAM 'id'",
        "CREATE TEMP TABLE f (a text); COPY f FROM PROGRAM 'id'",
        "SELECT lo_import('/etc/passwd')",
        "LOAD 'auto_explain'",
        "CREATE EXTENSION dblink",
        "CREATE TABLESPACE t LOCATION '/tmp'",
        "SELECT pg_stat_file('/etc/passwd')",
    ),
    "code": (
        "DO $$ BEGIN PERFORM 1; END $$",
        "CREATE FUNCTION pg_temp.f() RETURNS int LANGUAGE sql AS 'SELECT 1'",
        "CREATE FUNCTION pg_temp.f() RETURNS int LANGUAGE plpgsql AS 'BEGIN RETURN 1; END'",
        "CREATE FUNCTION pg_temp.f() RETURNS int LANGUAGE sql RETURN 1",
        "CREATE SCHEMA s",
        "CREATE TABLE public.t (a int)",
        "CREATE EVENT TRIGGER e ON ddl_command_end EXECUTE FUNCTION f()",
        "CREATE FOREIGN DATA WRAPPER w",
    ),
    "the tables": (
        "INSERT INTO people (pid) VALUES (1)",
        "UPDATE people SET v = 1",
        "DELETE FROM people",
        "TRUNCATE people",
        "COPY people TO STDOUT",
        "COPY people FROM STDIN",
        "ALTER TABLE people DISABLE ROW LEVEL SECURITY",
        "DROP TABLE people",
        "DROP POLICY private ON people",
        "SELECT * FROM information_schema.only_aggregates",
        "INSERT INTO information_schema.only_aggregates VALUES (true)",
        "BEGIN; LOCK TABLE people",
        "CREATE INDEX ON people (pid)",
        "COMMENT ON TABLE people IS 'x'",
    ),
    "other sessions": (
        "NOTIFY x",
        "LISTEN x",
        "SELECT pg_notify('a', 'b')",
        "SELECT pg_advisory_lock(1)",
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity",
        "SELECT pg_cancel_backend(1)",
        "SELECT pg_export_snapshot()",
        "SELECT pg_reload_conf()",
        "SELECT pg_rotate_logfile()",
    ),
    "storage": (
        "SELECT lo_create(0)",
        "SELECT lo_from_bytea(0, 'x')",
        "SELECT pg_logical_emit_message(false, 'a', 'b')",
    ),
    "text as code": (
        "SELECT query_to_xml('SELECT * FROM people', true, true, '')",
        "SELECT table_to_xml('people', true, true, '')",
        "SELECT database_to_xml(true, true, '')",
        "SELECT * FROM ts_stat('SELECT name FROM people')",
    ),
    "settings": (
        "SET work_mem = '8GB'",
        "SET max_parallel_workers_per_gather = 100",
        "SET session_preload_libraries = 'x'",
        "ALTER SYSTEM SET fsync = on",
        "SET temp_file_limit = -1",
        "UPDATE pg_settings SET setting = '8GB'",
        "SELECT set_config('work_mem', '8GB', false)",
        "SET log_statement = 'all'",
    ),
    "sleeping": ("SELECT pg_sleep(10)", "SELECT pg_sleep_for('10 s')"),
}


@pytest.mark.parametrize("kind", DENIED)
def test_the_front_gives_nobody_a_tool(kind: str, attacked: Attacked) -> None:
    with attacked.connect() as client:
        for sql in DENIED[kind]:
            expected = ("0A000",) if sql.startswith("ALTER SYSTEM") else ("42501", "DP006", "DP007")
            assert refusal(client, sql)[0] in expected, sql
            client.execute("ROLLBACK")
        assert value(client, "SELECT 1") == 1


def test_portals_and_statements_are_limited(attacked: Attacked) -> None:
    with attacked.raw() as client:
        client.send(*(messages.parse(f"s{i}".encode(), b"SELECT 1") for i in range(3000)))
        failed = [r for r in client.sync() if r.kind == "E"]
        assert failed
    with attacked.raw() as client:
        client.query("BEGIN")
        bind = [messages.bind(messages.Bind(portal=f"p{i}".encode(), statement=b"", formats=(), values=(),
                                            result_formats=())) for i in range(3000)]  # fmt: skip
        failed = [r for r in client.sync(messages.parse(b"", b"SELECT 1"), *bind) if r.kind == "E"]
        assert failed
    with attacked.connect() as client:
        assert value(client, "SELECT 1") == 1


# --- the protocol ---------------------------------------------------------------------------------------------

GARBAGE = (
    b"",
    b"\0" * 64,
    b"\xff" * 64,
    b"GET / HTTP/1.1\r\n\r\n",
    b"\0\0\0\x08\x04\xd2\x16\x2f" + b"Q\0\0\0\x0dSELECT 1\0",
    b"\0\0\x27\x11\0\x03\0\0",
    b"\x16\x03\x01\x02\0" + b"\0" * 40,
    startup_packet({"user": "eve", "database": "hostile", "options": "-c hush.epsilon=nan -c work_mem=8GB"}),
    startup_packet({"user": "hush_front", "database": "hostile"}),
    startup_packet({"user": "eve", "database": "template1", "replication": "true"}),
    startup_packet({"user": "eve", "database": "postgres"}),
)


@pytest.mark.parametrize("said", GARBAGE)
def test_nonsense_before_login_harms_nobody(said: bytes, attacked: Attacked) -> None:
    with RawClient(attacked.port, timeout_s=0.4) as client:
        with suppress(ConnectionError):  # it may have hung up already
            client.send(said)
            client.send(SSL_REQUEST)
        client.is_closed()
    with attacked.connect() as other:
        assert value(other, "SELECT 1") == 1


@pytest.mark.parametrize(
    "said",
    [
        b"Q\0\0\0\x03", b"Q\xff\xff\xff\xff", b"z\0\0\0\x04", b"F" + b"\0\0\0\x0e" + b"\0" * 10, b"D\0\0\0\x05X",
        b"B\0\0\0\x08\0\0\xff\xff", b"E\0\0\0\x04", b"p\0\0\0\x05x", b"d\0\0\0\x04", b"c\0\0\0\x04", b"P\0\0\0\x06\0\0",
        b"Q\0\0\0\x10SELECT \xff\xfe\0",
    ],
)  # fmt: skip
def test_nonsense_in_a_session_harms_nobody_else(said: bytes, attacked: Attacked) -> None:
    with attacked.raw() as client:
        client.socket.settimeout(0.4)
        with suppress(ConnectionError):
            client.send(said, messages.SYNC)
        client.is_closed()
    with attacked.connect() as other:
        assert value(other, "SELECT 1") == 1


def test_a_guessed_cancel_key_cancels_nobody(attacked: Attacked) -> None:
    with attacked.raw() as victim:
        key = bytearray(victim.key)
        key[-1] ^= 1
        with RawClient(attacked.port) as attacker:
            attacker.send((12 + len(key) - 4).to_bytes(4, "big") + (80877102).to_bytes(4, "big") + bytes(key))
            assert attacker.is_closed()
        assert any(r.kind == "D" for r in victim.query("SELECT count(*) FROM generate_series(1, 100000)"))


def test_a_release_split_over_many_cursors_is_one_release(eve: Client) -> None:
    with eve.transaction():
        eve.execute(f"DECLARE c SCROLL CURSOR FOR {NAMED} ORDER BY name".encode())
        first = rows(eve, "FETCH 5 FROM c")
        eve.execute("MOVE ABSOLUTE 0 IN c")
        assert rows(eve, "FETCH 5 FROM c") == first


def test_parallel_sessions_get_their_own_answers(attacked: Attacked) -> None:
    def ask(number: int) -> bool:
        with attacked.connect(epsilon=100) as client:
            found = rows(client, f"SELECT {number}, count(*) FROM people WHERE v > {number % 10}")
            return len(found) == 1 and found[0][0] == number

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(ask, range(24)))


def test_a_parameter_is_not_text_of_the_statement(attacked: Attacked) -> None:
    with attacked.raw() as client:
        replies = client.sync(
            statement("SELECT count(*) FROM people WHERE name = $1", b"x' OR '1'='1"),
            statement("SELECT name, count(*) FROM people WHERE name = $1 GROUP BY name", b"'); drop table people; --"),
        )
        assert not any(r.kind == "E" for r in replies)
