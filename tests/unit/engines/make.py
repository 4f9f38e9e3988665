"""Policies, data and paid statements for engine tests."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import duckdb

from proxy.engines.base import Cancellation, Engine, Stages
from proxy.ledger.base import Wanted
from proxy.ledger.sqlite.ledger import SqliteLedger
from proxy.plan.charge import Cost, ReleaseKey, Request, Reserved
from proxy.policy.model import (
    Bounded,
    Budgets,
    Column,
    DuckDBFile,
    JoinKey,
    Limits,
    NoLimit,
    Policy,
    Privacy,
    PublicTable,
    Source,
    Table,
    UnitColumns,
    UnitVia,
)
from proxy.release.raw import KeptKeys, RawResult
from proxy.sqltypes import SqlType
from tests.unit.ledger.make import account, ask

CITIES = Table(
    name="cities",
    relation=("cities",),
    ownership=PublicTable(),
    columns=(Column(name="city", type=SqlType.TEXT), Column(name="inner", type=SqlType.INT4, hidden=True)),
)
USERS = Table(
    name="users",
    relation=("main", "users"),
    ownership=UnitColumns(("user_id",)),
    unit_unique=True,
    columns=(
        Column(name="user_id", type=SqlType.INT4, key=True),
        Column(name="age", type=SqlType.INT4, domain=Bounded(0, 110)),
        Column(name="city", type=SqlType.TEXT),
    ),
    joins=(JoinKey("city", "cities", "city"),),
)
ORDERS = Table(
    name="orders",
    relation=("sales", "orders"),
    ownership=UnitColumns(("user_id",)),
    columns=(
        Column(name="order_id", type=SqlType.INT8, key=True),
        Column(name="user_id", type=SqlType.INT4, key=True),
        Column(name="amount", type=SqlType.NUMERIC),
    ),
    joins=(JoinKey("user_id", "users", "user_id"),),
)
ITEMS = Table(
    name="items",
    relation=("items",),
    ownership=UnitVia("orders", "order_id", "order_id"),
    columns=(Column(name="order_id", type=SqlType.INT8, key=True),),
)

DATA = """
create table cities (city varchar, "inner" integer);
insert into cities values ('Paris', 1), ('Oslo', 2);
create table users (user_id integer, age integer, city varchar, secret varchar);
insert into users values (1, 30, 'Paris', 'a'), (2, 40, 'Oslo', 'b'), (null, 50, 'Oslo', 'c'), (null, 1, null, 'd');
create schema sales;
create table sales.orders (order_id bigint, user_id integer, amount decimal(12, 2));
insert into sales.orders values (10, 1, 1.5), (11, 1, 2.5), (12, 2, 3.0), (null, 2, 4.0), (null, 2, 5.0);
create table items (order_id bigint);
insert into items values (10), (10), (12);
"""


def policy(source: Source, *tables: Table, limits: Limits | None = None, time_zone: str = "UTC") -> Policy:
    return Policy(
        dataset="shop",
        source=source,
        data_version="1",
        privacy=Privacy(unit="customer", time_zone=time_zone),
        budgets=Budgets(dataset=NoLimit(), user=NoLimit(), session=NoLimit()),
        tables={t.name: t for t in tables or (CITIES, USERS, ORDERS, ITEMS)},
        digest="digest",
        users_file="users.yaml",
        limits=limits or Limits(engine_memory="1GB", engine_threads=2),
    )


def database(path: Path, *statements: str) -> DuckDBFile:
    """A DuckDB file with the shop's tables, changed by `statements`."""
    with duckdb.connect(str(path)) as connection:
        for statement in (DATA, *statements):
            connection.execute(statement)
    return DuckDBFile(str(path))


def paying(directory: Path) -> Callable[..., Reserved]:
    """A function that has any SQL, of one stage or more, charged: the way every statement gets to an engine.

    The account has no limit.
    """
    ledger = SqliteLedger(directory)

    def pay(sql: str, *further: str) -> Reserved:
        key = ReleaseKey(fingerprint=sql, policy_digest="digest", data_version="1")
        wanted = Wanted(Request(key=key, cost=Cost(1, 0)), sql, further)
        (item,) = ledger.reserve((account("dataset", limited=False),), (wanted,), ask()).items
        assert isinstance(item, Reserved)
        return item

    return pay


def first_stage(engine: Engine, reserved: Reserved, *, timeout_s: float, cancellation: Cancellation) -> RawResult:
    """What the first statement of a charge gives."""
    with staged(engine, reserved, timeout_s=timeout_s, cancellation=cancellation) as stages:
        return stages.rows(0, KeptKeys())


@contextmanager
def staged(engine: Engine, reserved: Reserved, *, timeout_s: float, cancellation: Cancellation) -> Iterator[Stages]:
    """A session for one charge, which was looked at."""
    looked_at = (reserved.sql, *reserved.further)
    with (
        engine.session(looked_at, timeout_s=timeout_s, cancellation=cancellation) as session,
        session.stages(reserved) as stages,
    ):
        yield stages


def renamed(table: Table, **changes: object) -> Table:
    return replace(table, **changes)  # type: ignore[arg-type]
