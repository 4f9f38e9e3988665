"""The text that makes, restores and removes logins, and the files that admit them."""

from __future__ import annotations

import pytest

from proxy.errors import PolicyError
from proxy.front.configuration import ServerSettings, configuration_text
from proxy.front.lockdown import REVOKED_FUNCTIONS, lockdown_sql, revoked_names
from proxy.front.roles import (
    check_login,
    create_login_sql,
    hba_text,
    ident_text,
    owner_sql,
    remove_login_sql,
    restore_login_sql,
)

POWERS = ("SUPERUSER", "CREATEDB", "CREATEROLE", "REPLICATION", "BYPASSRLS")


def test_a_login_has_no_power_but_to_log_in() -> None:
    for statement in (create_login_sql('a"b', 5), restore_login_sql('a"b', 5)):
        words = statement.split()
        assert 'ROLE "a""b"' in statement
        assert "LOGIN" in words
        assert statement.endswith("CONNECTION LIMIT 15")
        for power in POWERS:
            assert f"NO{power}" in words
            assert power not in words
    assert "NOLOGIN" in owner_sql().split()


def test_a_removed_login_is_shut_out_before_its_sessions_end() -> None:
    first, second = remove_login_sql("o'hara")
    assert first == 'ALTER ROLE "o\'hara" NOLOGIN'
    assert second.endswith("WHERE usename = 'o''hara'")


@pytest.mark.parametrize("name", ["alice", "ALICE", "a b", "postgres", "root", "hushql", "é"])
def test_ordinary_names_may_log_in(name: str) -> None:
    check_login(name)


@pytest.mark.parametrize(
    "name", ["hush_owner", "hush_front", "hush_reader", "pg_read_all_data", "public", "none", "/a", ""]
)
def test_reserved_names_may_not(name: str) -> None:
    with pytest.raises(PolicyError):
        check_login(name)


def test_the_socket_admits_the_proxys_account_alone() -> None:
    assert hba_text() == "local all all peer map=hushql\n"
    assert ident_text("root", ("alice", 'b"')) == (
        'hushql "root" "hush_front"\nhushql "root" "hush_reader"\nhushql "root" "alice"\nhushql "root" "b"""\n'
    )


def settings(major: int) -> dict[str, str]:
    text = configuration_text(
        ServerSettings(
            socket_dir="/s'x",
            hba_file="/h",
            ident_file="/i",
            max_sessions=100,
            time_zone="UTC",
            major=major,
        )
    )
    return dict(line.split(" = ", 1) for line in text.splitlines())


def test_a_server_listens_on_its_socket_only() -> None:
    found = settings(15)
    assert found["listen_addresses"] == "''"
    assert found["unix_socket_directories"] == "'/s''x'"
    assert found["max_connections"] == "'117'"
    assert found["restart_after_crash"] == "'off'"


def test_settings_of_a_version_are_left_out_before_it() -> None:
    newer = {"max_notify_queue_pages", "allow_alter_system"}
    assert settings(15).keys() == settings(16).keys()
    assert settings(17).keys() - settings(16).keys() == newer
    assert settings(18).keys() - settings(17).keys() == {"io_method"}


def test_the_revoked_functions_are_named_once_and_with_a_reason() -> None:
    names = revoked_names()
    assert len(set(names)) == len(names)
    assert all(reason and functions for reason, functions in REVOKED_FUNCTIONS)
    assert all(f"'{name}'" in lockdown_sql() for name in names)
