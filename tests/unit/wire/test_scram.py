"""Logins, against the RFC's own example and a client written from it."""

from __future__ import annotations

import base64
import hashlib
import hmac
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.errors import AuthenticationFailed, ConfigError, ProtocolViolation
from proxy.wire.saslprep import prepare_password
from proxy.wire.scram import Exchange, Verifier, make_verifier, mock_verifier, parse_verifier

SALT = base64.b64decode("W22ZaJ0SNY7soEsUEjb6gQ==")
VERIFIER = make_verifier("pencil", salt=SALT)
BINDING = b"certificate hash"


def initial(text: str, mechanism: bytes = b"SCRAM-SHA-256") -> bytes:
    return mechanism + b"\0" + struct.pack("!I", len(text.encode())) + text.encode()


def prove(password: str, bare: str, server_first: str, without_proof: str) -> str:
    fields = dict(part.split("=", 1) for part in server_first.split(","))
    salted = hashlib.pbkdf2_hmac("sha256", prepare_password(password), base64.b64decode(fields["s"]), int(fields["i"]))
    key = hmac.digest(salted, b"Client Key", "sha256")
    signed = f"{bare},{server_first},{without_proof}".encode()
    signature = hmac.digest(hashlib.sha256(key).digest(), signed, "sha256")
    return base64.b64encode(bytes(a ^ b for a, b in zip(key, signature, strict=True))).decode()


def log_in(
    exchange: Exchange, password: str, *, header: str = "n,,", binding: bytes = b"", mechanism: bytes = b"SCRAM-SHA-256"
) -> bytes:
    bare = "n=,r=client"
    challenge, message = exchange.first(initial(header + bare, mechanism))
    server_first = message[9:].decode()
    nonce = server_first.split(",")[0][2:]
    without_proof = f"c={base64.b64encode(header.encode() + binding).decode()},r={nonce}"
    proof = prove(password, bare, server_first, without_proof)
    return exchange.final(challenge, f"{without_proof},p={proof}".encode())


def exchange(verifier: Verifier = VERIFIER, *, is_known: bool = True, binding: bytes = b"") -> Exchange:
    return Exchange(verifier, is_known=is_known, binding=binding, nonce=b"n" * 18)


def test_the_example_of_rfc_7677() -> None:
    server = exchange()
    bare = "n=user,r=rOprNGfwEbeRWgbNEkqO"
    _, message = server.first(initial("n,," + bare))
    assert message[9:].decode().endswith(",s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096")
    first = "r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
    without_proof = "c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
    assert prove("pencil", bare, first, without_proof) == "dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
    signed = f"{bare},{first},{without_proof}".encode()
    signature = hmac.digest(VERIFIER.server_key, signed, "sha256")
    assert base64.b64encode(signature).decode() == "6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="


def test_a_right_password_is_proven_to_both_ends() -> None:
    final = log_in(exchange(), "pencil")
    assert final[:1] == b"R"
    assert final[9:].startswith(b"v=")


def test_channel_binding_covers_the_certificate() -> None:
    header, plus = "p=tls-server-end-point,,", b"SCRAM-SHA-256-PLUS"
    assert log_in(exchange(binding=BINDING), "pencil", header=header, binding=BINDING, mechanism=plus)
    with pytest.raises(ProtocolViolation, match="channel binding check"):
        log_in(exchange(binding=BINDING), "pencil", header=header, binding=b"another", mechanism=plus)


def test_offers() -> None:
    assert exchange().offer()[9:] == b"SCRAM-SHA-256\0\0"
    assert exchange(binding=BINDING).offer()[9:] == b"SCRAM-SHA-256-PLUS\0SCRAM-SHA-256\0\0"


def test_a_removed_offer_of_binding_is_noticed() -> None:
    with pytest.raises(ProtocolViolation, match="negotiation"):
        log_in(exchange(binding=BINDING), "pencil", header="y,,")
    assert log_in(exchange(), "pencil", header="y,,")
    assert log_in(exchange(binding=BINDING), "pencil", header="n,,")


def test_wrong_password_and_unknown_user_fail_alike() -> None:
    unknown = mock_verifier("a", b"s")
    for server, password in (
        (exchange(), "pen"),
        (exchange(is_known=False), "pencil"),
        (exchange(unknown, is_known=False), "pencil"),
    ):
        with pytest.raises(AuthenticationFailed, match=r"^password authentication failed$"):
            log_in(server, password)


def test_a_mock_verifier_is_stable_and_looks_like_a_real_one() -> None:
    one, again, other = mock_verifier("a", b"secret"), mock_verifier("a", b"secret"), mock_verifier("b", b"secret")
    assert one == again
    assert one.salt != other.salt != mock_verifier("b", b"another").salt
    assert [len(p) for p in (one.salt, one.stored_key, one.server_key)] == [16, 32, 32]


FIRSTS = [
    initial("n,,n=,r=x", b"SCRAM-SHA-1"),
    initial("p=tls-server-end-point,,n=,r=x", b"SCRAM-SHA-256-PLUS"),
    initial("n,,n=,r="),
    initial("n,,r=x,n="),
    initial("n,,m=1,n=,r=x"),
    initial("n,,n=,r=x,m=1"),
    initial("n,a=me,n=,r=x"),
    initial("n,,n=,n=,r=x"),
    initial("n,,nn=,r=x"),
    initial("n,,n"),
    initial("n"),
    initial("q,,n=,r=x"),
    initial("p=tls-unique,,n=,r=x"),
    initial("n,,n=,r=x") + b"more",
    b"SCRAM-SHA-256\0\xff\xff\xff\xff",
    b"SCRAM-SHA-256\0\0\0\0\2\xff\xff",
    initial("n,,n=,r=" + "x" * 5000),
    b"",
]


@pytest.mark.parametrize("first", FIRSTS)
def test_malformed_first_messages(first: bytes) -> None:
    with pytest.raises(ProtocolViolation):
        exchange().first(first)


def test_plus_needs_its_flag() -> None:
    with pytest.raises(ProtocolViolation, match="malformed"):
        exchange(binding=BINDING).first(initial("n,,n=,r=x", b"SCRAM-SHA-256-PLUS"))


@pytest.mark.parametrize(
    "final",
    [
        "c=biws,r={nonce}",
        "r={nonce},c=biws,p=x",
        "c=biws,r={nonce},p=!",
        "c=biws,r={nonce},p=eHg=",
        "c=biws,r=other,p=x",
        "c=eSws,r={nonce},p=x",
        "p=x",
        "\xff,p=x",
    ],
)
def test_malformed_final_messages(final: str) -> None:
    server = exchange()
    challenge, _ = server.first(initial("n,,n=,r=client"))
    with pytest.raises(ProtocolViolation):
        server.final(challenge, final.format(nonce=challenge.nonce).encode("latin-1"))


@given(st.binary(max_size=100))
def test_only_documented_errors_leave_an_exchange(raw: bytes) -> None:
    server = exchange()
    with pytest.raises((ProtocolViolation, AuthenticationFailed)):
        challenge, _ = server.first(raw)
    challenge, _ = server.first(initial("n,,n=,r=client"))
    with pytest.raises((ProtocolViolation, AuthenticationFailed)):
        server.final(challenge, raw)


def test_verifiers_are_written_as_postgres_does() -> None:
    text = VERIFIER.text()
    assert text.startswith("SCRAM-SHA-256$4096:W22ZaJ0SNY7soEsUEjb6gQ==$")
    assert parse_verifier(text) == VERIFIER
    assert make_verifier("pencil", salt=SALT, iterations=8192).iterations == 8192


@pytest.mark.parametrize(
    "text",
    [
        "",
        "md5abc",
        "a$b$c$d",
        "SCRAM-SHA-256$x:YQ==$YQ==:YQ==",
        "SCRAM-SHA-256$1:YQ==$YQ==:YQ==",
        "SCRAM-SHA-256$1:!$a:b",
        "SCRAM-SHA-1$4096:YQ==$" + "A" * 43 + "=:" + "A" * 43 + "=",
        "SCRAM-SHA-256$0:YQ==$" + "A" * 43 + "=:" + "A" * 43 + "=",
    ],
)
def test_other_verifiers_are_refused_without_being_quoted(text: str) -> None:
    with pytest.raises(ConfigError, match=r"^a SCRAM verifier cannot be read$"):
        parse_verifier(text)


@pytest.mark.parametrize(
    ("password", "prepared"),
    [
        ("pencil", "pencil"),
        ("I\u00adX", "IX"),  # RFC 4013, section 3
        ("\u00aa", "a"),
        ("\u2168", "IX"),
        ("a\u00a0b", "a b"),
        ("\u0007", "\u0007"),  # prohibited: used as it is
        ("\u0627\u0031", "\u0627\u0031"),
        ("\u0627a\u0628", "\u0627a\u0628"),
        ("\u0627\u0628", "\u0627\u0628"),
        ("\u00ad", "\u00ad"),
        ("", ""),
    ],
)
def test_passwords_are_prepared_by_saslprep(password: str, prepared: str) -> None:
    assert prepare_password(password) == prepared.encode()
