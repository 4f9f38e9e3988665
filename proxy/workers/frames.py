"""What do the proxy and a process that thinks for it write to each other?

Frames: a kind, an amount, the length of what follows, and that. One work at a time; each is answered by one frame.
"""

from __future__ import annotations

import enum
import struct
from dataclasses import dataclass

_HEADER = struct.Struct("!BdQ")
HEADER_BYTES = _HEADER.size


class FrameKind(enum.IntEnum):
    """KNOW, FORGET: premises by their number. WORK: amount is how many seconds of the processor it may take.

    Answers: what the work returns; the error it raises for the client, or `Unread`; that it took too long, or too
    much memory, or was dropped; or where it failed.
    """

    KNOW = 1
    FORGET = 2
    WORK = 3
    RETURNED = 4
    RAISED = 5
    SLOW = 6
    LARGE = 7
    DROPPED = 8
    FAILED = 9


@dataclass(frozen=True, slots=True)
class WorkFrame:
    """One frame. amount: seconds, or a number of premises."""

    kind: FrameKind
    amount: float = 0.0
    content: bytes = b""

    def raw(self) -> bytes:
        return _HEADER.pack(self.kind, self.amount, len(self.content)) + self.content


def read_header(raw: bytes) -> tuple[FrameKind, float, int]:
    """Kind, amount and the length of the content. Raises ValueError for no such kind."""
    kind, amount, length = _HEADER.unpack(raw)
    return FrameKind(kind), amount, length


class Splitter:
    """Cuts bytes, however they come, into frames."""

    def __init__(self) -> None:
        self._held = bytearray()

    def feed(self, data: bytes) -> list[WorkFrame]:
        """The frames that are whole now. Raises ValueError."""
        self._held += data
        found = []
        while len(self._held) >= HEADER_BYTES:
            kind, amount, length = read_header(bytes(self._held[:HEADER_BYTES]))
            end = HEADER_BYTES + length
            if len(self._held) < end:
                break
            found.append(WorkFrame(kind, amount, bytes(self._held[HEADER_BYTES:end])))
            del self._held[:end]
        return found
