"""Which segment of shared memory did a PostgreSQL leave that was killed, and is it safe to remove?

PostgreSQL keeps one small System V segment for each server, to see whether another one still uses its data; one that is
killed leaves it, and our servers never come back to their data. Others' segments are never touched: one is removed only
if that very process made it as the front's account and nobody is attached, as a server that lives is. Where there is no
/proc nothing is removed.
"""

from __future__ import annotations

import ctypes
import os
from pathlib import Path

_TABLE = Path("/proc/sysvipc/shm")
_IPC_RMID = 0
_SEGMENT_LINE = 6  # of postmaster.pid: key and number


def remove_segments_of(pid: int, uid: int) -> int:
    """Remove what a server of this process number, which has ended, left in shared memory; how many these were."""
    found = [row for row in _rows() if (row["cpid"], row["uid"], row["nattch"]) == (pid, uid, 0)]
    return sum(_remove(row["shmid"]) for row in found)


def remove_segment_named_in(data: Path, uid: int) -> int:
    """The same for a server that another proxy had started, if its directory names number, key and process rightly."""
    try:
        lines = (data / "postmaster.pid").read_text(encoding="utf-8").splitlines()
        pid, (key, number) = int(lines[0]), map(int, lines[_SEGMENT_LINE].split())
    except (OSError, ValueError, IndexError):
        return 0
    named = (number, key, pid, uid, 0)
    found = [r for r in _rows() if (r["shmid"], r["key"], r["cpid"], r["uid"], r["nattch"]) == named]
    return sum(_remove(row["shmid"]) for row in found)


def _rows() -> list[dict[str, int]]:
    """Segments as the kernel lists them."""
    try:
        names, *lines = [line.split() for line in _TABLE.read_text(encoding="ascii").splitlines()]
    except (OSError, ValueError):
        return []
    return [dict(zip(names, map(int, line), strict=True)) for line in lines]


def _remove(number: int) -> bool:
    """Whether it was there and could be removed."""
    libc = ctypes.CDLL(None, use_errno=True)
    return os.name == "posix" and libc.shmctl(number, _IPC_RMID, None) == 0
