"""Does the client know the password?

The server's side of SCRAM-SHA-256 and SCRAM-SHA-256-PLUS (RFC 5802, RFC 7677) as PostgreSQL speaks it: libpq sends
an empty user name inside SCRAM, so the name of the start-up message counts. Draws no randomness: nonce and salt
are arguments.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from collections.abc import Mapping
from dataclasses import dataclass

from proxy.errors import AuthenticationFailed, ConfigError, ProtocolViolation
from proxy.wire.messages import BodyReader, build
from proxy.wire.saslprep import prepare_password

PLAIN = "SCRAM-SHA-256"
BOUND = "SCRAM-SHA-256-PLUS"
ITERATIONS = 4096
SALT_BYTES = 16
NONCE_BYTES = 18
_KEY_BYTES = 32
_MAX_MESSAGE_BYTES = 4096
_INT32_BYTES = 4


@dataclass(frozen=True, slots=True)
class Verifier:
    """What the server keeps instead of a password."""

    iterations: int
    salt: bytes
    stored_key: bytes
    server_key: bytes

    def text(self) -> str:
        """As in pg_authid: `SCRAM-SHA-256$iterations:salt$stored:server`."""
        salt, stored, server = (_base64(part) for part in (self.salt, self.stored_key, self.server_key))
        return f"{PLAIN}${self.iterations}:{salt}${stored}:{server}"


def make_verifier(password: str, *, salt: bytes, iterations: int = ITERATIONS) -> Verifier:
    """salt: SALT_BYTES random bytes. Takes some milliseconds on purpose."""
    salted = hashlib.pbkdf2_hmac("sha256", prepare_password(password), salt, iterations)
    client_key = _hmac(salted, b"Client Key")
    return Verifier(iterations, salt, hashlib.sha256(client_key).digest(), _hmac(salted, b"Server Key"))


def parse_verifier(text: str) -> Verifier:
    """Raises ConfigError; the message does not quote the text."""
    try:
        scheme, parameters, keys = text.split("$")
        iterations, _, salt = parameters.partition(":")
        stored, _, server = keys.partition(":")
        verifier = Verifier(
            int(iterations), *(base64.b64decode(part, validate=True) for part in (salt, stored, server))
        )
    except (ValueError, binascii.Error):
        raise ConfigError("a SCRAM verifier cannot be read") from None
    is_sound = scheme == PLAIN and verifier.iterations > 0 and verifier.salt != b""
    if not is_sound or {len(verifier.stored_key), len(verifier.server_key)} != {_KEY_BYTES}:
        raise ConfigError("a SCRAM verifier cannot be read")
    return verifier


def mock_verifier(user: str, secret: bytes, iterations: int = ITERATIONS) -> Verifier:
    """A verifier for a user that does not exist: the same salt each time, keys that no password gives.

    secret: random bytes, the same for the life of an installation and never shown.
    """
    salt = _hmac(secret, b"salt " + user.encode("utf-8"))[:SALT_BYTES]
    return Verifier(iterations, salt, _hmac(secret, b"stored"), _hmac(secret, b"server"))


@dataclass(frozen=True, slots=True)
class Challenge:
    """What the final message is checked against."""

    client_first_bare: str
    server_first: str
    nonce: str
    gs2_header: str
    is_bound: bool


class Exchange:
    """One login. `first` answers the client's first message, `final` its second.

    Claim: for a user without a verifier (`is_known` false) every message has the same form as for one with a
    verifier, and the end is the same AuthenticationFailed.
    """

    def __init__(self, verifier: Verifier, *, is_known: bool, binding: bytes, nonce: bytes) -> None:
        """binding: the tls-server-end-point data, empty when channel binding is not offered. nonce: random bytes."""
        self._verifier = verifier
        self._is_known = is_known
        self._binding = binding
        self._nonce = _base64(nonce)

    def offer(self) -> bytes:
        """The AuthenticationSASL message."""
        names = (BOUND, PLAIN) if self._binding else (PLAIN,)
        return _authentication(10, b"".join(name.encode("ascii") + b"\0" for name in names) + b"\0")

    def first(self, body: bytes) -> tuple[Challenge, bytes]:
        """Read SASLInitialResponse; the challenge and the message that carries it. Raises ProtocolViolation."""
        mechanism, text = _parse_initial(body)
        is_bound = mechanism == BOUND
        if mechanism not in (BOUND, PLAIN) or (is_bound and not self._binding):
            raise ProtocolViolation("client selected an invalid SASL authentication mechanism")
        flag, authorization, bare = _split_gs2(text)
        self._check_flag(flag, is_bound=is_bound)
        attributes = _attributes(bare)
        if authorization or "m" in attributes or list(attributes)[:2] != ["n", "r"] or not attributes["r"]:
            raise ProtocolViolation("malformed SCRAM message")
        nonce = attributes["r"] + self._nonce
        server_first = f"r={nonce},s={_base64(self._verifier.salt)},i={self._verifier.iterations}"
        challenge = Challenge(bare, server_first, nonce, text[: len(text) - len(bare)], is_bound)
        return challenge, _authentication(11, server_first.encode("utf-8"))

    def final(self, challenge: Challenge, body: bytes) -> bytes:
        """Read SASLResponse; the message that proves the server's own knowledge.

        Raises AuthenticationFailed (the caller words it) or ProtocolViolation.
        """
        text = _text(body)
        without_proof, separator, proof_text = text.rpartition(",p=")
        attributes = _attributes(without_proof)
        if not separator or list(attributes)[:2] != ["c", "r"]:
            raise ProtocolViolation("malformed SCRAM message")
        binding = challenge.gs2_header.encode("utf-8") + (self._binding if challenge.is_bound else b"")
        if attributes["c"] != _base64(binding):
            raise ProtocolViolation("SCRAM channel binding check failed")
        if attributes["r"] != challenge.nonce:
            raise ProtocolViolation("invalid SCRAM response")
        proof = _decode(proof_text)
        signed = ",".join((challenge.client_first_bare, challenge.server_first, without_proof)).encode("utf-8")
        if not self._is_proven(proof, signed):
            raise AuthenticationFailed("password authentication failed")
        return _authentication(12, b"v=" + _base64(_hmac(self._verifier.server_key, signed)).encode("ascii"))

    def _is_proven(self, proof: bytes, signed: bytes) -> bool:
        if len(proof) != _KEY_BYTES:
            raise ProtocolViolation("malformed SCRAM message")
        signature = _hmac(self._verifier.stored_key, signed)
        client_key = bytes(a ^ b for a, b in zip(proof, signature, strict=True))
        is_equal = hmac.compare_digest(hashlib.sha256(client_key).digest(), self._verifier.stored_key)
        return is_equal and self._is_known

    def _check_flag(self, flag: str, *, is_bound: bool) -> None:
        """The GS2 flag: p= binds, y says that the client could but believes that the server cannot, n cannot."""
        if flag == "p=tls-server-end-point" and is_bound:
            return
        if flag == "y" and self._binding:
            # somebody between the two has removed the offer (RFC 5802, section 6)
            raise ProtocolViolation("SCRAM channel binding negotiation error")
        if is_bound or flag not in ("n", "y"):
            raise ProtocolViolation("malformed SCRAM message")


AUTHENTICATION_OK = build(b"R", b"\0\0\0\0")


def _authentication(code: int, data: bytes) -> bytes:
    return build(b"R", code.to_bytes(_INT32_BYTES, "big") + data)


def _parse_initial(body: bytes) -> tuple[str, str]:
    reader = BodyReader(body)
    mechanism = _text(reader.string())
    length = reader.signed32()
    if length < 0:
        raise ProtocolViolation("malformed SCRAM message")
    text = _text(reader.take(length))
    reader.finish()
    return mechanism, text


def _split_gs2(text: str) -> tuple[str, str, str]:
    """Channel binding flag, authorization identity and the rest."""
    parts = text.split(",", 2)
    if len(parts) != 3:
        raise ProtocolViolation("malformed SCRAM message")
    return parts[0], parts[1], parts[2]


def _attributes(text: str) -> Mapping[str, str]:
    """`a=1,b=2` as a mapping in its order."""
    found: dict[str, str] = {}
    for part in text.split(","):
        name, equals, value = part.partition("=")
        if not equals or len(name) != 1 or name in found:
            raise ProtocolViolation("malformed SCRAM message")
        found[name] = value
    return found


def _text(raw: bytes) -> str:
    if len(raw) > _MAX_MESSAGE_BYTES:
        raise ProtocolViolation("malformed SCRAM message")
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        raise ProtocolViolation("malformed SCRAM message") from None


def _decode(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (ValueError, binascii.Error):
        raise ProtocolViolation("malformed SCRAM message") from None


def _base64(raw: bytes) -> str:
    return base64.b64encode(raw).decode("ascii")


def _hmac(key: bytes, data: bytes) -> bytes:
    return hmac.digest(key, data, "sha256")
