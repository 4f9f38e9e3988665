"""Do users files give logins and roles, and do edits keep what people wrote?"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from proxy.errors import ConfigError, PolicyError
from proxy.policy.model import EpsilonLimit, Login, NoLimit, Refresh, Role
from proxy.policy.users import NEW_FILE, UNCHECKED, load_users, with_login, without_login
from tests.unit.policy.case_files import USERS as FILE
from tests.unit.policy.case_files import Case, read_cases

SCRAM = re.findall(r"SCRAM-SHA-256\S+", FILE)[0]
TABLES = frozenset({"users", "orders", "items"})
CASES = read_cases("users_refused.txt", FILE)


def refused(text: str, tables: frozenset[str]) -> list[str]:
    with pytest.raises(PolicyError) as caught:
        load_users(text, filename="u.yaml", tables=tables)
    return caught.value.message.split("\n")


def test_logins_and_roles() -> None:
    users = load_users(FILE, filename="u.yaml", tables={"users", "orders"})
    assert users.roles["analyst"] == Role(name="analyst", tables=("users", "orders"), budget=EpsilonLimit(3.0))
    assert users.roles["chief"] == Role(name="chief", is_admin=True)
    assert users.logins["alice"] == Login(name="alice", scram=SCRAM, role="analyst", budget=EpsilonLimit(5.0))


def test_budget_is_the_logins_else_the_roles_else_the_policys() -> None:
    logins = load_users(FILE, filename="u.yaml", tables=UNCHECKED).logins
    assert logins["alice"].budget == EpsilonLimit(5.0)
    assert logins["bob"].budget == EpsilonLimit(3.0)
    assert logins["carol"].budget == NoLimit()


def test_verifiers_are_not_shown() -> None:
    assert "W22Z" not in repr(load_users(FILE, filename="u.yaml", tables=UNCHECKED))


@pytest.mark.parametrize("text", [NEW_FILE, "users:\nroles:\n", "{}", "roles: {a: }"])
def test_files_without_logins(text: str) -> None:
    assert load_users(text, filename="u.yaml", tables=UNCHECKED).logins == {}


@pytest.mark.parametrize("case", CASES, ids=[case.title for case in CASES])
def test_refused(case: Case) -> None:
    assert refused(case.text(), TABLES) == [f"u.yaml:{line}" for line in case.expected]


def test_what_a_role_may_not_read_and_what_its_sessions_begin_with() -> None:
    limited = (
        "columns: {users: [age, plan]}, rows: {orders: 'store_id IN (1, 2)'},"
        " settings: {hush.intervals: on, hush.fresh: false, hush.epsilon: 0.25, hush.max_groups: 3, hush.notes: true}"
    )
    text = FILE.replace("analyst: {tables: [users, orders]", f"analyst: {{tables: [users, orders], {limited}")
    role = load_users(text, filename="u.yaml", tables=TABLES).roles["analyst"]
    assert role.columns == {"users": ("age", "plan")}
    assert role.rows == {"orders": "store_id IN (1, 2)"}
    assert role.settings == {
        "hush.intervals": "on", "hush.fresh": "off", "hush.epsilon": "0.25", "hush.max_groups": "3", "hush.notes": "on"
    }  # fmt: skip


def test_budget_of_a_role_together_and_budgets_that_come_back() -> None:
    monthly = "{epsilon: 3, refresh: month, acknowledge_lifetime_loss: true}"
    text = FILE.replace("budget: {epsilon: 3}", f"budget: {monthly}, shared_budget: {{epsilon: 12}}")
    users = load_users(text, filename="u.yaml", tables=UNCHECKED)
    assert users.roles["analyst"].shared == EpsilonLimit(12.0)
    assert users.logins["bob"].budget == EpsilonLimit(3.0, Refresh.MONTH)
    kept = Login(name="dora", scram=SCRAM, role="analyst", budget=EpsilonLimit(2.0, Refresh.DAY))
    again = load_users(with_login(text, kept, filename="u.yaml"), filename="u.yaml", tables=UNCHECKED)
    assert again.logins["dora"] == kept
    assert again.roles["analyst"] == users.roles["analyst"]


def login(name: str, role: str = "analyst", epsilon: float = 0.0) -> Login:
    return Login(name=name, scram=SCRAM, role=role, budget=EpsilonLimit(epsilon) if epsilon else NoLimit())


def test_first_login_makes_its_role() -> None:
    text = with_login(NEW_FILE, login("dora", "reader", 2.5), filename="u.yaml")
    users = load_users(text, filename="u.yaml", tables=UNCHECKED)
    assert users.logins["dora"] == login("dora", "reader", 2.5)
    assert users.roles["reader"] == Role(name="reader")
    assert text.startswith("# Logins and roles.")


def test_added_login_keeps_comments_and_order() -> None:
    text = with_login(FILE, login("dora"), filename="u.yaml")
    assert text.startswith(FILE)
    assert list(load_users(text, filename="u.yaml", tables=UNCHECKED).logins) == ["alice", "bob", "carol", "dora"]


def test_replaced_login_loses_its_old_budget() -> None:
    text = with_login(FILE, login("alice", "chief"), filename="u.yaml")
    assert load_users(text, filename="u.yaml", tables=UNCHECKED).logins["alice"] == login("alice", "chief")


def test_login_of_a_role_that_is_not_there_is_refused() -> None:
    with pytest.raises(PolicyError, match="there is no role 'boss'"):
        with_login(FILE, login("dora", "boss"), filename="u.yaml")


def test_removed_login() -> None:
    text = without_login(FILE, "bob", filename="u.yaml")
    assert list(load_users(text, filename="u.yaml", tables=UNCHECKED).logins) == ["alice", "carol"]
    assert "# who may ask" in text


def test_last_login_can_be_removed_and_another_added() -> None:
    text = with_login(NEW_FILE, login("dora"), filename="u.yaml")
    text = without_login(text, "dora", filename="u.yaml")
    assert load_users(text, filename="u.yaml", tables=UNCHECKED).logins == {}
    text = with_login(text, login("emil"), filename="u.yaml")
    assert list(load_users(text, filename="u.yaml", tables=UNCHECKED).logins) == ["emil"]


def test_removing_nobody_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"u.yaml: there is no user 'alise' \(did you mean 'alice'\?\)"):
        without_login(FILE, "alise", filename="u.yaml")


def test_edit_of_a_wrong_file_is_refused() -> None:
    with pytest.raises(PolicyError, match=r"u\.yaml:1: colour: unknown key"):
        with_login("colour: red\n", login("dora"), filename="u.yaml")


def test_example_is_right_and_can_be_added_to() -> None:
    example = (Path(__file__).parents[3] / "examples" / "users.yaml").read_text(encoding="utf-8")
    text = with_login(example, login("dora", "marketing"), filename="u.yaml")
    users = load_users(text, filename="u.yaml", tables={"users", "visits"})
    assert users.logins["dora"].budget == EpsilonLimit(3.0)
    assert users.roles["steward"].is_admin
