"""How many browsers may be connected at a time, whatever they ask?"""

from __future__ import annotations

import asyncio
import socket

from proxy.admin.open_files import MOST_BROWSERS
from proxy.console.running import Door
from proxy.server.sockets import bind, port_of


def _connected(port: int) -> socket.socket:
    found = socket.create_connection(("127.0.0.1", port), timeout=10)
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
    with Door.of(bound) as door:
        door.listen(10)
        inside, ours = [], []
        for _ in range(MOST_BROWSERS):
            ours.append(_connected(port_of(door)))
            inside.append(_accepted(door))
        late = _connected(port_of(door))
        assert _accepted(door) is None
        assert _is_closed(late)
        first = inside[0]
        assert first is not None
        first.close()
        next_one = _connected(port_of(door))
        taken = _accepted(door)
        assert taken is not None
        for one in (*inside, *ours, late, next_one, taken):
            if one is not None:
                one.close()
    assert bound.fileno() < 0


def _accepted(door: Door) -> socket.socket | None:
    """What an event loop gets when the socket is ready."""
    door.settimeout(10)
    try:
        return door.accept()[0]
    except ConnectionAbortedError:
        return None


def test_a_server_goes_on_behind_the_door() -> None:
    async def served() -> list[bytes]:
        async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write(await reader.readexactly(2))
            writer.close()

        (bound,) = bind("127.0.0.1", 0)
        server = await asyncio.start_server(answer, sock=Door.of(bound))
        port, found = port_of(server.sockets[0]), []
        idle = [await asyncio.open_connection("127.0.0.1", port) for _ in range(MOST_BROWSERS + 50)]
        for _, writer in idle:
            writer.close()
        for _ in range(3):
            await asyncio.sleep(0.1)
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(b"hi")
            found.append(await reader.read())
            writer.close()
        server.close()
        return found

    assert asyncio.run(served()) == [b"hi"] * 3
