"""Where does the front live on disk, and what is left of a proxy that was killed?

A front has one directory, fresh at each start, that belongs to the proxy; the parts that PostgreSQL
writes to belong to the front's account. A record in the state directory names it, so that the next start
can end orphans and remove what they left. While a proxy lives it holds a lock on the directory; the
kernel drops it when the proxy dies, however it dies.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
import signal
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from proxy.errors import FrontFailed
from proxy.front.account import SystemUser, can_traverse
from proxy.front.segments import remove_segment_named_in

MAX_SOCKET_PATH = 103  # bytes, without the final NUL: the smallest limit of the systems we run on
_LONGEST_INSIDE = "/hushql-xxxxxxxx/9999/s/.s.PGSQL.5432"
_PREFIX = "hushql-"
_QUIT_WAIT_S = 2.0


@dataclass(slots=True, eq=False)
class RuntimeDirectory:
    """The directory of one front. Made by `create`; `remove` ends it."""

    path: Path
    account: SystemUser
    record: Path
    lock: int

    def make_private(self, name: str) -> Path:
        """A fresh, empty directory that only the front's account can enter. An old one is removed."""
        path = self.path / name
        self._make_parent(path)
        if path.exists():
            shutil.rmtree(path)
        path.mkdir(mode=0o700)
        if not self.account.is_own:
            os.chown(path, self.account.uid, self.account.gid)
        return path

    def write_readable(self, name: str, text: str) -> Path:
        """A file of the proxy's that the front's account may read and never write."""
        path = self.path / name
        self._make_parent(path)
        temporary = path.with_name(path.name + ".new")
        temporary.write_text(text, encoding="utf-8")
        if self.account.is_own:
            temporary.chmod(0o600)
        else:
            os.chown(temporary, os.geteuid(), self.account.gid)
            temporary.chmod(0o640)
        temporary.replace(path)
        return path

    def restore(self) -> None:
        """Make the directory again if it was removed, as by something that cleans up temporary files."""
        if not self.path.exists():
            self.path.mkdir(mode=0o711)
            self.path.chmod(0o711)
            os.close(self.lock)
            self.lock = _lock(self.path)

    def end_processes(self, name: str) -> None:
        """End whatever of the front's account still works inside the subdirectory `name`."""
        end_processes(self.path / name, self.account.uid)

    def remove_server(self, name: str) -> None:
        """Delete the subdirectory of a server that has ended."""
        shutil.rmtree(self.path / name, ignore_errors=True)

    def remove(self) -> None:
        """Delete the directory, its record and the lock."""
        shutil.rmtree(self.path, ignore_errors=True)
        self.record.unlink(missing_ok=True)
        with contextlib.suppress(OSError):
            os.close(self.lock)

    def _make_parent(self, path: Path) -> None:
        path.parent.mkdir(mode=0o711, exist_ok=True)
        path.parent.chmod(0o711)  # the file mode mask may have taken bits away


def create(state_dir: Path, account: SystemUser) -> RuntimeDirectory:
    """A fresh directory: below `state_dir` if the account can get there and the path is short enough
    for a socket, else in the system's place for temporary files."""
    state_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    for parent in (state_dir, Path(tempfile.gettempdir()), Path("/tmp")):  # noqa: S108 - mkdtemp makes the name
        if len(os.fsencode(parent.resolve())) + len(_LONGEST_INSIDE) > MAX_SOCKET_PATH:
            continue
        if not can_traverse(parent, account):
            continue
        path = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=parent.resolve()))
        lock = _lock(path)
        path.chmod(0o711)
        record = state_dir / f"front-{path.name}.json"
        record.write_text(json.dumps({"directory": str(path), "uid": account.uid}), encoding="utf-8")
        return RuntimeDirectory(path, account, record, lock)
    raise FrontFailed(
        f'no directory for the public PostgreSQL that "{account.name}" can reach with a short enough path',
        hint="Set TMPDIR to a short path such as /tmp.",
    )


def sweep(state_dir: Path) -> int:
    """End and remove what dead proxies left behind; returns the number of fronts removed.

    Nothing that a front could have written is believed: its processes are recognised by their account
    and by working inside a directory that only the proxy's own record names.
    """
    removed = 0
    for record in sorted(state_dir.glob("front-*.json")):
        directory, uid = _read_record(record)
        if directory.is_dir() and directory.name.startswith(_PREFIX):
            try:
                held = _lock(directory)
            except BlockingIOError:
                continue  # its proxy lives
            end_processes(directory, uid)
            for data in directory.glob("*/data"):
                remove_segment_named_in(data, uid)
            shutil.rmtree(directory, ignore_errors=True)
            os.close(held)
        elif directory.name.startswith(_PREFIX):
            end_processes(directory, uid)
        record.unlink(missing_ok=True)
        removed += 1
    return removed


def end_processes(directory: Path, uid: int) -> None:
    """Ask the account's processes that work inside `directory` for immediate shutdown, then kill them.

    PostgreSQL's processes all have the data directory as their working directory, also after it was
    deleted. Where there is no /proc nothing is found; a server whose data directory is gone ends
    itself within a minute.
    """
    for number in (signal.SIGQUIT, signal.SIGKILL):
        deadline = time.monotonic() + _QUIT_WAIT_S
        found = processes_in(directory, uid)
        for pid in found:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)
        while found and time.monotonic() < deadline:
            time.sleep(0.02)
            found = processes_in(directory, uid)
        if not found:
            return


def processes_in(directory: Path, uid: int) -> tuple[int, ...]:
    """The running processes of `uid` whose working directory is in `directory`."""
    inside = f"{directory}/"
    found: list[int] = []
    with contextlib.suppress(FileNotFoundError):
        for entry in os.scandir("/proc"):
            if not entry.name.isdigit():
                continue
            with contextlib.suppress(OSError):  # it ended meanwhile, or is not ours to look at
                if entry.stat().st_uid == uid and os.readlink(f"{entry.path}/cwd").startswith(inside):
                    found.append(int(entry.name))
    return tuple(found)


def _lock(path: Path) -> int:
    """A descriptor that holds the lock. Raises BlockingIOError while another process or front has it."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


def _read_record(record: Path) -> tuple[Path, int]:
    """A record that cannot be read names nothing."""
    try:
        content = json.loads(record.read_text(encoding="utf-8"))
        return Path(content["directory"]), int(content["uid"])
    except (OSError, ValueError, KeyError, TypeError):
        return Path("/nonexistent"), -1
