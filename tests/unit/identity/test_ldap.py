"""Who does a directory let in? Each of its answers, without a real one (tests/clients has that)."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import ldap3
import pytest
from ldap3.core.exceptions import LDAPBindError

from proxy.identity.ldap import Ldap, _kind
from proxy.identity.refusals import NotVouched, RefusalReason, Unreachable
from proxy.policy.outside.logins import (
    Anonymous,
    EntryAt,
    EntryUnder,
    LdapLogins,
    LdapSecurity,
    ServiceAccount,
)
from tests.certificates import Certificates, make_certificates
from tests.unit.identity.directory import FakeDirectory, directory_of

PEOPLE, GROUP, OTHER = "ou=people,dc=org", "cn=analysts,dc=org", "cn=chiefs,dc=org"
ALICE = f"uid=alice,{PEOPLE}"
SERVICE = "cn=hushql,dc=org"


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return make_certificates(tmp_path_factory.mktemp("tls"))


def filled(directory: FakeDirectory) -> FakeDirectory:
    directory.entries[ALICE] = {"UID": [b"Alice"]}
    directory.passwords |= {ALICE: "right", SERVICE: "service"}
    directory.members[GROUP] = (ALICE,)
    return directory


@pytest.fixture
def directory(certificates: Certificates) -> Iterator[FakeDirectory]:
    with directory_of(certificates) as found:
        yield filled(found)


def settings(directory: FakeDirectory) -> LdapLogins:
    return LdapLogins(
        host="localhost", port=directory.port, security=LdapSecurity.LDAPS, ca_file="",
        entry=EntryAt(f"uid={{login}},{PEOPLE}"), service=ServiceAccount(SERVICE, "file"), attribute="uid",
        condition="(objectClass=*)", members="(|(member={dn})(memberUid={login}))",
        groups=((OTHER, "boss"), (GROUP, "analyst")), recheck_s=300.0, timeout_s=2.0, clear_on_loopback=False,
    )  # fmt: skip


def ldap(directory: FakeDirectory, certificates: Certificates, **changes: object) -> Ldap:
    context = ssl.create_default_context(cafile=certificates.authority)
    return Ldap(replace(settings(directory), **changes), context, "service")  # type: ignore[arg-type]


def refusal(asked: Ldap, login: str = "alice", password: str = "right") -> RefusalReason:
    with pytest.raises(NotVouched) as caught:
        asked.vouch(login, password)
    assert "right" not in caught.value.words.replace("is right", "")
    return caught.value.reason


def test_a_right_password_tells_name_and_groups(directory: FakeDirectory, certificates: Certificates) -> None:
    asked = ldap(directory, certificates)
    found = asked.vouch("alice", "right")
    assert (found.name, found.groups, found.by) == ("alice", frozenset({GROUP}), asked.settings)
    assert directory.names == [SERVICE, ALICE]
    assert asked.groups_of("alice") == {GROUP}
    assert ALICE not in directory.names[2:]  # nobody's password is needed to look again


def test_starttls_comes_before_anything_is_said(certificates: Certificates) -> None:
    with directory_of(certificates, is_encrypted=False) as plain:
        asked = ldap(filled(plain), certificates, security=LdapSecurity.STARTTLS)
        assert asked.vouch("alice", "right").name == "alice"
        plain.offers_tls, known = False, len(plain.names)
        assert refusal(asked) is RefusalReason.UNREACHABLE
        assert len(plain.names) == known


def test_nothing_is_said_in_the_clear_whatever_the_library_does(
    certificates: Certificates, monkeypatch: pytest.MonkeyPatch
) -> None:
    with directory_of(certificates, is_encrypted=False) as plain:
        asked = ldap(filled(plain), certificates, security=LdapSecurity.STARTTLS)
        monkeypatch.setattr(ldap3.Connection, "start_tls", lambda *_, **__: False)
        assert refusal(asked) is RefusalReason.UNREACHABLE
        assert plain.names == []


def test_words_of_libraries_which_may_quote_are_not_told() -> None:
    assert _kind(ValueError("hunter2")) == "ValueError"
    assert _kind(LDAPBindError("hunter2")) == "LDAPBindError"
    assert _kind(ConnectionRefusedError(111, "refused")) == "[Errno 111] refused"


def test_a_wrong_password_is_told_from_a_directory_that_cannot_say(
    directory: FakeDirectory, certificates: Certificates
) -> None:
    asked = ldap(directory, certificates, service=Anonymous())
    assert refusal(asked, password="wrong") is RefusalReason.PASSWORD
    assert directory.names[0] == ""
    for code, reason in ((53, RefusalReason.PASSWORD), (19, RefusalReason.PASSWORD), (51, RefusalReason.UNREACHABLE),
                         (10, RefusalReason.UNREACHABLE)):  # fmt: skip
        directory.bind_code = code
        assert refusal(asked) is reason


def test_an_empty_password_is_never_an_anonymous_bind(directory: FakeDirectory, certificates: Certificates) -> None:
    assert refusal(ldap(directory, certificates), password="") is RefusalReason.EMPTY_PASSWORD
    assert directory.names == []


def test_an_entry_has_one_name_and_it_is_the_logins(directory: FakeDirectory, certificates: Certificates) -> None:
    asked = ldap(directory, certificates)
    assert refusal(asked, "bob") is RefusalReason.UNKNOWN
    for values, reason in (
        ([b"alice", b"alicia"], RefusalReason.AMBIGUOUS), ([], RefusalReason.AMBIGUOUS),
        ([b"alicia"], RefusalReason.AMBIGUOUS),
        ([b"\xff"], RefusalReason.BAD_NAME), ([b"al ice"], RefusalReason.BAD_NAME),
    ):  # fmt: skip
        directory.entries[ALICE] = {"uid": values}
        assert refusal(asked) is reason
    assert ALICE not in directory.names


def test_two_entries_of_one_login_are_none(directory: FakeDirectory, certificates: Certificates) -> None:
    asked = ldap(directory, certificates, entry=EntryUnder(PEOPLE, "(uid={login})"))
    directory.entries[ALICE] = {"uid": [b"alice"]}
    assert asked.vouch("alice", "right").groups == {GROUP}
    directory.entries[f"uid=alice,ou=more,{PEOPLE}"] = {"uid": [b"alice"]}
    assert refusal(asked) is RefusalReason.AMBIGUOUS


def test_signs_in_names_never_change_a_question(directory: FakeDirectory, certificates: Certificates) -> None:
    strange = f"cn=Jane (QA)*\\, tests,{PEOPLE}"
    directory.entries[strange] = {"uid": [b"jane"]}
    directory.passwords[strange] = "right"
    directory.members[GROUP] = (strange,)
    asked = ldap(directory, certificates, entry=EntryUnder(PEOPLE, "(uid={login})"))
    assert asked.vouch("jane", "right").groups == {GROUP}
    with pytest.raises(NotVouched):
        asked.groups_of("x)(uid=*")
    assert b"x)(uid=*" in directory.filters[-1]  # one value of one comparison


def test_whatever_fails_lets_nobody_in(directory: FakeDirectory, certificates: Certificates) -> None:
    asked = ldap(directory, certificates)
    directory.search_code = 50
    assert refusal(asked) is RefusalReason.UNREACHABLE
    directory.search_code, directory.passwords[SERVICE] = 0, "another"
    assert refusal(asked) is RefusalReason.UNREACHABLE
    directory.is_mute = True
    assert refusal(replace(asked, settings=replace(asked.settings, timeout_s=0.5))) is RefusalReason.UNREACHABLE
    with pytest.raises(Unreachable):
        replace(asked, settings=replace(asked.settings, port=1)).groups_of("alice")


def test_a_certificate_of_another_authority_or_host_is_refused(
    directory: FakeDirectory, certificates: Certificates, tmp_path: Path
) -> None:
    asked = ldap(directory, certificates)
    strangers = ssl.create_default_context(cafile=make_certificates(tmp_path).authority)
    assert refusal(replace(asked, context=strangers)) is RefusalReason.UNREACHABLE
    assert refusal(replace(asked, settings=replace(asked.settings, host="127.0.0.2"))) is RefusalReason.UNREACHABLE
    assert directory.names == []


def test_an_answer_that_is_none_lets_nobody_in(
    directory: FakeDirectory, certificates: Certificates, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tests.unit.identity.directory._entry", lambda *_: (b"\xff\xff\xff",))
    assert refusal(ldap(directory, certificates)) is RefusalReason.UNREACHABLE


@pytest.mark.parametrize("security", LdapSecurity)
def test_a_directory_that_answers_byte_by_byte_is_left(security: LdapSecurity, certificates: Certificates) -> None:
    with directory_of(certificates, is_encrypted=security is LdapSecurity.LDAPS) as slow:
        slow.trickles = True
        assert refusal(ldap(filled(slow), certificates, security=security, timeout_s=0.3)) is RefusalReason.UNREACHABLE
    assert slow.was_left
    assert slow.names == []


@pytest.mark.parametrize("password", ["\u00ad", "\u200b\ufeff", "\0", "right\0", " ", "\u00a0"])
def test_what_looks_like_a_password_is_never_an_anonymous_bind(
    password: str, directory: FakeDirectory, certificates: Certificates
) -> None:
    """Signs that stand for nothing (RFC 4013, section 2.1) would leave an empty one, which a directory takes."""
    directory.passwords[ALICE] = ""
    with pytest.raises(NotVouched):
        ldap(directory, certificates).vouch("alice", password)
