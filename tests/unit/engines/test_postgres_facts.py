"""What the policy declares is what the private PostgreSQL keeps by itself, or the dataset is not served."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace

import psycopg
import pytest

from proxy.engines.base import Cancellation, EngineStopped
from proxy.engines.postgres import PostgresEngine
from proxy.errors import ConfigError, Failure
from proxy.plan.charge import Reserved
from proxy.policy.model import Column, JoinKey, PostgresSource, PublicTable, Table, UnitColumns, UnitVia, WrittenBound
from proxy.release.raw import KeptKeys
from proxy.sqltypes import SqlType
from tests.postgres_server import PrivateServer
from tests.unit.engines.make import CITIES, ITEMS, USERS, first_stage, paying, renamed, staged
from tests.unit.engines.private_postgres import DATABASE, SHOP_USERS, TABLES, data_server, open_engine, policy_of

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


@pytest.fixture(scope="module")
def server() -> PrivateServer:
    return data_server()


@pytest.fixture(scope="module")
def engine(server: PrivateServer) -> Iterator[PostgresEngine]:
    opened = open_engine(server)
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def pay(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Reserved]:
    return paying(tmp_path_factory.mktemp("ledger") / "state")


def test_facts_hold_by_the_databases_own_constraints(engine: PostgresEngine) -> None:
    facts = engine.check_facts(policy_of(*TABLES, _ODD))
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
        (renamed(SHOP_USERS, name="parent", relation=("parent",), columns=SHOP_USERS.columns[:1], joins=()),
         "parent.user_id: 'unit_unique' is declared, and no unique index says so"),
        (renamed(SHOP_USERS, columns=(*SHOP_USERS.columns, Column(name="secret", type=SqlType.TEXT))),
         "users.secret: the login may not read it"),
    ],
)  # fmt: skip
def test_what_the_data_do_not_keep_is_refused(engine: PostgresEngine, table: Table, problem: str) -> None:
    with pytest.raises(ConfigError) as refused:
        engine.check_facts(policy_of(CITIES, table))
    assert problem in refused.value.text()


def test_a_complete_join_is_a_checked_foreign_key_as_long_as_it_is_served(
    server: PrivateServer, pay: Callable[..., Reserved]
) -> None:
    dweller = Table(
        name="dweller", relation=("dweller",), ownership=UnitColumns(("id",)), rows_per_unit=WrittenBound(3),
        joins=(JoinKey("town", "towns", "town"),), complete_joins=(JoinKey("town", "towns", "town"),),
        columns=(Column(name="id", type=SqlType.INT4, key=True), Column(name="town", type=SqlType.INT4)),
    )  # fmt: skip
    towns = Table(name="towns", relation=("towns",), ownership=PublicTable(),
                  columns=(Column(name="town", type=SqlType.INT4),))  # fmt: skip
    counted = pay("select count(*) from public.dweller")
    made = ("create table towns (town int primary key); create table dweller (id int, town int);"
            "grant select on towns, dweller to reader")  # fmt: skip
    key = "alter table dweller add constraint lives foreign key (town) references towns (town)"
    anew = f"alter table dweller drop constraint lives; {key}"
    lacking = ("select 1", f"{key} not valid; alter table dweller alter town set not null", f"{anew} deferrable",
               f"{anew}; alter table dweller alter town drop not null")  # fmt: skip
    with server.owner(DATABASE) as owner:
        owner.execute(made.encode())
        with closing(open_engine(server, dweller, towns)) as engine:
            for statements in lacking:
                owner.execute(statements.encode())
                with pytest.raises(ConfigError, match=r"dweller.town: 'complete_joins' names it, and no validated"):
                    engine.check_facts(policy_of(dweller, towns))
            owner.execute("alter table dweller alter town set not null")
            engine.check_facts(policy_of(dweller, towns))
            assert first_stage(engine, counted, timeout_s=60, cancellation=Cancellation()).rows == ((0,),)
            owner.execute("alter table dweller drop constraint lives")
            with pytest.raises(EngineStopped):
                first_stage(engine, counted, timeout_s=60, cancellation=Cancellation())


_REPLACED = renamed(
    _ODD, name="replaced", relation=("replaced",), ownership=UnitColumns(("Id",)),
    columns=(Column(name="Id", type=SqlType.INT4, key=True),),
)  # fmt: skip


def test_a_unique_key_that_is_lost_while_it_is_served_ends_statements_until_it_is_back(
    server: PrivateServer, pay: Callable[..., Reserved]
) -> None:
    """A job loads a table anew and gives it the old name; its index comes too late, or somebody drops one."""
    engine, counted = open_engine(server, _REPLACED), pay("select count(*) from public.replaced")

    def count() -> object:
        return first_stage(engine, counted, timeout_s=60, cancellation=Cancellation()).rows

    anew = 'create table fresh ("Id" int); insert into fresh values (1), (1); grant select on fresh to reader;'
    swapped = "begin; drop table replaced; alter table fresh rename to replaced; commit"
    with server.owner(DATABASE) as owner:
        owner.execute('create table bystander ("Id" int unique)')
        owner.execute('create table replaced ("Id" int unique); grant select on replaced to reader')
        engine.check_facts(policy_of(_REPLACED))
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
        with staged(engine, counted, timeout_s=60, cancellation=Cancellation()) as stages:
            assert stages.rows(0, KeptKeys()).rows == ((1,),)
            owner.execute("set lock_timeout = '50ms'")
            with pytest.raises(psycopg.errors.LockNotAvailable):
                owner.execute("drop index only_one")
            assert stages.rows(0, KeptKeys()).rows == ((1,),)
        owner.execute("drop index only_one")
        with pytest.raises(EngineStopped) as lost:
            count()
    assert (lost.value.sqlstate, lost.value.failure) == ("58000", Failure.CHANGED)
    assert lost.value.message == "the private data have changed since the policy was loaded"
    engine.close()


_MEASURED = renamed(
    _ODD, name="measured", relation=("measured",), ownership=UnitColumns(("u",)), unit_unique=False,
    columns=(Column(name="u", type=SqlType.INT4, key=True), Column(name="x", type=SqlType.NUMERIC)),
)  # fmt: skip


@pytest.mark.parametrize(
    "script, is_limited",
    [
        ("create table measured (u int, x numeric(12, 2))", True),
        ("create table measured (u int, x numeric(300, 150))", True),
        ("create table measured (u int, x numeric(301, 150))", False),
        ("create table measured (u int, x numeric(160, 151))", False),
        ("create table measured (u int, x numeric(3, -2))", False),
        ("create table measured (u int, x numeric)", False),
        ("create table measured (u int, x bigint)", False),
        ("create domain few as numeric(12, 2); create table measured (u int, x few)", False),
        ("create table of (u int, x numeric(12, 2)); create view measured as select * from of", False),
        ("create table measured (u int, x numeric(12, 2)); create table more () inherits (measured)", False),
        (
            (
                "create table measured (u int, x numeric(12, 2)) partition by range (u);"
                " create table one partition of measured for values from (0) to (9)"
            ),
            True,
        ),
        (
            (
                "create table measured (u int, x numeric(12, 2)) partition by range (u); create foreign data wrapper w;"
                " create server away foreign data wrapper w;"
                " create foreign table one partition of measured for values from (0) to (9) server away"
            ),
            False,
        ),
    ],
)
def test_digits_are_limited_where_the_server_keeps_them_so(script: str, is_limited: bool) -> None:
    """Types of views, of tables elsewhere and of tables that inherit say nothing here."""
    server = data_server()
    server.create("digits of a column", f"{script}; grant select on measured to reader")
    try:
        source = PostgresSource(server.dsn("digits of a column", "reader"))
        with closing(PostgresEngine(policy_of(_MEASURED), source)) as engine:
            facts = engine.check_facts(policy_of(_MEASURED))
        assert {c.column for c in facts.columns if c.limited_digits} == ({"x"} if is_limited else set())
        told = facts.with_limited_digits({"measured": _MEASURED})
        assert [t.column("x") for t in told.values()] == [
            replace(_MEASURED.columns[1], limited_digits=True)
        ] * is_limited
    finally:
        with server.owner() as owner:
            owner.execute('drop database "digits of a column" with (force)')


@pytest.mark.parametrize(
    "change",
    [
        "alter table measured alter x type numeric",
        "alter table measured alter x type numeric(14, 2)",
        "alter table measured rename x to y; alter table measured add x numeric",
        "drop table measured; create table measured (u int, x numeric); grant select on measured to reader",
        "create table heir () inherits (measured)",
        (
            "drop table measured; create view measured as select 1 as u, 1::numeric(12, 2) as x;"
            " grant select on measured to reader"
        ),
    ],
)
def test_digits_that_are_not_limited_any_more_end_statements(
    server: PrivateServer, pay: Callable[..., Reserved], change: str
) -> None:
    """A statement whose rows were read as what they are no more gives nothing, whatever it asked about."""
    engine, asked = open_engine(server, _MEASURED), pay("select 1")

    def ask() -> object:
        return first_stage(engine, asked, timeout_s=60, cancellation=Cancellation()).rows

    with server.owner(DATABASE) as owner:
        owner.execute("create table measured (u int, x numeric(12, 2)); grant select on measured to reader")
        engine.check_facts(policy_of(_MEASURED))
        assert ask() == ((1,),)
        owner.execute(change.encode())
        with pytest.raises(EngineStopped):
            ask()
        engine.check_facts(policy_of(_MEASURED))
        assert ask() == ((1,),)
        owner.execute(f"drop {'view' if 'view' in change else 'table'} measured cascade".encode())
    engine.close()


def test_a_path_needs_a_unique_key(engine: PostgresEngine) -> None:
    keys = tuple(Column(name=name, type=SqlType.INT4, key=True) for name in ("User", "many"))
    orders = renamed(_ODD, name="orders", unit_unique=False, ownership=UnitColumns(("User",)), columns=keys)
    items = renamed(ITEMS, ownership=UnitVia("orders", "order_id", "many"))
    with pytest.raises(ConfigError, match=r"orders\.many: rows find their unit through this key, and no unique index"):
        engine.check_facts(policy_of(orders, items))


def test_more_than_reading_is_warned_of(server: PrivateServer, caplog: pytest.LogCaptureFixture) -> None:
    writable = renamed(USERS, name="writable", relation=("writable",), columns=USERS.columns[:1], joins=())
    reader, owner = open_engine(server, writable), open_engine(server, writable, login="owner")
    with caplog.at_level(logging.WARNING, logger="hushql"):
        reader.check_facts(policy_of(SHOP_USERS, CITIES))
        assert caplog.messages == []
        reader.check_facts(policy_of(writable))
        assert len(caplog.messages) == 1
        assert "may change the rows of writable" in caplog.text
        reader.check_facts(policy_of(renamed(writable, name="hiding", relation=("hiding",))))
        assert "row-level security may hide rows of hiding from the login" in caplog.messages[-1]
        owner.check_facts(policy_of(writable))
        assert "is a superuser" in caplog.text
        assert "may create roles" in caplog.text
    reader.close()
    owner.close()


def test_facts_that_cannot_be_checked_are_a_failure(server: PrivateServer) -> None:
    engine = open_engine(server)
    engine.close()
    with pytest.raises(ConfigError, match="could not be checked"):
        engine.check_facts(policy_of())
