"""A way to a server that is cut at a chosen moment: before some words of the client get through, or after.

Or that stands still, as if the client had been stopped while it sent, or before it read the answer.
"""

from __future__ import annotations

import contextlib
import enum
import select
import socket
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field

_HEADER = 5  # bytes before the text of a query
_READY = b"Z\0\0\0\5"  # the server has done everything it was sent


class Cut(enum.Enum):
    """When the way is cut: the words are lost, or they arrive and the answer to them is lost."""

    BEFORE = "before"
    AFTER = "after"


@dataclass(frozen=True, slots=True)
class Halt:
    """At a query that begins with `words` this share of its bytes gets through; nothing else until `go`."""

    words: bytes
    share: float
    reached: threading.Event = field(default_factory=threading.Event)
    go: threading.Event = field(default_factory=threading.Event)

    def stand(self, query: bytes, server: socket.socket) -> bytes:
        """Pass on that share and wait; the rest of the query."""
        sent = round(len(query) * self.share)
        server.sendall(query[:sent])
        self.reached.set()
        self.go.wait()
        return query[sent:]


class Relay:
    """Listens on loopback and passes bytes on to a socket file. `cut` makes it end one connection, once."""

    def __init__(self, target: str) -> None:
        self._target = target
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._wish: list[tuple[bytes, Cut]] = []
        self._halts: list[Halt] = []
        self.port = int(self._listener.getsockname()[1])
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self, words: bytes, when: Cut) -> None:
        self._wish.append((words, when))

    def halt(self, halt: Halt) -> None:
        """Stand still once."""
        self._halts.append(halt)

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
                        server.sendall(self._halted(data, server))
                    elif not is_swallowing:
                        client.sendall(data)

    def _halted(self, data: bytes, server: socket.socket) -> bytes:
        """What is still to be sent of this, at once or after a while."""
        for halt in self._halts:
            if data[_HEADER:].startswith(halt.words):
                self._halts.remove(halt)
                return halt.stand(data, server)
        return data


@contextlib.contextmanager
def relayed(target: str) -> Iterator[Relay]:
    relay = Relay(target)
    try:
        yield relay
    finally:
        relay.close()
