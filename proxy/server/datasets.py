"""What must the server know of each database that clients can connect to?

Values only, handed over by the composition root and replaced as a whole when a policy changes.
"""

from __future__ import annotations

import socket
import ssl
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from proxy.front.front import Lease
from proxy.identity.passes import Pass
from proxy.policy.model import Guest, Limits, Users
from proxy.policy.outside.logins import Vouched
from proxy.session.contract import Sessions


@dataclass(frozen=True, slots=True)
class NobodyVouches:
    """Whoever is no login of the users file is a stranger."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DirectoryVouches:
    """A directory knows others by their passwords. vouch: given a name as `login_name` makes it and a password.

    Raises NotVouched. clear_on_loopback: whether clients of this machine may send passwords without TLS.
    """

    vouch: Callable[[str, str], Awaitable[Vouched]]
    clear_on_loopback: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class IssuerVouches:
    """An issuer of tokens knows others. vouch: given a token. Raises NotVouched.

    discovery: what a client is sent that shows none, so that it finds the issuer.
    """

    vouch: Callable[[str], Awaitable[Vouched]]
    discovery: bytes


Outsiders = NobodyVouches | DirectoryVouches | IssuerVouches


async def _no_place(vouched: Vouched) -> Guest:
    raise AssertionError(f"nobody vouches, so {vouched.name} cannot be a guest")


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedDataset:
    """One database as clients see it.

    lease: gives a login its place on the front, e.g. `Front.lease`; called once for each session and closed with it,
    so that a replaced front lives as long as its sessions. Raises FrontFailed. guard: name of the relation that
    guards the front's private tables, as it stands in PostgreSQL's error message.
    outsiders: who vouches for whom the users file does not know. welcome: makes such a one a login; raises NotVouched.
    passes: of guests, by the name that is given with them.
    """

    users: Users
    limits: Limits
    sessions: Sessions
    lease: Callable[[str], Lease]
    guard: str
    outsiders: Outsiders = field(default_factory=NobodyVouches)
    welcome: Callable[[Vouched], Awaitable[Guest]] = _no_place
    passes: Mapping[str, Pass] = field(default_factory=lambda: MappingProxyType({}))


Datasets = Mapping[str, ServedDataset]


@dataclass(frozen=True, slots=True)
class TlsOffered:
    """Encryption as the server offers it, or demands it.

    binding: the certificate's tls-server-end-point data, may be empty.
    """

    context: ssl.SSLContext = field(repr=False)
    binding: bytes
    is_required: bool = False


@dataclass(frozen=True, slots=True)
class TlsDeclined:
    """Every SSLRequest is declined."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerOptions:
    """How the server listens.

    sockets: bound, see `proxy.server.sockets`; the server closes them. mock_secret: random bytes that stay the same for
    the life of an installation, for logins of users that do not exist. max_greeting: connections at most that have not
    logged in yet. check_every_s: how often time-outs are looked at.
    """

    sockets: tuple[socket.socket, ...]
    mock_secret: bytes = field(repr=False)
    tls: TlsOffered | TlsDeclined = field(default_factory=TlsDeclined)
    max_greeting: int = 100
    check_every_s: float = 0.25
    close_within_s: float = 5.0
