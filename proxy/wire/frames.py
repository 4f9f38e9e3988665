"""Where does one client message end and the next begin?

Cuts a stream of bytes into messages, whatever the cuts of the network. Does not look inside a message.
Format: PostgreSQL documentation, "Message Formats": one type byte, a length that counts itself, the body.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass, field

from proxy.errors import ProtocolViolation
from proxy.wire.messages import HEADER_BYTES, SYNC

_LENGTH = struct.Struct("!I")
_COMPACT_AT_BYTES = 65_536

#: Every message type a client may send after the start-up phase.
CLIENT_KINDS = frozenset(b"BCcDdEFfHPQSX")


@dataclass(frozen=True, slots=True)
class Frame:
    """One whole message; `raw` includes the header."""

    kind: int
    raw: bytes


@dataclass(frozen=True, slots=True)
class Oversized:
    """A message whose body was thrown away because it was longer than its kind may be."""

    kind: int


@dataclass(frozen=True, slots=True)
class Incomplete:
    """No further whole message has arrived yet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FrameLimits:
    """Longest message, header excluded.

    max_bytes: a longer one ends the session. discard_above: kinds whose longer messages are
    thrown away and reported as `Oversized`, so that they can be refused politely.
    """

    max_bytes: int = 16 * 1024 * 1024
    discard_above: Mapping[int, int] = field(default_factory=dict)


INCOMPLETE = Incomplete()


class FrameSplitter:
    """Collects bytes and gives back whole messages, in order."""

    def __init__(self, limits: FrameLimits) -> None:
        self._limits = limits
        self._buffer = bytearray()
        self._at = 0
        self._discard_bytes = 0
        self._discard_kind = 0

    @property
    def buffered_bytes(self) -> int:
        """Bytes that have arrived and were not taken yet."""
        return len(self._buffer) - self._at

    def feed(self, data: bytes) -> None:
        """Add bytes as they arrived."""
        if self._at == len(self._buffer):
            self._buffer.clear()
            self._at = 0
        elif self._at > _COMPACT_AT_BYTES:
            del self._buffer[: self._at]
            self._at = 0
        self._buffer += data

    def next_kind(self) -> int:
        """Type byte of the next message, 0 when nothing waits."""
        if self._discard_bytes or self._at >= len(self._buffer):
            return 0
        return self._buffer[self._at]

    def take_sync(self) -> bool:
        """Take the next message if it is a Sync, whole and as it should be."""
        if self._discard_bytes or not self._buffer.startswith(SYNC, self._at):
            return False
        self._at += len(SYNC)
        return True

    def take(self) -> Frame | Oversized | Incomplete:
        """The next message. Raises ProtocolViolation for an unknown type or an impossible length."""
        if self._discard_bytes:
            return self._discard()
        start = self._at
        available = len(self._buffer) - start
        if not available:
            return INCOMPLETE
        kind = self._buffer[start]
        if kind not in CLIENT_KINDS:
            raise ProtocolViolation(f"invalid frontend message type {kind}")
        if available < HEADER_BYTES:
            return INCOMPLETE
        length = _LENGTH.unpack_from(self._buffer, start + 1)[0]
        if length < 4:
            raise ProtocolViolation("invalid message length")
        if length - 4 > self._limits.discard_above.get(kind, self._limits.max_bytes):
            return self._start_discarding(kind, length)
        end = start + 1 + length
        if end > len(self._buffer):
            return INCOMPLETE
        self._at = end
        return Frame(kind, bytes(memoryview(self._buffer)[start:end]))

    def _start_discarding(self, kind: int, length: int) -> Oversized | Incomplete:
        if kind not in self._limits.discard_above:
            raise ProtocolViolation("message is too long")
        self._discard_kind = kind
        self._discard_bytes = length + 1
        return self._discard()

    def _discard(self) -> Oversized | Incomplete:
        step = min(self._discard_bytes, self.buffered_bytes)
        self._at += step
        self._discard_bytes -= step
        return INCOMPLETE if self._discard_bytes else Oversized(self._discard_kind)
