"""Runs a server in a thread of its own, so that blocking clients can be tested."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import psycopg
from psycopg.rows import TupleRow

from proxy.front.front import FrontAddress, Lease
from proxy.policy.model import Limits, Login, NoLimit, Role, Users
from proxy.server.datasets import ServedDataset, ServerOptions, TlsDeclined, TlsOffered
from proxy.server.listener import Server
from proxy.server.sockets import bind
from proxy.wire.scram import make_verifier
from tests.wire.fake_session import Diary, FakeSessions
from tests.wire.front import GUARD, PORT, TestFront
from tests.wire.raw import PASSWORD, USER, RawClient

_Result = TypeVar("_Result")


def users() -> Users:
    """alice and bob with the same password."""
    scram = make_verifier(PASSWORD, salt=b"0123456789abcdef").text()
    names = (USER, "bob")
    logins = {name: Login(name=name, scram=scram, role="analyst", budget=NoLimit()) for name in names}
    return Users(logins=logins, roles={"analyst": Role(name="analyst")})


class MovableTime(asyncio.SelectorEventLoop):
    """A loop whose time-outs a test can reach without waiting for them."""

    ahead_s = 0.0

    def time(self) -> float:
        return super().time() + self.ahead_s


@dataclass(slots=True, repr=False)
class Serving:
    """A running server and what its sessions were asked."""

    loop: asyncio.AbstractEventLoop
    server: Server
    dataset: ServedDataset
    diary: Diary
    thread: threading.Thread
    leases: list[Lease] = field(default_factory=list)

    def __repr__(self) -> str:
        return "Serving()"

    @property
    def port(self) -> int:
        return self.server.port

    def run(self, work: Coroutine[Any, Any, _Result]) -> _Result:
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(90)

    def call(self, function: Callable[[], _Result]) -> _Result:
        async def wrapped() -> _Result:
            return function()

        return self.run(wrapped())

    def pass_time(self, seconds: float) -> None:
        """Move the server's time on."""
        loop = self.loop
        assert isinstance(loop, MovableTime)

        def move() -> None:
            loop.ahead_s += seconds

        self.call(move)

    def wait_until_asleep(self) -> None:
        """Until a slow release has begun."""
        self.run(asyncio.wait_for(self.diary.sleeping.wait(), 60))
        self.call(self.diary.sleeping.clear)

    def connect(self, **arguments: Any) -> psycopg.Connection[TupleRow]:
        given = {"user": USER, "password": PASSWORD, "dbname": "shop", "autocommit": True, **arguments}
        return psycopg.connect(host="127.0.0.1", port=self.port, **given)

    def raw(self, **arguments: str) -> RawClient:
        """A logged-in raw client."""
        client = RawClient(self.port)
        replies = client.log_in(**arguments)
        assert replies[-1].kind == "Z", replies[-1].fields
        return client

    def stop(self, drain_s: float = 0) -> None:
        self.run(self.server.stop(drain_s))
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join(60)
        self.loop.close()


def start_serving(
    front: TestFront,
    *,
    limits: Limits | None = None,
    tls: TlsOffered | TlsDeclined | None = None,
    new_loop: Callable[[], asyncio.AbstractEventLoop] = asyncio.new_event_loop,
) -> Serving:
    """Serve the database `shop` from `front` with fake sessions."""
    loop = new_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    leases: list[Lease] = []

    def lease(login: str) -> Lease:
        address = FrontAddress(socket_dir=str(front.socket_dir), port=PORT, user=login, database="shop")
        held = Lease(address, lambda: leases.remove(held))
        leases.append(held)
        return held

    async def make() -> Serving:
        sessions = FakeSessions()
        dataset = ServedDataset(users=users(), limits=limits or Limits(), sessions=sessions, lease=lease, guard=GUARD)
        sockets = bind("127.0.0.1", 0)
        options = ServerOptions(sockets=sockets, mock_secret=b"m" * 32, tls=tls or TlsDeclined(), check_every_s=0.05)
        server = Server(options, {"shop": dataset}, os.urandom)
        await server.start()
        return Serving(loop, server, dataset, sessions.diary, thread, leases)

    return asyncio.run_coroutine_threadsafe(make(), loop).result(60)


def with_limits(dataset: ServedDataset, limits: Limits) -> ServedDataset:
    return replace(dataset, limits=limits)
