"""Proxies in quick succession: the program is loaded once, and every proxy is a fork of it.

Run as a program it reads lines of JSON, {"arguments": [...], "folder": "...", "log": "...", "output": "..."}. For each
it writes the number of a process that runs `hushql` with these arguments, and in the end that one's exit status into
<log>.status.
"""

from __future__ import annotations

import atexit
import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tests import places

ROOT = Path(__file__).resolve().parents[2]
_STATUS_S = 60.0
_FRESH = os.O_WRONLY | os.O_CREAT | os.O_TRUNC


@dataclass(frozen=True, slots=True)
class Born:
    """A process that is nobody's child here; it is used as a `subprocess.Popen`."""

    pid: int
    handle: int
    status: Path

    def poll(self) -> int | None:
        return self._status() if select.select([self.handle], [], [], 0)[0] else None

    def wait(self, timeout: float | None = None) -> int:
        if not select.select([self.handle], [], [], timeout)[0]:
            raise TimeoutError
        return self._status()

    def _status(self) -> int:
        deadline = time.monotonic() + _STATUS_S
        while not self.status.exists():
            assert time.monotonic() < deadline, "nobody has seen the end of this process"
            time.sleep(0.002)
        return int(self.status.read_text())

    def send_signal(self, number: int) -> None:
        if not select.select([self.handle], [], [], 0)[0]:
            signal.pidfd_send_signal(self.handle, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


def environment() -> dict[str, str]:
    """Of a proxy. OPERATORS_OWN: nothing that it starts needs that."""
    return {**places.environment(), **places.UNCOUNTED, "PYTHONPATH": str(ROOT), "OPERATORS_OWN": "a word"}


class Nursery:
    """Where proxies come from. To be closed when no more are wanted; those that live go on."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.faults.nursery"], env=environment(), cwd=ROOT,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip

    def bear(self, arguments: Sequence[str], folder: Path, log: Path, output: Path | None = None) -> Born:
        """Start `hushql` with these arguments in a folder. log: its standard error, and its output if nothing else."""
        orders, pids = self._process.stdin, self._process.stdout
        assert orders is not None
        assert pids is not None
        order = {"arguments": list(arguments), "folder": str(folder), "log": str(log), "output": str(output or log)}
        orders.write(json.dumps(order) + "\n")
        orders.flush()
        pid = int(pids.readline())
        return Born(pid, os.pidfd_open(pid), _status_of(log))

    def close(self) -> None:
        self._process.communicate()


@cache
def nursery() -> Nursery:
    """One for the whole test run."""
    made = Nursery()
    atexit.register(made.close)
    return made


def _status_of(log: Path) -> Path:
    return log.with_name(f"{log.name}.status")


# --- the program ------------------------------------------------------------------------------------------


def tend() -> bool:
    """Serve orders. True in a process that is to become a proxy, False at the end."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    for line in sys.stdin:
        order = json.loads(line)
        if os.fork() == 0:
            return watch_over(order)
    return False


def watch_over(order: dict[str, object]) -> bool:
    """Fork once more: the child is the proxy, its parent tells how it ends."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    pid = os.fork()
    if pid == 0:
        settle(order)
        return True
    print(pid, flush=True)
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    told = _status_of(Path(str(order["log"])))
    told.with_suffix(".new").write_text(str(status))
    told.with_suffix(".new").rename(told)
    os._exit(0)


def settle(order: dict[str, object]) -> None:
    """Be like a program that was just started."""
    os.chdir(str(order["folder"]))
    nothing, log = os.open(os.devnull, os.O_RDONLY), os.open(str(order["log"]), _FRESH, 0o600)
    output = log if order["output"] == order["log"] else os.open(str(order["output"]), _FRESH, 0o600)
    for number, source in ((0, nothing), (1, output), (2, log)):
        os.dup2(source, number)
    for source in {nothing, log, output}:
        os.close(source)
    arguments = order["arguments"]
    assert isinstance(arguments, list)
    sys.argv = ["hushql", *arguments]


if __name__ == "__main__":
    from proxy.__main__ import main

    if tend():
        main()
