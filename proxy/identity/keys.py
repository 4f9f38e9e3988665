"""With which public keys does an issuer sign its tokens?

A JSON Web Key Set (RFC 7517) of a file or an https address, of which keys for signatures of the accepted kinds are used
and nothing else: no key that both sides share, none that is too short, none without a use for its kind.
"""

from __future__ import annotations

import http.client
import json
import logging
import ssl
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol
from urllib.parse import urlsplit

import jwt
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePublicKey
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey

from proxy.errors import ConfigError
from proxy.identity.patience import ended_after
from proxy.identity.refusals import Unreachable

_log = logging.getLogger("hushql")
VerifyingKey = RSAPublicKey | EllipticCurvePublicKey | Ed25519PublicKey
_OF_RSA = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512")
_OF_CURVES = {"secp256r1": "ES256", "secp384r1": "ES384", "secp521r1": "ES512"}
_LEAST_RSA_BITS = 2048
_MOST_KEYS = 100
MOST_BYTES = 262_144
#: Keys are read again once they are so old, or when one is asked for that is not known.
FRESH_S = 3600.0
#: But never sooner than this after the last attempt.
LEAST_S = 30.0
#: An issuer that cannot be reached for so long has no keys any more.
STALE_S = 24 * 3600.0


@dataclass(frozen=True, slots=True)
class IssuerKey:
    """One key, with the signatures that are accepted of it."""

    key: VerifyingKey = field(repr=False)
    algorithms: tuple[str, ...]


KeySet = Mapping[str, IssuerKey]


class NoKeys(ValueError):
    """A key set without a key that may be used."""


class Keys(Protocol):
    """Where keys are looked up."""

    def find(self, name: str) -> IssuerKey | None:
        """The key of that name (`kid`), the only one there is for "". Raises Unreachable."""
        ...


def read_keys(text: str, accepted: tuple[str, ...]) -> KeySet:
    """The usable keys of a set, by their names. Raises ValueError, whose words quote nothing of the text."""
    try:
        held = json.loads(text)["keys"]
        listed = [one for one in held if isinstance(one, dict)]
    except (ValueError, TypeError, KeyError, RecursionError):
        raise ValueError("is no JSON Web Key Set") from None
    if len(listed) > _MOST_KEYS:
        raise ValueError(f"has more than {_MOST_KEYS} keys")
    found: dict[str, IssuerKey] = {}
    for one in listed:
        name, key = one.get("kid", ""), _key(one, accepted)
        if key is None or not isinstance(name, str):
            continue
        if name in found:
            raise ValueError("has two keys of one name")
        found[name] = key
    if not found:
        raise NoKeys(f"has no key for {', '.join(accepted)}")
    return found


def _key(one: Mapping[str, object], accepted: tuple[str, ...]) -> IssuerKey | None:
    """A key that may be used; None for any other."""
    if one.get("kty") not in ("RSA", "EC", "OKP") or one.get("use", "sig") != "sig":
        return None
    try:
        key = jwt.PyJWK(dict(one), algorithm=_any_of(one)).key
    except (jwt.PyJWTError, ValueError, TypeError, KeyError):
        return None
    match key:
        case RSAPublicKey():
            of_kind: tuple[str, ...] = _OF_RSA if key.key_size >= _LEAST_RSA_BITS else ()
        case EllipticCurvePublicKey():
            of_kind = (_OF_CURVES.get(key.curve.name, ""),)
        case Ed25519PublicKey():
            of_kind = ("EdDSA",)
        case _:
            return None
    stated = one.get("alg")
    usable = tuple(a for a in accepted if a in of_kind and stated in (None, a))
    return IssuerKey(key, usable) if usable else None


def _any_of(one: Mapping[str, object]) -> str | None:
    """An algorithm by which the library reads a key; it guesses those of curves."""
    return "RS256" if one.get("kty") == "RSA" else None


def found_in(keys: KeySet, name: str) -> IssuerKey | None:
    """A token that names no key means the only one."""
    if not name and len(keys) == 1:
        return next(iter(keys.values()))
    return keys.get(name) if name else None


class FileKeys:
    """Keys of a file, which a reload reads again."""

    def __init__(self, text: str, path: str, accepted: tuple[str, ...]) -> None:
        """Raises ConfigError."""
        try:
            self._keys = read_keys(text, accepted)
        except ValueError as error:
            raise ConfigError(f"key set {path} {error}") from error

    def find(self, name: str) -> IssuerKey | None:
        """See `Keys`."""
        return found_in(self._keys, name)


@dataclass(frozen=True, slots=True)
class _Read:
    """What was read last. at_s: when."""

    keys: KeySet
    at_s: float


class UrlKeys:
    """Keys of an https address, read when they are needed first.

    Claim (docs/claims/logins-from-outside.md): whatever tokens strangers send, the address is asked once in LEAST_S,
    for MOST_BYTES and timeout_s at most, and is never another one: no redirection is followed.
    """

    def __init__(
        self, url: str, context: ssl.SSLContext, timeout_s: float, accepted: tuple[str, ...],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:  # fmt: skip
        self._url = url
        self._context = context
        self._timeout_s = timeout_s
        self._accepted = accepted
        self._clock = clock
        self._read: list[_Read] = []  # none or one
        self._asked_s = -LEAST_S
        self._turn = threading.Lock()

    def find(self, name: str) -> IssuerKey | None:
        """See `Keys`. Blocks while the address is asked."""
        read = self._read[-1:]
        is_known = bool(read) and found_in(read[0].keys, name) is not None
        if not is_known or self._clock() - read[0].at_s > FRESH_S:
            read = self._renewed(0.0 if is_known else self._timeout_s)
        if not read or self._clock() - read[0].at_s > STALE_S:
            raise Unreachable("there are no keys of the issuer")
        return found_in(read[0].keys, name)

    def _renewed(self, wait_s: float) -> list[_Read]:
        """What there is after an attempt to read the keys, or after another's, which is waited for.

        Raises Unreachable if none helps.
        """
        if not self._turn.acquire(timeout=wait_s):
            return self._read[-1:]
        try:
            if self._clock() - self._asked_s >= LEAST_S:
                self._asked_s = self._clock()
                self._read = [_Read(self._found(self._fetched()), self._clock())]
        except (OSError, http.client.HTTPException, ValueError) as error:
            if not self._read:
                raise Unreachable(f"the issuer's keys cannot be read: {error}") from error
            _log.warning("the issuer's keys cannot be read again, those read before still count: %s", error)
        finally:
            self._turn.release()
        return self._read[-1:]

    def _found(self, text: str) -> KeySet:
        """The keys of a set; an issuer that had some and shows none any more has taken them back."""
        try:
            return read_keys(text, self._accepted)
        except NoKeys:
            if not self._read:
                raise
            return {}

    def _fetched(self) -> str:
        place, deadline_s = urlsplit(self._url), self._clock() + self._timeout_s
        connection = http.client.HTTPSConnection(
            place.hostname or "", place.port, timeout=self._timeout_s, context=self._context
        )
        try:
            query = f"?{place.query}" if place.query else ""
            connection.connect()
            reached = connection.sock
            with ended_after(self._timeout_s, lambda: reached):
                connection.request("GET", (place.path or "/") + query, headers={"Accept": "application/json"})
                answer = connection.getresponse()
                if answer.status != http.HTTPStatus.OK:
                    raise ValueError(f"the answer has status {answer.status}")
                found = answer.read(MOST_BYTES + 1)
            if len(found) > MOST_BYTES or self._clock() > deadline_s:
                raise ValueError("the answer is too long or too slow")
            return found.decode("utf-8")
        finally:
            connection.close()
