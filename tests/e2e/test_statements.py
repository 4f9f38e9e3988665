"""Statements around a private SELECT, probes of tools, and errors with all their parts."""

from __future__ import annotations

import json
from collections.abc import Callable

import psycopg
import pytest
from psycopg.rows import TupleRow, dict_row

from tests.e2e.served import Client, Served

GROUPS = "SELECT plan, count(*) AS n FROM users GROUP BY plan"
Execute = Callable[[Client, str], psycopg.Cursor[TupleRow]]


def in_query(client: Client, text: str) -> psycopg.Cursor[TupleRow]:
    """In a Query message."""
    return client.execute(text.encode())


def prepared(client: Client, text: str) -> psycopg.Cursor[TupleRow]:
    """In Parse, Bind and Execute."""
    return client.execute(text.encode(), prepare=True)


def spent(client: Client) -> object:
    return client.execute("SELECT epsilon_spent FROM hush.budget WHERE kind = 'session'").fetchall()


def test_explain_prints_the_privacy_plan(served: Served) -> None:
    with served.connect("spend", "u18") as client:
        cursor = client.execute("EXPLAIN SELECT city, count(*), avg(age) FROM users GROUP BY city")
        assert [(c.name, c.type_code) for c in cursor.description or ()] == [("QUERY PLAN", 25)]
        text = "\n".join(str(line) for (line,) in cursor.fetchall())
        for part in ("epsilon 0.5", "Sensitivity", "Key city: private", "Threshold", "avg(age)", "clamped to [0, 110]",
                     "Remaining, user", "Private SQL", "95 % within"):  # fmt: skip
            assert part in text, part
        assert "dataset" not in text


def test_explain_json(served: Served) -> None:
    with served.connect("spend", "u18") as client:
        cursor = client.execute("EXPLAIN (FORMAT JSON, COSTS OFF) " + GROUPS)
        assert [(c.name, c.type_code) for c in cursor.description or ()] == [("QUERY PLAN", 114)]
        ((document,),) = cursor.fetchall()
        (plan,) = document if isinstance(document, list) else json.loads(str(document))
        assert plan["releases"][0]["keys"][0]["values"] == 4
        assert plan["charge_epsilon"] == pytest.approx(0.5, rel=1e-3)
        assert [a["account"] for a in plan["accounts"]] == ["user", "session"]


@pytest.mark.parametrize("prefix", ["EXPLAIN ANALYZE", "EXPLAIN (ANALYZE)", "EXPLAIN (ANALYZE true, BUFFERS)",
                                    "EXPLAIN (FORMAT XML)", "EXPLAIN (FORMAT YAML)"])  # fmt: skip
def test_explain_refuses_what_would_run_or_is_not_offered(served: Served, prefix: str) -> None:
    with served.connect("shop") as client, pytest.raises(psycopg.Error) as refused:
        client.execute(f"{prefix} {GROUPS}".encode())
    assert refused.value.sqlstate == "DP006"


def test_explain_of_public_tables_is_postgresqls(served: Served) -> None:
    with served.connect("shop") as client:
        assert "Seq Scan on stores" in str(client.execute("EXPLAIN SELECT * FROM stores").fetchall())


def test_copy_to_stdout(served: Served) -> None:
    with served.connect("shop") as client, client.cursor() as cursor:
        with cursor.copy(f"COPY ({GROUPS} ORDER BY 1) TO STDOUT (FORMAT csv, HEADER)") as copy:
            lines = b"".join(bytes(part) for part in copy).decode().splitlines()
        assert lines[0] == "plan,n"
        assert [line.split(",")[0] for line in lines[1:]] == ["free", "pro", "team", ""]
        with pytest.raises(psycopg.Error) as refused, cursor.copy("COPY users TO STDOUT") as copy:
            copy.read()
        assert str(refused.value.sqlstate).startswith("DP")


def test_cursor_fetches_part_of_one_release(served: Served) -> None:
    with served.connect("shop") as client:
        client.execute("BEGIN")
        client.execute(f"DECLARE c SCROLL CURSOR FOR {GROUPS} ORDER BY plan")
        first = client.execute("FETCH 2 FROM c").fetchall()
        rest = client.execute("FETCH ALL FROM c").fetchall()
        client.execute("MOVE ABSOLUTE 0 IN c")
        again = client.execute("FETCH 2 FROM c").fetchall()
        client.execute("COMMIT")
        assert [plan for plan, _ in (*first, *rest)] == ["free", "pro", "team", None]
        assert again == first
        with pytest.raises(psycopg.errors.NoActiveSqlTransaction):
            client.execute(f"DECLARE c CURSOR FOR {GROUPS}")


def test_server_side_cursor_of_psycopg(served: Served) -> None:
    with served.connect("shop") as client, client.transaction(), client.cursor("named") as cursor:
        cursor.itersize = 1
        assert len(list(cursor.execute(GROUPS))) == 4


KEEPING = [
    "CREATE TEMP TABLE kept AS {}", "CREATE TEMPORARY TABLE kept (plan, n) ON COMMIT PRESERVE ROWS AS ({}) WITH DATA",
    "CREATE TABLE pg_temp.kept AS WITH t AS ({}) TABLE t",
    "SELECT plan, count(*) AS n INTO TEMP kept FROM users GROUP BY 1",
    "SELECT plan, n INTO TEMPORARY TABLE kept FROM ({}) t", "CREATE TEMP TABLE kept AS {} WITH NO DATA",
]  # fmt: skip


@pytest.mark.parametrize("text", KEEPING)
@pytest.mark.parametrize("execute", [in_query, prepared], ids=["simple", "extended"])
def test_temporary_table_keeps_the_release(served: Served, text: str, execute: Execute) -> None:
    with served.connect("shop") as client, served.connect("truth") as exact:
        text = text.format(GROUPS)
        assert execute(client, text).statusmessage == execute(exact, text).statusmessage
        paid = spent(client)
        kept = client.execute("SELECT sum(n), count(*) FROM kept").fetchall()
        true = exact.execute("SELECT sum(n), count(*) FROM kept").fetchall()
        assert abs(int(kept[0][0] or 0) - int(true[0][0] or 0)) < 10
        assert kept[0][1] == true[0][1]
        cursor = client.execute("SELECT * FROM kept")
        assert [(c.name, c.type_code) for c in cursor.description or ()] == [("plan", 25), ("n", 20)]
        assert spent(client) == paid


@pytest.mark.parametrize("execute", [in_query, prepared], ids=["simple", "extended"])
def test_name_that_is_taken_costs_nothing(served: Served, execute: Execute) -> None:
    with served.connect("shop") as client, served.connect("truth") as exact:
        for text in ("CREATE TEMP TABLE kept (x int)", "DECLARE c CURSOR WITH HOLD FOR SELECT 1"):
            execute(client, text)
            execute(exact, text)
        assert execute(client, f"CREATE TEMP TABLE IF NOT EXISTS kept AS {GROUPS}").statusmessage == "CREATE TABLE AS"
        for text in (f"CREATE TEMP TABLE kept AS {GROUPS}", "SELECT count(*) INTO TEMP kept FROM users",
                     f"DECLARE c CURSOR WITH HOLD FOR {GROUPS}"):  # fmt: skip
            with pytest.raises(psycopg.Error) as mine:
                execute(client, text)
            with pytest.raises(psycopg.Error) as theirs:
                execute(exact, text)
            assert (mine.value.sqlstate, str(mine.value)) == (theirs.value.sqlstate, str(theirs.value))
        assert client.execute("SELECT count(*) FROM hush.last_query").fetchall() == [(0,)]
        execute(client, "DROP TABLE kept")
        assert execute(client, f"CREATE TEMP TABLE kept AS {GROUPS}").statusmessage == "SELECT 4"


def test_nothing_is_called_like_a_private_table(served: Served) -> None:
    with served.connect("shop") as client:
        for text in (f"CREATE TEMP TABLE users AS {GROUPS}", "SELECT count(*) INTO TEMP users FROM orders"):
            with pytest.raises(psycopg.Error) as refused:
                client.execute(text)
            assert refused.value.sqlstate == "DP007"


@pytest.mark.parametrize("text", [
    "CREATE TEMP TABLE t AS SELECT * FROM users", "CREATE TABLE t AS SELECT count(*) FROM users",
    "CREATE TEMP VIEW v AS SELECT age FROM users; SELECT * FROM v", "INSERT INTO stores SELECT 1 FROM users",
    "DELETE FROM users", "UPDATE users SET age = 1", "TRUNCATE users", "DROP TABLE users", "LOCK TABLE users",
    "MERGE INTO stores USING users ON true WHEN MATCHED THEN DO NOTHING",
    "CREATE INDEX ON users (age)", "ALTER TABLE users ADD COLUMN x int", "TABLE users", "COPY users TO STDOUT",
    "DO $$ BEGIN PERFORM count(*) FROM users; END $$", "PREPARE p AS UPDATE users SET age = 1; EXECUTE p",
    "COMMENT ON TABLE users IS 'x'",
])  # fmt: skip
def test_other_statements_about_private_tables_fail(served: Served, text: str) -> None:
    with served.connect("shop") as client, pytest.raises(psycopg.Error) as refused:
        client.execute(text.encode())
        client.execute("SELECT 1")
    assert str(refused.value.sqlstate)[:2] in ("DP", "42", "0A", "25", "55"), refused.value


@pytest.mark.parametrize(
    "text",
    [
        "SELECT * FROM users LIMIT 0", "SELECT * FROM users LIMIT 1", "SELECT * FROM users WHERE 1=0",
        "SELECT u.* FROM users u WHERE (1 = 2) AND u.age > 1", "SELECT * FROM (SELECT * FROM users) t LIMIT 0",
        "SELECT age + 1 AS a, city FROM public.users AS x WHERE FALSE", "SELECT * FROM users FETCH FIRST 0 ROWS ONLY",
        "SELECT u.city, o.amount FROM users u JOIN orders o ON u.user_id = o.user_id LIMIT 0",
        f"{GROUPS} LIMIT 0", f"SELECT * FROM ({GROUPS}) t WHERE 1 > 2",
        "SELECT max(age) FROM users GROUP BY city LIMIT 0", "SELECT row_number() OVER (), nick FROM users WHERE NULL",
        "SELECT * FROM users UNION SELECT * FROM users LIMIT 0",
    ],
)  # fmt: skip
def test_probe_has_columns_and_no_rows(served: Served, text: str) -> None:
    with served.connect("shop") as client, served.connect("truth") as exact:
        cursor = client.execute(text.encode())
        other = exact.execute(text.encode())
        assert cursor.fetchall() == []
        assert client.execute("SELECT count(*) FROM hush.last_query").fetchall() == [(0,)]
        private = {(c.name, c.type_code) for c in cursor.description or ()}
        assert private == {(c.name, c.type_code) for c in other.description or ()}


def test_aggregates_of_no_rows_are_exact_and_free(served: Served) -> None:
    with served.connect("shop") as client:
        cursor = client.execute("SELECT count(*), sum(age), max(city) FROM users WHERE false")
        assert cursor.fetchall() == [(0, None, None)]
        assert client.execute("SELECT count(*) FROM hush.last_query").fetchall() == [(0,)]
        explained = client.execute("EXPLAIN SELECT * FROM users LIMIT 0").fetchall()
        assert str(explained[0][0]).startswith("Privacy plan: 0 releases")


def test_explain_looks_into_statements_that_keep_rows(served: Served) -> None:
    with served.connect("shop") as client:
        for text in (
            f"CREATE TEMP TABLE t AS {GROUPS}",
            f"DECLARE c CURSOR FOR {GROUPS}",
            "SELECT count(*) INTO TEMP t FROM users",
        ):
            cursor = client.execute(f"EXPLAIN {text}".encode())
            assert cursor.statusmessage == "EXPLAIN"
            assert str(cursor.fetchall()[0][0]).startswith("Privacy plan: 1 release")


def test_held_cursor_outlives_its_transaction(served: Served) -> None:
    with served.connect("shop") as client:
        client.execute(f"DECLARE a CURSOR WITH HOLD FOR {GROUPS} ORDER BY plan")
        client.execute("BEGIN")
        client.execute(f"DECLARE b SCROLL CURSOR WITH HOLD FOR {GROUPS} ORDER BY plan")
        first = client.execute("FETCH 1 FROM b").fetchall()
        client.execute("COMMIT")
        paid = spent(client)
        assert first + client.execute("FETCH ALL FROM b").fetchall() == client.execute("FETCH ALL FROM a").fetchall()
        assert spent(client) == paid
        client.execute("CLOSE ALL")


def test_a_question_about_existence_is_not_answered_from_an_empty_table(served: Served) -> None:
    with served.connect("shop") as client, pytest.raises(psycopg.Error) as refused:
        client.execute("SELECT EXISTS (SELECT 1 FROM users WHERE age = 18) LIMIT 1")
    assert refused.value.sqlstate == "DP004"


@pytest.mark.parametrize(
    ("sqlstate", "text", "at"),
    [
        ("DP002", "SELECT sum(length(nick)) FROM users", "SELECT"),
        ("DP003", "SELECT count(*) FROM users u, orders o", "SELECT"),
        ("DP004", "SELECT age, plan FROM users", "age"),
        ("DP005", "SELECT user_id, count(*) FROM orders GROUP BY user_id", "SELECT"),
        ("DP006", "SELECT plan, string_agg(city, ',') FROM users GROUP BY plan", "city"),
        ("DP007", "SELECT count(*) FROM users WHERE user_id = 7", "SELECT"),
    ],
)
@pytest.mark.parametrize("before", ["", "EXPLAIN ", "SELECT 1; "])
def test_error_has_all_its_parts(served: Served, sqlstate: str, text: str, at: str, before: str) -> None:
    with served.connect("shop") as client, pytest.raises(psycopg.Error) as refused:
        client.execute((before + text).encode())
    told = refused.value.diag
    assert told.sqlstate == sqlstate
    assert told.severity == "ERROR"
    assert told.message_primary
    assert told.message_hint
    position = int(told.statement_position or 0)
    assert (before + text)[position - 1 :].startswith(at)


def test_error_position_inside_copy(served: Served) -> None:
    text = "COPY (SELECT count(*) FROM users WHERE age ~ '(?i)x') TO STDOUT"
    with served.connect("truth") as exact, pytest.raises(psycopg.Error) as theirs:
        exact.execute(text)
    text = text.replace("age", "city")
    with served.connect("shop") as client, pytest.raises(psycopg.Error) as refused:
        client.execute(text)
    assert refused.value.diag.statement_position == str(text.index("city") + 1)
    assert theirs.value.diag.statement_position == str(text.index("city ~") + 5)


def test_refusal_leaves_the_session_and_transaction_as_postgresql_would(served: Served) -> None:
    with served.connect("shop") as client:
        client.execute("BEGIN")
        with pytest.raises(psycopg.Error) as refused:
            client.execute("SELECT * FROM users")
        assert refused.value.sqlstate == "DP004"
        with pytest.raises(psycopg.errors.InFailedSqlTransaction):
            client.execute("SELECT 1")
        client.execute("ROLLBACK")
        assert client.execute("SELECT count(*) > 0 FROM users").fetchall() == [(True,)]


def test_policy_relation_shows_what_may_be_asked(served: Served) -> None:
    with served.connect("shop") as client, client.cursor(row_factory=dict_row) as cursor:
        rows = {(r["table"], r["column"]): r for r in cursor.execute("SELECT * FROM hush.policy")}
    assert rows["users", "age"]["bounds"] == "[0, 110]"
    assert rows["users", "plan"]["values"] == "free, pro, team"
    assert rows["users", "newsletter"]["values"] == "false, true"
    assert rows["stores", "name"]["public"] is True
    assert rows["items", "price"]["type"] == "double precision"
    assert {r["status"] for r in rows.values()} == {"in force"}


def test_hush_relations_join_with_everything_else(served: Served) -> None:
    with served.connect("shop") as client:
        cursor = client.execute(
            "SELECT p.public, count(*) FROM hush.policy p JOIN stores s ON s.store_id = 1 GROUP BY 1 ORDER BY 1"
        )
        assert [public for public, _ in cursor.fetchall()] == [False, True]
        both = client.execute("SELECT n > 0, b.kind FROM (SELECT count(*) AS n FROM users) u, hush.budget b ORDER BY 2")
        assert both.fetchall() == [(True, "session"), (True, "user")]
        assert client.execute("SELECT count(*) FROM hush.last_query").fetchall() == [(1,)]
        limited = client.execute('SELECT b."account" FROM hush."budget" AS b LIMIT 1').fetchall()
        assert limited == [("ann",)]


def test_a_login_sees_its_role_s_tables_only(served: Served) -> None:
    with served.connect("shop", "clerk") as client:
        assert client.execute("SELECT count(*) > 0 FROM orders").fetchall() == [(True,)]
        with pytest.raises(psycopg.errors.UndefinedTable):
            client.execute("SELECT count(*) FROM users")
        with pytest.raises(psycopg.errors.UndefinedTable):
            client.execute("SELECT count(*) FROM orders o JOIN users u ON u.user_id = o.user_id")
        tables = client.execute('SELECT DISTINCT "table" FROM hush.policy ORDER BY 1').fetchall()
        assert tables == [("orders",), ("stores",)]
