"""Who else may log in, beside the logins of a users file: whom a directory (LDAP) or an issuer of tokens (OAuth) knows?

Values only, and the rules of names: asking a directory or looking at a token is `proxy.identity`'s business.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Collection
from dataclasses import dataclass, field, replace

#: What stands in templates for the login's name, and for the distinguished name of its entry.
LOGIN, ENTRY = "{login}", "{dn}"
_NAME = re.compile(r"[a-z0-9_][a-z0-9_.@-]{0,62}")
_ESCAPED_IN_DN = ',+"\\<>;=#'
_ESCAPED_IN_FILTER = "\\*()\0"
GroupRoles = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class NoOutside:
    """Only the logins of the users file may come in."""


class LdapSecurity(enum.Enum):
    """How a connection to a directory is encrypted. There is no way without."""

    LDAPS = "ldaps"
    STARTTLS = "starttls"


@dataclass(frozen=True, slots=True)
class EntryAt:
    """The distinguished name of a login's entry, with `{login}` in it."""

    template: str

    def dn(self, login: str) -> str:
        """The name of the entry of a login; no login can add or change a part of it."""
        return self.template.replace(LOGIN, escaped_in_dn(login))


@dataclass(frozen=True, slots=True)
class EntryUnder:
    """The entry is searched for below `base`, with a filter in which `{login}` stands."""

    base: str
    filter: str


@dataclass(frozen=True, slots=True)
class ServiceAccount:
    """As whom entries and groups are looked up. password_file: a file with its password."""

    dn: str
    password_file: str


@dataclass(frozen=True, slots=True)
class Anonymous:
    """Entries and groups are looked up without a name; the directory must allow that."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LdapLogins:
    """A directory that knows logins and their passwords.

    attribute: of an entry, its one value is the login's name. condition: a filter that the entry must pass.
    members: a filter that a group passes of which the entry is a member, with `{dn}` and `{login}` in it.
    groups: with the role that each gives, the first that holds counts. ca_file: "" for the system's authorities.
    recheck_s: how often the groups of whoever is logged in are looked up again. timeout_s: of one login altogether.
    clear_on_loopback: whether clients of this machine may send passwords without TLS.
    """

    host: str
    port: int
    security: LdapSecurity
    ca_file: str
    entry: EntryAt | EntryUnder
    service: ServiceAccount | Anonymous
    attribute: str
    condition: str
    members: str
    groups: GroupRoles
    recheck_s: float
    timeout_s: float
    clear_on_loopback: bool


@dataclass(frozen=True, slots=True)
class KeysIn:
    """The issuer's public keys are in a file (JSON Web Key Set)."""

    path: str


@dataclass(frozen=True, slots=True)
class KeysFrom:
    """The issuer's public keys are read from an https address. ca_file: "" for the system's authorities."""

    url: str
    ca_file: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenLogins:
    """An issuer whose tokens (JSON Web Tokens) let people in.

    issuer, audience: what `iss` and `aud` must be. login_claim, groups_claim: where a token has name and groups.
    groups: with the role that each gives, the first that holds counts. scope: what clients are told to ask for.
    required_scope: words that the token's scope must have. leeway_s: by how much clocks may differ.
    max_session_s: how long a session lasts at most, whatever the token says. timeout_s: of reading the keys.
    """

    issuer: str
    audience: str
    keys: KeysIn | KeysFrom
    algorithms: tuple[str, ...]
    login_claim: str
    groups_claim: str
    groups: GroupRoles
    scope: str
    required_scope: tuple[str, ...]
    leeway_s: float
    max_session_s: float
    timeout_s: float


Outside = NoOutside | LdapLogins | TokenLogins


def same_place(one: Outside, other: Outside) -> bool:
    """Whether both speak of the same logins in the same place, so that who came by one is known to the other.

    Roles of groups, time-outs and scopes may differ.
    """
    match one, other:
        case LdapLogins(), LdapLogins():
            return _place_of_ldap(one) == _place_of_ldap(other)
        case TokenLogins(), TokenLogins():
            return _place_of_tokens(one) == _place_of_tokens(other)
        case _:
            return False


def _place_of_ldap(found: LdapLogins) -> LdapLogins:
    return replace(
        found, groups=(), recheck_s=0.0, timeout_s=0.0, clear_on_loopback=False, ca_file="", service=Anonymous()
    )


def _place_of_tokens(found: TokenLogins) -> TokenLogins:
    return replace(found, groups=(), scope="", leeway_s=0.0, max_session_s=0.0, timeout_s=0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Vouched:
    """What a directory or an issuer says of somebody. name: as `login_name` makes it.

    groups: those of `by.groups` that they are in. life_s: for how long a session may last, in seconds.
    """

    name: str
    groups: frozenset[str]
    by: LdapLogins | TokenLogins = field(repr=False)
    life_s: float = float("inf")


class NoSuchName(Exception):
    """Why a name cannot be that of a login from outside; for the log."""


def login_name(written: str) -> str:
    """The one name of a login from outside, however it is spelled: lower case.

    Claim (docs/claims/logins-from-outside.md): two spellings that differ in case give one name, so one account. Names
    have letters a-z, digits and _ . @ - only, at most 63, so nothing in them looks like something else; `+` is none of
    them, since mail for a+b reaches a. Raises NoSuchName.
    """
    name = written.lower() if written.isascii() else ""
    if not _NAME.fullmatch(name):
        raise NoSuchName("logins from outside have letters a-z, digits, _, ., @ and -, at most 63")
    return name


def role_of(groups: Collection[str], roles: GroupRoles) -> str:
    """The role that the first of the groups gives that somebody is in; "" if none does."""
    return next((role for group, role in roles if group in groups), "")


def escaped_in_dn(value: str) -> str:
    """A value as it stands in a distinguished name (RFC 4514, section 2.4)."""
    found = "".join(f"\\{c}" if c in _ESCAPED_IN_DN else "\\00" if c == "\0" else c for c in value)
    if found.endswith(" ") and value.endswith(" "):
        found = found[:-1] + "\\20"
    return "\\20" + found[1:] if found.startswith(" ") else found


def escaped_in_filter(value: str) -> str:
    """A value as it stands in a filter (RFC 4515, section 3)."""
    return "".join(f"\\{ord(c):02x}" if c in _ESCAPED_IN_FILTER else c for c in value)
