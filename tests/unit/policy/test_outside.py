"""What does a users file say of people who are not in it, and which names can they have?"""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from proxy.errors import PolicyError
from proxy.policy.model import EpsilonLimit, Guest, Login, NoLimit, Users
from proxy.policy.outside.document import LdapDocument, TokensDocument
from proxy.policy.outside.logins import (
    Anonymous,
    EntryAt,
    EntryUnder,
    KeysFrom,
    KeysIn,
    LdapLogins,
    LdapSecurity,
    NoOutside,
    NoSuchName,
    ServiceAccount,
    TokenLogins,
    escaped_in_dn,
    escaped_in_filter,
    login_name,
    role_of,
    same_place,
)
from proxy.policy.users import UNCHECKED, load_users, users_schema, with_login
from tests.unit.policy.case_files import CASES, Case, read_cases

LDAP = (CASES / "ldap.yaml").read_text(encoding="utf-8")
OAUTH = (CASES / "oauth.yaml").read_text(encoding="utf-8")
REFUSED = [*read_cases("ldap_refused.txt", LDAP), *read_cases("oauth_refused.txt", OAUTH)]


def users_of(text: str) -> Users:
    return load_users(text, filename="etc/users.yaml", tables=UNCHECKED)


@pytest.mark.parametrize("case", REFUSED, ids=[case.title for case in REFUSED])
def test_refused_at_its_line(case: Case) -> None:
    with pytest.raises(PolicyError) as caught:
        users_of(case.text())
    assert caught.value.message.split("\n") == [f"etc/users.yaml:{line}" for line in case.expected]


def test_too_many_groups_are_refused() -> None:
    many = "".join(f'    "cn=g{i}": boss\n' for i in range(100))
    with pytest.raises(PolicyError, match="at most 100 groups"):
        users_of(LDAP + many)


def test_a_directory() -> None:
    users = users_of(LDAP)
    found = users.outside
    assert isinstance(found, LdapLogins)
    assert (found.host, found.port, found.security) == ("ldap.example.org", 636, LdapSecurity.LDAPS)
    assert found.entry == EntryAt("uid={login},ou=people,dc=example,dc=org")
    assert (found.service, found.ca_file, found.recheck_s, found.clear_on_loopback) == (Anonymous(), "", 300.0, False)
    assert [role.name for role in users.roles_of_guests] == ["boss", "analyst"]
    assert users.roles["analyst"].budget == EpsilonLimit(2.0)


def test_a_directory_with_everything_written() -> None:
    changes = {
        "ldaps://ldap.example.org": "ldap://[::1]:3890/\n  starttls: true\n  ca_file: ca.pem",
        'dn: "uid={login},ou=people,dc=example,dc=org"': 'search: {base: "dc=org"}\n'
        '  service: {dn: "cn=hushql", password_file: /run/secret}',
    }
    text = LDAP
    for before, after in changes.items():
        text = text.replace(before, after)
    found = users_of(text).outside
    assert isinstance(found, LdapLogins)
    assert (found.host, found.port, found.security) == ("::1", 3890, LdapSecurity.STARTTLS)
    assert found.entry == EntryUnder("dc=org", "(uid={login})")
    assert (found.service, found.ca_file) == (ServiceAccount("cn=hushql", "/run/secret"), "etc/ca.pem")
    assert "389" in str(users_of(text.replace("[::1]:3890", "ldap.example.org")).outside)


def test_an_issuer() -> None:
    found = users_of(OAUTH).outside
    assert isinstance(found, TokenLogins)
    assert found.keys == KeysFrom("https://login.example.org/keys", "")
    assert (found.algorithms, found.login_claim, found.scope, found.required_scope) == (("RS256",), "sub", "openid", ())
    of_file = users_of(OAUTH.replace("https://login.example.org/keys", "keys.json")).outside
    assert isinstance(of_file, TokenLogins)
    assert of_file.keys == KeysIn("etc/keys.json")
    trusting = users_of(OAUTH.replace("  groups", "  ca_file: ca.pem\n  groups")).outside
    assert isinstance(trusting, TokenLogins)
    assert trusting.keys == KeysFrom("https://login.example.org/keys", "etc/ca.pem")


def test_edits_keep_who_else_may_log_in() -> None:
    scram = "SCRAM-SHA-256$4096:W22ZaJ0SNY7soEsUEjb6gQ==$" + ":".join(
        ("WG5d8oPm3OtcPnkdi4Uo7BkeZkBFzpcXkuLmtbsT4qY=", "wfPLwcE6nTWhTAmQ7tl2KeoiWGPlZqQxSrmfPwDl2dU=")
    )
    added = Login(name="ann", scram=scram, role="boss", budget=NoLimit())
    assert users_of(with_login(LDAP, added, filename="u.yaml")).outside == users_of(LDAP).outside


def test_a_role_with_a_fault_is_not_said_to_be_missing() -> None:
    with pytest.raises(PolicyError) as caught:
        users_of(LDAP.replace("boss: {admin: true}", "boss: 7"))
    assert "there is no role" not in caught.value.message


def test_the_schema_of_users_files() -> None:
    found = users_schema()
    assert found["title"] == "hushql users file"
    assert {"users", "roles", "ldap", "oauth"} == set(found["properties"])  # type: ignore[call-overload]


# --- names -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("spelling", ["alice", "Alice", "ALICE"])
def test_two_spellings_have_one_name(spelling: str) -> None:
    assert login_name(spelling) == "alice"


@pytest.mark.parametrize(
    "written", ["", "al ice", " alice", "alice ", "älice", "ａlice", "alice+x", "a/b", "pass:1", "-a", ".a", "a" * 64,
                "ſue", "Kelvin\u212a", "a\0", "a*", "a)(uid=*", "a,b"]
)  # fmt: skip
def test_names_that_no_login_from_outside_has(written: str) -> None:
    with pytest.raises(NoSuchName):
        login_name(written)


def test_names_of_the_file_are_its_own_in_any_case() -> None:
    ann = Login(name="Ann", scram="", role="a", budget=NoLimit())
    bob = Guest(name="bob", role="a", budget=NoLimit(), groups=frozenset())
    users = Users({"Ann": ann}, {}, guests={"bob": bob})
    assert [users.is_of_file(name) for name in ("Ann", "ann", "bob")] == [True, True, False]
    assert (users.find("Ann"), users.find("bob"), users.find("ann")) == (ann, bob, None)
    assert dict(users.everyone) == {"Ann": ann, "bob": bob}
    assert Users({"Ann": ann}, {}).everyone == {"Ann": ann}
    assert Users({}, {}).roles_of_guests == ()


def test_the_first_group_counts() -> None:
    roles = (("a", "one"), ("b", "two"))
    assert [role_of(groups, roles) for groups in ({"b", "a"}, {"b"}, {"c"})] == ["one", "two", ""]


def test_places_are_the_same_whatever_groups_give() -> None:
    ldap, tokens = users_of(LDAP).outside, users_of(OAUTH).outside
    assert isinstance(ldap, LdapLogins)
    assert isinstance(tokens, TokenLogins)
    assert same_place(ldap, replace(ldap, groups=(), recheck_s=1.0))
    assert not same_place(ldap, replace(ldap, attribute="mail"))
    assert same_place(tokens, replace(tokens, groups=(), leeway_s=1.0))
    assert not same_place(tokens, replace(tokens, login_claim="email"))
    assert not same_place(ldap, tokens)
    assert not same_place(NoOutside(), NoOutside())


def test_values_are_written_so_that_they_stay_one_value() -> None:
    assert escaped_in_dn(' a,b+"\\<>;=#\0 ') == '\\20a\\,b\\+\\"\\\\\\<\\>\\;\\=\\#\\00\\20'
    assert escaped_in_dn("alice") == "alice"
    assert escaped_in_dn("") == ""
    assert escaped_in_dn(" ") == "\\20"
    assert escaped_in_filter("a*(b)\\\0") == "a\\2a\\28b\\29\\5c\\00"
    assert EntryAt("uid={login},dc=org").dn("a,dc=b") == "uid=a\\,dc\\=b,dc=org"


def test_the_examples_of_the_guide_are_right() -> None:
    guide = (Path(__file__).parents[3] / "docs" / "guide" / "admin.md").read_text(encoding="utf-8")
    roles = "roles: {steward: {}, analyst: {}}\n"
    blocks = [b for b in re.findall(r"```yaml\n(.*?)```", guide, re.DOTALL) if "\nldap:" in b or "\noauth:" in b]
    ldap, tokens = (users_of(roles + block).outside for block in blocks)
    assert isinstance(ldap, LdapLogins)
    assert isinstance(tokens, TokenLogins)
    assert [role for _, role in ldap.groups] == [role for _, role in tokens.groups] == ["steward", "analyst"]
    for kind, document in (("ldap", LdapDocument), ("oauth", TokensDocument)):
        table = guide[guide.index(f"| key of `{kind}` |") :].split("\n\n")[0]
        told = set(re.findall(r"`(\w+)`", " ".join(line.split("|")[1] for line in table.splitlines())))
        assert told - {kind} == set(document.model_fields), kind
