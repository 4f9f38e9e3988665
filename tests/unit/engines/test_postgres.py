"""A private PostgreSQL computes what was reserved, can be stopped, and lets nothing else through."""

from __future__ import annotations

import logging
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import date

import psycopg
import pytest

from proxy.engines.base import Cancellation, EngineStopped
from proxy.engines.postgres import PostgresEngine
from proxy.engines.postgres_open import connect
from proxy.errors import ConfigError, QueryCanceled
from proxy.plan.charge import Reserved
from proxy.policy.model import Column, Policy, PostgresSource, Table, UnitColumns, UnitVia
from proxy.release.raw import Kept, RawResult
from proxy.sql.names import spelled
from proxy.sqltypes import SqlType
from tests.postgres_server import PrivateServer, private_server, start_server
from tests.unit.engines.make import CITIES, ITEMS, ORDERS, USERS, first_stage, paying, policy, renamed

Run = Callable[[str], RawResult]
DATABASE = "engine data"
LOGIN = "reader"
_SHOP_USERS = renamed(USERS, relation=("users",))
_TABLES = (CITIES, _SHOP_USERS, ORDERS, ITEMS)

_DATA = """
create schema sales;
create table cities (city text primary key, "inner" int);
insert into cities values ('Paris', 1), ('Oslo', 2);
create table users (user_id int unique, age int, city varchar(20), secret text);
insert into users values (1, 30, 'Paris', 'alice-secret'), (2, 40, 'Oslo', 'b'), (null, 50, 'Oslo', 'c');
create table sales.orders (order_id bigint unique, user_id int, amount numeric(12, 2));
insert into sales.orders values (10, 1, 1.5), (11, 1, 2.5), (12, 2, 3.0);
create table items (order_id bigint);
create domain percent as numeric;
create type mood as enum ('sad', 'glad');
create extension citext;
create table odd ("User" int, "Mixed Case" mood, share percent, mail citext, list int[], day date, plain int, many int,
  primary key ("User", "Mixed Case"));
create unique index on odd (plain) where plain > 3;
create unique index on odd ((day - date '2000-01-01'));
create table parent (user_id int primary key);
create table child () inherits (parent);
create table writable (user_id int primary key);
create schema closed;
create table closed.away (user_id int primary key);
create table hiding (user_id int primary key);
alter table hiding enable row level security;
create role reader login;
grant usage on schema sales to reader;
grant select on all tables in schema public, sales to reader;
grant insert on writable to reader;
revoke select on users from reader;
grant select (user_id, age, city) on users to reader;
create function public.abs(int) returns int language sql as 'select 7777';
"""


@pytest.fixture(scope="module")
def server() -> PrivateServer:
    found = private_server()
    found.create(DATABASE, _DATA)
    return found


def _engine(server: PrivateServer, *tables: Table, login: str = LOGIN, zone: str = "Europe/Paris") -> PostgresEngine:
    source = PostgresSource(server.dsn(DATABASE, login))
    return PostgresEngine(policy(source, *(tables or _TABLES), time_zone=zone), source)


def _policy(*tables: Table) -> Policy:
    return policy(PostgresSource("unused"), *(tables or _TABLES))


@pytest.fixture(scope="module")
def engine(server: PrivateServer) -> Iterator[PostgresEngine]:
    opened = _engine(server)
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def pay(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Reserved]:
    return paying(tmp_path_factory.mktemp("ledger") / "state")


@pytest.fixture(scope="module")
def run(engine: PostgresEngine, pay: Callable[..., Reserved]) -> Run:
    return lambda sql: first_stage(engine, pay(sql), timeout_s=60, cancellation=Cancellation())


# --- results ----------------------------------------------------------------------------------------------


def test_sums_are_whole_numbers_and_keys_are_python_values(run: Run) -> None:
    sql = (
        "select city, sum(age) * 100000000000000000000::numeric, true, date '2024-02-29', 1.5::float8 from public.users"
        " group by city order by city"
    )
    assert run(sql).rows == (
        ("Oslo", 90 * 10**20, True, date(2024, 2, 29), 1.5),
        ("Paris", 30 * 10**20, True, date(2024, 2, 29), 1.5),
    )
    assert type(run(sql).rows[0][1]) is int
    assert run("select age, city from public.users where false") == RawResult(2, ())


def test_a_session_reads_only_and_trusts_no_name_of_the_data(run: Run) -> None:
    shown = "current_setting('TimeZone'), current_setting('transaction_read_only'), current_setting('search_path')"
    assert run(f"select {shown}, abs(-1)").rows == (("Europe/Paris", "on", "pg_catalog", 1),)
    assert run("select current_setting('transaction_isolation')").rows == (("repeatable read",),)
    for sql in ("insert into public.writable values (1)", "select * from users", "select 1; select 2"):
        with pytest.raises(EngineStopped):
            run(sql)


def test_rows_are_grouped_in_more_memory_unless_the_server_says_how_much(server: PrivateServer) -> None:
    said = {"set work_mem = '9MB'": "9MB", "set work_mem = '80MB'": "80MB", "reset work_mem": "64MB"}
    for words, used in said.items():
        with server.owner(DATABASE) as owner:
            owner.execute(f"alter role {LOGIN} {words}".encode())
        with connect(PostgresSource(server.dsn(DATABASE, LOGIN)), "UTC") as session:
            assert session.execute(b"show work_mem").fetchone() == (used,)
    chosen = PostgresSource(f"{server.dsn(DATABASE, LOGIN)} options='-c work_mem=5MB'")
    with connect(chosen, "UTC") as session:
        assert session.execute(b"show work_mem").fetchone() == ("5MB",)


def test_stages_see_one_snapshot_and_kept_keys(
    server: PrivateServer, engine: PostgresEngine, pay: Callable[..., Reserved]
) -> None:
    counted = "select count(*) from public.items"
    kept = "select k, count(*) from unnest($1::text[]) as k group by k order by k nulls last"
    with (
        server.owner(DATABASE) as owner,
        engine.stages(pay(counted, kept, counted), timeout_s=60, cancellation=Cancellation()) as stages,
    ):
        before = stages.rows(0, Kept()).rows
        owner.execute("insert into items values (10)")
        assert stages.rows(1, Kept((("a", None, "a"),))).rows == (("a", 2), (None, 1))
        assert stages.rows(2, Kept()).rows == before
    with engine.stages(pay(counted), timeout_s=60, cancellation=Cancellation()) as stages:
        assert stages.rows(0, Kept()).rows != before


def test_only_short_statements_are_compiled_and_only_where_the_server_does_that(
    server: PrivateServer, pay: Callable[..., Reserved]
) -> None:
    asked = "select current_setting('jit')"
    long = f"{asked} where '{'x' * 5000}' <> ''"
    for said, statements, is_on in (("on", (asked,), True), ("on", (asked, long), False), ("off", (asked,), False)):
        with server.owner(DATABASE) as owner:
            owner.execute(f"alter role {LOGIN} set jit = {said}".encode())
        with closing(_engine(server)) as fresh:
            found = first_stage(fresh, pay(*statements), timeout_s=60, cancellation=Cancellation())
        assert found.rows == (("on" if is_on else "off",),)


def test_public_rows_come_as_texts_without_hidden_columns(server: PrivateServer, engine: PostgresEngine) -> None:
    assert sorted(engine.public_rows(CITIES)) == [("Oslo",), ("Paris",)]
    with pytest.raises(ValueError, match="private"):
        next(engine.public_rows(_SHOP_USERS))
    with pytest.raises(ConfigError, match="public table cities cannot be read"):
        next(engine.public_rows(renamed(CITIES, relation=("nowhere",))))


# --- failures ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "sql",
    ["select secret::int from public.users", "select city::int from public.users", "select 1/0", "this is not sql"],
)
def test_the_servers_words_never_leave(run: Run, sql: str) -> None:
    with pytest.raises(EngineStopped) as failed:
        run(sql)
    chain = "".join(traceback.format_exception(failed.value)) + repr(failed.value.__cause__)
    assert "Paris" not in chain
    assert "secret" not in chain.replace(sql, "")
    assert failed.value.sqlstate == "58000"
    assert failed.value.__context__ is None
    assert run("select 1").rows == ((1,),)


def test_a_statement_stops_when_it_is_cancelled_or_its_time_is_over(
    engine: PostgresEngine, pay: Callable[..., Reserved], run: Run
) -> None:
    forever = pay("select pg_sleep(600)")
    with pytest.raises(QueryCanceled, match="timeout"):
        first_stage(engine, forever, timeout_s=0.3, cancellation=Cancellation())
    cancellation = Cancellation()
    timer = threading.Timer(0.3, cancellation.request)
    timer.start()
    with pytest.raises(QueryCanceled, match="user request"):
        first_stage(engine, forever, timeout_s=60, cancellation=cancellation)
    timer.join()
    with pytest.raises(QueryCanceled, match="user request"):
        first_stage(engine, forever, timeout_s=60, cancellation=cancellation)
    assert run("select 2").rows == ((2,),)


def test_a_server_without_room_is_a_fixed_message_and_is_used_again(
    server: PrivateServer, pay: Callable[..., Reserved]
) -> None:
    """No session is left for the login, and no room for what a statement spills."""
    with server.owner(DATABASE) as owner:
        for words in ("create role narrow login connection limit 1", "alter role narrow set temp_file_limit = 0",
                      "alter role narrow set work_mem = '64kB'"):  # fmt: skip
            owner.execute(words.encode())
    engine = _engine(server, login="narrow")
    spilled = pay("select count(*) from (select x from generate_series(1, 100000) as t(x) order by x desc offset 0) y")
    with engine.stages(pay("select 1"), timeout_s=60, cancellation=Cancellation()) as stages:
        with pytest.raises(EngineStopped) as crowded:
            first_stage(engine, pay("select 2"), timeout_s=60, cancellation=Cancellation())
        assert stages.rows(0, Kept()).rows == ((1,),)
    with pytest.raises(EngineStopped) as full:
        first_stage(engine, spilled, timeout_s=60, cancellation=Cancellation())
    for failed in (crowded.value, full.value):
        assert (failed.sqlstate, failed.message) == ("58000", "the private engine could not compute this statement")
        assert failed.__context__ is None
    assert first_stage(engine, pay("select 3"), timeout_s=60, cancellation=Cancellation()).rows == ((3,),)
    engine.close()


def test_a_server_that_goes_away_is_a_fixed_message_and_is_found_again(pay: Callable[..., Reserved]) -> None:
    server = start_server()
    server.create(DATABASE, _DATA)
    engine = _engine(server)
    with (
        pytest.raises(EngineStopped, match="the private engine could not compute this statement"),
        engine.stages(pay("select pg_sleep(600)"), timeout_s=60, cancellation=Cancellation()) as stages,
        server.owner() as owner,
    ):
        timer = threading.Timer(0.3, _end_others, [owner])
        timer.start()
        stages.rows(0, Kept())
    timer.join()
    assert first_stage(engine, pay("select 3"), timeout_s=60, cancellation=Cancellation()).rows == ((3,),)
    with server.owner() as owner:
        _end_others(owner)  # an idle session; the next statement takes another
    assert first_stage(engine, pay("select 4"), timeout_s=60, cancellation=Cancellation()).rows == ((4,),)
    server.stop()
    for _ in range(2):
        with pytest.raises(EngineStopped):
            first_stage(engine, pay("select 5"), timeout_s=60, cancellation=Cancellation())
    engine.close()
    with pytest.raises(EngineStopped):
        first_stage(engine, pay("select 6"), timeout_s=60, cancellation=Cancellation())
    with pytest.raises(ConfigError, match="cannot be used: OperationalError") as refused:
        _engine(server)
    assert str(server.home) not in refused.value.text()


def _end_others(owner: psycopg.Connection[tuple[object, ...]]) -> None:
    owner.execute("select pg_terminate_backend(pid) from pg_stat_activity where usename = 'reader'")


# --- facts ------------------------------------------------------------------------------------------------

_ODD = Table(
    name="odd",
    relation=("public", "odd"),
    ownership=UnitColumns(("User", "Mixed Case")),
    unit_unique=True,
    columns=(
        Column(name="User", type=SqlType.INT8, key=True),
        Column(name="Mixed Case", type=SqlType.TEXT, key=True),
        Column(name="share", type=SqlType.NUMERIC),
    ),
)


def test_facts_hold_by_the_databases_own_constraints(engine: PostgresEngine) -> None:
    facts = engine.check_facts(_policy(*_TABLES, _ODD))
    types = {(c.table, c.column): c.engine_type for c in facts.columns}
    assert types["users", "city"] == "varchar"
    assert types["odd", "share"] == "numeric"  # a domain counts as what it is made of
    assert types["odd", "Mixed Case"] == "enum"
    assert [(j.ref_table, j.is_unique) for j in facts.joins] == [("cities", True)]


def _alone(column: str, kind: SqlType, **changes: object) -> Table:
    return renamed(
        _ODD, ownership=UnitColumns((column,)), columns=(Column(name=column, type=kind, key=True),), **changes
    )


@pytest.mark.parametrize(
    "table, problem",
    [
        (_alone("mail", SqlType.TEXT), "odd.mail: is public.citext in the data, text in the policy"),
        (_alone("list", SqlType.INT4), "odd.list: is _int4 in the data, integer in the policy"),
        (_alone("User", SqlType.INT2), "odd.User: is int4 in the data, smallint in the policy"),
        (_alone("user", SqlType.INT4), "odd.user: the data have no such column"),
        (_alone("User", SqlType.INT4), "odd.User: 'unit_unique' is declared, and no unique index says so"),
        (_alone("plain", SqlType.INT4), "odd.plain: 'unit_unique' is declared, and no unique index says so"),
        (_alone("day", SqlType.DATE), "odd.day: 'unit_unique' is declared, and no unique index says so"),
        (_alone("User", SqlType.INT4, relation=("a", "b", "c")), "table odd: write relation as schema.table"),
        (_alone("User", SqlType.INT4, relation=("nowhere",)), "no relation nowhere that this login may see"),
        (_alone("User", SqlType.INT4, relation=("nowhere", "odd")), "no relation nowhere.odd that this login may see"),
        (_alone("User", SqlType.INT4, relation=("closed", "away")), "odd: the login may not use the schema closed"),
        (renamed(_SHOP_USERS, name="parent", relation=("parent",), columns=_SHOP_USERS.columns[:1], joins=()),
         "parent.user_id: 'unit_unique' is declared, and no unique index says so"),
        (renamed(_SHOP_USERS, columns=(*_SHOP_USERS.columns, Column(name="secret", type=SqlType.TEXT))),
         "users.secret: the login may not read it"),
    ],
)  # fmt: skip
def test_what_the_data_do_not_keep_is_refused(engine: PostgresEngine, table: Table, problem: str) -> None:
    with pytest.raises(ConfigError) as refused:
        engine.check_facts(_policy(CITIES, table))
    assert problem in refused.value.text()


_REPLACED = renamed(
    _ODD, name="replaced", relation=("replaced",), ownership=UnitColumns(("Id",)),
    columns=(Column(name="Id", type=SqlType.INT4, key=True),),
)  # fmt: skip


def test_a_unique_key_that_is_lost_while_it_is_served_ends_statements_until_it_is_back(
    server: PrivateServer, pay: Callable[..., Reserved]
) -> None:
    """A job loads a table anew and gives it the old name; its index comes too late, or somebody drops one."""
    engine, counted = _engine(server, _REPLACED), pay("select count(*) from public.replaced")

    def count() -> object:
        return first_stage(engine, counted, timeout_s=60, cancellation=Cancellation()).rows

    anew = 'create table fresh ("Id" int); insert into fresh values (1), (1); grant select on fresh to reader;'
    swapped = "begin; drop table replaced; alter table fresh rename to replaced; commit"
    with server.owner(DATABASE) as owner:
        owner.execute('create table bystander ("Id" int unique)')
        owner.execute('create table replaced ("Id" int unique); grant select on replaced to reader')
        engine.check_facts(_policy(_REPLACED))
        assert count() == ((0,),)
        for statements in (anew, swapped):
            assert count() == ((0,),)
            owner.execute(statements.encode())
        with pytest.raises(EngineStopped):
            count()
        owner.execute("delete from replaced; insert into replaced values (1)")
        with pytest.raises(EngineStopped):
            count()
        owner.execute('create unique index only_one on replaced ("Id")')
        assert count() == ((1,),)
        owner.execute("reindex table concurrently replaced")
        assert count() == ((1,),)
        with engine.stages(counted, timeout_s=60, cancellation=Cancellation()) as stages:
            assert stages.rows(0, Kept()).rows == ((1,),)
            owner.execute("set lock_timeout = '50ms'")
            with pytest.raises(psycopg.errors.LockNotAvailable):
                owner.execute("drop index only_one")
            assert stages.rows(0, Kept()).rows == ((1,),)
        owner.execute("drop index only_one")
        with pytest.raises(EngineStopped) as lost:
            count()
    assert (lost.value.sqlstate, lost.value.message) == ("58000", "the private engine could not compute this statement")
    engine.close()


def test_a_path_needs_a_unique_key(engine: PostgresEngine) -> None:
    keys = tuple(Column(name=name, type=SqlType.INT4, key=True) for name in ("User", "many"))
    orders = renamed(_ODD, name="orders", unit_unique=False, ownership=UnitColumns(("User",)), columns=keys)
    items = renamed(ITEMS, ownership=UnitVia("orders", "order_id", "many"))
    with pytest.raises(ConfigError, match=r"orders\.many: rows find their unit through this key, and no unique index"):
        engine.check_facts(_policy(orders, items))


def test_more_than_reading_is_warned_of(server: PrivateServer, caplog: pytest.LogCaptureFixture) -> None:
    writable = renamed(USERS, name="writable", relation=("writable",), columns=USERS.columns[:1], joins=())
    reader, owner = _engine(server, writable), _engine(server, writable, login="owner")
    with caplog.at_level(logging.WARNING, logger="hushql"):
        reader.check_facts(_policy(_SHOP_USERS, CITIES))
        assert caplog.messages == []
        reader.check_facts(_policy(writable))
        assert len(caplog.messages) == 1
        assert "may change the rows of writable" in caplog.text
        reader.check_facts(_policy(renamed(writable, name="hiding", relation=("hiding",))))
        assert "row-level security may hide rows of hiding from the login" in caplog.messages[-1]
        owner.check_facts(_policy(writable))
        assert "is a superuser" in caplog.text
        assert "may create roles" in caplog.text
    reader.close()
    owner.close()


def test_facts_that_cannot_be_checked_are_a_failure(server: PrivateServer) -> None:
    engine = _engine(server)
    engine.close()
    with pytest.raises(ConfigError, match="could not be checked"):
        engine.check_facts(_policy())


@pytest.mark.parametrize("zone, words", [("Mars/Olympus", "InvalidParameterValue")])
def test_a_zone_that_the_server_does_not_know_is_refused(server: PrivateServer, zone: str, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        _engine(server, zone=zone)


def test_a_database_in_another_encoding_is_refused(server: PrivateServer) -> None:
    with server.owner() as owner:
        owner.execute("create database latin encoding 'SQL_ASCII' template template0 locale 'C'")
    source = PostgresSource(server.dsn("latin"))
    with pytest.raises(ConfigError, match="does not keep its texts in UTF8"):
        PostgresEngine(policy(source), source)


def test_hints_quote_the_names_that_have_to_be_quoted(server: PrivateServer) -> None:
    with server.owner() as owner:
        words = owner.execute("select word, catcode in ('R', 'T') from pg_get_keywords()").fetchall()
    wrong = [word for word, is_taken in words if (spelled(word) != word) != is_taken]
    assert wrong == []
    assert [*map(spelled, ("user_id", "User", "co\"l", "a b", "ünï", "2x"))] == [
        "user_id", '"User"', '"co""l"', '"a b"', '"ünï"', '"2x"',
    ]  # fmt: skip
