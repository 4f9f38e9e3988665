"""Which account the front runs as, and what it reaches."""

from __future__ import annotations

import os
import pwd
from pathlib import Path

import pytest

from proxy.errors import FrontFailed
from proxy.front import account as module
from proxy.front.account import SystemUser, can_traverse, choose_account, own_account


def entry(name: str, uid: int) -> pwd.struct_passwd:
    return pwd.struct_passwd((name, "x", uid, uid, "", "/", "/bin/false"))


def lookup(**known: int) -> object:
    def find(name: str) -> pwd.struct_passwd:
        return entry(name, known[name])

    return find


@pytest.fixture
def as_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "own_account", lambda: SystemUser("root", 0, 0))


@pytest.mark.usefixtures("as_root")
def test_root_prefers_an_account_of_its_own_and_postgres_last() -> None:
    known = {"hushql": 900, "nobody": 65534, "postgres": 101}
    for best in ("hushql", "nobody", "postgres"):
        assert choose_account("", lookup=lookup(**known)).name == best  # type: ignore[arg-type] # a fake
        del known[best]
    with pytest.raises(FrontFailed, match="no unprivileged account"):
        choose_account("", lookup=lookup())  # type: ignore[arg-type] # a fake


@pytest.mark.usefixtures("as_root")
def test_root_obeys_the_configuration_unless_it_is_root_again() -> None:
    assert choose_account("svc", lookup=lookup(svc=5)) == SystemUser("svc", 5, 5)  # type: ignore[arg-type] # a fake
    with pytest.raises(FrontFailed, match="refuses to run as root"):
        choose_account("toor", lookup=lookup(toor=0))  # type: ignore[arg-type] # a fake
    with pytest.raises(FrontFailed, match='no account "gone"'):
        choose_account("gone", lookup=lookup())  # type: ignore[arg-type] # a fake


def test_others_run_it_as_themselves(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "own_account", lambda: SystemUser("me", 7, 7))
    assert choose_account("") == choose_account("me") == SystemUser("me", 7, 7)
    with pytest.raises(FrontFailed, match="only root"):
        choose_account("postgres")


def test_an_account_without_an_entry_is_told_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    assert own_account().is_own
    monkeypatch.setattr(os, "geteuid", lambda: 4_000_000_000)
    with pytest.raises(FrontFailed, match="no entry in the user database"):
        own_account()


def test_a_directory_is_reachable_if_every_step_is(tmp_path: Path) -> None:
    mine = SystemUser("me", os.geteuid(), os.getegid())
    stranger = SystemUser("other", 4_000_000_000, 4_000_000_000)
    group = SystemUser("group", 4_000_000_000, os.getegid())
    inner = tmp_path / "a" / "b"
    inner.mkdir(parents=True)
    (tmp_path / "a").chmod(0o710)
    assert can_traverse(inner, mine)
    assert not can_traverse(inner, stranger)
    assert not can_traverse(inner, group)  # pytest's own directory is private
    assert can_traverse(Path("/"), stranger)
    assert module._may_search(tmp_path / "a", group)
    (tmp_path / "a").chmod(0o600)
    assert not module._may_search(tmp_path / "a", mine)
