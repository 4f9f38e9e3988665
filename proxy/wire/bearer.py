"""Which token does a client show, and what is one told that shows none?

The server's side of the SASL mechanism OAUTHBEARER (RFC 7628, RFC 6750) as PostgreSQL 18 speaks it: no channel binding,
no authorization identity, and a failure that is first told in JSON, then as an error. Whether a token is good is not
known here.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

from proxy.errors import ProtocolViolation
from proxy.wire.messages import BodyReader, build

MECHANISM = "OAUTHBEARER"
#: As PostgreSQL's own limit of a token.
MAX_MESSAGE_BYTES = 65_535
OFFER = build(b"R", (10).to_bytes(4, "big") + MECHANISM.encode("ascii") + b"\0\0")
#: A client that gave no initial response is asked for it by an empty challenge.
GO_ON = build(b"R", (11).to_bytes(4, "big"))
_SEPARATOR = b"\1"
_KEY = re.compile(rb"[A-Za-z]+")
_VALUE = re.compile(rb"[\x21-\x7e \t\r\n]*")
_TOKEN = re.compile(rb"[Bb][Ee][Aa][Rr][Ee][Rr] +(?P<token>[A-Za-z0-9\-._~+/]+=*) *")


@dataclass(frozen=True, slots=True)
class NoToken:
    """The client asks where tokens come from."""


@dataclass(frozen=True, slots=True)
class NoResponse:
    """The client chose the mechanism and said no more."""


def parse_initial(body: bytes) -> bytes | NoResponse:
    """What SASLInitialResponse holds for the mechanism. Raises ProtocolViolation."""
    reader = BodyReader(body)
    if reader.string() != MECHANISM.encode("ascii"):
        raise ProtocolViolation("client selected an invalid SASL authentication mechanism")
    length = reader.signed32()
    if length < -1:
        raise _malformed()
    response = reader.take(max(length, 0))
    reader.finish()
    return NoResponse() if length == -1 else response


def parse_token(response: bytes) -> str | NoToken:
    """The token in a client's response. Raises ProtocolViolation for what is none."""
    flag, _, rest = response.partition(b",")
    if flag.startswith(b"p="):
        raise ProtocolViolation("OAuth authentication has no channel binding")
    if flag not in (b"n", b"y"):
        raise _malformed()
    identity, _, rest = rest.partition(b",")
    if identity:
        raise ProtocolViolation("OAuth authentication has no authorization identity")
    if not rest.startswith(_SEPARATOR) or not rest.endswith(_SEPARATOR * 2):
        raise _malformed()
    return _token(_pairs(rest[1:-2]))


def is_end(body: bytes) -> bool:
    """Whether it is the answer of a client that has read why it is refused."""
    return body == _SEPARATOR


def refusal(discovery: bytes) -> bytes:
    """The message that tells a client that its token is not good, and what `discovery_of` says."""
    return build(b"R", (11).to_bytes(4, "big") + discovery)


def discovery_of(issuer: str, scope: str) -> bytes:
    """Where a client gets a good token, as JSON (RFC 7628, section 3.2.2)."""
    place = f"{issuer.rstrip('/')}/.well-known/openid-configuration"
    return json.dumps({"status": "invalid_token", "openid-configuration": place, "scope": scope}).encode("utf-8")


def _pairs(raw: bytes) -> dict[bytes, bytes]:
    """Keys and values; keys that are not known are left alone, as the standard has it."""
    found: dict[bytes, bytes] = {}
    for pair in raw.split(_SEPARATOR):
        key, equals, value = pair.partition(b"=")
        if not equals or not _KEY.fullmatch(key) or not _VALUE.fullmatch(value) or key in found:
            raise _malformed()
        found[key] = value
    return found


def _token(pairs: dict[bytes, bytes]) -> str | NoToken:
    if b"auth" not in pairs:
        raise _malformed()
    value = pairs[b"auth"]
    if not value:
        return NoToken()
    found = _TOKEN.fullmatch(value)
    if found is None:
        raise ProtocolViolation("malformed OAuth bearer token")
    return found["token"].decode("ascii")


def _malformed() -> ProtocolViolation:
    return ProtocolViolation("malformed OAUTHBEARER message")
