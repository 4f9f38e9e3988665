"""Whose account pays for what: the dataset's, a role's, a login's and a session's, whoever shares which of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from proxy.dp.accounting import epsilon_spent, knob_pico
from proxy.errors import BudgetSpent
from proxy.policy.model import AccountLimit, EpsilonLimit, Login, NoLimit, Policy, Role, Users
from tests.unit.session.staged import SQL, TOLD, World, answer, begin, serving
from tests.unit.sql.corpus import policy

QUESTIONS = tuple(f"select count(*) from users where age > {age}" for age in (20, 30, 40, 50))
ONE = knob_pico(policy().privacy, 1)
TWICE = EpsilonLimit(epsilon_spent(policy().privacy, 2 * ONE))
Paid = Mapping[tuple[str, str], int]
FREE: dict[str, str] = {"ann": "analyst", "bob": "analyst", "cy": "boss", "boss": "clerk"}


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with serving(tmp_path / "state") as made:
        staff(made)
        yield made


def staff(
    world: World, roles: Mapping[str, str] = FREE, of_login: Mapping[str, AccountLimit] | None = None,
    of_role: Mapping[str, AccountLimit] | None = None, served: Policy | None = None,
) -> None:  # fmt: skip
    """From now on these logins have these roles, and limits of their own. A login is called as a role is."""
    logins = {n: Login(name=n, scram="", role=r, budget=(of_login or {}).get(n, NoLimit())) for n, r in roles.items()}
    found = {r: Role(name=r, shared=(of_role or {}).get(r, NoLimit())) for r in ("analyst", "boss", "clerk", "guest")}
    now = replace(world.dataset.current, users=Users(logins=logins, roles=found))
    world.dataset.swap(replace(now, policy=served) if served is not None else now)


def paid(world: World) -> dict[tuple[str, str], int]:
    """What each account has paid, in questions of epsilon 1."""
    found = {(t.kind.value, t.name): t.spent.pico for t in world.ledger.all_accounts()}
    assert all(pico % ONE == 0 for pico in found.values())
    return {who: pico // ONE for who, pico in found.items() if pico}


def ask(world: World, login: str, number: int = 0, session: str = "1") -> None:
    begin(world.session(login, session), QUESTIONS[number])


def test_each_account_pays_once_for_what_its_holders_are_shown(world: World) -> None:
    ask(world, "ann")
    first = {("dataset", "shop"): 1, ("role", "shop/analyst"): 1, ("user", "shop/ann"): 1, ("session", "shop/ann/1"): 1}
    assert paid(world) == first
    ask(world, "ann")
    assert paid(world) == first
    ask(world, "bob")  # the role has paid, the login not
    second = first | {("user", "shop/bob"): 1, ("session", "shop/bob/1"): 1}
    assert paid(world) == second
    ask(world, "ann", session="2")
    third = second | {("session", "shop/ann/2"): 1}
    assert paid(world) == third
    ask(world, "cy")  # of the role that is called as a login is
    fourth = third | {("role", "shop/boss"): 1, ("user", "shop/cy"): 1, ("session", "shop/cy/1"): 1}
    assert paid(world) == fourth
    ask(world, "boss")
    of_boss = {("role", "shop/clerk"): 1, ("user", "shop/boss"): 1, ("session", "shop/boss/1"): 1}
    assert paid(world) == fourth | of_boss


def test_sessions_of_two_logins_with_one_name_are_two(world: World) -> None:
    for login in ("ann", "bob"):
        begin(world.session(login), QUESTIONS[0], session="team")
    assert paid(world)["session", "shop/ann/shared/team"] == 1
    assert paid(world)["session", "shop/bob/shared/team"] == 1


def is_refused(world: World, login: str, number: int, session: str = "1") -> str:
    """With which words; nothing is paid."""
    before = paid(world)
    with pytest.raises(BudgetSpent) as refused:
        ask(world, login, number, session)
    assert paid(world) == before
    return refused.value.message


def test_the_limit_of_a_role_is_for_all_its_logins_together(world: World) -> None:
    staff(world, of_role={"analyst": EpsilonLimit(1)})
    ask(world, "ann")
    assert "role" in is_refused(world, "bob", 1)
    assert "role" in is_refused(world, "ann", 1)
    ask(world, "bob")  # what the role has paid for its logins may be shown
    ask(world, "cy", 1)
    assert paid(world)["role", "shop/analyst"] == 1


def test_the_limit_of_a_login_is_its_own(world: World) -> None:
    staff(world, of_login={"ann": EpsilonLimit(1)})
    ask(world, "ann")
    assert "user budget" in is_refused(world, "ann", 1)
    assert "user budget" in is_refused(world, "ann", 1, session="2")
    ask(world, "bob", 1)
    ask(world, "bob", 2)
    assert "user budget" in is_refused(world, "ann", 1)  # though the role has paid


@pytest.mark.parametrize("kind", ["user", "session", "role", "dataset"])
def test_the_limits_of_a_policy_are_for_each_account_of_their_kind(kind: str, world: World) -> None:
    served = policy()
    budgets = replace(served.budgets, **{kind: EpsilonLimit(1)})
    staff(world, served=replace(served, budgets=budgets))
    ask(world, "ann")
    assert kind in is_refused(world, "ann", 1)
    others = {  # who may ask something else now, by whose limit it is
        "user": [("bob", "1")], "session": [("ann", "2"), ("bob", "1")], "role": [("cy", "1")], "dataset": [],
    }  # fmt: skip
    for number, (login, session) in enumerate(others[kind], start=2):
        ask(world, login, number, session)
    if kind == "dataset":
        assert all("dataset" in is_refused(world, login, 1) for login in ("bob", "cy", "boss"))
    if kind == "role":
        assert "role" in is_refused(world, "bob", 1)


def test_a_login_with_another_role_pays_with_that_roles_account(world: World) -> None:
    of_login, of_role = {"ann": TWICE}, {"analyst": EpsilonLimit(1), "guest": TWICE}
    staff(world, FREE, of_login, of_role)
    ask(world, "ann")
    staff(world, FREE | {"ann": "guest"}, of_login, of_role)
    ask(world, "ann", 1)
    assert {who: n for who, n in paid(world).items() if who[0] in ("role", "user")} == {
        ("role", "shop/analyst"): 1, ("role", "shop/guest"): 1, ("user", "shop/ann"): 2,
    }  # fmt: skip
    assert "user budget" in is_refused(world, "ann", 2), "a role brings nobody a new budget"
    assert "role" in is_refused(world, "bob", 2), "whoever has left it, a role has spent what it has spent"
    ask(world, "ann", 0)  # the new role has not paid for it, the login has
    assert paid(world)["role", "shop/guest"] == 2
    assert paid(world)["user", "shop/ann"] == 2


def test_what_a_role_pays_is_nobodys_own_charge(world: World) -> None:
    """Else who asks for a repeat would be told that the role had not asked."""
    ask(world, "ann")
    staff(world, FREE | {"ann": "guest"})
    begin(world.session("ann"), QUESTIONS[0], max_charge="0.001")
    assert paid(world)["role", "shop/guest"] == 1


def test_a_stage_that_the_role_has_paid_for_costs_a_login_as_much_as_a_new_one(world: World) -> None:
    def own(login: str) -> list[int]:
        return sorted(n for (kind, name), n in found(world).items() if kind in ("user", "session") and login in name)

    def found(of: World) -> dict[tuple[str, str], int]:
        return {(t.kind.value, t.name): t.spent.pico for t in of.ledger.all_accounts()}

    answer(world, SQL, TOLD, "ann")
    asked = len(world.engine.asked)
    answer(world, SQL, TOLD, "bob")
    assert own("bob") == own("ann")
    assert len(world.engine.asked) >= asked


def test_tables_are_those_of_the_role_in_force(world: World) -> None:
    narrow = Role(name="clerk", tables=("orders", "stores"))
    current = world.dataset.current
    users = replace(current.users, roles={**current.users.roles, "clerk": narrow})
    world.dataset.swap(replace(current, users=users))
    version = world.dataset.current
    assert set(version.premises("boss").named) == {"orders", "stores"}
    assert "users" in version.premises("ann").named
    assert version.premises("ann") is version.premises("bob")
