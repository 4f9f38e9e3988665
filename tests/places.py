"""Where tests keep what need not outlive them, and in which environment they start processes."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable
from functools import cache
from pathlib import Path

import pytest

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


def leave_uncounted(items: Iterable[pytest.Item], folder: Path) -> None:
    """No lines are counted in this process while the tests of a folder run: those of other folders reach every line."""
    for item in items:
        if folder in item.path.parents:
            item.add_marker(pytest.mark.no_cover)


def environment() -> dict[str, str]:
    """Ours, for proxies and others that start PostgreSQL: few of their answers need much noise."""
    return {**os.environ, "TMPDIR": str(fast()), "HUSHQL_NOISE_AHEAD": "8192"}
