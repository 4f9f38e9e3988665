"""How does a process give up its rights before it becomes PostgreSQL?

Run as a script by file name, in a fresh single-threaded interpreter, so that nothing happens between
fork and exec of the proxy itself. It imports the standard library only and ends in execv:

    python -I -S launch.py PARENT UID GID ADDRESS_SPACE FILE_SIZE PROGRAM [ARGUMENT ...]

PARENT: pid whose death ends this process. UID, GID: the account to become, -1 to stay.
ADDRESS_SPACE, FILE_SIZE: limits in bytes, 0 for none.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
import signal
import sys

LAUNCH_FAILED = 126
_PR_SET_PDEATHSIG = 1
_OOM_SCORE = "500"  # if memory runs out, the disposable front goes first, not the proxy


def main(arguments: list[str]) -> None:
    """Drop rights, set limits, tie the life to the parent's, become PROGRAM."""
    parent, uid, gid, address_space, file_size = (int(a) for a in arguments[:5])
    program = arguments[5:]
    try:
        with contextlib.suppress(OSError):
            _write_oom_score()
        _limit(resource.RLIMIT_CORE, 0)
        if address_space:
            _limit(resource.RLIMIT_AS, address_space)
        if file_size:
            _limit(resource.RLIMIT_FSIZE, file_size)
        if uid >= 0:
            os.setgroups([])
            os.setgid(gid)
            os.setuid(uid)
        os.umask(0o077)
        _die_with(parent)  # after setuid: a change of user clears the setting
        os.chdir("/")
        os.execv(program[0], program)  # noqa: S606 - replacing this process is the point; no shell is involved
    except OSError as error:
        print(f"cannot start {program[0]}: {error.strerror}", file=sys.stderr)  # noqa: T201 - a script's own stderr
        os._exit(LAUNCH_FAILED)


def _limit(kind: int, wanted: int) -> None:
    """Lower one resource limit, never above what the proxy was given itself."""
    hard = resource.getrlimit(kind)[1]
    value = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    resource.setrlimit(kind, (value, value))


def _write_oom_score() -> None:
    with open("/proc/self/oom_score_adj", "w", encoding="ascii") as knob:
        knob.write(_OOM_SCORE)


def _die_with(parent: int) -> None:
    """Linux only: SIGQUIT (PostgreSQL's immediate shutdown) when the parent dies."""
    if not sys.platform.startswith("linux"):
        return
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_PDEATHSIG, int(signal.SIGQUIT), 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl failed")
    if os.getppid() != parent:
        os._exit(LAUNCH_FAILED)


if __name__ == "__main__":
    main(sys.argv[1:])
