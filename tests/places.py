"""Where tests keep what need not outlive them, and in which environment they start processes."""

from __future__ import annotations

import os
import tempfile
from functools import cache
from pathlib import Path

_MEMORY = Path("/dev/shm")
_ENOUGH_BYTES = 2 << 30
#: Of processes whose lines other tests count already: counting them takes half of their time.
UNCOUNTED = {"COVERAGE_PROCESS_CONFIG": "", "COVERAGE_PROCESS_START": ""}


@cache
def fast() -> Path:
    """A directory for PostgreSQL's files. In memory a server starts in half the time; some containers have little."""
    if os.access(_MEMORY, os.W_OK | os.X_OK):
        found = os.statvfs(_MEMORY)
        if found.f_bavail * found.f_frsize >= _ENOUGH_BYTES:
            return _MEMORY
    return Path(tempfile.gettempdir())


def environment() -> dict[str, str]:
    """Ours, for processes that start PostgreSQL."""
    return {**os.environ, "TMPDIR": str(fast())}
