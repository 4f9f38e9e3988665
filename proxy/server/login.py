"""Who is it, and may they in?

The SCRAM exchange over a connection. A stranger, a wrong password and a database that is not served look the same
from outside until the password has been shown to be right.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from proxy.errors import (
    AuthenticationFailed,
    ConfigError,
    ProtocolViolation,
    UnknownDatabase,
)
from proxy.policy.model import Login
from proxy.server.datasets import Datasets, ServedDataset, ServerOptions
from proxy.server.greeting import Greeted
from proxy.wire.scram import ITERATIONS, NONCE_BYTES, Exchange, Verifier, mock_verifier, parse_verifier
from proxy.wire.startup import negotiation

_HEADER = struct.Struct("!BI")
_PASSWORD = ord("p")
_MAX_PASSWORD_BYTES = 8192


@dataclass(frozen=True, slots=True)
class Admitted:
    """A client that has shown its password."""

    dataset: ServedDataset
    login: Login
    database: str


async def log_in(
    greeted: Greeted, datasets: Datasets, options: ServerOptions, random_bytes: Callable[[int], bytes]
) -> Admitted:
    """Run the exchange. Raises HushError, which the client has not been told, and ConnectionResetError.

    Claim: until the final message of the exchange, what the client sees depends on the names it gave and on
    `options.mock_secret`, not on whether there is such a login; a wrong password and a missing login then give
    the same error.
    """
    user, database = greeted.startup.user, greeted.startup.database
    if not user:
        raise AuthenticationFailed("no user name was given")
    greeted.link.write(negotiation(greeted.startup))
    found = [login for login in _candidates(datasets, database, user) if login.name == user]
    verifier, is_known = _verifier(found, datasets, user, options.mock_secret)
    await _exchange(
        greeted, Exchange(verifier, is_known=is_known, binding=greeted.binding, nonce=random_bytes(NONCE_BYTES))
    )
    if database not in datasets:
        raise UnknownDatabase(f'database "{database}" does not exist')
    return Admitted(datasets[database], found[0], database)


async def _exchange(greeted: Greeted, exchange: Exchange) -> None:
    link = greeted.link
    link.write(exchange.offer())
    challenge, message = exchange.first(await _read_password(greeted))
    link.write(message)
    try:
        link.write(exchange.final(challenge, await _read_password(greeted)))
    except AuthenticationFailed:
        raise AuthenticationFailed(f'password authentication failed for user "{greeted.startup.user}"') from None


async def _read_password(greeted: Greeted) -> bytes:
    kind, length = _HEADER.unpack(await greeted.link.read(_HEADER.size))
    if kind != _PASSWORD or not 4 <= length <= _MAX_PASSWORD_BYTES:
        raise ProtocolViolation("expected password response")
    return await greeted.link.read(length - 4)


def _candidates(datasets: Datasets, database: str, user: str) -> Iterator[Login]:
    """Logins that may be meant: the database's; for a database that is not served, any of that name."""
    meant = [datasets[database]] if database in datasets else datasets.values()
    for dataset in meant:
        if user in dataset.users.logins:
            yield dataset.users.logins[user]


def _verifier(found: list[Login], datasets: Datasets, user: str, secret: bytes) -> tuple[Verifier, bool]:
    """The login's verifier, or one that no password fits and that looks like the others."""
    for login in found[:1]:
        try:
            return parse_verifier(login.scram), True
        except ConfigError:
            break
    return mock_verifier(user, secret, _usual_iterations(datasets)), False


def _usual_iterations(datasets: Datasets) -> int:
    for dataset in datasets.values():
        for login in dataset.users.logins.values():
            try:
                return parse_verifier(login.scram).iterations
            except ConfigError:
                continue
    return ITERATIONS
