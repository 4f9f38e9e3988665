"""What is said before a session begins, right and wrong: start-up packets and the messages of a login."""

from __future__ import annotations

import base64
import hashlib
import hmac
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from random import Random

from proxy.errors import HushError
from proxy.wire.scram import Exchange, Verifier, make_verifier
from proxy.wire.startup import Startup, front_packet, negotiation, packet_bytes, parse_packet
from tests.unit.wire.fuzz.speech import broken, spoiled

_PASSWORD = "pencil"
VERIFIER = make_verifier(_PASSWORD, salt=b"0123456789abcdef", iterations=1)
_NONCE = b"n" * 18
_CODES = (0x30000, 0x30000, 0x30000, 0x30002, 0x30009, 0x20000, 80877102, 80877103, 80877104, 0, 2**32 - 1)
_PARAMETERS = (
    (b"user", b"ann"),
    (b"database", b"shop"),
    (b"options", b"-c hush.epsilon=1 --TimeZone=UTC"),
    (b"options", b"-c x\\"),
    (b"application_name", b"\xff"),
    (b"_pq_.new", b"1"),
    (b"replication", b"database"),
    (b"client_encoding", b"latin1"),
    (b"client_encoding", b"nope"),
    (b"work_mem", b"1"),
    (b"options", b"-d"),
    (b"", b""),
)


def greet(made: Random) -> int:
    """Say a few first packets and one login; how many messages that were. Raises what no one may raise."""
    count = made.randrange(1, 4)
    for _ in range(count):
        _begin(made, _packet(made))
    _log_in(made)
    return count + 2


@contextmanager
def documented(*sqlstates: str) -> Iterator[None]:
    """These errors and no others may come out."""
    try:
        yield
    except HushError as error:
        if error.sqlstate not in sqlstates:
            raise


def _packet(made: Random) -> bytes:
    chosen = made.choices(_PARAMETERS, k=made.randrange(4))
    code = made.choice(_CODES)
    ends = b"\0" if code >> 16 == 3 else b""
    body = struct.pack("!I", code) + b"".join(name + b"\0" + value + b"\0" for name, value in chosen) + ends
    packet = struct.pack("!I", len(body) + 4) + body
    return packet if made.random() < 0.4 else packet[:4] + spoiled(made, b"?" + packet)[5:]


def _begin(made: Random, packet: bytes) -> None:
    with documented("08P01", "DP007"):
        size = packet_bytes((packet + b"\0\0\0\0")[:4])
        found = parse_packet((packet + b"\0" * size)[:size])
        if isinstance(found, Startup):
            assert negotiation(found)[:1] in (b"", b"v")
            assert front_packet(found, role="ann", database="shop")[4:6] == b"\0\3"


def _log_in(made: Random) -> None:
    """A right login gets in and no other does."""
    exchange = Exchange(VERIFIER, is_known=True, binding=b"", nonce=_NONCE)
    bare = "n=,r=" + made.choice(("rOprNGfwEbeRWgbNEkqO", "a", "\u00e4"))
    said = _as_said(made, b"SCRAM-SHA-256\0" + _counted(f"n,,{bare}".encode()))
    with documented("08P01", "28P01"):
        challenge, _ = exchange.first(said)
        right = _final(bare, challenge.server_first)
        final = _as_said(made, right)
        assert exchange.final(challenge, final).startswith(b"R")
        assert _read(final) == _read(right), "a login that was not right"


def _counted(text: bytes) -> bytes:
    return struct.pack("!I", len(text)) + text


def _final(bare: str, server_first: str) -> bytes:
    nonce = server_first.partition(",")[0]
    without_proof = f"c=biws,{nonce}"
    client_key = _client_key(VERIFIER)
    signed = f"{bare},{server_first},{without_proof}".encode()
    signature = hmac.digest(hashlib.sha256(client_key).digest(), signed, "sha256")
    proof = bytes(a ^ b for a, b in zip(client_key, signature, strict=True))
    return f"{without_proof},p={base64.b64encode(proof).decode()}".encode()


def _read(final: bytes) -> tuple[bytes, bytes]:
    """What is signed and the proof; base64 has several spellings of the same bytes."""
    signed, _, proof = final.rpartition(b",p=")
    return signed, base64.b64decode(proof)


def _client_key(verifier: Verifier) -> bytes:
    salted = hashlib.pbkdf2_hmac("sha256", _PASSWORD.encode(), verifier.salt, verifier.iterations)
    return hmac.digest(salted, b"Client Key", "sha256")


def _as_said(made: Random, body: bytes) -> bytes:
    if made.random() < 0.4:
        return body
    wrong = spoiled if made.random() < 0.8 else broken
    return wrong(made, b"p" + struct.pack("!I", len(body) + 4) + body)[5:]
