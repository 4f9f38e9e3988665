"""How do bytes of one connection reach whoever handles them?

A connection is awaited message by message during login, then attached to a receiver that gets its bytes without
a task in between. Knows no protocol.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import cast

_MAX_WAITING_BYTES = 65_536


@dataclass(frozen=True, slots=True)
class Receiver:
    """What happens on a connection. on_writable: False when its peer reads too slowly, True when it has caught up."""

    on_data: Callable[[bytes], None]
    on_lost: Callable[[], None]
    on_writable: Callable[[bool], None]


class SocketLink(asyncio.Protocol):
    """One connection."""

    def __init__(self) -> None:
        self.is_lost = False
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._inbox = bytearray()
        self._changed = asyncio.Event()
        self._receiver = Receiver(self._collect, self._changed.set, lambda _is_writable: None)
        self._is_reading = True

    # --- what asyncio calls ----------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)  # a stream protocol gets a stream transport

    def data_received(self, data: bytes) -> None:
        self._receiver.on_data(data)

    def connection_lost(self, exc: Exception | None) -> None:
        self.is_lost = True
        self._receiver.on_lost()

    def pause_writing(self) -> None:
        self._receiver.on_writable(False)

    def resume_writing(self) -> None:
        self._receiver.on_writable(True)

    # --- login -----------------------------------------------------------------------------------------

    async def read(self, count: int) -> bytes:
        """Exactly that many bytes. Raises ConnectionResetError when the peer hangs up before."""
        while len(self._inbox) < count:
            if self.is_lost:
                raise ConnectionResetError
            self._changed.clear()
            await self._changed.wait()
        found = bytes(self._inbox[:count])
        del self._inbox[:count]
        self.set_reading(len(self._inbox) < _MAX_WAITING_BYTES)
        return found

    def _collect(self, data: bytes) -> None:
        self._inbox += data
        self._changed.set()
        if len(self._inbox) >= _MAX_WAITING_BYTES:
            self.set_reading(False)

    @property
    def peer_host(self) -> str:
        """The address of the other end, "" where it has none."""
        found = self.transport.get_extra_info("peername")
        return str(found[0]) if isinstance(found, tuple) else ""

    # --- session ---------------------------------------------------------------------------------------

    def attach(self, receiver: Receiver) -> None:
        """Give all bytes to `receiver` from now on, those first that came during login."""
        self._receiver = receiver
        waiting = bytes(self._inbox)
        self._inbox.clear()
        self.set_reading(True)
        if waiting:
            receiver.on_data(waiting)
        if self.is_lost:
            receiver.on_lost()

    @property
    def transport(self) -> asyncio.Transport:
        assert self._transport is not None
        return self._transport

    def write(self, data: bytes) -> None:
        if data and not self.is_lost:
            self.transport.write(data)

    def set_reading(self, is_reading: bool) -> None:
        """Go on or stop taking bytes from the peer."""
        if is_reading is self._is_reading or self.is_lost or self.transport.is_closing():
            return
        self._is_reading = is_reading
        if is_reading:
            self.transport.resume_reading()
        else:
            self.transport.pause_reading()

    def close(self, within_s: float) -> None:
        """Hang up after what was written has left, or after that time whatever has."""
        if not self.is_lost:
            self.transport.close()
            self._loop.call_later(within_s, self.transport.abort)
