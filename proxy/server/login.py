"""Who is it, and may they in?

Logins of a users file show their password by SCRAM. Whoever is none of them shows a password to a directory, or the
token of an issuer, where the users file names one. A stranger, a wrong password and a database that is not served look
the same from outside until the password has been shown to be right.
"""

from __future__ import annotations

import asyncio
import math
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from ipaddress import ip_address
from typing import NoReturn

from proxy.errors import (
    AuthenticationFailed,
    ConfigError,
    NotEncrypted,
    ProtocolViolation,
    TokenRefused,
    UnknownDatabase,
)
from proxy.identity.passes import Pass
from proxy.identity.refusals import NotVouched, RefusalReason
from proxy.policy.model import Guest, Login
from proxy.policy.outside.logins import NoSuchName, Vouched, login_name
from proxy.server.datasets import (
    Datasets,
    DirectoryVouches,
    IssuerVouches,
    NobodyVouches,
    Outsiders,
    ServedDataset,
    ServerOptions,
)
from proxy.server.greeting import Greeted
from proxy.wire import bearer
from proxy.wire.plain_password import ASK_FOR_PASSWORD, parse_password
from proxy.wire.scram import ITERATIONS, NONCE_BYTES, Exchange, Verifier, mock_verifier, parse_verifier
from proxy.wire.startup import negotiation

_HEADER = struct.Struct("!BI")
_PASSWORD = ord("p")
_MAX_PASSWORD_BYTES = 8192
#: Failures of logins from outside are told at whole seconds after the password came, whoever needed how long.
GRID_S = 1.0


@dataclass(frozen=True, slots=True)
class ByScram:
    """By a verifier. login: whose it is, or "" for one that no password fits."""

    verifier: Verifier = field(repr=False)
    login: str

    @property
    def method(self) -> str:
        """As the log has it."""
        return "scram"


@dataclass(frozen=True, slots=True)
class ByPassword:
    """By a password that a directory looks at."""

    directory: DirectoryVouches

    @property
    def method(self) -> str:
        """As the log has it."""
        return "ldap"


@dataclass(frozen=True, slots=True)
class ByToken:
    """By a token of an issuer."""

    issuer: IssuerVouches

    @property
    def method(self) -> str:
        """As the log has it."""
        return "oauth"


Way = ByScram | ByPassword | ByToken


@dataclass(frozen=True, slots=True)
class Admitted:
    """A client that has shown who it is. until_s: when its session ends at the latest, by the loop's clock."""

    dataset: ServedDataset
    login: Login | Guest
    database: str
    until_s: float = math.inf


def way_of(greeted: Greeted, datasets: Datasets, options: ServerOptions) -> Way:
    """How a client has to show who it is.

    Claim (docs/claims/logins-from-outside.md): it depends on the names that the client gave, on which names the users
    file has and on `options.mock_secret`. Where nobody vouches for others it does not even tell whether the file has
    the name.
    """
    user, database = greeted.startup.user, greeted.startup.database
    for shown in _passes(datasets, database, user):
        return ByScram(shown.verifier, shown.login)
    for login in _candidates(datasets, database, user):
        try:
            return ByScram(parse_verifier(login.scram), login.name)
        except ConfigError:
            break
    match _outsiders(datasets, database):
        case DirectoryVouches() as directory:
            return ByPassword(directory)
        case IssuerVouches() as issuer:
            return ByToken(issuer)
        case NobodyVouches():
            return ByScram(mock_verifier(user, options.mock_secret, _usual_iterations(datasets)), "")


async def log_in(greeted: Greeted, way: Way, datasets: Datasets, random_bytes: Callable[[int], bytes]) -> Admitted:
    """Have the client show who it is. Raises HushError, which the client has not been told, and ConnectionResetError.

    Claim (docs/claims/logins-from-outside.md): for one `way`, what the client sees before it has shown a right password
    or token depends on the names it gave, not on whether there is such a login; all failures then give the same error,
    those of logins from outside at the same times.
    """
    user, database = greeted.startup.user, greeted.startup.database
    if not user:
        raise AuthenticationFailed("no user name was given")
    greeted.link.write(negotiation(greeted.startup))
    match way:
        case ByScram():
            exchange = Exchange(
                way.verifier, is_known=bool(way.login), binding=greeted.binding, nonce=random_bytes(NONCE_BYTES)
            )
            await _exchange(greeted, exchange)
            if database not in datasets:
                raise _no_database(database)
            login = datasets[database].users.find(way.login)
            if login is None:
                raise AuthenticationFailed(f'the login "{way.login}" was removed')
            return Admitted(datasets[database], login, database)
        case ByPassword():
            return await _by_password(greeted, way.directory, datasets)
        case ByToken():
            return await _by_token(greeted, way.issuer, datasets)


# --- verifiers ------------------------------------------------------------------------------------------------


async def _exchange(greeted: Greeted, exchange: Exchange) -> None:
    link = greeted.link
    link.write(exchange.offer())
    challenge, message = exchange.first(await _read_password(greeted))
    link.write(message)
    try:
        link.write(exchange.final(challenge, await _read_password(greeted)))
    except AuthenticationFailed:
        raise _wrong_password(greeted, "wrong_password_or_unknown") from None


def _wrong_password(greeted: Greeted, reason: str) -> AuthenticationFailed:
    return AuthenticationFailed(f'password authentication failed for user "{greeted.startup.user}"', reason=reason)


def _no_database(database: str) -> UnknownDatabase:
    return UnknownDatabase(f'database "{database}" does not exist')


async def _read_password(greeted: Greeted, most_bytes: int = _MAX_PASSWORD_BYTES) -> bytes:
    kind, length = _HEADER.unpack(await greeted.link.read(_HEADER.size))
    if kind != _PASSWORD or not 4 <= length <= most_bytes:
        raise ProtocolViolation("expected password response")
    return await greeted.link.read(length - 4)


def _candidates(datasets: Datasets, database: str, user: str) -> Iterator[Login]:
    """Logins that may be meant: the database's; for a database that is not served, any of that name."""
    for dataset in _meant(datasets, database):
        if user in dataset.users.logins:
            yield dataset.users.logins[user]


def _passes(datasets: Datasets, database: str, user: str) -> Iterator[Pass]:
    if database in datasets and user in datasets[database].passes:
        yield datasets[database].passes[user]


def _meant(datasets: Datasets, database: str) -> list[ServedDataset]:
    return [datasets[database]] if database in datasets else list(datasets.values())


def _outsiders(datasets: Datasets, database: str) -> Outsiders:
    """Who vouches for others; for a database that is not served, as for the first one for which anybody does.

    Claim (docs/claims/logins-from-outside.md): a password for a database that is not served, and so may be of several
    directories, is shown to none of them, and is asked for without TLS only where each of them would.
    """
    found = [d.outsiders for d in _meant(datasets, database) if not isinstance(d.outsiders, NobodyVouches)]
    directories = [one for one in found if isinstance(one, DirectoryVouches)]
    if len(directories) > 1 and isinstance(found[0], DirectoryVouches):
        return DirectoryVouches(vouch=_of_several, clear_on_loopback=all(d.clear_on_loopback for d in directories))
    return found[0] if found else NobodyVouches()


async def _of_several(*_shown: str) -> NoReturn:
    raise NotVouched(RefusalReason.UNKNOWN, "no database is meant, so it is nobody's password")


def _usual_iterations(datasets: Datasets) -> int:
    for dataset in datasets.values():
        for login in dataset.users.logins.values():
            try:
                return parse_verifier(login.scram).iterations
            except ConfigError:
                continue
    return ITERATIONS


# --- from outside ---------------------------------------------------------------------------------------------


async def _by_password(greeted: Greeted, directory: DirectoryVouches, datasets: Datasets) -> Admitted:
    """Claim (docs/claims/logins-from-outside.md): a password is asked for under TLS, or where it stays on this machine
    and the users file allows that."""
    if not greeted.is_encrypted and not (directory.clear_on_loopback and _is_from_here(greeted)):
        raise _not_encrypted("passwords of the directory")
    greeted.link.write(ASK_FOR_PASSWORD)
    password = parse_password(await _read_password(greeted))
    began_s = asyncio.get_running_loop().time()
    try:
        if not password:
            raise NotVouched(RefusalReason.EMPTY_PASSWORD, "the password is empty")
        name = _name(greeted, datasets)
        return await _welcomed(await directory.vouch(name, password), greeted, datasets)
    except NotVouched as refused:
        await _until_grid(began_s)
        raise _wrong_password(greeted, refused.reason.value) from refused


async def _by_token(greeted: Greeted, issuer: IssuerVouches, datasets: Datasets) -> Admitted:
    """Claim (docs/claims/logins-from-outside.md): a token is asked for under TLS only."""
    if not greeted.is_encrypted:
        raise _not_encrypted("tokens")
    link = greeted.link
    link.write(bearer.OFFER)
    response = bearer.parse_initial(await _read_password(greeted, bearer.MAX_MESSAGE_BYTES))
    if isinstance(response, bearer.NoResponse):
        link.write(bearer.GO_ON)
        response = await _read_password(greeted, bearer.MAX_MESSAGE_BYTES)
    token = bearer.parse_token(response)
    began_s = asyncio.get_running_loop().time()
    try:
        if isinstance(token, bearer.NoToken):
            raise NotVouched(RefusalReason.NO_TOKEN, "the client asks where tokens come from")
        name, vouched = _name(greeted, datasets), await issuer.vouch(token)
        if vouched.name != name:
            raise NotVouched(RefusalReason.NAME_OF_TOKEN, "the token is of another login")
        return await _welcomed(vouched, greeted, datasets)
    except NotVouched as refused:
        if refused.reason is not RefusalReason.NO_TOKEN:
            await _until_grid(began_s)
        link.write(bearer.refusal(issuer.discovery))
        if not bearer.is_end(await _read_password(greeted)):
            raise ProtocolViolation("malformed OAUTHBEARER message") from None
        words = f'OAuth bearer authentication failed for user "{greeted.startup.user}"'
        raise TokenRefused(words, reason=refused.reason.value) from refused


def _name(greeted: Greeted, datasets: Datasets) -> str:
    """The name of a login from outside that a client means, whatever its case. Raises NotVouched."""
    try:
        name = login_name(greeted.startup.user)
    except NoSuchName as error:
        raise NotVouched(RefusalReason.BAD_NAME, str(error)) from error
    if any(d.users.is_of_file(name) for d in _meant(datasets, greeted.startup.database)):
        raise NotVouched(RefusalReason.NAME_OF_FILE, "the users file has a login that differs in case alone")
    return name


async def _welcomed(vouched: Vouched, greeted: Greeted, datasets: Datasets) -> Admitted:
    """A login for somebody who is vouched for. Raises NotVouched, UnknownDatabase."""
    database, began_s = greeted.startup.database, asyncio.get_running_loop().time()
    if database not in datasets:
        raise _no_database(database)
    dataset = datasets[database]
    guest = await dataset.welcome(vouched)
    return Admitted(dataset, guest, database, began_s + vouched.life_s)


def _not_encrypted(what: str) -> NotEncrypted:
    return NotEncrypted(f"{what} are taken under TLS only", hint="Connect with sslmode=verify-full, or require.")


def _is_from_here(greeted: Greeted) -> bool:
    address = greeted.link.peer_host
    return bool(address) and ip_address(address).is_loopback


async def _until_grid(began_s: float) -> None:
    """Wait until a whole number of seconds has passed, and one at least."""
    waited_s = asyncio.get_running_loop().time() - began_s
    await asyncio.sleep((math.floor(waited_s / GRID_S) + 1) * GRID_S - waited_s)
