"""How many browsers may be connected at a time, and for how long, whatever they ask?"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import ExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import pytest
import uvicorn
from starlette.types import Receive, Scope, Send
from uvicorn.server import ServerState

from proxy.admin.open_files import MOST_BROWSERS
from proxy.console import doors
from proxy.console.doors import MOST_IDLE, MOST_PER_ADDRESS, BrowserLine, Door
from proxy.server.sockets import bind, port_of


def _connected(port: int, host: str) -> socket.socket:
    """From an address of this machine."""
    found = socket.create_connection(("127.0.0.1", port), timeout=10, source_address=(host, 0))
    found.settimeout(10)
    return found


def _is_closed(client: socket.socket) -> bool:
    try:
        return client.recv(1) == b""
    except ConnectionResetError:
        return True


def test_strangers_who_ask_nothing_take_no_more_files_than_browsers_may_have() -> None:
    """The listener's clients need files of the same process."""
    (bound,) = bind("127.0.0.1", 0)
    with Door.of(bound) as door, ExitStack() as held:
        door.listen(10)

        def come(host: str) -> tuple[socket.socket, socket.socket | None]:
            ours = held.enter_context(_connected(port_of(door), host))
            taken = _accepted(door)
            return ours, held.enter_context(taken) if taken is not None else None

        first = come("127.0.0.1")[1]
        assert first is not None
        assert all(come("127.0.0.1")[1] for _ in range(MOST_PER_ADDRESS - 1))
        late, taken = come("127.0.0.1")
        assert taken is None
        assert _is_closed(late)
        assert all(come("127.0.0.2")[1] for _ in range(MOST_BROWSERS - MOST_PER_ADDRESS))
        late, taken = come("127.0.0.3")
        assert taken is None
        assert _is_closed(late)
        first.close()
        assert come("127.0.0.3")[1] is not None
    assert bound.fileno() < 0


def _accepted(door: Door) -> socket.socket | None:
    """What an event loop gets when the socket is ready."""
    door.settimeout(10)
    try:
        return door.accept()[0]
    except ConnectionAbortedError:
        return None


async def _application(scope: Scope, receive: Receive, send: Send) -> None:
    """Answers /slow when the test says so, /large with more than any socket takes at once."""
    while (await receive()).get("more_body"):
        pass
    if scope["path"] == "/slow":
        await scope["state"]["may_answer"].wait()
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"%d" % _size(scope))]})
    await send({"type": "http.response.body", "body": b"x" * _size(scope)})


def _size(scope: Scope) -> int:
    return _LARGE if scope["path"] == "/large" else 2


async def _until(is_so: Callable[[], bool]) -> None:
    while not is_so():  # noqa: ASYNC110 - uvicorn tells nobody
        await asyncio.sleep(0.005)


@dataclass(frozen=True, slots=True)
class _Site:
    """A server of the test's. inside: connections that it has now."""

    port: int
    inside: set[Any]
    may_answer: asyncio.Event
    came: list[asyncio.StreamWriter] = field(default_factory=list)

    async def visit(self, asked: bytes) -> asyncio.StreamReader:
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port, limit=2**10)
        self.came.append(writer)
        writer.write(asked)
        return reader

    async def has_inside(self, fewest: int, most: int) -> None:
        """Wait until so many are connected."""
        await _until(lambda: fewest <= len(self.inside) <= most)


@asynccontextmanager
async def _site() -> AsyncIterator[_Site]:
    may_answer = asyncio.Event()
    state = ServerState()
    config = uvicorn.Config(_application, http=BrowserLine, ws="none", lifespan="off", log_config=None)
    (bound,) = bind("127.0.0.1", 0)
    make = partial(BrowserLine, config=config, server_state=state, app_state={"may_answer": may_answer})
    server = await asyncio.get_running_loop().create_server(make, sock=Door.of(bound))
    site = _Site(port_of(server.sockets[0]), state.connections, may_answer)
    try:
        yield site
    finally:
        may_answer.set()
        for writer in site.came:
            writer.close()
            with suppress(ConnectionResetError):
                await writer.wait_closed()
        await site.has_inside(0, 0)
        server.close()


_LARGE = 64 * 2**20
_ASKED = b"GET / HTTP/1.1\r\nhost: x\r\n\r\n"
_PATIENCE_S = 60


def test_connections_that_ask_nothing_keep_no_browser_out() -> None:
    async def served() -> None:
        async with _site() as site:
            idle = []
            for _ in range(MOST_BROWSERS + 50):
                idle.append(await site.visit(b""))
                await site.has_inside(1, MOST_IDLE)  # the oldest is gone before the next comes
            reader = await site.visit(_ASKED)
            assert (await reader.readline()).startswith(b"HTTP/1.1 200")
            assert await idle[0].read() == b""

    asyncio.run(asyncio.wait_for(served(), _PATIENCE_S))


def test_who_waits_for_an_answer_is_not_idle() -> None:
    async def served() -> None:
        async with _site() as site:
            reader = await site.visit(_ASKED.replace(b"/ ", b"/slow "))
            for _ in range(MOST_IDLE + 10):
                await site.visit(b"")
                await site.has_inside(1, MOST_IDLE + 1)
            site.may_answer.set()
            assert (await reader.readline()).startswith(b"HTTP/1.1 200")

    asyncio.run(asyncio.wait_for(served(), _PATIENCE_S))


@pytest.mark.parametrize(
    "asked",
    [b"", b"GET / HTTP/1.1\r\nhost:", b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 9\r\n\r\nabc", _ASKED,
     _ASKED + b"GET"],
    ids=["nothing", "half a head", "half a body", "no more", "half of a second"],
)  # fmt: skip
def test_a_request_that_does_not_come_ends_its_connection(asked: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doors, "ASKING_S", 0.2)

    async def served() -> None:
        async with _site() as site:
            reader = await site.visit(asked)
            with suppress(ConnectionResetError):
                assert (await reader.read()).startswith(b"HTTP/1.1 200" if asked.startswith(_ASKED) else b"")
            await site.has_inside(0, 0)

    asyncio.run(asyncio.wait_for(served(), _PATIENCE_S))


def test_an_answer_that_is_read_slowly_goes_on_and_one_that_nobody_reads_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doors, "ASKING_S", 0.2)

    async def served() -> None:
        async with _site() as site:
            reader = await site.visit(_ASKED.replace(b"/ ", b"/large "))
            await reader.readuntil(b"\r\n\r\n")
            loop = asyncio.get_running_loop()
            end, got = loop.time() + 1.0, 0
            while loop.time() < end:  # several deadlines long
                got += len(await reader.read(2**18))
                await asyncio.sleep(0.01)
            assert len(site.inside) == 1
            assert got < _LARGE
            await site.has_inside(0, 0)  # nothing more is read

    asyncio.run(asyncio.wait_for(served(), _PATIENCE_S))


def test_a_second_request_that_came_with_the_first_is_answered_however_long_it_takes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def served() -> None:
        async with _site() as site:
            reader = await site.visit(_ASKED + _ASKED.replace(b"/ ", b"/slow "))
            assert (await reader.readline()).startswith(b"HTTP/1.1 200")
            (one,) = site.inside
            await _until(lambda: not one.deadline_s)
            site.may_answer.set()
            await reader.readuntil(b"xx")
            assert b"HTTP/1.1 200" in await reader.readuntil(b"xx")

    asyncio.run(asyncio.wait_for(served(), _PATIENCE_S))
