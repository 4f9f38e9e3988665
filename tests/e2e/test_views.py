"""Views over private tables and statements prepared in SQL: what PostgreSQL keeps for a session."""

from __future__ import annotations

import psycopg
import pytest

from tests.e2e.served import Client, Served
from tests.e2e.test_statements import GROUPS, Execute, in_query, prepared, spent

BOTH = pytest.mark.parametrize("execute", [in_query, prepared], ids=["simple", "extended"])
VIEWS = """
CREATE TEMP VIEW adults (id, years, plan) AS SELECT user_id, age, plan FROM users WHERE age >= 18;
CREATE TEMP VIEW big AS SELECT * FROM adults WHERE plan IN ('free', 'pro');
CREATE TEMPORARY VIEW by_plan AS SELECT plan, count(*) AS n FROM adults GROUP BY plan;
CREATE TEMP VIEW open AS SELECT * FROM stores;
"""
USES = [
    "SELECT count(*) FROM adults", "SELECT count(*), avg(x.years) FROM pg_temp.big AS x WHERE x.years BETWEEN 2 AND 60",
    "SELECT plan, n FROM by_plan ORDER BY 1", "TABLE by_plan ORDER BY 1", "SELECT sum(n) / count(*) FROM by_plan b",
    "SELECT count(*) FROM adults a JOIN orders o ON o.user_id = a.id", "SELECT * FROM adults LIMIT 0",
    "SELECT count(*) FROM users WHERE user_id IN (SELECT id FROM big)",
    "WITH b AS (SELECT * FROM big) SELECT count(*) FROM b", "SELECT (SELECT count(*) FROM big), 1 AS one",
    "SELECT count(*) FROM open", "SELECT count(*) FROM open o, by_plan p",
    "WITH big AS (SELECT 1 AS x) SELECT * FROM big",
    "SELECT * FROM (SELECT plan, count(DISTINCT id) FROM adults GROUP BY plan) t ORDER BY 1",
]  # fmt: skip
CALLS = """
PREPARE older (int) AS SELECT count(*) FROM users WHERE age > $1;
PREPARE named (text, numeric) AS
  SELECT plan, count(*) AS n, $2 AS x FROM users WHERE plan = $1 GROUP BY plan ORDER BY n;
PREPARE since (date, timestamp, boolean, float8) AS
  SELECT count(*) FROM users u JOIN orders o ON o.user_id = u.user_id
  WHERE joined > $1 AND at < $2 AND newsletter = $3 AND score > $4;
PREPARE top (bigint) AS SELECT plan, count(*) FROM users GROUP BY plan ORDER BY 1 LIMIT $1;
PREPARE listed (text[]) AS SELECT count(*) FROM users WHERE plan = ANY (ARRAY[$1[1], 'pro']);
PREPARE shape AS SELECT * FROM users LIMIT 0;
PREPARE open AS SELECT count(*) FROM stores;
"""
EXECUTED = [
    "EXECUTE older(30)", "EXECUTE older(29 + 1)", "EXECUTE older(NULL)", "EXECUTE named('pro', -1.50)",
    "EXECUTE named('it''s', 2)", "EXECUTE since('2020-01-01', '2025-01-01', true, -1.5)", "EXECUTE top(2)",
    "EXECUTE shape", "EXECUTE open",
]  # fmt: skip
MISTAKES = [
    "EXECUTE older", "EXECUTE older(1, 2)", "EXECUTE older('x')", "EXECUTE older((SELECT 1))", "EXECUTE older(1 / 0)",
    "EXECUTE nothing(1)", "EXECUTE older(nope)", "SELECT nope FROM adults", "SELECT count(*) FROM adults WHERE n > 1",
    "SELECT count(*) FROM adult", "DROP VIEW adults", "CREATE TEMP VIEW adults AS SELECT 1",
    "CREATE OR REPLACE TEMP VIEW big AS SELECT 1 AS x", "CREATE TEMP VIEW x AS SELECT nope FROM users",
]  # fmt: skip


def shown(client: Client, execute: Execute, text: str) -> tuple[object, ...]:
    """What a statement gives but for its noise, and the status of the transaction after it."""
    try:
        cursor = execute(client, text)
    except psycopg.Error as error:
        return error.sqlstate, error.diag.message_primary, client.info.transaction_status
    columns = [(c.name, c.type_code) for c in cursor.description or ()]
    count = len(cursor.fetchall()) if columns else 0
    return columns, count, cursor.statusmessage, client.info.transaction_status


@BOTH
@pytest.mark.parametrize("before", ["", "BEGIN"])
def test_views_and_calls_answer_as_postgresql_does(served: Served, execute: Execute, before: str) -> None:
    with served.connect("shop") as client, served.connect("truth") as exact:
        for text in (VIEWS, CALLS, before or "SELECT 1"):
            client.execute(text.encode())
            exact.execute(text.encode())
        for text in (*USES, *EXECUTED):
            assert shown(client, execute, text) == shown(exact, execute, text), text
            numbers = execute(client, text).fetchall(), execute(exact, text).fetchall()
            for mine, true in zip(*numbers, strict=True):
                for one, other in zip(mine, true, strict=True):
                    assert one == other or abs(float(str(one)) - float(str(other))) < 30, (text, mine, true)


@BOTH
@pytest.mark.parametrize("before", ["SELECT 1", "BEGIN"])
def test_mistakes_are_told_as_postgresql_tells_them(served: Served, execute: Execute, before: str) -> None:
    with served.connect("shop") as client, served.connect("truth") as exact:
        for text in (VIEWS, CALLS):
            client.execute(text.encode())
            exact.execute(text.encode())
        for mistake in MISTAKES:
            for text in (before, mistake, "ROLLBACK"):
                assert shown(client, execute, text) == shown(exact, execute, text), text


def test_view_costs_what_its_select_costs(served: Served) -> None:
    with served.connect("spend", "u29") as client:
        client.execute(f"CREATE TEMP VIEW v AS {GROUPS}")
        assert client.execute("SELECT * FROM v LIMIT 0").fetchall() == []
        free = spent(client)
        assert str(client.execute("EXPLAIN SELECT * FROM v").fetchall()[0][0]).startswith("Privacy plan: 1 release")
        assert spent(client) == free == [(0.0,)]
        first = client.execute("SELECT * FROM v ORDER BY plan").fetchall()
        paid = spent(client)
        assert paid != free
        assert client.execute("SELECT n FROM v ORDER BY plan").fetchall() == [(n,) for _, n in first]
        assert client.execute(f"SELECT * FROM ({GROUPS}) t ORDER BY plan").fetchall() == first
        client.execute("PREPARE p AS SELECT plan, n FROM v ORDER BY plan")
        assert client.execute("EXECUTE p").fetchall() == first
        assert client.execute("EXPLAIN (FORMAT JSON) EXECUTE p").fetchall()[0][0][0]["charge_epsilon"] == 0
        assert spent(client) == paid


def test_view_is_in_the_catalogue_of_its_session_alone(served: Served) -> None:
    columns = "SELECT column_name, data_type FROM information_schema.columns WHERE table_name = 'adults' ORDER BY 1"
    with served.connect("shop") as client, served.connect("shop") as other:
        client.execute(VIEWS.encode())
        assert client.execute(columns).fetchall() == [("id", "integer"), ("plan", "text"), ("years", "integer")]
        with pytest.raises(psycopg.errors.UndefinedTable):
            other.execute("SELECT count(*) FROM adults")
    with served.connect("shop") as again, pytest.raises(psycopg.errors.UndefinedTable):
        again.execute("SELECT count(*) FROM adults")


@BOTH
def test_view_is_replaced_renamed_and_rolled_back(served: Served, execute: Execute) -> None:
    """Each time the numbers are those of the view as PostgreSQL has it then."""
    with served.connect("shop") as client, served.connect("truth") as exact:

        def same(name: str = "v") -> None:
            ((mine,),) = execute(client, f"SELECT count(*) FROM {name}").fetchall()
            ((true,),) = execute(exact, f"SELECT count(*) FROM {name}").fetchall()
            assert abs(int(str(mine)) - int(str(true))) < 10

        def both(*texts: str) -> None:
            for text in texts:
                assert shown(client, in_query, text) == shown(exact, in_query, text), text

        both("CREATE TEMP VIEW v AS SELECT * FROM users")
        same()
        both("BEGIN", "CREATE OR REPLACE TEMP VIEW v AS SELECT * FROM users WHERE age > 50", "SAVEPOINT s")
        same()
        both("CREATE OR REPLACE TEMP VIEW v AS SELECT * FROM users WHERE age > 70")
        same()
        both("ROLLBACK TO s")
        same()
        both("ROLLBACK")
        same()
        both("CREATE TEMP VIEW w AS SELECT * FROM v WHERE age < 40", "ALTER VIEW v RENAME TO x")
        same("w")
        same("x")
        both("SELECT count(*) FROM v", "DROP VIEW x CASCADE", "SELECT count(*) FROM w", "SELECT count(*) FROM x")
        both("CREATE TEMP VIEW v AS SELECT * FROM stores")
        same()
        both("DISCARD ALL", "SELECT count(*) FROM v")


def test_several_statements_may_make_and_use_a_view(served: Served) -> None:
    with served.connect("shop") as client, served.connect("truth") as exact:
        for text in (f"{VIEWS} SELECT count(*) FROM big; DROP VIEW adults CASCADE; SELECT count(*) FROM stores",
                     "PREPARE a AS SELECT count(*) FROM users; EXECUTE a; SELECT 1; DEALLOCATE a",
                     f"{VIEWS} SELECT count(*) FROM big; SELECT 1 / 0", "SELECT count(*) FROM big",
                     f"BEGIN; {VIEWS} SELECT count(*) FROM big; ROLLBACK; SELECT count(*) FROM big"):  # fmt: skip
            assert shown(client, in_query, text) == shown(exact, in_query, text), text


def test_prepared_statement_of_a_driver_follows_the_view(served: Served) -> None:
    with served.connect("shop") as client:
        client.execute("CREATE TEMP VIEW v AS SELECT age, user_id FROM users WHERE age > 20")
        count = "SELECT count(*) FROM v WHERE age < %s"
        many = client.execute(count, (60,), prepare=True).fetchall()
        client.execute("CREATE OR REPLACE TEMP VIEW v AS SELECT age, user_id FROM users WHERE age > 50")
        few = client.execute(count, (60,), prepare=True).fetchall()
        assert int(str(few[0][0])) < int(str(many[0][0])) / 2
        client.execute("CREATE OR REPLACE TEMP VIEW v AS SELECT 1 AS age, store_id AS user_id FROM stores")
        with pytest.raises(psycopg.Error) as refused:
            client.execute(count, (60,), prepare=True)
        assert refused.value.sqlstate == "DP006"
        assert "has changed" in str(refused.value)


def test_views_too_long_to_be_written_out_are_refused(served: Served) -> None:
    with served.connect("shop") as client:
        for name in "ab":
            client.execute(f"CREATE TEMP VIEW {name} AS SELECT age FROM users WHERE city <> '{'x' * 250_000}'".encode())
        for text in ("SELECT count(*) FROM a", "SELECT count(*) FROM b"):
            with pytest.raises(psycopg.Error) as refused:
                client.execute(text)
            assert refused.value.sqlstate == "DP006"
        assert client.execute(f"SELECT count(*) FROM stores WHERE name <> '{'x' * 30_000}'").fetchall() == [(4,)]
        client.execute("DROP VIEW a, b; CREATE TEMP VIEW short AS SELECT age FROM users")
        assert client.execute("SELECT count(*) > 0 FROM short").fetchall() == [(True,)]


def test_session_remembers_so_many_names(served: Served) -> None:
    with served.connect("shop") as client:
        for batch in range(10):
            client.execute(
                "; ".join(f"PREPARE p{batch}x{n} AS SELECT count(*) FROM users" for n in range(100)).encode()
            )
        with pytest.raises(psycopg.Error) as refused:
            client.execute("PREPARE more AS SELECT count(*) FROM users")
        assert refused.value.sqlstate == "54000"
        assert client.execute("SELECT count(*) > 0 FROM users").fetchall() == [(True,)]
