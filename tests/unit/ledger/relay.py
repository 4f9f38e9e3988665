"""A way to a server that is cut at a chosen moment: before some words of the client get through, or after."""

from __future__ import annotations

import contextlib
import enum
import select
import socket
import threading
from collections.abc import Iterator

_READY = b"Z\0\0\0\5"  # the server has done everything it was sent


class Cut(enum.Enum):
    """When the way is cut: the words are lost, or they arrive and the answer to them is lost."""

    BEFORE = "before"
    AFTER = "after"


class Relay:
    """Listens on loopback and passes bytes on to a socket file. `cut` makes it end one connection, once."""

    def __init__(self, target: str) -> None:
        self._target = target
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._wish: list[tuple[bytes, Cut]] = []
        self.port = int(self._listener.getsockname()[1])
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self, words: bytes, when: Cut) -> None:
        self._wish.append((words, when))

    @property
    def has_cut(self) -> bool:
        return not self._wish

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                threading.Thread(target=self._pass_on, args=(client,), daemon=True).start()

    def _pass_on(self, client: socket.socket) -> None:
        is_swallowing = False
        with client, socket.socket(socket.AF_UNIX) as server, contextlib.suppress(OSError):
            server.connect(self._target)
            while True:
                ready, _, _ = select.select([client, server], [], [])
                for side in ready:
                    data = side.recv(65536)
                    if not data or (is_swallowing and side is server and _READY in data):
                        return
                    wish = next((w for w in self._wish if side is client and w[0] in data), None)
                    if wish is not None:
                        self._wish.remove(wish)
                        if wish[1] is Cut.BEFORE:
                            return
                        is_swallowing = True
                    if side is client:
                        server.sendall(data)
                    elif not is_swallowing:
                        client.sendall(data)


@contextlib.contextmanager
def relayed(target: str) -> Iterator[Relay]:
    relay = Relay(target)
    try:
        yield relay
    finally:
        relay.close()
