"""The way to a private PostgreSQL: encrypted and verified as the connection string says, and warned of where it is not.

The wheel's server speaks no TLS, so something in front of it does, as poolers and clouds do.
"""

from __future__ import annotations

import contextlib
import logging
import select
import socket
import socketserver
import ssl
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from proxy.engines.base import Cancellation
from proxy.engines.postgres import PostgresEngine
from proxy.errors import ConfigError, QueryCanceled
from proxy.plan.charge import Reserved
from proxy.policy.model import PostgresSource
from tests.postgres_server import private_server
from tests.unit.engines.make import CITIES, first_stage, paying, policy

_ASKS_FOR_TLS = bytes.fromhex("0000000804d2162f")
_DATABASE = "behind tls"
_DATA = """
create role distant login;
create table cities (city text, "inner" int);
grant select on cities to distant;
"""


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("tls")
    for name in ("own", "other"):
        files = ["-keyout", str(directory / f"{name}.key"), "-out", str(directory / f"{name}.crt")]
        names = ["-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1"]
        command = ["openssl", "req", "-x509", "-nodes", "-days", "2", "-newkey", "rsa:2048", *files, *names]
        subprocess.run(command, check=True, capture_output=True)
    return directory


class _Way(socketserver.BaseRequestHandler):
    """Passes bytes on to the server's socket, after a handshake if one is asked for."""

    request: socket.socket
    socket_path = ""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)

    def handle(self) -> None:
        with socket.socket(socket.AF_UNIX) as other, contextlib.suppress(OSError):
            other.connect(self.socket_path)
            first = self.request.recv(8, socket.MSG_WAITALL)
            if first != _ASKS_FOR_TLS:
                other.sendall(first)
                _pass_on(self.request, other)
                return
            self.request.sendall(b"S")
            with self.context.wrap_socket(self.request, server_side=True) as secure:
                _pass_on(secure, other)


def _pass_on(one: socket.socket, other: socket.socket) -> None:
    while True:
        is_waiting = isinstance(one, ssl.SSLSocket) and one.pending()
        for side in [one] if is_waiting else select.select([one, other], [], [])[0]:
            data = side.recv(65536)
            if not data:
                return
            (other if side is one else one).sendall(data)


@pytest.fixture(scope="module")
def dsn(certificates: Path) -> Iterator[str]:
    """A way over TCP, encrypted for whoever asks."""
    server = private_server()
    server.create(_DATABASE, _DATA)
    _Way.socket_path = str(server.home / ".s.PGSQL.5433")
    _Way.context.load_cert_chain(certificates / "own.crt", certificates / "own.key")
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), _Way) as listening:
        thread = threading.Thread(target=listening.serve_forever, args=[0.01])
        thread.start()
        where = f"host=127.0.0.1 port={listening.server_address[1]}"
        yield f"{where} user=distant password=hunter2 dbname='{_DATABASE}' gssencmode=disable"
        listening.shutdown()
        thread.join()


@pytest.fixture(scope="module")
def pay(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Reserved]:
    return paying(tmp_path_factory.mktemp("ledger") / "state")


def _engine(dsn: str) -> PostgresEngine:
    source = PostgresSource(dsn)
    return PostgresEngine(policy(source, time_zone="UTC"), source)


def _warned(engine: PostgresEngine, caplog: pytest.LogCaptureFixture) -> list[str]:
    caplog.clear()
    with caplog.at_level(logging.WARNING, logger="hushql"):
        engine.check_facts(policy(PostgresSource("unused"), CITIES, time_zone="UTC"))
    return caplog.messages


def test_a_verified_way_is_used_for_statements_and_for_stopping_them(
    dsn: str, certificates: Path, pay: Callable[..., Reserved], caplog: pytest.LogCaptureFixture
) -> None:
    engine = _engine(f"{dsn} sslmode=verify-full sslrootcert={certificates / 'own.crt'}")
    assert _warned(engine, caplog) == []
    for _ in range(2):
        with pytest.raises(QueryCanceled, match="statement timeout"):
            first_stage(engine, pay("select pg_sleep(600)"), timeout_s=0.3, cancellation=Cancellation())
    assert first_stage(engine, pay("select 3"), timeout_s=60, cancellation=Cancellation()).rows == ((3,),)
    engine.close()


def test_a_server_that_cannot_be_verified_is_refused(dsn: str, certificates: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be used: OperationalError") as refused:
        _engine(f"{dsn} sslmode=verify-full sslrootcert={certificates / 'other.crt'}")
    assert "hunter2" not in refused.value.text()


def test_a_way_that_others_can_read_is_warned_of(dsn: str, caplog: pytest.LogCaptureFixture) -> None:
    engine = _engine(f"{dsn} sslmode=disable")
    (said,) = _warned(engine, caplog)
    assert "the private PostgreSQL on 127.0.0.1 is reached without TLS" in said
    engine.close()
