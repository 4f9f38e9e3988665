"""With what are statements of a role planned that has some rows of a table?"""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType

import pytest

from proxy.errors import AuthenticationFailed
from proxy.policy.model import ByProfile, EpsilonLimit, Guest, NotGiven, Role, Users
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


def test_a_guest_plans_with_what_is_known_of_its_role_and_pays_by_its_name() -> None:
    given = version(roles={"analyst": Role(name="analyst", shared=EpsilonLimit(7))})
    before = given.premises("ann")
    guest = Guest(name="gil", role="analyst", budget=EpsilonLimit(3), groups=frozenset())
    found = given.with_guests(MappingProxyType({"gil": guest}))
    assert found.premises("gil") is found.premises("ann") is before
    names = [account.name for account in found.accounts("gil", "s")]
    data = given.policy.dataset
    assert names == [data, f"{data}/analyst", f"{data}/gil", f"{data}/gil/s"]
    _, role, user, _ = found.accounts("gil", "s")
    assert role == found.accounts("ann", "s")[1]
    assert user.limited
    assert user.limit.pico < found.accounts("boss", "s")[2].limit.pico  # 3 of the guest, 5 of the boss
    with pytest.raises(AuthenticationFailed):
        given.role_of("gil")
