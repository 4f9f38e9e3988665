"""Do people of a directory log in to a running proxy? The directory is a made-up one; tests/clients has a real one."""

from __future__ import annotations

import struct
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest

from proxy.wire import messages
from tests.certificates import Certificates, make_certificates
from tests.e2e.outside import Site, end_of, site, visitor, wait_until
from tests.unit.identity.directory import FakeDirectory, directory_of
from tests.wire.raw import RawClient, startup_packet

PEOPLE, ANALYSTS, CHIEFS = "ou=people,dc=org", "cn=analysts,dc=org", "cn=chiefs,dc=org"


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return make_certificates(tmp_path_factory.mktemp("tls"))


def dn(uid: str) -> str:
    return f"uid={uid},{PEOPLE}"


def section(directory: FakeDirectory, more: str = "") -> str:
    return f"""
ldap:
  url: ldaps://localhost:{directory.port}
  ca_file: ca.pem
  dn: "uid={{login}},{PEOPLE}"
  groups: {{"{CHIEFS}": boss, "{ANALYSTS}": analyst}}
  recheck: 1s
{more}"""


@contextmanager
def place_in(folder: Path, certificates: Certificates, more: str = "", *options: str) -> Iterator[Site]:
    """A proxy that asks a directory of alice, bob (in no group) and carol."""
    with directory_of(certificates) as directory:
        for uid in ("alice", "bob", "carol"):
            directory.entries[dn(uid)] = {"uid": [uid.encode()]}
            directory.passwords[dn(uid)] = f"{uid}s"
        directory.members |= {ANALYSTS: (dn("alice"), dn("carol")), CHIEFS: ()}
        with site(folder, certificates, section(directory, more), {"ann": "analyst"}, *options) as found:
            DIRECTORIES[found.served.port] = directory
            yield found


DIRECTORIES: dict[int, FakeDirectory] = {}


def test_people_of_a_directory_come_and_go(tmp_path: Path, certificates: Certificates) -> None:
    with place_in(tmp_path, certificates) as place:
        directory = DIRECTORIES[place.served.port]
        with place.connect("Alice", "alices") as alice, place.connect("carol", "carols") as carol:
            assert alice.execute("SELECT current_user").fetchall() == [("alice",)]
            assert alice.execute("SELECT count(*) FROM users").fetchall()
            for login, password, reason in (
                ("alice", "wrong", "wrong_password"), ("nobody", "x", "unknown"), ("bob", "bobs", "no_group"),
                ("ANN", "a pass word", "name_of_users_file"), ("*", "x", "bad_name"), ("postgres", "x", "unknown"),
            ):  # fmt: skip
                assert f'password authentication failed for user "{login}"' in place.refused(login, password)
                assert place.logged("login_failed")[-1]["reason"] == reason
            assert "does not exist" in place.refused("alice", "alices", dbname="nowhere")
            directory.members[CHIEFS] = (dn("carol"),)
            wait_until(lambda: _administers(carol))
            directory.members[ANALYSTS] = (dn("carol"),)
            assert "57P01" in end_of(alice)
            assert place.logged("revoked")[-1]["login"] == "alice"
            directory.search_code = 51  # it cannot say
            assert "authentication failed" in place.refused("carol", "carols")
            assert place.logged("login_failed")[-1]["reason"] == "unreachable"
            assert "57P01" in end_of(carol)


def test_one_person_has_one_account_however_the_name_is_spelled(tmp_path: Path, certificates: Certificates) -> None:
    spent = "SELECT account, epsilon_spent FROM hush.budget WHERE kind = 'user'"
    with place_in(tmp_path, certificates) as place:
        with place.connect("alice", "alices") as client:
            client.execute("SELECT count(*) FROM users").fetchall()
            first = client.execute(spent).fetchall()
        with place.connect("ALICE", "alices") as client:
            assert client.execute(spent).fetchall() == first
            client.execute("SELECT count(*) FROM users WHERE plan = 'pro'").fetchall()
            ((account, more),) = client.execute(spent).fetchall()
        assert account == first[0][0]
        assert more > first[0][1] > 0


def _administers(client: object) -> bool:
    try:
        return bool(client.execute("SELECT count(*) FROM hush.admin_budget").fetchall())  # type: ignore[attr-defined]
    except psycopg.Error:  # not yet
        return False


def shown_password(port: int, body: bytes) -> str:
    """The SQLSTATE of a login of alice in the clear, "" if she is in; `asked` if no password was asked for."""
    with RawClient(port) as client:
        client.send(startup_packet({"user": "alice", "database": "shop"}))
        reply = client.read()
        if reply.kind == "E":
            return f"asked {reply.sqlstate}"
        assert reply.body == struct.pack("!I", 3)
        client.send(messages.build(b"p", body))
        reply = client.read()
        return reply.sqlstate if reply.kind == "E" else ""


def test_passwords_are_asked_for_under_tls_or_on_this_machine_where_that_is_allowed(
    tmp_path: Path, certificates: Certificates
) -> None:
    with place_in(tmp_path, certificates, "  clear_on_loopback: false\n") as place:
        assert shown_password(place.served.port, b"alices\0") == "asked 28000"
        place.edit("clear_on_loopback: false", "clear_on_loopback: true")
        assert shown_password(place.served.port, b"alices\0") == ""
        directory = DIRECTORIES[place.served.port]
        known = len(directory.names)
        assert shown_password(place.served.port, b"\0") == "28P01"  # never an unauthenticated bind
        assert len(directory.names) == known
        assert shown_password(place.served.port, b"alices") == "08P01"


def test_failures_are_one_error_at_whole_seconds(tmp_path: Path, certificates: Certificates) -> None:
    with place_in(tmp_path, certificates) as place:
        told = set()
        for login, password in (("alice", "wrong"), ("nobody", "alices"), ("bob", "bobs"), ("al ice", "alices")):
            began_s = time.monotonic()
            words = place.refused(login, password, hostaddr="127.0.0.1")
            assert time.monotonic() - began_s >= 1.0
            told.add(words.replace(login, "somebody"))
        assert len(told) == 1
        reasons = [line["reason"] for line in place.logged("login_failed")]
        assert reasons == ["wrong_password", "unknown", "no_group", "bad_name"]


def test_a_reload_lets_go_of_whoever_has_no_place_in_it(tmp_path: Path, certificates: Certificates) -> None:
    with place_in(tmp_path, certificates, "  # end\n") as place:
        with place.connect("alice", "alices") as alice:
            place.edit(ANALYSTS, "cn=others,dc=org")
            assert "57P01" in end_of(alice)
        place.edit("cn=others,dc=org", ANALYSTS)
        with place.connect("alice", "alices") as alice:
            place.edit("ldap:", "other:")  # a mistake changes nothing
            assert place.logged("reload")[-1]["accepted"] is False
            alice.execute("SELECT 1")
            text = place.users.read_text()
            place.edit(text[text.index("other:") :], "")
            assert "57P01" in end_of(alice)


def test_the_console_takes_a_directorys_password_and_keeps_none(tmp_path: Path, certificates: Certificates) -> None:
    with place_in(tmp_path, certificates, "", "--console", "127.0.0.1:0") as place, visitor(place) as browser:
        assert browser.log_in("alice", "shop", "wrong").status_code == 401
        assert browser.log_in("Alice", "shop", "alices").status_code == 303
        assert browser.get("/budget").status_code == 200
        browser.post("/logout")
        assert browser.get("/budget").status_code == 303
        assert browser.log_in("alice", "shop", "alices").status_code == 303
        DIRECTORIES[place.served.port].members[ANALYSTS] = ()
        wait_until(lambda: browser.get("/budget").status_code == 303)
