"""With what are statements of a role planned that has some rows of a table?"""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType

from proxy.policy.model import ByProfile, NotGiven, Users
from proxy.session.dataset import Version
from tests.unit.plan.test_profile import PROFILE
from tests.unit.session.make import version

TOLD = replace(PROFILE, allowed=None)


def limited(**rows: str) -> Version:
    """The clerk has some rows; nothing but the profile says how many rows of orders count."""
    given = version()
    clerk = replace(given.users.roles["clerk"], tables=(), rows=MappingProxyType(rows))
    orders = replace(given.policy.tables["orders"], rows_per_unit=NotGiven())
    policy = replace(given.policy, tables={**given.policy.tables, "orders": orders})
    users = Users(given.users.logins, {**given.users.roles, "clerk": clerk})
    return replace(given, policy=policy, users=users, profiles=(TOLD,))


def clerk_of(found: Version) -> str:
    return next(name for name, login in found.users.logins.items() if login.role == "clerk")


def test_a_profile_of_all_rows_is_not_used_for_some() -> None:
    found = limited(orders="store_id = 1")
    clerk, other = found.premises(clerk_of(found)), found.premises("ann")
    assert TOLD.table == "orders"
    assert clerk.profiles == ()
    assert clerk.named["orders"].rows_per_unit == clerk.tables["orders"].rows_per_unit == NotGiven()
    assert other.profiles == (TOLD,)
    assert isinstance(other.named["orders"].rows_per_unit, ByProfile)


def test_a_profile_of_another_table_is_used() -> None:
    found = limited(users="age < 50")
    premises = found.premises(clerk_of(found))
    assert premises.profiles == (TOLD,)
    assert premises.named["users"].rows_where == "age < 50"
    assert premises.tables["users"].rows_where == "", "whose rows are others' is no question of rights"
