"""Clients that send garbage, too much, too little or nothing: they are turned away, and everybody else is served."""

from __future__ import annotations

import random
import socket
import struct
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pytest

from proxy.wire import messages
from tests.farewell import farewell_of
from tests.faults.proxied import (
    COUNT,
    DATASET,
    ENDLESS,
    PASSWORD,
    Proxied,
    Site,
    descriptors_of,
    is_at_rest,
    running,
    wait_until,
)
from tests.wire.raw import SSL_REQUEST, RawClient, startup_packet

GARBAGE_ROUNDS = 60


@contextmanager
def someone_else(proxied: Proxied) -> Iterator[None]:
    """A session that must not notice anything."""
    with proxied.connect("dan") as client:
        yield
        assert client.execute("select 42").fetchone() == (42,)
        assert client.execute(COUNT.encode()).rowcount == 1
    assert "Traceback" not in proxied.said()
    assert "a session failed" not in proxied.said()


def throw(proxied: Proxied, data: bytes) -> None:
    """Send and hang up, whatever the proxy makes of it."""
    with socket.create_connection(("127.0.0.1", proxied.port), timeout=60) as connection:
        try:
            connection.sendall(data)
            connection.shutdown(socket.SHUT_WR)
            while connection.recv(65536):
                pass
        except OSError:
            return  # it has hung up already


def test_garbage_before_the_login_ends_that_connection_only(shared: Proxied) -> None:
    made = random.Random(1)
    good = startup_packet({"user": "ann", "database": DATASET})
    with someone_else(shared):
        for _ in range(GARBAGE_ROUNDS):
            throw(shared, made.randbytes(made.choice((1, 3, 4, 8, 9, 100, 5000))))
        for cut in range(len(good)):
            throw(shared, good[:cut])
        for length in (0, 3, 4, 5, 7, 10_001, 2**31 - 1, 2**31, 2**32 - 1):
            throw(shared, struct.pack("!II", length, 0x30000) + b"user\0ann\0\0")
        for _ in range(GARBAGE_ROUNDS):
            throw(shared, good + made.randbytes(made.choice((1, 5, 40, 20_000))))
        throw(shared, SSL_REQUEST * 50)
        throw(shared, SSL_REQUEST + made.randbytes(500))
        throw(shared, b"\x16\x03\x01" + made.randbytes(300))
        throw(shared, b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")


def logged_in(proxied: Proxied) -> RawClient:
    client = RawClient(proxied.port)
    assert client.log_in("ann", PASSWORD, DATASET)[-1].kind == "Z"
    return client


def test_garbage_after_the_login_ends_that_session_only(shared: Proxied) -> None:
    made = random.Random(2)
    with someone_else(shared):
        for number in range(GARBAGE_ROUNDS // 2):
            with logged_in(shared) as client:
                kind = made.choice(b"QPBDECSHFdcfXp\0zZ")
                size = made.choice((0, 1, 4, 30, 3000))
                body = made.randbytes(size)
                length = made.choice((size + 4, size + 4, 0, 3, size + 100, 2**31 - 1, 2**32 - 1))
                client.send(bytes([kind]) + struct.pack("!I", length) + body, made.randbytes(number))


def test_every_truncation_of_a_statement_ends_that_session_only(shared: Proxied) -> None:
    whole = messages.query(COUNT.encode())
    with someone_else(shared):
        for cut in range(1, len(whole), 4):
            with logged_in(shared) as client:
                client.send(whole[:cut])


@pytest.mark.parametrize("length", [2**31 - 1, 2**32 - 1, 17 * 1024 * 1024])
@pytest.mark.parametrize("kind", ["Q", "P", "B", "D"])
def test_a_huge_length_is_refused_without_waiting_for_the_bytes(shared: Proxied, kind: str, length: int) -> None:
    """Either with an error at once, or by reading on and on without keeping anything."""
    with someone_else(shared), logged_in(shared) as client:
        client.send(kind.encode() + struct.pack("!I", length), b"x" * 1000)
        client.socket.settimeout(0.2)
        try:
            reply = client.read()
        except TimeoutError:
            return
        assert reply.kind == "E"
        assert reply.sqlstate == "08P01"
        assert client.is_closed()


# --- logins -----------------------------------------------------------------------------------------------


def test_a_login_in_drops_is_cut_off_in_time(shared: Proxied) -> None:
    """Six seconds are what this policy gives: no drop of data prolongs it."""
    packet = startup_packet({"user": "ann", "database": DATASET})
    with someone_else(shared), ExitStack() as open_ones:
        started = time.monotonic()
        slow = [open_ones.enter_context(RawClient(shared.port)) for _ in range(10)]
        ended = 0
        for byte in packet[:30]:
            for client in slow:
                try:
                    client.send(bytes([byte]))
                except OSError:
                    ended += 1
            time.sleep(0.25)
        for client in slow:
            assert client.is_closed()
        assert time.monotonic() - started < 120


def test_strangers_who_only_connect_leave_room_for_logins(site: Site) -> None:
    """More connections than may wait before their login: the oldest end, and in time all of them."""
    site.write_policy(limits={"login_timeout": "5s"})
    with running(site) as proxied, someone_else(proxied), ExitStack() as open_ones:
        for _ in range(300):
            open_ones.enter_context(socket.create_connection(("127.0.0.1", proxied.port), timeout=60))
        proxied.connect().close()
        wait_until(lambda: descriptors_of(proxied.pid) < 200)
        wait_until(lambda: descriptors_of(proxied.pid) < 60)


# --- sessions ---------------------------------------------------------------------------------------------


def test_a_client_that_vanishes_in_its_statement_is_charged_and_stops_the_engine(shared: Proxied) -> None:
    site = shared.site
    before, threads_at = site.spent("tiny/ann"), site.price()
    with logged_in(shared) as client:
        client.send(messages.query(f"{ENDLESS} where age < 5".encode()))
        wait_until(lambda: site.spent("tiny/ann") == before + threads_at)
    assert is_at_rest(shared.pid)
    assert site.spent("tiny/ann") == before + site.price()


def test_a_client_that_resets_its_connection_does_the_same(shared: Proxied) -> None:
    site = shared.site
    before = site.spent("tiny/ann")
    client = logged_in(shared)
    client.send(messages.query(f"{ENDLESS} where age < 6".encode()))
    wait_until(lambda: site.spent("tiny/ann") == before + site.price())
    client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    client.socket.close()
    assert is_at_rest(shared.pid)


def test_an_idle_session_is_told_and_closed(site: Site) -> None:
    """Inside a transaction, too."""
    site.write_policy(limits={"idle_timeout": "4s"})
    with running(site) as proxied, proxied.connect() as client:
        client.execute(COUNT.encode())
        with proxied.connect() as other:
            other.execute("begin")
            for idle in (client, other):
                assert farewell_of(idle).sqlstate == "57P05"
