"""What runs encrypted, and what must not come through an encryption."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
import subprocess
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
import uvloop

from proxy.errors import ConfigError
from proxy.policy.model import Limits
from proxy.server.tls import load_tls
from proxy.wire import messages
from proxy.wire.startup import cancel_packet
from tests.wire.front import TestFront
from tests.wire.raw import GSS_REQUEST, SSL_REQUEST, RawClient, kinds, startup_packet
from tests.wire.serving import MovableTime, Serving, start_serving


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Self-signed certificates of three kinds."""
    directory = tmp_path_factory.mktemp("tls")
    keys = {
        "rsa": ["-newkey", "rsa:2048", "-sha256"],
        "ec": ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-sha384"],
        "ed": ["-newkey", "ed25519"],
        "pss": ["-newkey", "rsa:2048", "-sha512", "-sigopt", "rsa_padding_mode:pss"],
    }
    for name, key in keys.items():
        files = ["-keyout", str(directory / f"{name}.key"), "-out", str(directory / f"{name}.crt")]
        names = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"]
        command = ["openssl", "req", "-x509", "-nodes", "-days", "2", *key, *files, *names]
        subprocess.run(command, check=True, capture_output=True)
    return directory


@pytest.fixture(scope="module", params=[asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"])
def secure(request: pytest.FixtureRequest, front: TestFront, certificates: Path) -> Iterator[Serving]:
    tls = load_tls(certificates / "rsa.crt", certificates / "rsa.key")
    serving = start_serving(front, tls=tls, new_loop=request.param)
    yield serving
    serving.stop()


def test_without_a_certificate_encryption_is_declined(serving: Serving) -> None:
    for request in (SSL_REQUEST, GSS_REQUEST):
        with RawClient(serving.port) as client:
            client.send(request)
            assert client.socket.recv(1) == b"N"
            assert kinds(client.log_in()) == "RKZ"
    with RawClient(serving.port) as client:
        client.send(b"\x16\3\1\0\5hello")
        assert client.is_closed()


def test_tls_with_channel_binding(secure: Serving) -> None:
    for arguments in (
        {"sslmode": "require", "channel_binding": "require"},
        {"sslmode": "require", "channel_binding": "disable"},
        {"sslmode": "require", "sslnegotiation": "direct", "channel_binding": "require"},
        {"sslmode": "prefer", "gssencmode": "prefer"},
    ):
        with secure.connect(**arguments) as connection:
            assert connection.pgconn.ssl_in_use
            assert connection.execute("select count(*) from users").fetchone() == (4,)
    with secure.connect(sslmode="disable") as connection:
        assert not connection.pgconn.ssl_in_use


@pytest.mark.parametrize("kind", ["ec", "ed", "pss"])
def test_channel_binding_with_other_certificates(kind: str, front: TestFront, certificates: Path) -> None:
    serving = start_serving(front, tls=load_tls(certificates / f"{kind}.crt", certificates / f"{kind}.key"))
    binding = "disable" if kind == "ed" else "require"
    try:
        with serving.connect(sslmode="require", channel_binding=binding) as connection:
            assert connection.execute("select 1").fetchone() == (1,)
    finally:
        serving.stop()


def test_tls_can_be_demanded(front: TestFront, certificates: Path) -> None:
    """Who goes on in the clear is told so before naming a password; libpq's `allow` then encrypts by itself."""
    serving = start_serving(front, tls=load_tls(certificates / "ec.crt", certificates / "ec.key", is_required=True))
    try:
        for is_asked in (False, True):
            with RawClient(serving.port) as client:
                if is_asked:
                    client.send(GSS_REQUEST)
                    assert client.socket.recv(1) == b"N"
                client.send(startup_packet({"user": "alice", "database": "shop"}))
                error = client.read()
                assert (error.sqlstate, error.fields["S"], error.fields["M"]) == (
                    "28000", "FATAL", "this server demands TLS")  # fmt: skip
                assert client.is_closed()
        with pytest.raises(psycopg.OperationalError, match="this server demands TLS"):
            serving.connect(sslmode="disable")
        assert serving.diary.opened == []
        for mode, negotiation in (("allow", "postgres"), ("require", "postgres"), ("require", "direct")):
            with serving.connect(sslmode=mode, sslnegotiation=negotiation) as connection:
                assert connection.pgconn.ssl_in_use
                assert connection.execute("select count(*) from users").fetchone() == (4,)
    finally:
        serving.stop()


def test_what_runs_encrypted_may_be_cancelled_in_the_clear(front: TestFront, certificates: Path) -> None:
    serving = start_serving(front, tls=load_tls(certificates / "ec.crt", certificates / "ec.key", is_required=True))
    try:
        with RawClient(serving.port) as client, RawClient(serving.port) as other:
            client.send(SSL_REQUEST)
            assert client.socket.recv(1) == b"S"
            client.socket = client_context().wrap_socket(client.socket)
            client.log_in()
            client.send(messages.query(b"select /* slow */ count(*) from users"))
            serving.wait_until_asleep()
            other.send(cancel_packet(client.key))
            assert client.read_until("Z")[-2].sqlstate == "57014"
    finally:
        serving.stop()


def test_the_certificate_can_be_verified(secure: Serving, certificates: Path) -> None:
    with secure.connect(sslmode="verify-full", sslrootcert=str(certificates / "rsa.crt")) as connection:
        assert connection.execute("select 1").fetchone() == (1,)


def client_context(*protocols: str) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    if protocols:
        context.set_alpn_protocols(list(protocols))
    return context


def test_direct_tls_needs_the_protocol_by_name(secure: Serving) -> None:
    for protocols in ((), ("http/1.1",)):
        with RawClient(secure.port) as client:
            client.socket = client_context(*protocols).wrap_socket(client.socket)
            assert client.read().sqlstate == "08P01"
            assert client.is_closed()


def test_bytes_before_the_handshake_are_never_taken_for_what_came_through_it(secure: Serving) -> None:
    with RawClient(secure.port) as client:
        client.send(SSL_REQUEST + startup_packet({"user": "alice", "database": "shop"}))
        with contextlib.suppress(ConnectionResetError):
            assert client.socket.recv(1) == b""


def test_a_second_request_for_encryption_inside_is_refused(secure: Serving) -> None:
    with RawClient(secure.port) as client:
        client.send(SSL_REQUEST)
        assert client.socket.recv(1) == b"S"
        client.socket = client_context().wrap_socket(client.socket)
        client.send(SSL_REQUEST)
        assert client.read().sqlstate == "08P01"


def test_a_broken_handshake_hurts_nobody_else(secure: Serving) -> None:
    with RawClient(secure.port) as client, secure.raw() as other:
        client.send(SSL_REQUEST)
        assert client.socket.recv(1) == b"S"
        client.send(b"\x16\3\1\xff\xffgarbage" * 10)
        assert client.is_closed()
        assert kinds(other.query("select 1")) == "TDCZ"


def test_a_cancel_request_may_be_encrypted(secure: Serving) -> None:
    with secure.connect(sslmode="require") as connection:
        cancel = connection.cancel_safe
        cancel()
        assert connection.execute("select 1").fetchone() == (1,)


def test_a_certificate_that_cannot_be_used_is_an_error(certificates: Path, tmp_path: Path) -> None:
    encrypted = tmp_path / "locked.key"
    command = [
        "openssl",
        "rsa",
        "-in",
        str(certificates / "rsa.key"),
        "-aes256",
        "-passout",
        "pass:x",
        "-out",
        str(encrypted),
    ]
    subprocess.run(command, check=True, capture_output=True)
    for key in (tmp_path / "none", certificates / "ec.key", encrypted):
        with pytest.raises(ConfigError, match="cannot be used"):
            load_tls(certificates / "rsa.crt", key)


# --- time ---------------------------------------------------------------------------------------------------------


def test_a_login_that_takes_too_long_is_ended(front: TestFront, certificates: Path) -> None:
    tls = load_tls(certificates / "ec.crt", certificates / "ec.key")
    too_long_s = 10.0
    serving = start_serving(front, limits=Limits(login_timeout_s=too_long_s), tls=tls, new_loop=MovableTime)
    try:
        with RawClient(serving.port) as encrypted:
            encrypted.send(SSL_REQUEST)
            encrypted.socket.recv(1)
            encrypted.socket = client_context().wrap_socket(encrypted.socket)
            serving.pass_time(too_long_s)
            assert encrypted.is_closed()
        for packet in (SSL_REQUEST, SSL_REQUEST[:5], GSS_REQUEST[:1]):
            with RawClient(serving.port) as client:
                client.send(packet)
                client.socket.shutdown(socket.SHUT_WR)
                serving.pass_time(too_long_s)
                assert client.is_closed()
        with RawClient(serving.port) as silent, RawClient(serving.port) as slow, RawClient(serving.port) as hung_up:
            hung_up.send(startup_packet({"user": "alice", "database": "shop"}))
            hung_up.socket.shutdown(socket.SHUT_WR)
            slow.send(startup_packet({"user": "alice", "database": "shop"}))
            assert slow.read().kind == "R"
            serving.pass_time(too_long_s)
            assert slow.read().sqlstate == "57014"
            assert slow.is_closed()
            assert silent.is_closed()
            assert hung_up.is_closed()
        assert serving.leases == []
    finally:
        serving.stop()
