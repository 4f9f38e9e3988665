"""A server of Spark's protocol, of the tests' own: Sail, which is up in a second; Spark takes half a minute."""

from __future__ import annotations

import atexit
import socket
import subprocess
import sys
import time
from contextlib import ExitStack
from functools import cache

from tests.ports import reserved_port

_READY_S = 60
# A worker of pytest-xdist is no file, which Spark's client takes for a run of its own documentation's tests.
vars(sys.modules["__main__"]).setdefault("__file__", __file__)

_SERVE = """
import sys
from pysail.spark import SparkConnectServer
SparkConnectServer("127.0.0.1", int(sys.argv[1])).start(background=False)
"""  # in the process of the tests it would hang


class SailServer:
    """A server in a process of its own, whose port is given to nobody else."""

    def __init__(self) -> None:
        self._held = ExitStack()
        self.port = self._held.enter_context(reserved_port())
        self.process = self._started()

    @property
    def url(self) -> str:
        return f"sc://127.0.0.1:{self.port}"

    def kill(self) -> None:
        """End it as a crash would."""
        self.process.kill()
        self.process.wait()

    def again(self) -> None:
        """A new server where the old one was, which knows nothing of its sessions."""
        self.process = self._started()

    def close(self) -> None:
        self.kill()
        self._held.close()

    def _started(self) -> subprocess.Popen[bytes]:
        process = subprocess.Popen(
            [sys.executable, "-c", _SERVE, str(self.port)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        deadline = time.monotonic() + _READY_S
        while time.monotonic() < deadline and process.poll() is None:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", self.port)) == 0:
                    return process
            time.sleep(0.05)
        process.kill()
        process.wait()
        raise AssertionError("Sail did not start")


@cache
def sail() -> SailServer:
    """The server of this process of tests."""
    started = SailServer()
    atexit.register(started.close)
    return started
