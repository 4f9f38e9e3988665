"""Who may be connected to the console, and for how long without asking anything?

Uvicorn can refuse requests, and yet keeps any number of connections that ask nothing or never finish what they ask.
Each takes a file of this process, which the clients of the listener need too.
"""

from __future__ import annotations

import asyncio
import socket
from collections import Counter
from typing import Any, Self

from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

from proxy.admin.open_files import MOST_BROWSERS

#: Of the connections that may be there, those of one address; a browser opens six.
MOST_PER_ADDRESS = MOST_BROWSERS // 2
#: Connections of one address that have asked nothing yet or wait for their next request.
MOST_IDLE = 24
#: How long a request may take to arrive, its body included, from when it could.
ASKING_S = 30.0


class Door(socket.socket):
    """A listening socket that lets so many in at a time, and closes the connection of whoever comes then."""

    __slots__ = ("_inside",)
    _inside: list[tuple[socket.socket, str]]

    @classmethod
    def of(cls, bound: socket.socket) -> Self:
        """The same socket, whose descriptor the given one loses."""
        door = cls(fileno=bound.detach())
        door.setblocking(False)
        door._inside = []
        return door

    def accept(self) -> tuple[socket.socket, Any]:
        connection, address = super().accept()
        self._inside = [(c, host) for c, host in self._inside if c.fileno() >= 0]
        of_address = Counter(host for _, host in self._inside)[address[0]]
        if len(self._inside) >= MOST_BROWSERS or of_address >= MOST_PER_ADDRESS:
            connection.close()
            raise ConnectionAbortedError("there are as many as may be")
        self._inside.append((connection, address[0]))
        return connection, address


class BrowserLine(H11Protocol):
    """One connection. While no whole request of it has come it is idle: for so long, and with so few others.

    Of too many that one address leaves idle the oldest is closed, so they keep no browser of that address out.
    """

    _deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as its parent
        super().connection_made(transport)
        self._wait(0)
        idle = [c for c in self.connections if isinstance(c, BrowserLine) and c.address == self.address and c.is_idle]
        if len(idle) > MOST_IDLE:
            min(idle, key=lambda one: one.deadline_s).transport.abort()

    @property
    def address(self) -> str:
        return self.client[0] if self.client else ""

    @property
    def is_idle(self) -> bool:
        """Whether it has neither asked nor anything left to read."""
        return self._deadline is not None and not self.transport.get_write_buffer_size()

    @property
    def deadline_s(self) -> float:
        """When it is closed at the latest, in the loop's time; of one that is idle."""
        return 0.0 if self._deadline is None else self._deadline.when()

    def handle_events(self) -> None:
        super().handle_events()
        asked: RequestResponseCycle | None = self.cycle  # none before the first request
        if asked is not None and not asked.more_body and not asked.response_complete:
            self._stop_waiting()

    def on_response_complete(self) -> None:
        self._wait(self.transport.get_write_buffer_size())
        super().on_response_complete()  # which may begin with the next request

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_waiting()
        super().connection_lost(exc)

    def _wait(self, unread: int) -> None:
        """For a request, or for the rest of an answer to be read."""
        self._stop_waiting()
        self._deadline = self.loop.call_later(ASKING_S, self._expire, unread)

    def _stop_waiting(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _expire(self, unread: int) -> None:
        """Hang up, unless some of an answer was read since."""
        left = self.transport.get_write_buffer_size()
        if 0 < left < unread:
            self._wait(left)
        else:
            self.transport.abort()
