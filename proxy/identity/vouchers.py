"""Who can be asked about somebody, with which files, as a users file says?

Reads the files that it names. Libraries for directories and tokens are loaded where a users file needs them only.
"""

from __future__ import annotations

import ssl
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from proxy.config import check_private
from proxy.errors import ConfigError
from proxy.identity.refusals import NotVouched, RefusalReason
from proxy.policy.outside.logins import (
    KeysFrom,
    KeysIn,
    LdapLogins,
    NoOutside,
    Outside,
    ServiceAccount,
    TokenLogins,
    Vouched,
)

if TYPE_CHECKING:
    from proxy.identity.keys import Keys

_MOST_BYTES = 1_000_000


def _nobody(*_shown: str) -> NoReturn:
    raise NotVouched(RefusalReason.CHANGED, "the users file has changed meanwhile")


@dataclass(frozen=True, slots=True, kw_only=True)
class Voucher:
    """Whom to ask; blocking. by_password: given a login's name and a password. by_token: given a token.

    groups_of: given a name. All raise NotVouched. timeout_s: how long to wait for an answer.
    """

    by_password: Callable[[str, str], Vouched] = _nobody
    by_token: Callable[[str], Vouched] = _nobody
    groups_of: Callable[[str], frozenset[str]] = _nobody
    timeout_s: float = 1.0


def open_voucher(outside: Outside) -> Voucher:
    """Raises ConfigError for a file that is missing, open to others, or not what it should be."""
    match outside:
        case NoOutside():
            return Voucher()
        case LdapLogins():
            from proxy.identity.ldap import Ldap  # noqa: PLC0415

            ldap = Ldap(outside, _context(outside.ca_file), _password(outside))
            return Voucher(by_password=ldap.vouch, groups_of=ldap.groups_of, timeout_s=outside.timeout_s)
        case TokenLogins():
            from proxy.identity.tokens import Tokens  # noqa: PLC0415

            return Voucher(by_token=Tokens(outside, _keys(outside)).vouch, timeout_s=outside.timeout_s)


def _keys(outside: TokenLogins) -> Keys:
    from proxy.identity.keys import FileKeys, UrlKeys  # noqa: PLC0415

    match outside.keys:
        case KeysIn(path):
            return FileKeys(_text(Path(path), "key set"), path, outside.algorithms)
        case KeysFrom(url, ca_file):
            return UrlKeys(url, _context(ca_file), outside.timeout_s, outside.algorithms)


def _password(ldap: LdapLogins) -> str:
    if not isinstance(ldap.service, ServiceAccount):
        return ""
    path = Path(ldap.service.password_file)
    found = _text(path, "password file").rstrip("\r\n")
    check_private(path, "password file")
    if not found:
        raise ConfigError(f"password file {path} is empty")
    return found


def _context(ca_file: str) -> ssl.SSLContext:
    """Certificate and host name are checked, against the system's authorities or those of a file."""
    try:
        return ssl.create_default_context(cafile=ca_file or None)
    except (OSError, ssl.SSLError) as error:
        raise ConfigError(f"certificates in {ca_file} cannot be read: {error.strerror or error}") from error


def _text(path: Path, what: str) -> str:
    try:
        with path.open("rb") as file:
            content = file.read(_MOST_BYTES + 1)
    except OSError as error:
        raise ConfigError(f"{what} {path} cannot be read: {error.strerror}") from error
    if len(content) > _MOST_BYTES:
        raise ConfigError(f"{what} {path} is larger than {_MOST_BYTES} bytes")
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ConfigError(f"{what} {path} is not UTF-8 text, at byte {error.start}") from error
