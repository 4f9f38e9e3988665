"""Do people of a real directory (Debian's slapd) log in to a running proxy, and are they shut out in time?"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psycopg
import pytest

from tests.certificates import Certificates, make_certificates
from tests.clients.slapd import (
    ANALYSTS,
    BASE,
    CHIEFS,
    GROUPS,
    PEOPLE,
    SERVICE,
    SERVICE_PASSWORD,
    Directory,
    group,
    person,
    start_directory,
)
from tests.e2e.outside import Site, end_of, site, visitor, wait_until
from tests.e2e.served import Client

pytestmark = pytest.mark.clients


def dn(uid: str) -> str:
    return f"uid={uid},{PEOPLE}"


ENTRIES = "\n".join((
    person("Alice", "alices"), person("bob", "bobs"), person("carol", "carols"), person("dave", "daves"),
    person("erin", "erins"), person("ann", "anns of the directory"),
    person("two", "twos", "uid: second", dn=dn("two")),
    person("jane", "janes", dn=f"cn=Jane (QA)*\\, tests,{PEOPLE}"),
    group(ANALYSTS, dn("alice"), dn("carol"), dn("dave"), dn("two"), dn("ann"), f"cn=Jane (QA)*\\, tests,{PEOPLE}"),
    group(CHIEFS, dn("carol")), group(f"cn=others,{GROUPS}", dn("bob")),
))  # fmt: skip


def section(directory: Directory, entry: str, more: str = "") -> str:
    return f"""
ldap:
  url: ldaps://localhost:{directory.port}
  ca_file: ca.pem
  {entry}
  service: {{dn: "{SERVICE}", password_file: service.password}}
  groups: {{"{CHIEFS}": boss, "{ANALYSTS}": analyst}}
  recheck: 1s
{more}"""


AT = f'dn: "uid={{login}},{PEOPLE}"'
UNDER = f'search: {{base: "{BASE}", filter: "(uid={{login}})"}}'


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return make_certificates(tmp_path_factory.mktemp("tls"))


@contextmanager
def directory_in(folder: Path, certificates: Certificates) -> Iterator[Directory]:
    folder.mkdir()
    directory = start_directory(folder, certificates, ENTRIES)
    try:
        yield directory
    finally:
        directory.close()


@dataclass(frozen=True, slots=True)
class Place:
    """A directory, and a proxy that asks it."""

    directory: Directory
    site: Site


@contextmanager
def place_in(folder: Path, certificates: Certificates, entry: str, more: str = "", *options: str) -> Iterator[Place]:
    with directory_in(folder / "slapd", certificates) as directory:
        secret = folder / "service.password"
        secret.write_text(SERVICE_PASSWORD + "\n")
        secret.chmod(0o600)
        with site(folder, certificates, section(directory, entry, more), {"ann": "analyst"}, *options) as found:
            yield Place(directory, found)


@pytest.fixture(scope="module", params=[AT, UNDER], ids=["template", "search"])
def place(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, certificates: Certificates
) -> Iterator[Place]:
    with place_in(tmp_path_factory.mktemp("shared"), certificates, request.param) as found:
        yield found


def test_people_of_a_directory_log_in_with_their_roles(place: Place) -> None:
    site = place.site
    known = len(site.logged("login"))
    with site.connect("alice", "alices") as client:
        assert client.execute("SELECT current_user").fetchall() == [("alice",)]
        assert client.execute("SELECT count(*) FROM users").fetchall()
    with site.connect("carol", "carols") as client:  # the first group that gives a role counts
        assert client.execute("SELECT count(*) FROM hush.admin_budget").fetchall()
    said = [(line["login"], line["role"], line["method"]) for line in site.logged("login")[known:]]
    assert said == [("alice", "analyst", "ldap"), ("carol", "boss", "ldap")]
    with site.connect("ann", "a pass word", require_auth="scram-sha-256"):  # the users file goes first
        pass


def test_two_spellings_of_a_person_have_one_account(place: Place) -> None:
    with place.site.connect("alice", "alices") as client:
        client.execute("SELECT count(*) FROM users").fetchall()
        spent = client.execute("SELECT epsilon_spent FROM hush.budget WHERE kind = 'user'").fetchall()
    with place.site.connect("ALICE", "alices") as client:
        assert client.execute("SELECT current_user").fetchall() == [("alice",)]
        assert client.execute("SELECT epsilon_spent FROM hush.budget WHERE kind = 'user'").fetchall() == spent


def test_whoever_may_not_is_told_one_thing_at_one_time(place: Place) -> None:
    site = place.site
    for login, password, reason in (
        ("alice", "wrong", "wrong_password"), ("nobody", "wrong", "unknown"), ("bob", "bobs", "no_group"),
        ("erin", "erins", "no_group"), ("ANN", "anns of the directory", "name_of_users_file"),
        ("*", "alices", "bad_name"), ("alice,ou=people", "alices", "bad_name"), ("two", "twos", "ambiguous"),
        ("second", "twos", "ambiguous|unknown"),
    ):  # fmt: skip
        began = time.monotonic()
        assert f'password authentication failed for user "{login}"' in site.refused(login, password)
        assert time.monotonic() - began >= 1.0
        last = site.logged("login_failed")[-1]
        assert (last["login"], last["code"], last["method"]) == (login, "28P01", "ldap")
        assert str(last["reason"]) in reason.split("|")
    assert "taken under TLS only" in site.refused("alice", "alices", sslmode="disable")
    assert "alices" not in site.served.log.read_text()


def test_a_database_that_is_not_served_is_told_to_those_with_a_password(place: Place) -> None:
    assert "does not exist" in place.site.refused("alice", "alices", dbname="nowhere")
    assert "authentication failed" in place.site.refused("alice", "wrong", dbname="nowhere")


def test_a_name_full_of_signs_is_found_with_its_groups(tmp_path: Path, certificates: Certificates) -> None:
    with place_in(tmp_path, certificates, UNDER) as place, place.site.connect("jane", "janes") as client:
        assert client.execute("SELECT current_user").fetchall() == [("jane",)]


def test_who_leaves_the_groups_loses_open_sessions(tmp_path: Path, certificates: Certificates) -> None:
    with (
        place_in(tmp_path, certificates, AT) as place,
        place.site.connect("dave", "daves") as dave,
        place.site.connect("alice", "alices") as alice,
    ):
        dave.execute("SELECT 1")
        place.directory.modify(f"dn: {ANALYSTS}\nchangetype: modify\ndelete: member\nmember: {dn('dave')}\n")
        assert "57P01" in end_of(dave)
        assert [line["login"] for line in place.site.logged("revoked")] == ["dave"]
        assert "authentication failed" in place.site.refused("dave", "daves")
        alice.execute("SELECT 1")
        # another role, at once: an administrator by now
        place.directory.modify(f"dn: {CHIEFS}\nchangetype: modify\nadd: member\nmember: {dn('alice')}\n")
        wait_until(lambda: administers(alice))
        place.directory.modify(f"dn: {dn('alice')}\nchangetype: delete\n")
        assert "57P01" in end_of(alice)


def administers(client: Client) -> bool:
    """Whether a session may read what administrators read, by now."""
    try:
        return bool(client.execute("SELECT count(*) FROM hush.admin_budget").fetchall())
    except psycopg.Error:
        return False


def test_a_reload_ends_sessions_of_groups_without_a_role(tmp_path: Path, certificates: Certificates) -> None:
    with (
        place_in(tmp_path, certificates, AT, "  # end\\n") as place,
        place.site.connect("alice", "alices") as alice,
        place.site.connect("carol", "carols") as carol,
    ):
        place.site.edit(f', "{ANALYSTS}": analyst', "")
        assert "57P01" in end_of(alice)
        carol.execute("SELECT 1")
        place.site.edit("users:", "users:\n  carol: {scram: 'SCRAM-SHA-256$4096:c2l4dGVlbiBieXRlcyAuLg==$"
                        "WG5d8oPm3OtcPnkdi4Uo7BkeZkBFzpcXkuLmtbsT4qY=:wfPLwcE6nTWhTAmQ7tl2KeoiWGPlZqQxSrmfPwDl2dU=',"
                        " role: analyst}")  # fmt: skip
        assert "57P01" in end_of(carol)
        assert "authentication failed" in place.site.refused("carol", "carols")


def test_a_directory_out_of_reach_is_told_in_the_log_alone(tmp_path: Path, certificates: Certificates) -> None:
    with place_in(tmp_path, certificates, AT) as place, place.site.connect("alice", "alices") as alice:
        place.directory.stop()
        assert "password authentication failed" in place.site.refused("carol", "carols")
        assert place.site.logged("login_failed")[-1]["reason"] == "unreachable"
        assert "57P01" in end_of(alice)  # after three looks that told nothing
        place.directory.start_again()
        with place.site.connect("alice", "alices") as again:
            again.execute("SELECT 1")


def test_the_console_takes_a_directorys_password_and_keeps_none(tmp_path: Path, certificates: Certificates) -> None:
    with place_in(tmp_path, certificates, AT, "", "--console", "127.0.0.1:0") as place, visitor(place.site) as browser:
        assert browser.log_in("alice", "shop", "wrong").status_code == 401
        assert browser.log_in("Alice", "shop", "alices").status_code == 303
        assert browser.get("/budget").status_code == 200
        assert "shop/alice" in browser.get("/budget").text or "alice" in browser.get("/budget").text
        assert browser.log_in("ann", "shop", "a pass word").status_code == 303  # logins of the file do as ever
        assert browser.log_in("alice", "shop", "alices").status_code == 303
        place.directory.modify(f"dn: {ANALYSTS}\nchangetype: modify\ndelete: member\nmember: {dn('alice')}\n")
        wait_until(lambda: browser.get("/budget").status_code == 303)
        assert browser.get("/budget").headers["location"] == "/login"
