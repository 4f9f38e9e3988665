"""A statement whose plan reads a private table is refused, in whatever form it comes."""

from __future__ import annotations

from collections.abc import Callable

import psycopg
import pytest

from tests.front.conftest import Client

# Each reads a private table in another way. The relay would stop most of them; here nothing else does.
READS = (
    "SELECT count(*) FROM users",
    "SELECT * FROM users",
    "SELECT FROM users",
    "SELECT 1 FROM users LIMIT 0",
    "SELECT count(*) FROM users WHERE 1 = 0",
    "SELECT count(*) FROM users WHERE false",
    "SELECT count(*) FROM users WHERE age > 200",
    "SELECT count(*) FROM users WHERE user_id IS NULL",  # never true: the column is NOT NULL
    "SELECT * FROM users WHERE user_id = 7",
    "SELECT age FROM users WHERE user_id = 7 AND age IS NOT NULL",
    "SELECT count(*) FROM public.users u JOIN orders o USING (user_id)",
    "SELECT EXISTS (SELECT FROM orders)",
    "SELECT (SELECT count(*) FROM users) + 1",
    "SELECT id FROM stores WHERE id NOT IN (SELECT user_id FROM users)",
    "WITH u AS MATERIALIZED (SELECT * FROM users) SELECT count(*) FROM u",
    "TABLE users",
    'SELECT count(*) FROM U&"\\0075sers"',
    "SELECT count(*) FROM users TABLESAMPLE SYSTEM (10)",
    "SELECT row_to_json(users) FROM users",
    "SELECT ctid, tableoid FROM users",
    "COPY users TO STDOUT",
    "COPY (SELECT * FROM users) TO STDOUT",
    "EXPLAIN ANALYZE SELECT * FROM users",
    "DECLARE c CURSOR WITH HOLD FOR SELECT * FROM users",
    "CREATE TEMP TABLE t AS SELECT * FROM users",
    "SELECT * INTO TEMP t FROM users",
    "CREATE TEMP VIEW v AS SELECT * FROM users; SELECT count(*) FROM v",
    "PREPARE p AS SELECT count(*) FROM users; EXECUTE p",
    "PREPARE p (int) AS SELECT count(*) FROM users WHERE age > $1; EXECUTE p(300)",
    "SET enable_seqscan = off; SELECT count(*) FROM users",
    "SET plan_cache_mode = force_generic_plan; PREPARE p AS SELECT count(*) FROM users; EXECUTE p",
    "SET search_path = pg_temp, public; SELECT count(*) FROM users",
    "BEGIN ISOLATION LEVEL SERIALIZABLE READ ONLY DEFERRABLE; SELECT count(*) FROM users",
    "SELECT count(*) FROM hush.budget",
    "SELECT * FROM information_schema.only_aggregates",
    "ANALYZE VERBOSE hush.budget; SELECT count(*) FROM hush.budget",
)

# Refused for another reason, or changes.
OTHERS = (
    "SELECT * FROM users FOR KEY SHARE",
    "SET row_security = off; SELECT count(*) FROM users",
    "SELECT query_to_xml('select count(*) from users', true, false, '')",
    "SELECT table_to_xml('users', true, false, '')",
    "SELECT ts_stat('select city from users')",
    "DO $$ BEGIN PERFORM count(*) FROM users; END $$",
    "SELECT stavalues1 FROM pg_statistic",
    "INSERT INTO users (user_id) VALUES (1)",
    "INSERT INTO users (user_id) VALUES (1) ON CONFLICT DO NOTHING",
    "UPDATE users SET age = age",
    "DELETE FROM orders",
    "MERGE INTO users USING stores ON user_id = id WHEN MATCHED THEN DELETE",
    "TRUNCATE users",
    "COPY users FROM STDIN",
    "INSERT INTO information_schema.only_aggregates VALUES (true)",
    "GRANT SELECT ON information_schema.only_aggregates TO alice",
    "ALTER TABLE users DISABLE ROW LEVEL SECURITY",
    "DROP POLICY private ON users",
    "CREATE INDEX ON users (age)",
    "CREATE RULE r AS ON SELECT TO users DO INSTEAD SELECT 1",
    "CREATE TRIGGER t BEFORE INSERT ON users EXECUTE FUNCTION suppress_redundant_updates_trigger()",
    "SET ROLE hush_owner",
    "SET SESSION AUTHORIZATION hush_front",
    "ALTER ROLE alice BYPASSRLS",
    "ALTER ROLE alice SUPERUSER",
)


def run(client: Client, query: str) -> None:
    """Run the parts of `query` that "; " separates; a DO block is one part."""
    for part in [query] if query.startswith("DO ") else query.split("; "):
        if part.startswith("COPY"):
            with client.cursor().copy(part.encode()) as copy:
                list(copy)
        else:
            client.execute(part.encode())


@pytest.mark.parametrize("query", READS)
def test_every_read_of_a_private_table_meets_the_guard(alice: Client, query: str) -> None:
    """Claim of `schema_sql`: with the guard, no plan over a private table runs."""
    with pytest.raises(psycopg.errors.InsufficientPrivilege, match="permission denied for table only_aggregates"):
        run(alice, query)


@pytest.mark.parametrize("query", OTHERS)
def test_no_change_and_no_way_around_the_guard(alice: Client, query: str) -> None:
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        run(alice, query)


def test_describe_and_catalogue_of_private_tables_work(alice: Client) -> None:
    alice.pgconn.prepare(b"s", b"SELECT age, count(*) FROM users WHERE user_id = $1 GROUP BY age")
    described = alice.pgconn.describe_prepared(b"s")
    assert [described.ftype(0), described.ftype(1), described.param_type(0)] == [23, 20, 23]
    assert alice.execute("SELECT has_table_privilege('users', 'SELECT')").fetchone() == (True,)


def test_names_that_do_not_exist_keep_their_own_error_and_position(alice: Client) -> None:
    with pytest.raises(psycopg.errors.UndefinedColumn) as raised:
        alice.execute("SELECT nothing FROM users")
    assert raised.value.diag.statement_position == "8"


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE TEMP TABLE users (a int)",
        "CREATE TEMP TABLE orders AS SELECT 1 AS user_id",
        "SELECT 1 AS user_id INTO TEMP users",
        "CREATE TEMP VIEW users AS SELECT 1 AS user_id",
        "CREATE TEMP SEQUENCE users",
        "CREATE TEMP TABLE fine (a int); ALTER TABLE fine RENAME TO users",
        "SET search_path = pg_temp; CREATE TABLE users (a int)",
    ],
)
def test_temporary_objects_cannot_hide_a_table(alice: Client, statement: str) -> None:
    *before, last = statement.split("; ")
    for part in before:
        alice.execute(part.encode())
    with pytest.raises(psycopg.Error, match="a temporary object may not be called") as raised:
        alice.execute(last.encode())
    assert raised.value.sqlstate == "DP007"


def test_other_temporary_objects_work(connect: Callable[[str], Client]) -> None:
    client = connect("bob")
    client.execute("CREATE TEMP TABLE mine AS SELECT g FROM generate_series(1, 10) AS g")
    client.execute("CREATE INDEX ON mine (g)")
    client.execute("ALTER TABLE mine ADD COLUMN h text")
    client.execute("CREATE TEMP VIEW over AS SELECT sum(g) AS s FROM mine")
    assert client.execute("SELECT s, (SELECT count(*) FROM stores) FROM over").fetchone() == (55, 2)
