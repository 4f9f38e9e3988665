"""How sessions end, how the server stops, and what happens when the front goes away."""

from __future__ import annotations

import asyncio
import os
import socket
import struct
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import replace

import pytest
import uvloop

from proxy.errors import BudgetSpent, ConfigError, FrontFailed
from proxy.front.front import FrontAddress, Lease
from proxy.policy.model import Limits
from proxy.server.datasets import ServerOptions
from proxy.server.listener import Server, origin_of
from proxy.server.sockets import are_local, bind
from proxy.session.contract import Session
from proxy.wire import messages
from tests.wire.fake_session import FakeSessions
from tests.wire.front import TestFront
from tests.wire.raw import PASSWORD, USER, RawClient, kinds, startup_packet, status
from tests.wire.serving import Serving, start_serving, with_limits

SLOW = "select /* slow */ count(*) from users"


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.mark.parametrize("work", ["", "begin", SLOW], ids=["idle", "transaction", "release"])
def test_a_front_that_dies_gives_a_clean_error(work: str, serving: Serving, front: TestFront) -> None:
    with serving.raw() as client, serving.raw() as other:
        if work == "begin":
            client.query(work)
        elif work:
            client.send(messages.query(work.encode()))
            serving.wait_until_asleep()
        pid = struct.unpack("!I", client.key[:4])[0]
        with front.direct() as superuser:
            superuser.execute("select pg_terminate_backend(%s)", [pid])
        error = client.read_until("E")[-1].fields
        assert (error["S"], error["C"]) == ("FATAL", "57P01")
        assert client.is_closed()
        assert kinds(other.query("select 1")) == "TDCZ"


def test_a_front_that_is_killed_gives_a_clean_error(front_directory: object, front: TestFront) -> None:
    """The front's own words are missing here: it has no time for any."""
    serving = start_serving(front)
    try:
        with serving.raw() as client:
            # cut the connection under the session, as a crash of the front's process would
            session = serving.call(lambda: next(iter(serving.server._sessions)))
            serving.call(session._ends.front.transport.abort)
            error = client.read_until("E")[-1].fields
            assert (error["S"], error["C"]) == ("FATAL", "57P01")
            assert client.is_closed()
        until(lambda: serving.leases == [])
        assert serving.diary.closed == 1
    finally:
        serving.stop()


def test_a_front_that_breaks_the_protocol_ends_the_session(front: TestFront) -> None:
    serving = start_serving(front)
    try:
        for nonsense in (b"Z\0\0\0\5I", b"X\0\0\0\4", b"T\0\0\0\6\0\1", b"S\0\0\0\5x"):
            with serving.raw() as client:
                session = serving.call(lambda: next(iter(serving.server._sessions)))
                serving.call(lambda raw=nonsense, s=session: s._from_front(raw))  # type: ignore[misc]
                error = client.read_until("E")[-1].fields
                assert (error["S"], error["C"]) == ("FATAL", "57P01")
                assert client.is_closed()
    finally:
        serving.stop()


def test_a_missing_front_or_session_is_a_refused_login(front: TestFront) -> None:
    serving = start_serving(front)
    try:

        def nowhere(login: str) -> Lease:
            return Lease(FrontAddress(socket_dir="/nonexistent", port=1, user=login, database="shop"), lambda: None)

        def closed(login: str) -> Lease:
            raise FrontFailed("the public PostgreSQL is restarting")

        class Broke(FakeSessions):
            async def open(self, login: str, database: str, session_id: str) -> Session:
                raise BudgetSpent("nothing is left")

        for changes, sqlstate in (
            ({"lease": nowhere}, "57P01"),
            ({"lease": closed}, "57P01"),
            ({"sessions": Broke()}, "DP001"),
        ):
            serving.call(lambda c=changes: serving.server.serve({"shop": replace(serving.dataset, **c)}))  # type: ignore[misc]
            with RawClient(serving.port) as client:
                error = client.log_in()[-1].fields
                assert (error["S"], error["C"]) == ("FATAL", sqlstate)
        serving.call(lambda: serving.server.serve({"shop": serving.dataset}))
        for _ in range(3):
            with serving.raw() as client:
                assert kinds(client.query("select 1")) == "TDCZ"
    finally:
        serving.stop()


def test_new_datasets_are_for_new_sessions(front: TestFront) -> None:
    serving = start_serving(front)
    try:
        with serving.raw() as old:
            limited = with_limits(serving.dataset, Limits(max_statement_bytes=100))
            serving.call(lambda: serving.server.serve({"shop": limited}))
            with serving.raw() as new:
                long = "select '" + "x" * 200 + "'"
                assert new.query(long)[-2].sqlstate == "54000"
                assert kinds(old.query(long)) == "TDCZ"
            assert serving.call(serving.server.session_counts)["shop"] >= 1
    finally:
        serving.stop()


def test_a_removed_login_loses_its_sessions(front: TestFront) -> None:
    serving = start_serving(front)
    try:
        with serving.raw() as alice, serving.raw(user="bob") as bob:
            serving.call(lambda: serving.server.end_login("shop", "bob"))
            assert bob.read().sqlstate == "57P01"
            assert bob.is_closed()
            assert kinds(alice.query("select 1")) == "TDCZ"
    finally:
        serving.stop()


@pytest.mark.parametrize("new_loop", [asyncio.new_event_loop, uvloop.new_event_loop])
def test_stopping_lets_transactions_finish(new_loop: Callable[[], asyncio.AbstractEventLoop], front: TestFront) -> None:
    serving = start_serving(front, new_loop=new_loop)
    port = serving.port
    idle, busy, greeting = serving.raw(), serving.raw(), RawClient(port)
    with idle, busy, greeting:
        busy.query("begin")
        stopping = asyncio.run_coroutine_threadsafe(serving.server.stop(20), serving.loop)
        assert idle.read().sqlstate == "57P01"
        assert greeting.is_closed()
        with pytest.raises(ConnectionRefusedError):
            RawClient(port)
        assert status(busy.query("select count(*) from users")) == "T"
        assert not stopping.done()
        assert status(busy.query("commit")) == "I"
        assert busy.read().sqlstate == "57P01"
        assert busy.is_closed()
        stopping.result(60)
    assert serving.leases == []
    serving.stop()


def test_stopping_ends_what_does_not_finish(front: TestFront) -> None:
    serving = start_serving(front)
    with serving.raw() as client:
        client.query("begin")
        serving.run(serving.server.stop(0.1))
        assert client.read().sqlstate == "57P01"
    serving.stop()


def test_terminate_closes_everything(serving: Serving) -> None:
    closed = serving.diary.closed
    with serving.raw() as client:
        client.send(messages.TERMINATE)
        assert client.is_closed()
    until(lambda: serving.diary.closed == closed + 1)
    until(lambda: serving.leases == [])


@contextmanager
def strangers(serving: Serving, address: str, count: int) -> Iterator[list[socket.socket]]:
    """Connections from an address of this machine that say nothing."""
    with ExitStack() as open_ones:
        yield [
            open_ones.enter_context(
                socket.create_connection(("127.0.0.1", serving.port), timeout=60, source_address=(address, 0))
            )
            for _ in range(count)
        ]


def waiting_for(serving: Serving) -> int:
    return serving.call(lambda: len(serving.server._greeting))


def test_the_oldest_stranger_makes_room_for_who_comes_later(front: TestFront) -> None:
    serving = start_serving(front)
    try:
        with strangers(serving, "127.0.0.1", 100) as silent:
            until(lambda: waiting_for(serving) == 100)
            with serving.raw() as client:
                assert kinds(client.query("select 1")) == "TDCZ"
            assert silent[0].recv(1) == b""
            until(lambda: waiting_for(serving) == 99)
            silent[1].setblocking(False)
            with pytest.raises(BlockingIOError):
                silent[1].recv(1)
    finally:
        serving.stop()


def test_the_address_with_the_most_strangers_makes_room_first(front: TestFront) -> None:
    serving = start_serving(front)
    try:
        with RawClient(serving.port) as slow:
            slow.send(startup_packet({"user": USER, "database": "shop"}))
            until(lambda: waiting_for(serving) == 1)
            with strangers(serving, "127.0.0.2", 250) as silent:
                assert silent[149].recv(1) == b""
                until(lambda: waiting_for(serving) == 100)
                assert slow.answer_scram(USER, PASSWORD)[-1].kind == "Z"
    finally:
        serving.stop()


def test_who_has_shown_a_password_makes_room_for_nobody(front: TestFront) -> None:
    class Held(FakeSessions):
        def __init__(self) -> None:
            super().__init__()
            self.asked, self.may_open = asyncio.Event(), asyncio.Event()

        async def open(self, login: str, database: str, session_id: str) -> Session:
            self.asked.set()
            await self.may_open.wait()
            return await super().open(login, database, session_id)

    serving = start_serving(front)
    try:
        held = Held()
        serving.call(lambda: serving.server.serve({"shop": replace(serving.dataset, sessions=held)}))
        with ThreadPoolExecutor(1) as other:
            logging_in = other.submit(serving.raw)
            serving.run(asyncio.wait_for(held.asked.wait(), 60))
            with strangers(serving, "127.0.0.1", 150) as silent:
                assert silent[49].recv(1) == b""
                serving.call(held.may_open.set)
                with logging_in.result(60) as client:
                    assert kinds(client.query("select 1")) == "TDCZ"
    finally:
        serving.stop()


@pytest.mark.parametrize(
    ("address", "origin"),
    [("127.0.0.2", "127.0.0.2"), ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::"), ("fe80::1%lo", "fe80::")],
)
def test_a_network_of_ipv6_counts_as_one_stranger(address: str, origin: str) -> None:
    assert origin_of(address) == origin


# --- the address -----------------------------------------------------------------------------------------


def test_an_address_in_use_is_one_clear_error(serving: Serving) -> None:
    with pytest.raises(ConfigError) as refused:
        bind("127.0.0.1", serving.port)
    assert refused.value.message == f"cannot listen on 127.0.0.1 port {serving.port}: Address already in use"


def test_a_name_that_means_no_address_is_an_error() -> None:
    with pytest.raises(ConfigError, match=r"cannot listen on nowhere.invalid port 1: "):
        bind("nowhere.invalid", 1)


def test_an_address_that_is_taken_between_binding_and_listening_is_an_error() -> None:
    bound, taken = bind("127.0.0.1", 0), socket.socket()
    with taken:
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        taken.bind(bound[0].getsockname())
        taken.listen()
        server = Server(ServerOptions(sockets=bound, mock_secret=b"x"), {}, os.urandom)
        with pytest.raises(ConfigError, match=r"cannot listen on 127\.0\.0\.1 port \d+: Address already in use"):
            asyncio.run(server.start())
    bound[0].close()


@pytest.mark.parametrize(
    ("host", "is_local"), [("127.0.0.1", True), ("127.0.0.7", True), ("localhost", True), ("0.0.0.0", False)]
)
def test_addresses_that_others_can_reach_are_known(host: str, is_local: bool) -> None:
    sockets = bind(host, 0)
    assert are_local(sockets) is is_local
    for bound in sockets:
        bound.close()


ROWS = 40_000


def test_a_slow_reader_slows_the_front_and_not_the_memory(serving: Serving) -> None:
    with serving.raw() as client:
        client.send(messages.query(f"select repeat('x', 1000) from generate_series(1, {ROWS})".encode()))
        session = serving.call(lambda: list(serving.server._sessions)[-1])
        until(lambda: session._client_is_slow)
        written = serving.call(session._ends.client.transport.get_write_buffer_size)
        assert written < 4_000_000
        received = 0
        while received < ROWS * 1000:
            received += len(client.socket.recv(1 << 20))


def test_a_fast_writer_is_slowed_down_behind_a_release(serving: Serving) -> None:
    with serving.raw() as client:
        client.socket.settimeout(0.5)
        client.send(messages.query(SLOW.encode()))
        serving.wait_until_asleep()
        with pytest.raises(TimeoutError):
            while True:
                client.send(messages.query(b"select 1 /* " + b"x" * 100_000 + b" */"))
        session = serving.call(lambda: next(s for s in serving.server._sessions if s.key == client.key))
        assert serving.call(lambda: session._relay._frames.buffered_bytes) < 2_000_000


def test_a_large_copy_in_passes(serving: Serving) -> None:
    with serving.connect() as connection:
        connection.execute("create temp table t (a text)")
        with connection.cursor().copy("copy t from stdin") as copy:
            for _ in range(200):
                copy.write(b"x" * 99_999 + b"\n")
        assert connection.execute("select count(*), sum(length(a)) from t").fetchone() == (200, 200 * 99_999)
