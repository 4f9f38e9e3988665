"""Are logins added, changed, listed and removed safely?"""

from __future__ import annotations

import io
import json
import threading
from pathlib import Path

import pytest

from proxy.admin.files import read_users
from proxy.policy.model import EpsilonLimit, NoLimit
from proxy.policy.users import UNCHECKED
from proxy.wire.scram import make_verifier, parse_verifier
from tests.unit.admin.command_line import CommandLine


@pytest.fixture
def users(tmp_path: Path) -> Path:
    return tmp_path / "users.yaml"


@pytest.fixture
def password(monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("HUSHQL_PASSWORD", "correct horse")
    return "correct horse"


def is_password(scram: str, password: str) -> bool:
    verifier = parse_verifier(scram)
    return make_verifier(password, salt=verifier.salt, iterations=verifier.iterations) == verifier


def test_first_login_makes_a_private_file(command: CommandLine, users: Path, password: str) -> None:
    assert command("user", "add", "alice", "--role", "analyst", "--users", str(users), "--epsilon", "2.5") == 0
    assert command.out == f"{users}: user 'alice' added with role 'analyst'\n"
    assert users.stat().st_mode & 0o777 == 0o600
    login = read_users(users, UNCHECKED).logins["alice"]
    assert (login.role, login.budget) == ("analyst", EpsilonLimit(2.5))
    assert is_password(login.scram, password)
    assert password not in users.read_text(encoding="utf-8")


def test_salts_differ(command: CommandLine, users: Path, password: str) -> None:
    for name in ("a", "b"):
        assert command("user", "add", name, "--role", "r", "--users", str(users)) == 0
    logins = read_users(users, UNCHECKED).logins
    assert parse_verifier(logins["a"].scram).salt != parse_verifier(logins["b"].scram).salt


def test_password_from_standard_input(command: CommandLine, users: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("pass word \r\nrest\n"))
    assert command("user", "add", "bob", "--role", "r", "--users", str(users)) == 0
    login = read_users(users, UNCHECKED).logins["bob"]
    assert is_password(login.scram, "pass word ")
    assert login.budget == NoLimit()


def test_password_from_a_prompt(command: CommandLine, users: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    monkeypatch.setattr("typer.prompt", lambda *_, **options: "typed" if options["hide_input"] else "shown")
    assert command("user", "add", "bob", "--role", "r", "--users", str(users)) == 0
    assert is_password(read_users(users, UNCHECKED).logins["bob"].scram, "typed")


@pytest.mark.parametrize("given", ["", "\n", "a\0b\n"])
def test_password_that_is_none(command: CommandLine, users: Path, monkeypatch: pytest.MonkeyPatch, given: str) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(given))
    assert command("user", "add", "bob", "--role", "r", "--users", str(users)) == 2
    assert command.err.startswith("hushql: the password is empty")
    assert not users.exists()


def test_existing_login_is_changed_only_when_asked(command: CommandLine, users: Path, password: str) -> None:
    add = ("user", "add", "alice", "--role", "r", "--users", str(users))
    assert command(*add) == 0
    before = users.read_text(encoding="utf-8")
    assert command(*add) == 2
    assert command.err == f"hushql: {users}: user 'alice' exists. Use --replace to change password and role.\n"
    assert users.read_text(encoding="utf-8") == before
    assert command(*add, "--replace") == 0
    assert command.out == f"{users}: user 'alice' changed with role 'r'\n"
    assert users.read_text(encoding="utf-8") != before


def test_unknown_role_is_refused_and_nothing_written(command: CommandLine, users: Path, password: str) -> None:
    assert command("user", "add", "alice", "--role", "analyst", "--users", str(users)) == 0
    before = users.read_bytes()
    assert command("user", "add", "bob", "--role", "analist", "--users", str(users)) == 2
    assert command.err == (
        f"hushql: {users}: there is no role 'analist' (did you mean 'analyst'?). Its roles are: analyst."
        " Others are added under roles: in the file.\n"
    )
    assert users.read_bytes() == before


@pytest.mark.parametrize("words", [("add", "bob", "--role", "analyst"), ("remove", "bob"), ("list",)])
def test_a_folder_is_no_users_file(command: CommandLine, tmp_path: Path, password: str, words: tuple[str, ...]) -> None:
    assert command("user", *words, "--users", str(tmp_path)) == 2
    assert command.err == f"hushql: users file {tmp_path} cannot be read: Is a directory\n"


def test_remove(command: CommandLine, users: Path, password: str) -> None:
    assert command("user", "add", "alice", "--role", "r", "--users", str(users)) == 0
    assert command("user", "remove", "alice", "--users", str(users)) == 0
    assert read_users(users, UNCHECKED).logins == {}
    assert command("user", "remove", "alice", "--users", str(users)) == 2
    assert command.err == f"hushql: {users}: there is no user 'alice'\n"


def test_list(command: CommandLine, users: Path, password: str) -> None:
    assert command("user", "add", "alice", "--role", "r", "--users", str(users), "--epsilon", "2.5") == 0
    assert command("user", "add", "bob", "--role", "r", "--users", str(users)) == 0
    text = users.read_text(encoding="utf-8").replace("  r: {}", "  r: {tables: [t, s], admin: true}")
    users.write_text(text, encoding="utf-8")
    assert command("user", "list", "--users", str(users)) == 0
    assert [line.split() for line in command.out.splitlines()] == [
        ["name", "role", "admin", "epsilon", "tables"],
        ["alice", "r", "yes", "2.5", "t,", "s"],
        ["bob", "r", "yes", "policy", "t,", "s"],
    ]
    assert command("user", "list", "--json", "--users", str(users)) == 0
    assert json.loads(command.out)[1] == {
        "name": "bob", "role": "r", "admin": True, "epsilon": "policy", "tables": ["t", "s"],
    }  # fmt: skip
    assert "SCRAM" not in command.out


@pytest.mark.parametrize("arguments", [("list",), ("remove", "a"), ("add", "a", "--role", "r")])
def test_file_that_others_may_read_is_refused(
    command: CommandLine, users: Path, password: str, arguments: tuple[str, ...]
) -> None:
    users.write_text("roles: {r: {}}\n", encoding="utf-8")
    users.chmod(0o640)
    assert command("user", *arguments, "--users", str(users)) == 2
    assert command.err == (
        f"hushql: users file {users} has mode 0640, so others have a right to it. Run: chmod 600 {users}\n"
    )


def test_link_is_followed(command: CommandLine, users: Path, password: str, tmp_path: Path) -> None:
    link = tmp_path / "link.yaml"
    link.symlink_to(users)
    assert command("user", "add", "alice", "--role", "r", "--users", str(link)) == 0
    assert link.is_symlink()
    assert list(read_users(users, UNCHECKED).logins) == ["alice"]


def test_folder_that_is_not_there(command: CommandLine, tmp_path: Path, password: str) -> None:
    assert command("user", "add", "alice", "--role", "r", "--users", str(tmp_path / "no" / "u.yaml")) == 2
    assert command.err.startswith(f"hushql: folder {tmp_path / 'no'} cannot be used")


def test_edits_at_the_same_time_lose_nothing(
    command: CommandLine, users: Path, password: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYDANTIC_DISABLE_PLUGINS", "1")  # typer sets and removes it in each thread, others' too
    threads = [
        threading.Thread(target=command, args=("user", "add", f"u{i}", "--role", "r", "--users", str(users)))
        for i in range(6)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(read_users(users, UNCHECKED).logins) == [f"u{i}" for i in range(6)]
