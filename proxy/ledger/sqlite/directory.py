"""Does this process own the state directory, and can nobody else read it?

One directory belongs to one process at a time, by a lock that the kernel drops when the process ends in any way.
Modes are compared, not tried: for root every access succeeds, so only the bits say who else may read.
"""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from proxy.errors import ConfigError

LOCK_NAME = "lock"


class DirectoryInUse(ConfigError):
    """A running process owns the directory."""


class OwnedDirectory:
    """A directory of mode 0700, made if absent, locked for this process until `close`."""

    def __init__(self, path: Path) -> None:
        """Raises ConfigError if it cannot be made, is open to others, or belongs to a running process."""
        self.path = path
        try:
            path.mkdir(mode=0o700, parents=True, exist_ok=True)
            check_private(path)
            self._lock = os.open(path / LOCK_NAME, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                self._take_lock()
            except BaseException:
                os.close(self._lock)
                raise
        except OSError as error:
            raise ConfigError(
                f"state directory {path} cannot be used: {error.strerror}",
                hint="Name a directory that this user may write to, on a disk with free space.",
            ) from error

    def _take_lock(self) -> None:
        """Lock the file and write this process's number into it. Raises ConfigError, OSError."""
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            owner = os.pread(self._lock, 20, 0).decode("ascii", "replace").strip()
            raise DirectoryInUse(
                f"state directory {self.path} is in use by process {owner or 'unknown'}",
                hint="Stop that process first, or give each its own state directory.",
            ) from None
        os.ftruncate(self._lock, 0)
        os.pwrite(self._lock, f"{os.getpid()}\n".encode(), 0)

    def close(self) -> None:
        os.close(self._lock)


def check_private(path: Path) -> None:
    """Raise ConfigError if group or others have any right to an existing file or directory."""
    mode = path.stat().st_mode & 0o777
    if mode & 0o077:
        wanted = "700" if path.is_dir() else "600"
        raise ConfigError(f"{path} has mode {mode:04o}, so other users may read it", hint=f"Run: chmod {wanted} {path}")


def make_private(path: Path) -> None:
    """Create an empty file of mode 0600, or check the mode of the existing one. Raises ConfigError."""
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
        check_private(path)
    except OSError as error:
        raise ConfigError(f"{path} cannot be written: {error.strerror}") from error


def sync_directory(path: Path) -> None:
    """Make the names in a directory durable."""
    handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
