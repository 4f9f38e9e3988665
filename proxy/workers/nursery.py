"""Where do the processes come from that think for the proxy?

`python -m proxy.workers.nursery FD` has imported what they need, and nothing else happened in it before. It forks one
for each socket that it is handed, says how each has ended, and ends itself, with all of them, when the proxy hangs up.
"""

from __future__ import annotations

import contextlib
import gc
import os
import resource
import select
import signal
import socket
import sys
import time

from proxy.pipeline import ahead, stages  # all that is ever asked for, so that each process has it from the start
from proxy.workers.worker import main as work

_KNOWN = (ahead.foresee, stages.rehearse)
_GRACE_S = 2.0  # to end when the proxy has hung up, before being killed


def main() -> None:
    """Fork until the proxy hangs up."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    wakes, woken = socket.socketpair()
    woken.setblocking(False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(woken.fileno(), warn_on_full_buffer=False)
    gc.freeze()
    with socket.socket(fileno=int(sys.argv[1])) as control:
        children = _fork_all(control, wakes, woken)
    _end(children)


def _fork_all(control: socket.socket, wakes: socket.socket, woken: socket.socket) -> set[int]:
    """Fork for each socket that comes, until the proxy hangs up; the children that are left."""
    children = set[int]()
    while True:
        ready, _, _ = select.select([control, wakes], [], [])
        if wakes in ready:
            wakes.recv(4096)
            for pid, status in _ended(children):
                _tell(control, f"ended {pid} {status}\n")
        if control not in ready:
            continue
        message, fds, _, _ = socket.recv_fds(control, 64, 1)
        if not message:
            return children
        link = socket.socket(fileno=fds[0])
        pid = os.fork()
        if not pid:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            for own in (control, wakes, woken):
                own.close()
            work(link, *map(int, message.split()))
            sys.exit()
        link.close()
        children.add(pid)
        _tell(control, f"born {pid}\n")


def _tell(control: socket.socket, line: str) -> None:
    with contextlib.suppress(OSError):  # the proxy has ended: that is noticed when it is read from
        control.sendall(line.encode())


def _ended(children: set[int]) -> list[tuple[int, int]]:
    """Who has ended meanwhile, and how: the number of a signal, negative, or an exit code."""
    found = []
    for pid in tuple(children):
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            children.discard(pid)
            found.append((pid, os.waitstatus_to_exitcode(status)))
    return found


def _end(children: set[int]) -> None:
    """Wait for the children, who have lost the proxy as well; a busy one is not waited for long."""
    deadline = time.monotonic() + _GRACE_S
    while children and time.monotonic() < deadline:
        _ended(children)
        time.sleep(0.01)
    for pid in children:
        os.kill(pid, signal.SIGKILL)
    while children:
        _ended(children)
        time.sleep(0.001)


if __name__ == "__main__":
    main()
