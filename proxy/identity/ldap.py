"""Does a directory know somebody, by this password, and in which groups are they?

Blocking: every function is to be called on a thread that may wait. One connection for each question, under TLS whose
certificate and host name are checked; nothing is kept between questions, and no password outlives one.
"""

from __future__ import annotations

import math
import ssl
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

import ldap3
from ldap3.core.tls import Tls

from proxy.identity.patience import ended_after
from proxy.identity.refusals import NotVouched, RefusalReason, Unreachable
from proxy.policy.outside.logins import (
    ENTRY,
    LOGIN,
    EntryAt,
    LdapLogins,
    LdapSecurity,
    NoSuchName,
    ServiceAccount,
    Vouched,
    escaped_in_filter,
    login_name,
)

_SUCCESS, _NO_SUCH_OBJECT = 0, 32
#: What a bind answers that is refused for reasons of whoever binds: inappropriateAuthentication, invalidCredentials,
#: insufficientAccessRights, unwillingToPerform, noSuchObject, invalidDNSyntax, constraintViolation.
_REFUSED = frozenset({48, 49, 50, 53, 32, 34, 19})
_SIZE_LIMIT = 4
_NOTHING = "1.1"  # no attribute (RFC 4511, section 4.5.1.8)


class _CheckedTls(Tls):  # type: ignore[misc]  # the library has no types
    """TLS whose certificate and host name the standard library checks, with its defaults."""

    def __init__(self, context: ssl.SSLContext, host: str) -> None:
        super().__init__(validate=ssl.CERT_REQUIRED)
        self._context = context
        self._host = host

    def wrap_socket(self, connection: ldap3.Connection, do_handshake: bool = False) -> None:
        """Called by the library, once, where it would use a context of its own. Handshakes in any case."""
        connection.socket = self._context.wrap_socket(connection.socket, server_hostname=self._host)


@dataclass(frozen=True, slots=True)
class _Entry:
    """One entry of the directory. login: its own spelling. name: what we make of it."""

    dn: str
    login: str
    name: str


@dataclass(frozen=True, slots=True)
class Ldap:
    """A directory. context: trusts the right authorities. password: of the account that looks things up, or ""."""

    settings: LdapLogins
    context: ssl.SSLContext = field(repr=False)
    password: str = field(repr=False)

    def vouch(self, login: str, password: str) -> Vouched:
        """Who somebody is, once they have shown the password of their entry. login: as `login_name` makes it.

        Claim (docs/claims/logins-from-outside.md): the directory's answer to the password decides, and an empty one,
        for which a directory answers well whatever the name (RFC 4513, section 5.1.2), is not even asked about.
        Raises NotVouched.
        """
        if not password:
            raise NotVouched(RefusalReason.EMPTY_PASSWORD, "the password is empty")
        with self._lookups() as connection:
            entry = self._entry(connection, login)
            self._check_password(entry, password)
            return Vouched(name=entry.name, groups=self._groups(connection, entry), by=self.settings)

    def groups_of(self, login: str) -> frozenset[str]:
        """In which of the groups that give roles somebody is now. Raises NotVouched; Unreachable if nobody knows."""
        with self._lookups() as connection:
            return self._groups(connection, self._entry(connection, login))

    # --- one question -------------------------------------------------------------------------------------

    def _entry(self, connection: ldap3.Connection, login: str) -> _Entry:
        """The one entry of a login."""
        where, settings = self.settings.entry, self.settings
        if isinstance(where, EntryAt):
            base, scope, filter_ = where.dn(login), ldap3.BASE, settings.condition
        else:
            found = where.filter.replace(LOGIN, escaped_in_filter(login))
            base, scope, filter_ = where.base, ldap3.SUBTREE, f"(&{found}{settings.condition})"
        entries = self._search(connection, base, scope, filter_, settings.attribute)
        if not entries:
            raise NotVouched(RefusalReason.UNKNOWN, "the directory has no such entry that passes the condition")
        if len(entries) > 1:
            raise NotVouched(RefusalReason.AMBIGUOUS, "the directory has several such entries")
        return self._named(entries[0], login)

    def _named(self, found: Mapping[str, Any], login: str) -> _Entry:
        """The entry by its own name.

        Claim (docs/claims/logins-from-outside.md): a person has one account. The name is the entry's one value of the
        attribute, whatever else the directory takes for the same; an entry of several names is refused.
        """
        wanted = self.settings.attribute.casefold()
        held = found["raw_attributes"].items()
        values = [v for name, own in held if name.casefold() == wanted for v in own or ()]
        if len(values) != 1 or not found["dn"]:
            raise NotVouched(
                RefusalReason.AMBIGUOUS,
                f"the entry has {len(values)} values of {self.settings.attribute} instead of one",
            )
        try:
            own = values[0].decode("utf-8")
            name = login_name(own)
        except (UnicodeDecodeError, NoSuchName):
            raise NotVouched(
                RefusalReason.BAD_NAME, f"the entry's {self.settings.attribute} cannot be a login"
            ) from None
        if name != login:
            raise NotVouched(RefusalReason.AMBIGUOUS, f"the entry's {self.settings.attribute} is another name")
        return _Entry(found["dn"], own, name)

    def _groups(self, connection: ldap3.Connection, entry: _Entry) -> frozenset[str]:
        members = self.settings.members.replace(LOGIN, escaped_in_filter(entry.login))
        members = members.replace(ENTRY, escaped_in_filter(entry.dn))
        return frozenset(
            group for group, _ in self.settings.groups if self._search(connection, group, ldap3.BASE, members, _NOTHING)
        )

    def _check_password(self, entry: _Entry, password: str) -> None:
        with self._connected(entry.dn, password) as connection:
            code = self._bind(connection)
        if code in _REFUSED:
            raise NotVouched(RefusalReason.PASSWORD, f"the directory refuses the password (result {code})")
        if code != _SUCCESS:
            raise Unreachable(f"the directory cannot say whether the password is right (result {code})")

    def _search(
        self, connection: ldap3.Connection, base: str, scope: str, filter_: str, attribute: str
    ) -> Sequence[Any]:
        """Entries, at most a few; none where there is no such place."""
        try:
            connection.search(base, filter_, scope, attributes=[attribute], size_limit=_SIZE_LIMIT)
        except Exception as error:
            raise Unreachable(f"a search failed: {_kind(error)}") from error
        code = connection.result["result"]
        if code == _NO_SUCH_OBJECT:
            return ()
        if code != _SUCCESS:
            raise Unreachable(f"a search was refused (result {code})")
        return [one for one in connection.response or () if one["type"] == "searchResEntry"]

    @contextmanager
    def _lookups(self) -> Iterator[ldap3.Connection]:
        """A connection that may look entries up."""
        service = self.settings.service
        name, password = (service.dn, self.password) if isinstance(service, ServiceAccount) else (None, None)
        with self._connected(name, password) as connection:
            code = self._bind(connection)
            if code != _SUCCESS:
                raise Unreachable(f"the directory does not let the proxy look entries up (result {code})")
            yield connection

    @contextmanager
    def _connected(self, dn: str | None, password: str | None) -> Iterator[ldap3.Connection]:
        """A connection under TLS on which nobody has said yet who they are, for timeout_s. Raises Unreachable."""
        settings, is_ldaps = self.settings, self.settings.security is LdapSecurity.LDAPS
        server = ldap3.Server(
            settings.host, settings.port, use_ssl=is_ldaps, tls=_CheckedTls(self.context, settings.host),
            get_info=ldap3.NONE, connect_timeout=settings.timeout_s, allowed_referral_hosts=[],
        )  # fmt: skip
        connection = ldap3.Connection(
            server, user=dn, password=password, authentication=ldap3.ANONYMOUS if dn is None else ldap3.SIMPLE,
            auto_referrals=False, receive_timeout=math.ceil(settings.timeout_s), read_only=True, raise_exceptions=False,
        )  # fmt: skip
        with ended_after(settings.timeout_s, lambda: connection.socket):
            try:
                connection.open(read_server_info=False)
                if not is_ldaps:
                    connection.start_tls(read_server_info=False)
                if not isinstance(connection.socket, ssl.SSLSocket):  # the library would go on in the clear
                    raise OSError("it is not encrypted")
            except Exception as error:
                _hang_up(connection)
                raise Unreachable(f"no connection: {_kind(error)}") from error
            try:
                yield connection
            finally:
                _hang_up(connection)

    def _bind(self, connection: ldap3.Connection) -> int:
        """The code of the directory's answer."""
        try:
            connection.bind(read_server_info=False)
        except Exception as error:
            raise Unreachable(f"no answer to a bind: {_kind(error)}") from error
        return int(connection.result["result"])


def _hang_up(connection: ldap3.Connection) -> None:
    """Close a connection, whatever has become of it."""
    with suppress(Exception):
        connection.unbind()
    if connection.socket is not None:
        connection.socket.close()


def _kind(error: Exception) -> str:
    """What the operating system or TLS says, else the class alone: words of libraries may quote what was sent."""
    return str(error) if isinstance(error, OSError) else type(error.__cause__ or error).__name__
