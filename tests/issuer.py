"""An issuer of tokens, with keys of its own that it shows over https on this machine."""

from __future__ import annotations

import http.server
import json
import ssl
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, EllipticCurvePrivateKey
from cryptography.hazmat.primitives.asymmetric.ec import generate_private_key as make_ec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
from cryptography.hazmat.primitives.asymmetric.rsa import generate_private_key as make_rsa
from jwt.algorithms import ECAlgorithm, OKPAlgorithm, RSAAlgorithm

from tests.certificates import Certificates
from tests.unit.identity.directory import trickle

ISSUER, AUDIENCE = "https://login.example.org/realm", "hushql"
SigningKey = RSAPrivateKey | EllipticCurvePrivateKey | Ed25519PrivateKey


def rsa_key(bits: int = 2048) -> RSAPrivateKey:
    return make_rsa(public_exponent=65537, key_size=bits)


def ec_key() -> EllipticCurvePrivateKey:
    return make_ec(SECP256R1())


def public_jwk(key: SigningKey, kid: str, **more: object) -> dict[str, object]:
    """The public half as a JSON Web Key."""
    kind: Any = RSAAlgorithm if isinstance(key, RSAPrivateKey) else (
        ECAlgorithm if isinstance(key, EllipticCurvePrivateKey) else OKPAlgorithm
    )  # fmt: skip
    return {**kind.to_jwk(key.public_key(), as_dict=True), "kid": kid, **more}


def key_set(*keys: Mapping[str, object]) -> str:
    return json.dumps({"keys": keys})


def claims(**changes: object) -> dict[str, object]:
    """Those of a good token; a value of ... leaves one out."""
    usual: dict[str, object] = {
        "iss": ISSUER, "aud": AUDIENCE, "sub": "alice", "groups": ["analysts"], "exp": int(time.time()) + 600,
        "iat": int(time.time()), "scope": "openid hushql",
    }  # fmt: skip
    return {name: value for name, value in {**usual, **changes}.items() if value is not ...}


def token(key: SigningKey | str, kid: str = "one", algorithm: str = "RS256", **changes: object) -> str:
    headers = {"kid": kid} if kid else {}
    return jwt.encode(claims(**changes), key, algorithm=algorithm, headers=headers)


@dataclass(slots=True)
class Shown:
    """What an address shows, and how often it was asked.

    trickles: it shows a header that does not end. was_left: by whoever read that.
    """

    url: str
    body: bytes
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    asked: int = 0
    trickles: bool = False
    was_left: bool = False


@contextmanager
def shown_over_https(certificates: Certificates, body: str) -> Iterator[Shown]:
    """An https address on this machine that shows a key set."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            shown.asked += 1
            if shown.trickles:
                shown.was_left = trickle(self.connection, b"HTTP/1.1 200 OK\r\nX: ")
                return
            self.send_response(shown.status)
            for name, value in {"Content-Length": str(len(shown.body)), **shown.headers}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(shown.body)

        def log_message(self, format: str, *_: object) -> None:
            """Says nothing."""

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificates.cert, certificates.key)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    shown = Shown(f"https://localhost:{server.server_address[1]}/keys", body.encode())
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield shown
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
