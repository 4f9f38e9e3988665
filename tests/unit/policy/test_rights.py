"""What of the tables exists for a role that may not read all?"""

from __future__ import annotations

from types import MappingProxyType

from proxy.policy.model import Role
from proxy.policy.rights import column_problems, tables_of
from tests.front.samples import ITEMS, ORDERS, STORES, USERS

TABLES = {t.name: t for t in (USERS, ORDERS, ITEMS, STORES)}


def role(*tables: str, columns: dict[str, tuple[str, ...]] | None = None, rows: dict[str, str] | None = None) -> Role:
    return Role(name="r", tables=tables, columns=MappingProxyType(columns or {}), rows=MappingProxyType(rows or {}))


def shown(found: Role, table: str) -> list[str]:
    return [c.name for c in tables_of(found, TABLES)[table].columns if not c.hidden]


def test_a_role_without_limits_has_the_tables_as_they_are() -> None:
    assert tables_of(role(), TABLES) == TABLES
    assert tables_of(role("users"), TABLES) == {"users": USERS}


def test_columns_that_are_not_listed_are_hidden() -> None:
    limited = role(columns={"users": ("age", "shadow")})
    assert shown(limited, "users") == ["age"], "what is hidden from all stays hidden"
    assert shown(limited, "orders") == [c.name for c in ORDERS.columns]
    assert {c.name for c in tables_of(limited, TABLES)["users"].columns} == {c.name for c in USERS.columns}


def test_joins_have_two_ends_that_are_shown() -> None:
    assert tables_of(role(columns={"items": ("price",)}), TABLES)["orders"].joins == ORDERS.joins
    assert tables_of(role(columns={"users": ("age",)}), TABLES)["orders"].joins == ORDERS.joins[1:]
    assert tables_of(role(columns={"orders": ("store",)}), TABLES)["orders"].joins == ORDERS.joins[1:]
    assert tables_of(role("orders", "stores", columns={"stores": ("Town",)}), TABLES)["orders"].joins == ()


def test_a_condition_goes_with_its_table() -> None:
    found = tables_of(role(rows={"orders": "store = 1", "gone": "true"}), TABLES)
    assert {n: t.rows_where for n, t in found.items()} == {
        "users": "",
        "orders": "store = 1",
        "items": "",
        "stores": "",
    }


def test_columns_that_a_policy_does_not_have_are_told() -> None:
    wrong = role(columns={"users": ("age", "agee", "shadow"), "elsewhere": ("anything",)})
    there = "columns: user_id, age, City, plan, code, joined"
    assert list(column_problems(wrong, TABLES)) == [
        f"roles.r.columns.users: there is no column 'agee' (did you mean 'age'?); {there}",
        f"roles.r.columns.users: there is no column 'shadow'; {there}",
    ]
