"""Where the policy answers SELECTs of rows with made-up ones: what tools see, over the wire."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest

from tests.e2e.served import Client, Document, Served, serving, shop_policy, write_users, write_yaml
from tests.e2e.shop_data import write_shop

LOGINS = {"ann": "analyst", "clerk": "clerk"}
SAYS = "these rows are made up from the policy: nothing in them is private"


def made_up_policy(**changes: object) -> Document:
    shop = shop_policy(**changes)
    return {**shop, "privacy": {**shop["privacy"], "raw_select": "made_up"}}  # type: ignore[dict-item]  # a mapping


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("made_up")
    write_shop(folder / "shop.duckdb")
    write_users(folder / "users.yaml", LOGINS, "tables: [orders, stores]")
    with serving(folder, [write_yaml(folder / "shop.yaml", made_up_policy())]) as running:
        yield running


@pytest.fixture
def ann(shown: Served) -> Iterator[Client]:
    with shown.connect("shop") as client:
        yield client


def said(client: Client, text: str) -> tuple[list[tuple[object, ...]], list[str]]:
    """The rows of a statement, and what was said of them."""
    notices: list[str] = []

    def note(diagnostic: psycopg.errors.Diagnostic) -> None:
        notices.append(diagnostic.message_primary or "")

    client.add_notice_handler(note)
    try:
        return client.execute(text.encode()).fetchall(), notices
    finally:
        client.remove_notice_handler(note)


def refused(client: Client, text: str) -> str:
    with pytest.raises(psycopg.Error) as error:
        client.execute(text.encode())
    return error.value.sqlstate or ""


def spent(client: Client) -> list[tuple[object, ...]]:
    return client.execute("SELECT kind, rho_spent FROM hush.budget ORDER BY 1").fetchall()


@pytest.mark.parametrize("text, count", [
    ("SELECT * FROM users LIMIT 100", 100), ("SELECT * FROM users", 100), ("TABLE orders", 300),
    ("SELECT u.* FROM users u LIMIT 10 OFFSET 95", 5), ("SELECT city, age + 1 AS older FROM users LIMIT 1", 1),
    ('SELECT "public"."users"."city" AS "c" FROM "public"."users" WHERE "public"."users"."user_id" < 8 LIMIT 200', 7),
    ("SELECT u.user_id, o.order_id FROM users u JOIN orders o ON o.user_id = u.user_id", 300),
    ("SELECT i.price FROM users u JOIN orders o USING (user_id) JOIN items i ON i.order_id = o.order_id", 300),
    ("SELECT o.order_id, s.name FROM orders o JOIN stores s ON s.store_id = o.store_id", 300),
    ("SELECT u.user_id FROM users u LEFT JOIN orders o ON o.user_id = u.user_id AND false", 100),
    ("SELECT user_id FROM users WHERE user_id BETWEEN 3 AND 6 OR lower(plan) = 'none' ORDER BY 1 DESC", 4),
    ("SELECT user_id, joined::text, date_trunc('month', joined), CASE WHEN age > 40 THEN 1 END FROM users", 100),
    ('SELECT * FROM "Odd ""Table"', 100),
])  # fmt: skip
def test_rows_that_are_asked_for_are_made_up_with_a_notice_and_free(ann: Client, text: str, count: int) -> None:
    before = spent(ann)
    rows, notices = said(ann, text)
    assert (len(rows), notices) == (count, [SAYS])
    assert spent(ann) == before
    assert said(ann, text)[0] == rows, "the same each time"


def test_made_up_rows_have_the_types_that_are_described(ann: Client) -> None:
    with ann.cursor() as cursor:
        cursor.execute("SELECT * FROM users WHERE false")
        described = [(c.name, c.type_code) for c in cursor.description or ()]
        cursor.execute("SELECT * FROM users")
        assert [(c.name, c.type_code) for c in cursor.description or ()] == described


def test_keys_of_public_tables_are_drawn_from_their_rows(ann: Client) -> None:
    stores = {row[0] for row in ann.execute("SELECT store_id FROM stores").fetchall()}
    drawn = {row[0] for row in said(ann, "SELECT store_id FROM orders")[0]}
    assert drawn <= stores
    assert len(drawn) > 1


def test_rows_are_made_up_for_prepared_statements_cursors_and_copies(ann: Client) -> None:
    text = "SELECT user_id, city FROM users WHERE user_id <= %s ORDER BY user_id"
    for binary in (False, True):
        found = ann.execute(text, (3,), prepare=True, binary=binary).fetchall()
        assert [row[0] for row in found] == [1, 2, 3]
    with ann.transaction(), ann.cursor("c") as cursor:
        cursor.execute("SELECT user_id FROM users ORDER BY user_id")
        assert [row[0] for row in cursor.fetchmany(2)] == [1, 2]
        assert [row[0] for row in cursor.fetchmany(2)] == [3, 4]
    with ann.cursor().copy("COPY (SELECT user_id FROM users LIMIT 2) TO STDOUT") as copy:
        assert len(list(copy.rows())) == 2
    ann.execute("PREPARE p (int) AS SELECT * FROM orders WHERE order_id = $1")
    assert len(said(ann, "EXECUTE p(7)")[0]) == 1
    lines = ann.execute("EXPLAIN SELECT * FROM users").fetchall()
    assert lines[0] == (f"Rows: {SAYS}",)
    data = ann.execute("EXPLAIN (FORMAT JSON) SELECT * FROM users").fetchone()
    assert data is not None
    assert (data[0][0]["made_up"], data[0][0]["releases"], data[0][0]["charge_epsilon"]) == (True, [], 0)


def test_what_is_said_of_made_up_rows_is_kept_for_tools(ann: Client) -> None:
    ann.execute("SELECT * FROM users LIMIT 5")
    assert ann.execute("SELECT message FROM hush.messages").fetchall() == [(SAYS,)]
    assert ann.execute("SELECT count(*) FROM hush.last_query").fetchall() == [(0,)]


def test_statements_without_rows_say_nothing_of_made_up_ones(ann: Client) -> None:
    for text in ("SELECT * FROM users LIMIT 0", "SELECT * FROM users WHERE 1 = 0"):
        rows, notices = said(ann, text)
        assert (rows, SAYS in notices) == ([], False)


def test_an_aggregate_gives_a_release_and_never_counts_made_up_rows(ann: Client) -> None:
    ann.execute("SET hush.epsilon = 50")
    before = spent(ann)
    (people,) = ann.execute("SELECT count(*) FROM users").fetchone() or (0,)
    (orders,) = ann.execute("SELECT count(*) FROM orders WHERE amount >= 0").fetchone() or (0,)
    assert abs(people - 100) > 40
    assert abs(orders - 300) > 40
    assert spent(ann) != before


@pytest.mark.parametrize("text", [
    "SELECT DISTINCT user_id FROM users", "SELECT user_id FROM users UNION SELECT user_id FROM orders",
    "SELECT user_id FROM users UNION ALL SELECT 1", "SELECT row_number() OVER () FROM users",
    "SELECT * FROM (SELECT city FROM users) t", "WITH t AS (SELECT city FROM users) SELECT * FROM t",
    "SELECT city FROM users WHERE EXISTS (SELECT 1 FROM orders)", "SELECT EXISTS (SELECT 1 FROM users)",
    "SELECT city, (SELECT count(*) FROM users) FROM users", "SELECT (SELECT city FROM users LIMIT 1)",
    "SELECT city, n FROM users, (SELECT count(*) AS n FROM orders) t", "SELECT city, kind FROM users, hush.budget",
    "SELECT u.count FROM users u", "SELECT u FROM users u", "SELECT ctid FROM users",
    "SELECT array_agg(age) FROM users", "SELECT string_agg(city, ',') FROM users",
    "SELECT generate_series(1, 3), city FROM users", "SELECT city FROM users, LATERAL (SELECT 1) t",
    "SELECT city FROM users FOR UPDATE", "SELECT city FROM users, pg_class",
    "SELECT city FROM users TABLESAMPLE SYSTEM (10)", "SELECT city FROM ONLY users",
    "SELECT a FROM users u (a, b, c)", "SELECT name FROM stores WHERE store_id IN (SELECT store_id FROM orders)",
    "CREATE TEMP TABLE kept AS SELECT * FROM users", "SELECT * INTO TEMP kept FROM users",
    "CREATE TEMP TABLE kept AS SELECT * FROM users LIMIT 1", "COPY users TO STDOUT", "DELETE FROM users",
])  # fmt: skip
def test_what_could_compute_from_made_up_rows_or_mix_them_is_refused(ann: Client, text: str) -> None:
    before = spent(ann)
    assert refused(ann, text)[:2] in ("DP", "42", "0A")
    assert spent(ann) == before


def test_made_up_rows_do_not_get_into_tables_views_or_releases(ann: Client) -> None:
    ann.execute("CREATE TEMP TABLE own (user_id int, city text)")
    assert refused(ann, "INSERT INTO own SELECT user_id, city FROM users").startswith(("DP", "42"))
    assert refused(ann, "SELECT u.city FROM users u JOIN own ON own.user_id = u.user_id").startswith("DP")
    ann.execute("CREATE TEMP VIEW seen AS SELECT user_id, city FROM users")
    assert refused(ann, "SELECT * FROM seen").startswith("DP")
    ann.execute("PREPARE q AS SELECT city FROM users")
    assert refused(ann, "CREATE TEMP TABLE kept AS EXECUTE q").startswith("DP")
    ann.execute("SET hush.epsilon = 50")
    (counted,) = ann.execute("SELECT count(*) FROM seen").fetchone() or (0,)
    assert abs(counted - 100) > 40


def test_a_role_sees_made_up_rows_of_its_own_tables_alone(shown: Served) -> None:
    with shown.connect("shop", "clerk") as clerk:
        assert len(said(clerk, "SELECT * FROM orders")[0]) == 300
        assert refused(clerk, "SELECT * FROM users LIMIT 1") == "42P01"


def test_values_lie_where_the_policy_says(ann: Client) -> None:
    outside = "age NOT BETWEEN 0 AND 110 OR plan NOT IN ('free', 'pro', 'team')"
    assert said(ann, f"SELECT user_id FROM users WHERE {outside}")[0] == []
