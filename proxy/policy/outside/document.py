"""What may be written of logins from outside in a users file, key by key, and which values come of it?"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Collection, Mapping
from typing import Literal

from pydantic import Field

from proxy.policy.document import Document, DurationText
from proxy.policy.outside.logins import (
    ENTRY,
    LOGIN,
    Anonymous,
    EntryAt,
    EntryUnder,
    GroupRoles,
    KeysFrom,
    KeysIn,
    LdapLogins,
    LdapSecurity,
    ServiceAccount,
    TokenLogins,
)
from proxy.policy.problems import Path, ProblemReport, did_you_mean, one_of
from proxy.policy.values import WrongValue, read_duration_s

_LDAPS_PORT, _LDAP_PORT = 636, 389
_MOST_GROUPS = 100
_ADDRESS = re.compile(
    r"(?P<scheme>[a-z]+)://(?P<host>[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(:(?P<port>[0-9]{1,5}))?"
    r"(?P<path>/[^\s?#@]*)?(?P<query>\?[^\s#]*)?"
)
AlgorithmName = Literal[
    "RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"
]  # fmt: skip


class LdapSearchDocument(Document):
    """Where and how the entry of a login is searched for."""

    base: str = Field(min_length=1, description="Below which entry.")
    filter: str = Field(default="(uid={login})", description="Which entry; {login} stands for the login.")


class LdapServiceDocument(Document):
    """As whom entries and groups are looked up."""

    dn: str = Field(min_length=1, description="Distinguished name of an account that may read them.")
    password_file: str = Field(
        min_length=1, description="File with its password, relative to this file, readable for its owner alone."
    )


class LdapDocument(Document):
    """Logins of a directory: its passwords let people in, its groups give them roles."""

    url: str = Field(description="ldaps://host[:port], or ldap://host[:port] with starttls: true.")
    starttls: bool = Field(default=False, description="Encrypt a connection to ldap:// before anything is said.")
    ca_file: str | None = Field(
        default=None, min_length=1, description="Certificates to trust (PEM), relative to this file; else the system's."
    )
    dn: str | None = Field(
        default=None, min_length=1, description="Name of a login's entry, as uid={login},ou=people,dc=example,dc=org."
    )
    search: LdapSearchDocument | None = Field(default=None, description="How to search for it instead.")
    service: LdapServiceDocument | None = Field(
        default=None, description="As whom entries and groups are looked up; without a name if left out."
    )
    attribute: str = Field(
        default="uid", pattern=r"^[A-Za-z][A-Za-z0-9-]*$", description="Attribute whose one value is the login's name."
    )
    condition: str = Field(default="(objectClass=*)", description="Filter that the entry must pass too.")
    members: str = Field(
        default="(|(member={dn})(uniqueMember={dn})(memberUid={login}))",
        description="Filter that a group passes of which the entry is a member; {dn} and {login} are the entry's.",
    )
    groups: dict[str, str] = Field(
        min_length=1, description="Role by distinguished name of a group; the first that holds counts."
    )
    recheck: DurationText = Field(default="5min", description="How often groups of open sessions are looked up again.")
    timeout: DurationText = Field(default="5s", description="Time that the directory has for one login.")
    clear_on_loopback: bool = Field(
        default=False, description="Take passwords without TLS from clients of this machine."
    )


class TokensDocument(Document):
    """Logins of an issuer of tokens, as clients of PostgreSQL 18 send them."""

    issuer: str = Field(description="https address of the issuer, as its tokens have it in `iss`.")
    audience: str = Field(min_length=1, description="What tokens for this server have in `aud`.")
    keys: str = Field(
        min_length=1, description="JSON Web Key Set of the issuer: an https address, or a file relative to this one."
    )
    ca_file: str | None = Field(
        default=None, min_length=1, description="Certificates to trust (PEM), relative to this file; else the system's."
    )
    algorithms: list[AlgorithmName] = Field(
        default=["RS256"], min_length=1, description="Signatures that are accepted."
    )
    login_claim: str = Field(default="sub", min_length=1, description="Claim whose text is the login's name.")
    groups_claim: str = Field(default="groups", min_length=1, description="Claim with the list of groups.")
    groups: dict[str, str] = Field(min_length=1, description="Role by group; the first that holds counts.")
    scope: str = Field(default="openid", min_length=1, description="What clients are told to ask the issuer for.")
    required_scope: str = Field(default="", description="Words that the token's scope must have.")
    leeway: DurationText = Field(default="30s", description="By how much the issuer's clock may differ.")
    max_session: DurationText = Field(
        default="12h", description="A session ends with its token, and after this time in any case."
    )
    timeout: DurationText = Field(default="5s", description="Time that reading the keys may take.")


class _Reading:
    """folder: of the users file. roles: those of the file, cut: faulty ones beside them."""

    def __init__(self, folder: str, roles: Collection[str], cut: Callable[[str], bool], report: ProblemReport) -> None:
        self.folder = folder
        self.roles = roles
        self.cut = cut
        self.report = report

    def file(self, name: str) -> str:
        return posixpath.join(self.folder, name)

    def seconds(self, raw: object, path: Path, least_s: float, most_s: float) -> float:
        try:
            found = read_duration_s(raw)
        except WrongValue as wrong:
            self.report.add(path, f"{wrong}, found {self.report.show(path, raw)}")
            return most_s
        if not least_s <= found <= most_s:
            self.report.add(
                path, f"must be from {least_s:g} to {most_s:g} seconds, found {self.report.show(path, raw)}"
            )
        return found

    def groups(self, groups: Mapping[str, str], path: Path) -> GroupRoles:
        if len(groups) > _MOST_GROUPS:
            self.report.add(path, f"at most {_MOST_GROUPS} groups")
        for group, role in groups.items():
            here = (*path, group)
            if not group.strip():
                self.report.add(here, "expected the name of a group")
            if role not in self.roles and not self.cut(role):
                quoted = self.report.show(here, role)
                known = f"{did_you_mean(role, self.roles)}; roles: {one_of(self.roles) or 'none'}"
                self.report.add(here, f"there is no role {quoted}{known}")
        return tuple(groups.items())


def read_ldap(
    document: LdapDocument, folder: str, roles: Collection[str], cut: Callable[[str], bool], report: ProblemReport
) -> LdapLogins:
    """The directory; faulty values are reported. roles, cut: of the file, and whether one was left out as faulty."""
    reading, top = _Reading(folder, roles, cut, report), ("ldap",)
    host, port, security = _directory(document, report)
    for name, filter_ in (("condition", document.condition), ("members", document.members)):
        if not (filter_.startswith("(") and filter_.endswith(")")):
            report.add((*top, name), "expected a filter in ( )")
    if ENTRY not in document.members and LOGIN not in document.members:
        report.add((*top, "members"), f"must have {ENTRY} or {LOGIN}, or everybody would be a member")
    if LOGIN in document.condition or ENTRY in document.condition:
        report.add((*top, "condition"), f"is the same for everybody; {LOGIN} stands in dn or search")
    service = document.service
    return LdapLogins(
        host=host,
        port=port,
        security=security,
        ca_file=reading.file(document.ca_file) if document.ca_file else "",
        entry=_entry(document, report),
        service=Anonymous() if service is None else ServiceAccount(service.dn, reading.file(service.password_file)),
        attribute=document.attribute,
        condition=document.condition,
        members=document.members,
        groups=reading.groups(document.groups, (*top, "groups")),
        recheck_s=reading.seconds(document.recheck, (*top, "recheck"), 1.0, 86400.0),
        timeout_s=reading.seconds(document.timeout, (*top, "timeout"), 0.1, 60.0),
        clear_on_loopback=document.clear_on_loopback,
    )


def _directory(document: LdapDocument, report: ProblemReport) -> tuple[str, int, LdapSecurity]:
    path: Path = ("ldap", "url")
    found = _ADDRESS.fullmatch(document.url)
    if found is None or found["scheme"] not in ("ldap", "ldaps") or found["path"] not in (None, "/") or found["query"]:
        report.add(path, "expected ldaps://host, or ldap://host with 'starttls: true'; a port may follow")
        return "", 0, LdapSecurity.LDAPS
    host = found["host"].strip("[]")
    if found["scheme"] == "ldaps":
        if document.starttls:
            report.add(("ldap", "starttls"), "ldaps:// is encrypted already; remove the line")
        return host, int(found["port"] or _LDAPS_PORT), LdapSecurity.LDAPS
    if not document.starttls:
        report.add(path, "passwords would be sent in the clear; use ldaps://, or 'starttls: true'")
    return host, int(found["port"] or _LDAP_PORT), LdapSecurity.STARTTLS


def _entry(document: LdapDocument, report: ProblemReport) -> EntryAt | EntryUnder:
    if (document.dn is None) == (document.search is None):
        report.add(("ldap",), "expected either dn or search")
    if document.search is not None:
        found, path = document.search.filter, ("ldap", "search", "filter")
        if LOGIN not in found:
            report.add(path, f"must have {LOGIN}")
        if not (found.startswith("(") and found.endswith(")")):
            report.add(path, "expected a filter in ( )")
        return EntryUnder(document.search.base, found)
    template = document.dn or ""
    if document.dn is not None and f"={LOGIN}," not in template:
        report.add(("ldap", "dn"), f"must have {LOGIN} as a whole value, as in uid={LOGIN},ou=people,dc=example,dc=org")
    return EntryAt(template)


def read_tokens(
    document: TokensDocument, folder: str, roles: Collection[str], cut: Callable[[str], bool], report: ProblemReport
) -> TokenLogins:
    """The issuer; faulty values are reported. roles, cut: as for `read_ldap`."""
    reading, top = _Reading(folder, roles, cut, report), ("oauth",)
    if not _is_https(document.issuer) or "?" in document.issuer:
        report.add((*top, "issuer"), "expected an https address, as https://login.example.org")
    if len(set(document.algorithms)) != len(document.algorithms):
        report.add((*top, "algorithms"), "names one twice")
    return TokenLogins(
        issuer=document.issuer,
        audience=document.audience,
        keys=_keys(document, reading),
        algorithms=tuple(document.algorithms),
        login_claim=document.login_claim,
        groups_claim=document.groups_claim,
        groups=reading.groups(document.groups, (*top, "groups")),
        scope=" ".join(document.scope.split()),
        required_scope=tuple(document.required_scope.split()),
        leeway_s=reading.seconds(document.leeway, (*top, "leeway"), 0.0, 300.0),
        max_session_s=reading.seconds(document.max_session, (*top, "max_session"), 1.0, 7 * 86400.0),
        timeout_s=reading.seconds(document.timeout, (*top, "timeout"), 0.1, 60.0),
    )


def _keys(document: TokensDocument, reading: _Reading) -> KeysIn | KeysFrom:
    if "://" in document.keys:
        if not _is_https(document.keys):
            reading.report.add(("oauth", "keys"), "expected an https address, or a file")
        return KeysFrom(document.keys, reading.file(document.ca_file) if document.ca_file else "")
    if document.ca_file is not None:
        reading.report.add(("oauth", "ca_file"), "keys are read from a file; remove the line")
    return KeysIn(reading.file(document.keys))


def _is_https(url: str) -> bool:
    found = _ADDRESS.fullmatch(url)
    return found is not None and found["scheme"] == "https"
