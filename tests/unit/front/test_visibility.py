"""Who shares a server, and which keys clients see."""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType

import pytest

from proxy.errors import PolicyError
from proxy.front.schema import database_sql
from proxy.front.visibility import (
    ShownForeignKey,
    Visibility,
    group_logins,
    primary_key,
    references,
    unique_keys,
    visible_columns,
)
from proxy.policy.model import Column, Guest, JoinKey, NoLimit, Role, RowUnit, Table, UnitColumns, UnitVia, Users
from proxy.sqltypes import SqlType
from tests.front.samples import ITEMS, ORDERS, STORES, USERS, policy, users
from tests.unit.identity.test_tokens import SETTINGS

ALL = Visibility(("users", "orders", "items", "stores"))


def test_logins_that_read_other_columns_or_begin_otherwise_share_no_server() -> None:
    given, logins = policy(), users(alice="all", bob="all", eve="all")
    roles = {
        "all": Role(name="all"),
        "few": Role(name="few", columns=MappingProxyType({"users": ("plan", "age")}),
                    rows=MappingProxyType({"users": "true"})),
        "told": Role(name="told", settings=MappingProxyType({"hush.intervals": "on"})),
    }  # fmt: skip
    named = {n: replace(logins.logins[n], role=r) for n, r in (("alice", "all"), ("bob", "few"), ("eve", "told"))}
    groups = group_logins(given, replace(logins, logins=named, roles=roles))
    few, told = (
        Visibility(ALL.tables, columns=(("users", ("age", "plan")),)),
        Visibility(ALL.tables, settings=(("hush.intervals", "on"),)),
    )
    assert groups == {ALL: ("alice",), few: ("bob",), told: ("eve",)}
    assert [c.name for c in visible_columns(few.shown(given).tables["users"])] == ["age", "plan"]
    assert told.shown(given) is given
    assert "= 'on'" in next(s for s in database_sql(given, told) if "hush.intervals" in s)
    assert "= 'off'" in next(s for s in database_sql(given, few) if "hush.intervals" in s)


def test_logins_that_see_the_same_share_a_server() -> None:
    groups = group_logins(policy(), users(alice="all", eve="some", bob="all"))
    assert groups == {ALL: ("alice", "bob"), Visibility(("users", "stores")): ("eve",)}


def test_roles_that_groups_from_outside_give_have_a_server_before_anybody_has_them() -> None:
    given = users(alice="all")
    outside = replace(SETTINGS, groups=(("g", "some"), ("h", "some")))
    roles = {"all": Role(name="all"), "some": Role(name="some", tables=("users",)), "other": Role(name="other")}
    eve = Guest(name="eve", role="some", budget=NoLimit(), groups=frozenset())
    served = replace(given, roles=roles, outside=outside)
    assert group_logins(policy(), served) == {Visibility(("users",)): (), ALL: ("alice",)}
    assert group_logins(policy(), replace(served, guests={"eve": eve})) == {
        Visibility(("users",)): ("eve",), ALL: ("alice",)
    }  # fmt: skip


def test_without_logins_there_is_still_a_server() -> None:
    assert group_logins(policy(), users()) == {ALL: ()}


def test_a_login_without_its_role_is_refused() -> None:
    given = users(alice="all")
    with pytest.raises(PolicyError, match='role "all", which does not exist'):
        group_logins(policy(), Users(logins=given.logins, roles={}))


def test_hidden_columns_do_not_exist_for_clients() -> None:
    assert "shadow" not in [c.name for c in visible_columns(USERS)]


def test_the_unit_is_the_key_of_a_table_with_one_row_per_unit() -> None:
    given = policy()
    assert primary_key(given, ALL, USERS) == ("user_id",)
    assert primary_key(given, ALL, replace(USERS, unit_unique=False)) == ()
    assert primary_key(given, ALL, replace(USERS, ownership=UnitColumns(("shadow",)))) == ()


def test_a_key_that_children_find_their_unit_by_is_unique() -> None:
    given = policy()
    assert primary_key(given, ALL, ORDERS) == ("order_id",)
    assert unique_keys(given, ALL, ORDERS) == ()
    assert primary_key(given, Visibility(("orders",)), ORDERS) == ()
    by_unit = replace(ORDERS, unit_unique=True)
    assert primary_key(given, ALL, by_unit) == ("user_id",)
    assert unique_keys(given, ALL, by_unit) == ("order_id",)


def test_foreign_keys_have_two_visible_ends_and_a_unique_target() -> None:
    given = policy()
    assert references(given, ALL, ORDERS) == (ShownForeignKey("user_id", "users", "user_id"),)
    assert references(given, ALL, ITEMS) == (ShownForeignKey("order_id", "orders", "order_id"),)
    assert references(given, ALL, STORES) == ()
    assert references(given, Visibility(("orders", "items")), ORDERS) == ()


def test_foreign_keys_need_comparable_types_and_existing_columns() -> None:
    def joined(column: Column, ref_column: str = "user_id") -> tuple[ShownForeignKey, ...]:
        table = Table(
            name="t",
            relation=("t",),
            ownership=RowUnit(),
            columns=(column,),
            joins=(JoinKey(column.name, "users", ref_column), JoinKey(column.name, "users", ref_column)),
        )
        return references(policy(USERS, table), Visibility(("users", "t")), table)

    assert joined(Column(name="a", type=SqlType.INT8)) == (ShownForeignKey("a", "users", "user_id"),)
    assert joined(Column(name="a", type=SqlType.TEXT)) == ()
    assert joined(Column(name="a", type=SqlType.INT8, hidden=True)) == ()
    assert joined(Column(name="a", type=SqlType.INT4), "shadow") == ()
    assert joined(Column(name="a", type=SqlType.INT4), "age") == ()


def test_text_and_varchar_keys_are_comparable() -> None:
    parent = replace(
        USERS, ownership=UnitColumns(("name",)), columns=(Column(name="name", type=SqlType.VARCHAR, key=True),)
    )
    child = Table(
        name="c",
        relation=("c",),
        ownership=UnitVia("users", "who", "name"),
        columns=(Column(name="who", type=SqlType.TEXT),),
    )
    given = policy(parent, child)
    assert references(given, Visibility(("users", "c")), child) == (ShownForeignKey("who", "users", "name"),)
