"""Is all that is wrong with the rights of roles told before they are served?"""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType

import pytest

from proxy.admin.role_check import check_roles
from proxy.errors import ConfigError
from proxy.policy.model import NotGiven, Role, Users
from tests.unit.sql.corpus import policy

POLICY = policy()


def said(role: Role) -> list[str]:
    with pytest.raises(ConfigError) as refused:
        check_roles(POLICY, Users({}, {role.name: role}))
    return refused.value.message.split("\n")


def with_rows(**rows: str) -> Role:
    return Role(name="clerk", rows=MappingProxyType(rows))


def test_rights_that_can_be_kept() -> None:
    settings = MappingProxyType({"hush.intervals": "on", "hush.epsilon": "0.5"})
    fine = replace(
        with_rows(orders="store_id IN (1, 2)", users="age < 50", elsewhere="x = 1"), settings=settings,
        columns=MappingProxyType({"orders": ("amount", "at"), "users": ("plan",)}),
    )  # fmt: skip
    check_roles(POLICY, Users({}, {"clerk": fine, "all": Role(name="all")}))


@pytest.mark.parametrize(("condition", "words"), [
    ("nope = 1", 'column "nope" does not exist in table "orders"'),
    ("user_id < 5", '"orders"."user_id" identifies the privacy unit'),
    ("at > '1.5.2024'", "is not understood as timestamp"),
    ("store_id = $1", "has no parameters"),
])  # fmt: skip
def test_a_condition_that_no_statement_could_be_planned_with(condition: str, words: str) -> None:
    (line,) = said(with_rows(orders=condition))
    assert line.startswith("roles.clerk.rows.orders: ")
    assert words in line
    assert "character" not in line, "it is no place of a statement"


def test_rows_that_are_shown_have_no_condition() -> None:
    assert said(with_rows(stores="store_id = 1")) == [
        "roles.clerk.rows.stores: rows of this table are shown as they are; leave it out of the role's tables"
    ]


def test_a_condition_needs_a_written_bound() -> None:
    orders = replace(POLICY.tables["orders"], rows_per_unit=NotGiven())
    silent = replace(POLICY, tables={**POLICY.tables, "orders": orders})
    with pytest.raises(ConfigError, match=r"roles\.clerk\.rows\.orders: write max_rows_per_unit at the table"):
        check_roles(silent, Users({}, {"clerk": with_rows(orders="store_id = 1")}))


def test_all_that_is_wrong_is_told_at_once() -> None:
    settings = MappingProxyType({"hush.epsilon": "1000", "work_mem": "1GB"})
    wrong = replace(with_rows(orders="nope = 1"), columns=MappingProxyType({"users": ("agee",)}), settings=settings)
    assert [line.split(": ")[0] for line in said(wrong)] == [
        "roles.clerk.columns.users", "roles.clerk.settings", "roles.clerk.settings", "roles.clerk.rows.orders"
    ]  # fmt: skip
