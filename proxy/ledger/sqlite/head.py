"""Is the ledger's file the newest one, or an older copy that somebody put back?

A small file beside the ledger names the last entry by number and hash. It is written after the entry is durable, and
is durable itself before anything is answered. So an honest crash leaves a file that is level with the marker or ahead
of it, and an older copy, or a shortened one, is behind it. A copy of the *whole* directory put back is not noticed: the
guide says to leave this file out of backups.
"""

from __future__ import annotations

import os
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from zlib import crc32

from proxy.errors import LedgerFailed
from proxy.ledger.sqlite.directory import make_private, sync_directory

MARKER_NAME = "head"
RESTORE_HINT = (
    "Put back the newest copy of all files of the state directory. If it is lost, what was spent since the copy is"
    " unknown: start with a new, empty state directory and lower the budgets by what may have been spent."
)
_SLOT_BYTES = 4096  # two slots on different pages: a write that is cut short spoils one of them


@dataclass(frozen=True, slots=True)
class Mark:
    """The number and hash of an entry; number 0 stands for the empty ledger."""

    seq: int
    digest: str


@dataclass(frozen=True, slots=True)
class NoMark:
    """There is no marker: the ledger has never been opened for writing, or somebody removed the file."""


@dataclass(frozen=True, slots=True, eq=False)
class Marking:
    """A mark on its way to the disk."""

    seq: int
    _forced: Future[None]

    def has_failed(self) -> bool:
        """Whether it will never be durable; waits until that is known."""
        return self._forced.exception() is not None

    def wait(self) -> None:
        """Until the mark is durable. Raises OSError."""
        self._forced.result()


class Marker:
    """The marker file, open for writing."""

    def __init__(self, path: Path) -> None:
        """Open it, or make it empty. Raises ConfigError."""
        make_private(path)
        self._handle = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        self._forcing = ThreadPoolExecutor(1, "hushql-marker")
        self._durable = 1 - _oldest_slot(path.read_bytes())  # the slot that must survive
        sync_directory(path.parent)

    def write(self, mark: Mark) -> Marking:
        """Write `mark` and begin to force it to disk. Raises OSError.

        The newest mark that is known to be on the disk is never the one overwritten.
        """
        slot = 1 - self._durable
        os.pwrite(self._handle, _slot(mark).ljust(_SLOT_BYTES, b"\0"), slot * _SLOT_BYTES)
        return Marking(mark.seq, self._forcing.submit(self._force, slot))

    def _force(self, slot: int) -> None:
        os.fdatasync(self._handle)
        self._durable = slot

    def close(self) -> None:
        """Wait for what is under way."""
        self._forcing.shutdown()
        os.close(self._handle)


def read_mark(path: Path) -> Mark | NoMark:
    """The newest valid mark in the file. Raises LedgerFailed if the file has content and none is valid."""
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        content = b""
    except OSError as error:
        raise LedgerFailed(f"the ledger's marker {path} cannot be read") from error
    marks = [mark for slot in _slots(content) for mark in _parse(slot)]
    if marks:
        return max(marks, key=lambda mark: mark.seq)
    if content:
        raise LedgerFailed(f"the ledger's marker {path} is damaged", hint=RESTORE_HINT)
    return NoMark()


def _slots(content: bytes) -> tuple[bytes, bytes]:
    return content[:_SLOT_BYTES], content[_SLOT_BYTES : 2 * _SLOT_BYTES]


def _oldest_slot(content: bytes) -> int:
    """The slot that may be overwritten: one without a mark, or that of the older mark."""
    first, second = (max((mark.seq for mark in _parse(slot)), default=-1) for slot in _slots(content))
    return 0 if first <= second else 1


def _slot(mark: Mark) -> bytes:
    text = f"{mark.seq} {mark.digest}"
    return f"{text} {crc32(text.encode()):08x}\n".encode()


def _parse(slot: bytes) -> tuple[Mark, ...]:
    words = slot.rstrip(b"\0").split()
    if len(words) != 3 or not words[0].isdigit():
        return ()
    mark = Mark(int(words[0]), words[1].decode("ascii", "replace"))
    return (mark,) if _slot(mark).split() == words else ()
