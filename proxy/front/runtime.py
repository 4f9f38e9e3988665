"""Where does the front live on disk, and what is left of a proxy that was killed?

A front has one directory, fresh at each start, that belongs to the proxy; the parts that PostgreSQL
writes to belong to the front's account. A record in the state directory names the directory and the
servers in it, so that the next start can end orphans and remove what they left. While a proxy lives it
holds a lock on the directory; the kernel drops it when the proxy dies, however it dies.
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
from dataclasses import dataclass, field
from pathlib import Path

from proxy.errors import FrontFailed
from proxy.front.account import Account, can_traverse

MAX_SOCKET_PATH = 103  # bytes, without the final NUL: the smallest limit of the systems we run on
_LONGEST_INSIDE = "/hushql-xxxxxxxx/999/s/.s.PGSQL.5432"
_RECORD = "front-*.json"
_QUIT_WAIT_S = 3.0


@dataclass(frozen=True, slots=True)
class Process:
    """A process that cannot be mistaken for a later one with the same pid.

    started: its start time in the kernel's ticks since boot, -1 where /proc does not exist.
    """

    pid: int
    started: int

    def is_alive(self) -> bool:
        return self.started >= 0 and start_ticks(self.pid) == self.started


@dataclass(slots=True)
class RuntimeDirectory:
    """The directory of one front. Made by `create`; `remove` ends it."""

    path: Path
    account: Account
    record: Path
    lock: int
    processes: dict[int, Process] = field(default_factory=dict)

    def add_process(self, pid: int) -> None:
        """Remember a server, before anything can go wrong with it."""
        self.processes[pid] = Process(pid, start_ticks(pid))
        self._write()

    def drop_process(self, pid: int) -> None:
        """Forget a server that has been waited for."""
        self.processes.pop(pid, None)
        self._write()

    def make_private(self, name: str) -> Path:
        """A fresh, empty directory that only the front's account can enter. An old one is removed."""
        path = self.path / name
        path.parent.mkdir(mode=0o711, exist_ok=True)
        path.parent.chmod(0o711)
        if path.exists():
            shutil.rmtree(path)
        path.mkdir(mode=0o700)
        if not self.account.is_own:
            os.chown(path, self.account.uid, self.account.gid)
        return path

    def write_readable(self, name: str, text: str) -> Path:
        """A file of the proxy's that the front's account may read and never write."""
        path = self.path / name
        path.parent.mkdir(mode=0o711, exist_ok=True)
        temporary = path.with_name(path.name + ".new")
        temporary.write_text(text, encoding="utf-8")
        if self.account.is_own:
            temporary.chmod(0o600)
        else:
            os.chown(temporary, os.geteuid(), self.account.gid)
            temporary.chmod(0o640)
        temporary.replace(path)
        return path

    def remove(self) -> None:
        """Delete the directory, its record and the lock."""
        shutil.rmtree(self.path, ignore_errors=True)
        self.record.unlink(missing_ok=True)
        with contextlib.suppress(OSError):
            os.close(self.lock)

    def _write(self) -> None:
        content = {
            "directory": str(self.path),
            "processes": [[p.pid, p.started] for p in self.processes.values()],
        }
        temporary = self.record.with_suffix(".new")
        temporary.write_text(json.dumps(content), encoding="utf-8")
        temporary.chmod(0o600)
        temporary.replace(self.record)


def create(state_dir: Path, account: Account) -> RuntimeDirectory:
    """A fresh directory: below `state_dir` if the account can get there and the path is short enough
    for a socket, else in the system's place for temporary files."""
    state_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    for parent in (state_dir, Path(tempfile.gettempdir()), Path("/tmp")):  # noqa: S108 - mkdtemp makes the name
        if len(os.fsencode(parent.resolve())) + len(_LONGEST_INSIDE) > MAX_SOCKET_PATH:
            continue
        if not can_traverse(parent, account):
            continue
        path = Path(tempfile.mkdtemp(prefix="hushql-", dir=parent.resolve()))
        path.chmod(0o711)
        made = RuntimeDirectory(path, account, state_dir / f"front-{path.name}.json", _lock(path))
        made._write()
        return made
    raise FrontFailed(
        f'no directory for the public PostgreSQL that "{account.name}" can reach with a short enough path',
        hint="Set TMPDIR to a short path such as /tmp.",
    )


def sweep(state_dir: Path) -> int:
    """End and remove what dead proxies left behind; returns the number of fronts removed.

    Only processes that our own record names are signalled: files the front could write are not believed.
    """
    removed = 0
    for record in sorted(state_dir.glob(_RECORD)):
        directory, processes = _read_record(record)
        held = _try_lock(directory)
        if held == _LOCKED:
            continue
        for process in processes:
            end_orphan(process)
        if directory.is_dir() and directory.name.startswith("hushql-"):
            shutil.rmtree(directory, ignore_errors=True)
        record.unlink(missing_ok=True)
        if held != _GONE:
            os.close(held)
        removed += 1
    return removed


def end_orphan(process: Process) -> None:
    """Ask for an immediate shutdown, then kill. Does nothing if the pid is somebody else's by now."""
    for number in (signal.SIGQUIT, signal.SIGKILL):
        if not process.is_alive():
            return
        with contextlib.suppress(ProcessLookupError):
            os.kill(process.pid, number)
        deadline = time.monotonic() + _QUIT_WAIT_S
        while process.is_alive() and time.monotonic() < deadline:
            time.sleep(0.02)


def start_ticks(pid: int) -> int:
    """The start time of a running process, -1 if there is none (or no /proc, or only its remains)."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return -1
    fields = stat.rpartition(")")[2].split()
    return -1 if fields[0] in ("Z", "X") else int(fields[19])


# --- the lock ---------------------------------------------------------------------------------

_LOCKED, _GONE = -1, -2


def _lock(path: Path) -> int:
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    return descriptor


def _try_lock(path: Path) -> int:
    """A descriptor that holds the lock, or _LOCKED (its proxy lives), or _GONE."""
    try:
        return _lock(path)
    except BlockingIOError:
        return _LOCKED
    except OSError:
        return _GONE


def _read_record(record: Path) -> tuple[Path, tuple[Process, ...]]:
    """A record that cannot be read names nothing: the lock-less directory stays, the record goes."""
    try:
        content = json.loads(record.read_text(encoding="utf-8"))
        return Path(content["directory"]), tuple(Process(int(p), int(s)) for p, s in content["processes"])
    except (OSError, ValueError, KeyError, TypeError):
        return Path("/nonexistent"), ()
