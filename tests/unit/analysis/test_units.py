"""Which joins keep every row with one unit, and which are refused?"""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType

import duckdb
import pytest

from proxy.analysis.analyse import Lowered
from proxy.analysis.meeting import unit_advice
from proxy.analysis.units import EveryRow, UniqueKeys, UnitOf
from proxy.errors import BadGroups, HushError, PolicyForbids, UnitNotJoined
from proxy.policy.model import Bounded, Column, JoinKey, Table, UnitColumns, UnitVia, WrittenBound
from proxy.sql.algebra.nodes import AggregateKind
from proxy.sqltypes import SqlType
from tests.unit.plan.shop import ORDERS, TABLES, USERS, context, plan, plans

ACCEPTED = (
    # query, scans after completion, one row per unit, table whose bounds apply
    ("select count(*) from users", 1, True, "users"),
    ("select count(*) from orders", 1, False, "orders"),
    ("select count(*) from items", 2, False, "items"),
    ("select count(*) from items i join orders o on i.order_id = o.order_id", 2, False, "items"),
    ("select count(*) from items i join orders o on o.order_id = i.order_id join users u on u.user_id = o.user_id", 3,
     False, "items"),
    ("select count(*) from users a join users b on a.user_id = b.user_id", 2, True, "users"),
    ("select count(*) from users u, orders o where o.user_id = u.user_id", 2, False, "orders"),
    ("select count(*) from orders o join stores s on o.store_id = s.store_id", 2, False, "orders"),
    ("select count(*) from orders a, orders b, users u where a.user_id = u.user_id and b.user_id = u.user_id", 3, False,
     "orders"),
    ("select count(*) from items a, items b, orders o where a.order_id = o.order_id and b.order_id = o.order_id", 3,
     False, "items"),
    ("select count(*) from items a, items b where a.order_id = b.order_id", 4, False, "items"),
    ("select count(*) from items a left join items b on a.order_id = b.order_id", 3, False, "items"),
    ("select count(*) from items a where exists (select 1 from items b where a.order_id = b.order_id)", 3, False,
     "items"),
    ("select count(*) from items a where order_id not in (select order_id from items)", 3, False, "items"),
    ("with o as (select user_id as v from orders where true) select count(*) from o join users u on v = u.user_id",
     2, False, "orders"),
    ("select count(*) from census", 1, True, "census"),
    ("select count(distinct o.user_id) from orders o join users u on o.user_id = u.user_id", 2, False, "orders"),
    ("select count(distinct u.user_id) from orders o join users u on o.user_id = u.user_id", 2, False, "orders"),
    ("select count(user_id) from orders", 1, False, "orders"),
    ("select count(*) from users u left join orders o on o.user_id = u.user_id", 2, False, "orders"),
    ("select count(distinct o.user_id) from users u left join orders o using (user_id)", 2, False, "orders"),
    ("select count(*) from users a left join users b using (user_id)", 2, True, "users"),
    ("select count(*) from orders o left join users u using (user_id)", 2, False, "orders"),
    ("select count(*) from stores s right join orders o on o.store_id = s.store_id", 2, False, "orders"),
    ("select count(*) from orders o left join items i on i.order_id = o.order_id", 2, False, "items"),
    ("select count(*) from items i left join orders o on i.order_id = o.order_id", 3, False, "items"),
    ("select count(*) from users u natural left join orders o where o.user_id is null", 2, False, "orders"),
    ("select count(*) from users where user_id in (select user_id from orders)", 2, True, "users"),
    ("select count(*) from users where user_id not in (select user_id from orders)", 2, True, "users"),
    ("select count(*) from users where user_id in (select user_id from orders natural join items)", 3, True, "users"),
    ("select count(*) from orders o where order_id in (select order_id from items)", 2, False, "orders"),
    ("select count(*) from items i where exists (select 1 from orders o where o.order_id = i.order_id)", 3, False,
     "items"),
    ("select count(*) from orders where store_id not in (select store_id from stores)", 3, False, "orders"),
    ("select count(*) from users where exists (select 1 from stores where region = 'x')", 2, True, "users"),
    ("select count(*) from users where user_id is not null", 1, True, "users"),
)  # fmt: skip

REFUSED = (
    ("select count(*) from users, orders", UnitNotJoined),
    ("select count(*) from users u join orders o on u.user_id > o.user_id", PolicyForbids),
    ("select count(*) from users u join orders o on u.user_id = o.order_id", PolicyForbids),
    ("select count(*) from users u join orders o on u.user_id = o.user_id or true", PolicyForbids),
    ("select count(*) from users u join orders o on u.user_id = o.user_id + 0", PolicyForbids),
    ("select count(*) from orders a, orders b where a.order_id = b.order_id", UnitNotJoined),
    ("select count(*) from items a, items b where a.order_id = b.qty", HushError),
    ("select count(*) from items a, items b where a.order_id < b.order_id", HushError),
    ("select count(*) from items a, items b where a.qty = b.qty", UnitNotJoined),
    ("select count(*) from items a where exists (select 1 from items b where b.qty = a.qty)", UnitNotJoined),
    ("select count(*) from items i, users u where i.qty = u.age", UnitNotJoined),
    ("select count(*) from orders, stores", UnitNotJoined),
    ("select count(*) from orders o join stores s on o.order_id = s.store_id", UnitNotJoined),
    ("select count(*) from orders o join stores s on o.store_id < s.store_id", UnitNotJoined),
    ("select count(*) from users u join census c on u.age = c.hours", UnitNotJoined),
    ("select count(*) from census a, census b where a.hours = b.hours", UnitNotJoined),
    ("select count(*) from users where user_id = 5", PolicyForbids),
    ("select count(*) filter (where user_id < 5) from users", PolicyForbids),
    ("select sum(user_id) from users", PolicyForbids),
    ("select user_id, count(*) from users group by 1", BadGroups),
    ("select user_id % 10, count(*) from users group by 1", BadGroups),
    ("select count(distinct user_id + 1) from users", HushError),
    ("select count(*) from users u left join orders o on o.order_id = u.age", UnitNotJoined),
    ("select count(*) from users u left join orders o on o.user_id = u.user_id or true", PolicyForbids),
    ("select count(*) from users u left join items i on i.qty = u.age", UnitNotJoined),
    ("select count(*) from orders o left join stores s on s.region = o.status", UnitNotJoined),
    (
        "select count(*) from orders o left join users u using (user_id) join orders p on p.user_id = u.user_id",
        UnitNotJoined,
    ),
    ("select count(*) from census c left join users u on u.age = c.hours", UnitNotJoined),
    ("select count(*) from census c left join stores s on s.store_id = c.hours", UnitNotJoined),
    ("select count(*) from users u left join orders o using (user_id) where o.user_id = 5", PolicyForbids),
    ("select count(*) from users u where exists (select 1 from orders o where o.order_id = u.age)", UnitNotJoined),
    ("select count(*) from users u where exists (select 1 from orders o)", UnitNotJoined),
    ("select count(*) from users u where exists (select 1 from orders o where o.user_id <> u.user_id)", PolicyForbids),
    ("select count(*) from users u where exists (select 1 from orders o where o.user_id = 5)", PolicyForbids),
    (
        "select count(*) from users u where exists (select 1 from orders o, orders p where o.user_id = u.user_id)",
        UnitNotJoined,
    ),
    (
        "select count(*) from users u where not exists (select 1 from orders o where o.user_id = u.user_id or true)",
        PolicyForbids,
    ),
    ("select count(*) from orders o where order_id in (select order_id from orders)", UnitNotJoined),
    ("select count(*) from users u where age not in (select store_id from orders)", UnitNotJoined),
    ("select count(*) from orders o where exists (select 1 from stores s where s.region = o.status)", UnitNotJoined),
    ("select count(*) from census c where exists (select 1 from users u where u.age = c.hours)", UnitNotJoined),
    ("select count(*) from census c where exists (select 1 from census d where d.hours = c.hours)", UnitNotJoined),
    ("select count(*) from users where user_id in (select age from users)", PolicyForbids),
)


@pytest.mark.parametrize(("query", "scans", "one_row", "bounds_from"), ACCEPTED)
def test_rows_that_have_one_unit(query: str, scans: int, one_row: bool, bounds_from: str) -> None:
    owned = plan(query).analysed.owned
    assert len(owned.block.every_scan) == scans
    assert owned.is_one_row_per_unit is one_row
    assert owned.bounds_from.name == bounds_from
    if bounds_from == "census":
        assert owned.unit == EveryRow()
    else:
        assert isinstance(owned.unit, UnitOf)
        assert [c.name for c in owned.unit.columns] == ["user_id"]


@pytest.mark.parametrize(("query", "error"), REFUSED)
def test_joins_and_uses_that_are_refused(query: str, error: type[HushError]) -> None:
    with pytest.raises(error):
        plans(query)


def test_a_public_table_with_repeated_keys_may_repeat_rows() -> None:
    query = "select count(*) from orders o join stores s on o.store_id = s.store_id"
    repeated = replace(context(), unique=UniqueKeys(frozenset({("orders", "order_id")})))
    assert not plan(query, repeated).analysed.owned.is_one_row_per_unit
    census = replace(
        TABLES["census"], columns=(*TABLES["census"].columns, Column(name="store_id", type=SqlType.INT4)),
        joins=ORDERS.joins,
    )  # fmt: skip
    tables = MappingProxyType({**TABLES, "census": census})
    query = "select count(*) from census c join stores s on c.store_id = s.store_id"
    assert plan(query, replace(context(), tables=tables)).analysed.owned.is_one_row_per_unit
    with pytest.raises(UnitNotJoined, match="repeat"):
        plans(query, replace(repeated, tables=tables))


def test_a_public_row_for_a_units_one_row_is_one_row_only_if_its_key_is_unique() -> None:
    users = replace(
        TABLES["users"], columns=(*TABLES["users"].columns, Column(name="store_id", type=SqlType.INT4)),
        joins=ORDERS.joins,
    )  # fmt: skip
    unique = replace(context(), tables=MappingProxyType({**TABLES, "users": users}))
    repeated = replace(unique, unique=UniqueKeys(frozenset()))
    for kind in ("join", "left join"):
        query = f"select count(*) from users u {kind} stores s on u.store_id = s.store_id"
        assert plan(query, unique).analysed.owned.is_one_row_per_unit
        assert not plan(query, repeated).analysed.owned.is_one_row_per_unit


@pytest.mark.parametrize(
    ("left", "right", "joins"),
    [
        (SqlType.INT4, SqlType.INT8, True), (SqlType.INT8, SqlType.NUMERIC, True), (SqlType.UUID, SqlType.UUID, True),
        (SqlType.TEXT, SqlType.VARCHAR, True), (SqlType.TEXT, SqlType.BPCHAR, False),
        (SqlType.INT8, SqlType.FLOAT8, False),
        (SqlType.DATE, SqlType.TIMESTAMP, False), (SqlType.UUID, SqlType.TEXT, False),
    ],
)  # fmt: skip
def test_only_equalities_without_loss_join(left: SqlType, right: SqlType, joins: bool) -> None:
    def table(name: str, kind: SqlType) -> Table:
        return Table(name=name, relation=(name,), ownership=UnitColumns(("u",)), rows_per_unit=WrittenBound(2),
                     columns=(Column(name="u", type=kind, key=True),))  # fmt: skip

    of = replace(context(), tables=MappingProxyType({"a": table("a", left), "b": table("b", right)}))
    query = "select count(*) from a join b on a.u = b.u"
    if joins:
        assert len(plans(query, of)) == 1
    else:
        with pytest.raises(HushError):
            plans(query, of)


def test_all_parts_of_a_composite_unit_must_be_equated() -> None:
    def table(name: str) -> Table:
        columns = (Column(name="u", type=SqlType.INT4, key=True), Column(name="v", type=SqlType.TEXT, key=True),
                   Column(name="x", type=SqlType.INT4, domain=Bounded(0, 9)))  # fmt: skip
        return Table(name=name, relation=(name,), ownership=UnitColumns(("u", "v")), columns=columns,
                     rows_per_unit=WrittenBound(2))  # fmt: skip

    of = replace(context(), tables=MappingProxyType({"a": table("a"), "b": table("b")}))
    owned = plan("select sum(a.x) from a join b on a.u = b.u and a.v = b.v", of).analysed.owned
    assert isinstance(owned.unit, UnitOf)
    assert len(owned.unit.columns) == 2
    for condition in ("a.u = b.u", "a.u = b.u and a.v = 'x'", "a.u = b.u and a.v <> b.v", "a.u = b.u and a.v = a.v"):
        with pytest.raises((UnitNotJoined, PolicyForbids)):
            plans(f"select sum(a.x) from a join b on {condition}", of)
    kinds = [a.kind for a in plan("select count(distinct u) from a", of).analysed.owned.block.aggregates]
    assert kinds == [AggregateKind.COUNT_DISTINCT], "part of a unit is not the unit"


def test_the_policy_may_allow_conditions_on_the_unit() -> None:
    allowed = replace(USERS, unit_filter_allowed=True)
    of = replace(context(), tables=MappingProxyType({**TABLES, "users": allowed}))
    assert len(plans("select count(*) from users where user_id = 5", of)) == 1
    with pytest.raises(BadGroups):
        plans("select user_id, count(*) from users group by 1", of)


def test_rows_that_nobody_owns_are_dropped() -> None:
    sql = plan("select count(*) from orders").sql
    with duckdb.connect() as connection:
        connection.execute("create table orders (user_id integer)")
        connection.execute("insert into orders values (1)")
        owned = connection.execute(sql).fetchall()
        connection.execute("insert into orders values (null), (null)")
        assert connection.execute(sql).fetchall() == owned
    assert owned[0][1] > 0


def test_facts_of_a_row_that_may_be_missing_are_constant_if_what_finds_it_is() -> None:
    facts = "select u.plan, count(*) from orders o left join users u on u.user_id = o.user_id{} group by 1"
    assert plan(facts.format("")).analysed.has_constant_keys
    assert plan(facts.format(" and u.age > 5")).analysed.has_constant_keys
    assert not plan(facts.format(" and o.amount > 5")).analysed.has_constant_keys
    region = "select s.region, count(*) from orders o left join stores s on s.store_id = o.store_id group by 1"
    assert not plan(region).analysed.has_constant_keys


def test_facts_of_a_unit_are_constant() -> None:
    query = "select u.plan, u.age > 5, count(*) from orders o join users u on u.user_id = o.user_id group by 1, 2"
    assert plan(query).analysed.has_constant_keys
    query = "select o.status, u.plan, count(*) from orders o join users u on u.user_id = o.user_id group by 1, 2"
    assert not plan(query).analysed.has_constant_keys
    declared = replace(ORDERS, unit_constant=("status",))
    of = replace(context(), tables=MappingProxyType({**TABLES, "orders": declared}))
    assert plan(query, of).analysed.has_constant_keys
    query = "select o.status, count(*) from users u left join orders o on o.user_id = u.user_id group by 1"
    assert not plan(query, of).analysed.has_constant_keys


def test_the_condition_that_is_missing_is_written_as_sql() -> None:
    odd = replace(ORDERS, name="Late orders", ownership=UnitColumns(("user",)), columns=(
        *ORDERS.columns, Column(name="user", type=SqlType.INT4, key=True)))  # fmt: skip
    between = unit_advice(TABLES["users"], odd), unit_advice(odd, odd), unit_advice(TABLES["items"], ORDERS)
    assert between == (
        'users.user_id = "Late orders"."user"',
        'a."user" = b."user", a and b being the two',
        "items.order_id = orders.order_id",
    )
    assert unit_advice(TABLES["users"], TABLES["items"]) == "a common key of the unit", "their parents may be hidden"


KEYED = replace(ORDERS, columns=tuple(replace(c, key=True) if c.name == "store_id" else c for c in ORDERS.columns))
WITH_KEYS = replace(context(), tables=MappingProxyType({**TABLES, "orders": KEYED}))
OF_STORES = "from orders o join stores s on o.store_id = s.store_id"


@pytest.mark.parametrize(
    "query",
    [
        f"select s.region, count(*) {OF_STORES} group by 1",
        "select region, count(*) from orders join stores using (store_id) group by 1",
        "select s.region, count(*) from orders o left join stores s on s.store_id = o.store_id group by 1",
        "select count(*) from orders where store_id in (select store_id from stores where region = 'north')",
        "select count(*) from orders o where not exists (select 1 from stores s where s.store_id = o.store_id)",
        "select count(*) from orders o, stores s where s.store_id = o.store_id and s.region = 'north'",
    ],
)
def test_a_key_meets_the_public_table_that_is_declared_for_it(query: str) -> None:
    assert plan(query, WITH_KEYS).analysed.owned.bounds_from.name == "orders"


@pytest.mark.parametrize(
    "query",
    [
        "select count(*) from orders where store_id = 3",
        f"select o.store_id, count(*) {OF_STORES} group by 1",
        f"select count(*) {OF_STORES} where o.store_id > 3",
        f"select count(*) {OF_STORES} where o.store_id = o.order_id",
        f"select sum(o.store_id) {OF_STORES}",
        "select count(*) from orders o join stores s on o.user_id = s.store_id",
    ],
)
def test_a_key_is_shown_and_compared_no_further_for_that(query: str) -> None:
    with pytest.raises((BadGroups, PolicyForbids, UnitNotJoined)):
        plan(query, WITH_KEYS)


def test_a_unit_is_no_key_of_a_public_table() -> None:
    declared = replace(ORDERS, joins=(*ORDERS.joins, JoinKey("user_id", "stores", "store_id")))
    of = replace(context(), tables=MappingProxyType({**TABLES, "orders": declared}))
    with pytest.raises(PolicyForbids):
        plan("select region, count(*) from orders o join stores s on o.user_id = s.store_id group by 1", of)


@pytest.mark.parametrize("on", ["i.order_id = o.store_id", "i.qty = o.order_id", "i.order_id = o.order_id + 0"])
@pytest.mark.parametrize("how", ["join", "left join"])
def test_a_parent_is_met_by_the_path_alone(how: str, on: str) -> None:
    """Rows that are equal in other columns than those of the path are those of anybody."""
    with pytest.raises(UnitNotJoined):
        plan(f"select count(*) from items i {how} orders o on {on}")


def test_rows_that_name_other_keys_of_a_table_have_no_parent_in_common() -> None:
    shipped = replace(TABLES["items"], name="shipped", relation=("shipped",),
                      ownership=UnitVia("orders", "order_id", "parcel"))  # fmt: skip
    parcel = Column(name="parcel", type=SqlType.INT8)
    orders = replace(ORDERS, columns=(*ORDERS.columns, parcel))
    of = replace(context(), tables=MappingProxyType({**TABLES, "orders": orders, "shipped": shipped}),
                 unique=UniqueKeys(frozenset({("orders", "order_id"), ("orders", "parcel")})))  # fmt: skip
    for rest in ("left join shipped s on s.order_id = i.order_id", "join shipped s on s.order_id = i.order_id",
                 "where exists (select 1 from shipped s where s.order_id = i.order_id)"):  # fmt: skip
        with pytest.raises(UnitNotJoined):
            plan(f"select count(*) from items i {rest}", of)


NUMBERED = "select user_id, row_number() over (partition by user_id order by {}) as r from {}"


@pytest.mark.parametrize(
    ("rows", "most"),
    [
        ("select user_id from users union all select user_id from users", 2),
        ("select user_id from users union all select user_id from orders", 61),
        (NUMBERED.format("made", "orders"), 60),
        (NUMBERED.format("joined", "users"), 1),
        ("select user_id, store_id from orders group by user_id, store_id", 60),
        ("select user_id, status from orders where status is not null group by user_id, status", 2),
        ("select user_id, count(*) as n from orders group by user_id", 1),
        ("select u.user_id from users u full join users v on u.user_id = v.user_id", 1),
        ("select distinct user_id, plan from users", 1),
    ],
)
def test_a_unit_has_as_many_rows_in_a_sub_select_as_that_can_give_it(rows: str, most: int) -> None:
    assert plan(f"select count(*) from ({rows}) t").analysed.bounds.rows == most


@pytest.mark.parametrize("wanted", [1, 9, 10, 11, 60, 5000])
def test_a_client_only_lowers_the_bounds_of_the_policy(wanted: int) -> None:
    for lowered in (Lowered(rows_per_group=wanted), Lowered(groups=wanted), Lowered(rows_per_group=wanted, groups=3)):
        of = plan("select status, store_id, count(*) from orders group by 1, 2", context(lowered=lowered))
        bounds, given = of.analysed.bounds, ORDERS
        assert bounds.rows_per_group == min(10, lowered.rows_per_group or 10)
        assert bounds.groups == min(12, lowered.groups or 12)
        assert (bounds.rows, bounds.keys) == (60, given.keys_per_unit)


def _hidden(table: Table, *names: str) -> Table:
    return replace(table, columns=tuple(replace(c, hidden=c.hidden or c.name in names) for c in table.columns))


@pytest.mark.parametrize(
    "query",
    [
        "select count(*) from users u, users v",
        "select count(*) from users u, orders o",
        "select count(*) from items i, orders o",
        "select count(*) from users u left join orders o on u.age = o.store_id",
        "select count(*) from users u where age in (select store_id from orders)",
        "select count(*) from (select city from users intersect select plan from users) t",
        "select count(*) from (select row_number() over (partition by status order by amount) as n from orders) t",
    ],
)
def test_advice_names_no_hidden_column(query: str) -> None:
    tables = {n: _hidden(t, "user_id", "order_id") for n, t in TABLES.items()}
    with pytest.raises(HushError) as refused:
        plan(query, replace(context(), tables=MappingProxyType(tables)))
    assert "user_id" not in refused.value.text()
    assert "order_id" not in refused.value.text()
    with pytest.raises(HushError) as told:
        plan(query)
    assert "user_id" in told.value.text() or "order_id" in told.value.text()
