"""What does a client say before its session begins?

Reads the untyped first packets: a request for encryption, a request to cancel, or the start-up message with its
parameters and `options`. Source: PostgreSQL documentation, "Message Flow / Start-up".
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from proxy.errors import PolicyForbids, ProtocolViolation
from proxy.wire.messages import BodyReader, build
from proxy.wire.settings import may_set, may_set_to

MIN_PACKET_BYTES = 8
MAX_PACKET_BYTES = 10_000
#: First byte of a TLS handshake, for clients that do without SSLRequest.
TLS_HANDSHAKE = 0x16
ALPN = "postgresql"

_HEADER = struct.Struct("!II")
_LENGTH = struct.Struct("!I")
_SSL_REQUEST = (1234 << 16) | 5679
_GSS_REQUEST = (1234 << 16) | 5680
_CANCEL_REQUEST = (1234 << 16) | 5678
_MAJOR = 3
#: Newest minor version spoken: 3.2 differs from 3.0 in the length of cancel keys alone, which pass as they are.
NEWEST_MINOR = 2
_MAX_KEY_BYTES = 256

#: Parameters of the start-up message that are no settings.
_NOT_SETTINGS = frozenset({"user", "database", "options", "replication"})


@dataclass(frozen=True, slots=True)
class EncryptionRequest:
    """SSLRequest, or GSSENCRequest if not `is_tls`."""

    is_tls: bool


@dataclass(frozen=True, slots=True)
class CancelRequest:
    """key: process id and secret as BackendKeyData gave them."""

    key: bytes


@dataclass(frozen=True, slots=True)
class Startup:
    """minor: of protocol 3. parameters: in the client's order and spelling; protocol options (`_pq_.`) stand apart."""

    minor: int
    parameters: Mapping[str, str]
    protocol_options: tuple[str, ...]

    @property
    def user(self) -> str:
        return self.parameters.get("user", "")

    @property
    def database(self) -> str:
        return self.parameters.get("database", "") or self.user


def packet_bytes(header: bytes) -> int:
    """Whole length of the packet that begins with these four bytes. Raises ProtocolViolation."""
    length = int(_LENGTH.unpack(header)[0])
    if not MIN_PACKET_BYTES <= length <= MAX_PACKET_BYTES:
        raise ProtocolViolation("invalid length of startup packet")
    return length


def parse_packet(packet: bytes) -> EncryptionRequest | CancelRequest | Startup:
    """Read a whole packet. Raises ProtocolViolation."""
    code = int(_HEADER.unpack_from(packet)[1])
    body = packet[_HEADER.size :]
    if code in (_SSL_REQUEST, _GSS_REQUEST):
        if body:
            raise ProtocolViolation("invalid length of startup packet")
        return EncryptionRequest(code == _SSL_REQUEST)
    if code == _CANCEL_REQUEST:
        if not 8 <= len(body) <= 4 + _MAX_KEY_BYTES:
            raise ProtocolViolation("invalid length of cancel request packet")
        return CancelRequest(body)
    major, minor = code >> 16, code & 0xFFFF
    if major != _MAJOR:
        raise ProtocolViolation(
            f"unsupported frontend protocol {major}.{minor}: server supports 3.0 to 3.{NEWEST_MINOR}"
        )
    return _parse_startup(minor, body)


def _parse_startup(minor: int, body: bytes) -> Startup:
    reader = BodyReader(body)
    parameters: dict[str, str] = {}
    protocol_options: list[str] = []
    while name := reader.string():
        value = reader.string()
        try:
            key, text = name.decode("utf-8"), value.decode("utf-8")
        except UnicodeDecodeError:
            raise ProtocolViolation("startup parameters must be UTF-8") from None
        if key.startswith("_pq_."):
            protocol_options.append(key)
        else:
            parameters[key] = text
    reader.finish()
    return Startup(minor, parameters, tuple(protocol_options))


def negotiation(startup: Startup) -> bytes:
    """The NegotiateProtocolVersion that the client is owed, or nothing."""
    if startup.minor <= NEWEST_MINOR and not startup.protocol_options:
        return b""
    version = (_MAJOR << 16) | min(startup.minor, NEWEST_MINOR)
    options = b"".join(option.encode("utf-8") + b"\0" for option in startup.protocol_options)
    return build(b"v", _LENGTH.pack(version) + _LENGTH.pack(len(startup.protocol_options)) + options)


def front_packet(startup: Startup, *, role: str, database: str) -> bytes:
    """The start-up message for the front: the client's settings under the front's role and database.

    Raises PolicyForbids for settings that a client may not change and for the replication protocol.
    """
    if startup.parameters.get("replication", "false").lower() not in ("false", "off", "no", "0"):
        raise PolicyForbids("the replication protocol is not available")
    chosen = [("user", role), ("database", database)]
    plain = [(name, value) for name, value in startup.parameters.items() if name not in _NOT_SETTINGS]
    for name, value in (*_parse_options(startup.parameters.get("options", "")), *plain):
        if not may_set(name) or not may_set_to(name, value):
            raise PolicyForbids(f'the setting "{name}" cannot be changed here, or not to this value')
        chosen.append((name, value))
    body = b"".join(name.encode("utf-8") + b"\0" + value.encode("utf-8") + b"\0" for name, value in chosen)
    code = (_MAJOR << 16) | min(startup.minor, NEWEST_MINOR)
    return _HEADER.pack(len(body) + _HEADER.size + 1, code) + body + b"\0"


def cancel_packet(key: bytes) -> bytes:
    """A CancelRequest with the key of BackendKeyData."""
    return _HEADER.pack(len(key) + _HEADER.size, _CANCEL_REQUEST) + key


def _parse_options(options: str) -> Iterator[tuple[str, str]]:
    """The settings in `options`: `-c name=value`, `-cname=value`, `--name=value`. Raises PolicyForbids for others."""
    words = _split_options(options)
    at = 0
    while at < len(words):
        word = words[at]
        at += 1
        if word == "-c" and at < len(words):
            yield _assignment(words[at])
            at += 1
        elif (word.startswith("-c") and len(word) > 2) or (word.startswith("--") and len(word) > 2):
            yield _assignment(word[2:])
        else:
            raise PolicyForbids(f'the option "{word}" is not available', hint="Use -c name=value.")


def _assignment(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals:
        raise PolicyForbids(f'the option "{text}" lacks a value', hint="Use -c name=value.")
    return name.replace("-", "_"), value


def _split_options(options: str) -> Sequence[str]:
    """Words between white space; a backslash takes the next character as it is."""
    words: list[str] = []
    current, is_open, is_escaped = "", False, False
    for character in options:
        if is_escaped:
            current, is_escaped = current + character, False
        elif character == "\\":
            is_open = is_escaped = True
        elif character.isspace():
            words += [current] if is_open else []
            current, is_open = "", False
        else:
            current, is_open = current + character, True
    return [*words, current] if is_open else words
