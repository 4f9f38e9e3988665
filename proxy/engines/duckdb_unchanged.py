"""Is a DuckDB file still the one that was opened?

DuckDB holds it open and reads it page by page, so one that is removed or replaced by a rename goes on being read. One
that is overwritten or cut short in its place is not: statements over it would fail, or mean nothing. Looks at the size
and at the headers, which every writer changes, and at no row.
"""

from __future__ import annotations

import os
from dataclasses import dataclass

from proxy.engines.base import EngineStopped
from proxy.errors import ConfigError, Failure
from proxy.policy.model import DuckDBFile, Source

_HEADERS = 3 * 4096
_OF_FILES = frozenset(("IOException", "SerializationException", "InternalException", "FatalException"))


@dataclass(frozen=True, slots=True)
class NoFile:
    """The rows are in memory."""

    def check(self) -> None:
        """Nothing can happen to them."""

    def failure(self, exception_name: str) -> Failure:
        """Which kind of failure an exception of DuckDB is."""
        return Failure.LIMITS if exception_name in ("OutOfMemoryException", "IOException") else Failure.OTHER

    def close(self) -> None:
        """Nothing is held."""


@dataclass(frozen=True, slots=True)
class OpenedFile:
    """A file as it was when it was opened. Closing the handle ends DuckDB's lock too, so both are kept alike."""

    handle: int
    size: int
    headers: bytes
    modified_ns: int

    def check(self) -> None:
        """Raises EngineStopped if the file is not what it was, or cannot be read."""
        try:
            is_same = (os.fstat(self.handle).st_size, _read_headers(self.handle)) == (self.size, self.headers)
        except OSError as error:
            stopped = EngineStopped(type(error).__name__, Failure.UNREACHABLE)
        else:
            if is_same:
                return
            stopped = EngineStopped("FileChanged", Failure.CHANGED)
        raise stopped

    def failure(self, exception_name: str) -> Failure:
        """Which kind of failure an exception of DuckDB is: of a file that was touched meanwhile, that is the reason."""
        if exception_name in _OF_FILES and self._is_touched():
            return Failure.CHANGED
        return NoFile().failure(exception_name)

    def _is_touched(self) -> bool:
        try:
            return os.fstat(self.handle).st_mtime_ns != self.modified_ns
        except OSError:
            return True

    def close(self) -> None:
        """To be called when DuckDB has closed the file."""
        os.close(self.handle)


def opened_file(source: Source) -> OpenedFile | NoFile:
    """What to compare with, right after DuckDB has opened the data. Raises ConfigError."""
    if not isinstance(source, DuckDBFile):
        return NoFile()
    try:
        handle = os.open(source.path, os.O_RDONLY | os.O_CLOEXEC)
        found = os.fstat(handle)
        return OpenedFile(handle, found.st_size, _read_headers(handle), found.st_mtime_ns)
    except OSError as error:
        raise ConfigError(f"the data file {source.path} cannot be read: {error.strerror}") from error


def _read_headers(handle: int) -> bytes:
    return os.pread(handle, _HEADERS, 0)
