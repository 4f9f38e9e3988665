"""What clients see in the front's catalogues."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import date

import psycopg
import pytest

from proxy.front.front import Front, FrontOptions
from proxy.front.relations import RELATIONS, setting_defaults
from tests.front.conftest import Client, open_as
from tests.front.samples import STORE_ROWS, WEIRD, WEIRD_LOGIN, WEIRD_NAME, policy, store_rows, users

TABLES = """SELECT n.nspname, c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r','p','v','m','S','f','') AND n.nspname <> 'pg_catalog' AND n.nspname !~ '^pg_toast'
AND n.nspname <> 'information_schema' AND pg_table_is_visible(c.oid) ORDER BY 1, 2"""  # psql's \d
CONSTRAINTS = """SELECT table_name, constraint_type FROM information_schema.table_constraints
WHERE table_schema = 'public' AND constraint_type <> 'CHECK' ORDER BY 1, 2"""


def rows(client: Client, query: str) -> list[tuple[object, ...]]:
    return client.execute(query.encode()).fetchall()


def test_listing_shows_the_tables_of_the_policy_and_nothing_of_the_machinery(alice: Client) -> None:
    assert rows(alice, TABLES) == [("public", n) for n in ("items", "orders", "stores", "users")]
    schemas = "SELECT nspname FROM pg_namespace WHERE nspname !~ '^pg_' AND nspname <> 'information_schema' ORDER BY 1"
    assert rows(alice, schemas) == [("hush",), ("public",)]
    assert rows(alice, "SELECT table_name FROM information_schema.tables WHERE table_name LIKE 'hush%'") == []


def test_columns_have_the_types_of_the_policy_and_hidden_ones_do_not_exist(alice: Client) -> None:
    query = """SELECT attname, format_type(atttypid, atttypmod), attnotnull FROM pg_attribute
    WHERE attrelid = 'users'::regclass AND attnum > 0 ORDER BY attnum"""
    assert rows(alice, query) == [
        ("user_id", "integer", True),
        ("age", "integer", False),
        ("City", "text", False),
        ("plan", "character varying", False),
        ("code", "bpchar", False),
        ("joined", "date", False),
    ]


def test_keys_are_visible_in_information_schema(alice: Client) -> None:
    assert rows(alice, CONSTRAINTS) == [
        ("items", "FOREIGN KEY"),
        ("orders", "FOREIGN KEY"),
        ("orders", "PRIMARY KEY"),
        ("users", "PRIMARY KEY"),
    ]


def test_comments_say_unit_limits_bounds_and_values(alice: Client) -> None:
    comment = "private: aggregates only, each customer (user_id) is protected; at most 60 rows per customer; "
    comment += "at most 10 rows per customer and group; at most 12 groups per customer"
    assert rows(alice, "SELECT obj_description('orders'::regclass)") == [(comment,)]
    assert rows(alice, "SELECT col_description('users'::regclass, n) FROM generate_series(1, 4) AS n") == [
        ("identifies the customer: for joins and count(distinct), never shown",),
        ("bounds [0, 110]",),
        (None,),
        ("values free, o'hara, pro",),
    ]


def test_a_login_that_sees_less_finds_no_trace_of_the_rest(connect: Callable[[str], Client]) -> None:
    eve = connect("eve")
    assert rows(eve, "SELECT current_database()") == [("shop",)]
    assert rows(eve, TABLES) == [("public", "stores"), ("public", "users")]
    with pytest.raises(psycopg.errors.UndefinedTable, match='relation "orders" does not exist'):
        eve.execute("SELECT count(*) FROM orders")
    assert rows(eve, "SELECT count(*) FROM pg_roles WHERE rolname IN ('alice', 'bob')") == [(0,)]
    listed = rows(eve, "SELECT datname FROM pg_database WHERE datallowconn ORDER BY 1")
    assert listed == [("shop",), ("template1",)]


def test_database_and_roles_look_ordinary(alice: Client) -> None:
    assert rows(alice, "SELECT current_database(), current_user, current_schema()") == [("shop", "alice", "public")]
    query = """SELECT rolname, rolsuper, rolcreaterole, rolcreatedb, rolreplication, rolbypassrls,
    rolcanlogin FROM pg_roles WHERE rolname !~ '^pg_' AND rolname !~ '^hush_' ORDER BY 1"""
    assert rows(alice, query) == [(n, False, False, False, False, False, True) for n in ("alice", "bob")]
    assert rows(alice, "SELECT count(*) FROM pg_auth_members WHERE member = 'alice'::regrole") == [(0,)]


def test_public_tables_are_answered_exactly(alice: Client) -> None:
    assert tuple(rows(alice, "SELECT * FROM stores ORDER BY id")) == STORE_ROWS
    assert rows(alice, "SELECT \"Town\" FROM stores WHERE opened = '2020-02-29'") == [("Köln\t\\N",)]
    assert rows(alice, "SELECT reltuples::int FROM pg_class WHERE relname = 'stores'") == [(2,)]


def test_settings_have_defaults_and_can_be_set_and_reset(alice: Client) -> None:
    for name, value in setting_defaults(policy()):
        assert rows(alice, f"SHOW {name}") == [(value,)]
    alice.execute("SET hush.epsilon = 2")
    assert rows(alice, "SHOW hush.epsilon") == [("2",)]
    alice.execute("RESET hush.epsilon")
    assert rows(alice, "SHOW hush.epsilon") == [("0.25",)]


def test_relations_of_the_proxy_have_their_types_and_no_rows(alice: Client) -> None:
    for name, columns in RELATIONS.items():
        described = rows(
            alice,
            "SELECT attname, atttypid::int FROM pg_attribute WHERE attnum > 0"
            f" AND attrelid = 'hush.{name}'::regclass ORDER BY attnum",
        )
        assert described == [(c, t.oid) for c, t in columns]
        with pytest.raises(psycopg.errors.InsufficientPrivilege, match="only_aggregates"):
            alice.execute(f"SELECT * FROM hush.{name}".encode())


def test_functions_of_the_proxy_describe_and_refuse_to_run(alice: Client) -> None:
    for name in ("sd", "low", "high"):
        query = f"SELECT hush.{name}(count(*)) FROM users"
        prepared = alice.pgconn.prepare(b"s", query.encode())
        assert prepared.error_message == b""
        assert alice.pgconn.describe_prepared(b"s").ftype(0) == 701
        alice.execute("DEALLOCATE s")
        alice.execute(f"EXPLAIN SELECT hush.{name}(42)")
        with pytest.raises(psycopg.Error, match="must stand around an aggregate") as raised:
            alice.execute(f"SELECT hush.{name}(42)")
        assert raised.value.sqlstate == "DP006"


def test_text_is_utf8_and_time_zone_is_the_policys(runner: asyncio.Runner, wheel_options: FrontOptions) -> None:
    front = runner.run(Front.start(policy(time_zone="Asia/Tokyo"), users(a="all"), wheel_options, store_rows))
    try:
        with open_as(front, "a") as client:
            assert rows(client, "SHOW timezone") == [("Asia/Tokyo",)]
            assert rows(client, "SELECT upper('é'), 'é' < 'z', length('Köln')") == [("É", False, 4)]
    finally:
        runner.run(front.stop())


def test_hostile_names_are_data(runner: asyncio.Runner, wheel_options: FrontOptions) -> None:
    """Names with quotes, semicolons and dollar tags; a database called like PostgreSQL's own."""
    given = users(**{WEIRD_LOGIN: "all"})
    front = runner.run(Front.start(policy(WEIRD, dataset=WEIRD_NAME), given, wheel_options, store_rows))
    try:
        with open_as(front, WEIRD_LOGIN) as client:
            assert rows(client, "SELECT current_user::text, current_database()::text") == [(WEIRD_LOGIN, WEIRD_NAME)]
            assert rows(client, TABLES) == [("public", WEIRD_NAME)]
            comment = rows(client, "SELECT obj_description(oid) FROM pg_class WHERE relname LIKE 'we\"%'")
            assert str(comment[0][0]).startswith("it's \\ odd; private")
        runner.run(front.apply(policy(WEIRD, dataset=WEIRD_NAME), users(other="all")))
        with pytest.raises(psycopg.Error), open_as_stranger(front, WEIRD_LOGIN):
            pass
        runner.run(front.apply(policy(WEIRD, dataset=WEIRD_NAME), given))
        with open_as(front, WEIRD_LOGIN) as client:
            assert rows(client, "SELECT 1") == [(1,)]
    finally:
        runner.run(front.stop())


def test_a_dataset_may_be_called_postgres(runner: asyncio.Runner, wheel_options: FrontOptions) -> None:
    front = runner.run(Front.start(policy(dataset="postgres"), users(a="all"), wheel_options, store_rows))
    try:
        with open_as(front, "a") as client:
            assert rows(client, "SELECT current_database(), max(opened) FROM stores") == [
                ("postgres", date(2020, 2, 29))
            ]
    finally:
        runner.run(front.stop())


def open_as_stranger(front: Front, login: str) -> Client:
    address = front.address_for("other")
    return psycopg.connect(host=address.socket_dir, port=address.port, user=login, dbname=address.database)
