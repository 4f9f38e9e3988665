"""A small policy, and the way from client text to release plans, for tests of planning."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import date, datetime
from types import MappingProxyType
from typing import TypeVar
from zoneinfo import ZoneInfo

from proxy.analysis.analyse import Lowered
from proxy.analysis.units import UniqueKeys
from proxy.plan.release_plan import PlanContext, ReleasePlan, plan_release
from proxy.plan.sets.sets import Plan, plan_block
from proxy.policy.model import (
    Accounting,
    Bounded,
    Column,
    JoinKey,
    Listed,
    Neighbors,
    Privacy,
    PublicTable,
    RowUnit,
    Table,
    UnitColumns,
    UnitVia,
    WrittenBound,
)
from proxy.sql.algebra.constants import Constants
from proxy.sql.algebra.nodes import Block
from proxy.sql.query.block import bind_block
from proxy.sql.query.split import split
from proxy.sql.relations.scope import Catalog
from proxy.sql.syntax.parse import split_statements
from proxy.sqltypes import SqlType as T

NOW = datetime(2026, 1, 1)
Found = TypeVar("Found")

USERS = Table(
    name="users",
    relation=("users",),
    ownership=UnitColumns(("user_id",)),
    unit_unique=True,
    columns=(
        Column(name="user_id", type=T.INT4, key=True),
        Column(name="age", type=T.INT4, domain=Bounded(0, 110)),
        Column(name="height", type=T.FLOAT8, domain=Bounded(0, 250), nullable=False),
        Column(name="weight", type=T.FLOAT8),
        Column(name="city", type=T.TEXT),
        Column(name="plan", type=T.TEXT, domain=Listed(("free", "pro")), nullable=False),
        Column(name="joined", type=T.DATE, domain=Bounded(date(2019, 1, 1), date(2020, 12, 31))),
        Column(name="born", type=T.DATE),
    ),
)
ORDERS = Table(
    name="orders",
    relation=("orders",),
    ownership=UnitColumns(("user_id",)),
    rows_per_unit=WrittenBound(60),
    rows_per_group=WrittenBound(10),
    groups_per_unit=WrittenBound(12),
    joins=(JoinKey("store_id", "stores", "store_id"),),
    columns=(
        Column(name="user_id", type=T.INT4, key=True),
        Column(name="order_id", type=T.INT8),
        Column(name="store_id", type=T.INT4),
        Column(name="amount", type=T.NUMERIC, domain=Bounded(0, 1000)),
        Column(name="status", type=T.TEXT, domain=Listed(("paid", "refunded"))),
        Column(name="made", type=T.TIMESTAMPTZ, domain=Bounded(datetime(2024, 1, 1), datetime(2024, 12, 31))),
    ),
)
ITEMS = Table(
    name="items",
    relation=("items",),
    ownership=UnitVia("orders", "order_id", "order_id"),
    rows_per_unit=WrittenBound(100),
    columns=(
        Column(name="order_id", type=T.INT8),
        Column(name="qty", type=T.INT4, domain=Bounded(1, 20)),
        Column(name="price", type=T.FLOAT8, domain=Bounded(0, 50)),
    ),
)
STORES = Table(
    name="stores",
    relation=("stores",),
    ownership=PublicTable(),
    columns=(Column(name="store_id", type=T.INT4), Column(name="region", type=T.TEXT)),
)
CENSUS = Table(
    name="census",
    relation=("census",),
    ownership=RowUnit(),
    columns=(Column(name="hours", type=T.INT4, domain=Bounded(0, 99)), Column(name="job", type=T.TEXT)),
)
TABLES = MappingProxyType({t.name: t for t in (USERS, ORDERS, ITEMS, STORES, CENSUS)})
UNIQUE = UniqueKeys(frozenset({("stores", "store_id"), ("orders", "order_id")}))


def context(
    *, pure: bool = False, neighbors: Neighbors = Neighbors.ADD_REMOVE, group_size: int = 1, min_units: int = 0,
    lowered: Lowered = Lowered(), time_zone: str = "UTC", tell_cut: bool = False,  # noqa: B008  # frozen
) -> PlanContext:  # fmt: skip
    """Planning facts at rho 0.01 (epsilon 0.1 in pure accounting). tell_cut: count units that are cut; few tests do."""
    privacy = Privacy(
        unit="customer",
        accounting=Accounting.PURE if pure else Accounting.ZCDP,
        delta=0.0 if pure else 1e-6,
        delta_pool=0.0 if pure else 5e-7,
        neighbors=neighbors,
        group_size=group_size,
        min_units=min_units,
        time_zone=time_zone,
        tell_cut=tell_cut,
    )
    return PlanContext(
        tables=TABLES,
        unique=UNIQUE,
        privacy=privacy,
        lowered=lowered,
        pico=10**11 if pure else 10**10,
        atto_for_keys=0 if pure else 5 * 10**9,
        salt="5a17",
    )


def context_with_sums(bounds: Bounded, *, pure: bool = False, lowered: Lowered = Lowered()) -> PlanContext:  # noqa: B008  # frozen
    """The shop, where the policy bounds the sum of a unit's amounts."""
    of = context(pure=pure, lowered=lowered)
    return replace(of, tables=MappingProxyType({**TABLES, "orders": with_bounds(ORDERS, "amount", bounds)}))


def with_bounds(table: Table, column: str, bounds: Bounded) -> Table:
    return replace(
        table, columns=tuple(replace(c, sum_bounds=bounds) if c.name == column else c for c in table.columns)
    )


def plans(text: str, of: PlanContext | None = None) -> list[ReleasePlan]:
    """The release plans of a client's statement, one for each block."""
    return _planned(text, of or context(), plan_release)


def _planned(text: str, of: PlanContext, how: Callable[[Block, PlanContext], Found]) -> list[Found]:
    catalog = Catalog(of.tables)
    cut = split(split_statements(text)[0], catalog, frozenset())
    constants = Constants(MappingProxyType({}), NOW.replace(tzinfo=ZoneInfo(of.privacy.time_zone)))
    bound = [bind_block(b, catalog, constants, text) for b in cut.blocks]
    return [how(b.block, of) for b in bound]


def any_plan(text: str, of: PlanContext | None = None) -> Plan:
    """The one release plan of a statement with or without grouping sets."""
    (only,) = _planned(text, of or context(), plan_block)
    return only


def plan(text: str, of: PlanContext | None = None) -> ReleasePlan:
    """The one release plan of a statement."""
    (only,) = plans(text, of)
    return only
