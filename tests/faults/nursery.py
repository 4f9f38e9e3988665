"""Proxies in quick succession: the program is loaded once and every proxy is a fork of it.

Run as a program it reads lines of JSON, {"arguments": [...], "folder": "...", "log": "..."}, and writes for each the
number of a process that runs `hushql` with these arguments. Whoever asked for it ends it.
"""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO

from tests.faults.proxied import ROOT, Proxied, Site, serve_arguments


@dataclass(frozen=True, slots=True)
class Born:
    """A process that is nobody's child here. Behaves as `subprocess.Popen`; its exit status stays unknown."""

    pid: int
    handle: int

    def poll(self) -> int | None:
        return 0 if select.select([self.handle], [], [], 0)[0] else None

    def wait(self, timeout: float | None = None) -> int:
        if not select.select([self.handle], [], [], timeout)[0]:
            raise TimeoutError
        return 0

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            signal.pidfd_send_signal(self.handle, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


@dataclass(frozen=True, slots=True)
class Nursery:
    """Where proxies come from."""

    lines_in: IO[str]
    lines_out: IO[str]

    def launch(self, site: Site) -> Proxied:
        """As `proxied.launch`, without the time to load the program."""
        log = site.new_log()
        order = {"arguments": serve_arguments(site), "folder": str(site.folder), "log": str(log)}
        self.lines_in.write(json.dumps(order) + "\n")
        self.lines_in.flush()
        pid = int(self.lines_out.readline())
        return Proxied(site=site, process=Born(pid, os.pidfd_open(pid)), log=log)


@contextmanager
def nursery() -> Iterator[Nursery]:
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.faults.nursery"], env={**os.environ, "PYTHONPATH": str(ROOT)}, cwd=ROOT,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    with process:
        assert process.stdin is not None
        assert process.stdout is not None
        yield Nursery(process.stdin, process.stdout)


def bear(order: dict[str, object]) -> int:
    """Fork; the child becomes a proxy and never returns."""
    pid = os.fork()
    if pid:
        return pid
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # a proxy waits for its children
    os.chdir(str(order["folder"]))
    log = os.open(str(order["log"]), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    for number, source in ((0, os.open(os.devnull, os.O_RDONLY)), (1, log), (2, log)):
        os.dup2(source, number)
    from proxy.__main__ import main

    arguments = order["arguments"]
    assert isinstance(arguments, list)
    sys.argv = ["hushql", *arguments]
    status = 3
    try:
        main()
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else 0
    finally:
        sys.stderr.flush()
        os._exit(status)


def tend() -> None:
    import proxy.__main__  # noqa: F401 - so that it is loaded already in every fork

    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    for line in sys.stdin:
        print(bear(json.loads(line)), flush=True)


if __name__ == "__main__":
    tend()
