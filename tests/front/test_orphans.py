"""What is left of a front when its proxy is killed, also where nobody is root."""

from __future__ import annotations

import asyncio
import json
import os
import pwd
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from proxy.front.front import Front, FrontOptions
from proxy.front.runtime import processes_in, sweep
from tests.front.conftest import open_as
from tests.front.samples import (
    USERS,
    installed_servers,
    policy,
    store_rows,
    users,
)

ROOT = Path(__file__).resolve().parents[2]


def wait_until(condition: Callable[[], bool], timeout_s: float = 60.0) -> None:
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.02)


PROXY = """
import asyncio, json, sys
from pathlib import Path
from proxy.front.front import Front, FrontOptions
from tests.front.samples import policy, store_rows, users
async def main():
    options = FrontOptions(state_dir=Path(sys.argv[1]), binaries=Path(sys.argv[2]))
    front = await Front.start(policy(), users(alice="all"), options, store_rows)
    account = front.runtime.account
    print(json.dumps([str(front.runtime.path), account.uid, front.servers[0].pid]), flush=True)
    await asyncio.sleep(600)
asyncio.run(main())
"""


def start_proxy(
    state: Path, python: str = sys.executable, **how: object
) -> tuple[subprocess.Popen[str], Path, int, int]:
    path = os.pathsep.join([str(ROOT), *(p for p in sys.path if p.endswith("site-packages"))])
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"}
    command = [python, "-c", PROXY, str(state), str(installed_servers()["wheel"])]
    process: subprocess.Popen[str] = subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, env=environment, **how
    )  # type: ignore[call-overload] # keywords of the caller
    assert process.stdout is not None
    directory, uid, pid = json.loads(process.stdout.readline())
    return process, Path(directory), uid, pid


def end(process: subprocess.Popen[str], number: int) -> None:
    process.send_signal(number)
    process.wait()
    assert process.stdout is not None
    process.stdout.close()


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_the_servers_die_with_a_killed_proxy(tmp_path: Path, number: signal.Signals) -> None:
    process, directory, uid, pid = start_proxy(tmp_path)
    assert pid in processes_in(directory, uid)
    end(process, number)
    wait_until(lambda: not processes_in(directory, uid))
    assert sweep(tmp_path) == 1
    assert not directory.exists()
    assert list(tmp_path.iterdir()) == []


def test_the_next_start_ends_an_orphan(runner: asyncio.Runner, tmp_path: Path) -> None:
    """The orphan is stopped, so that it cannot react to its parent's death."""
    process, directory, uid, pid = start_proxy(tmp_path)
    os.kill(pid, signal.SIGSTOP)
    end(process, signal.SIGKILL)
    assert pid in processes_in(directory, uid)
    options = FrontOptions(state_dir=tmp_path, binaries=installed_servers()["wheel"])
    front = runner.run(Front.start(policy(USERS), users(alice="all"), options, store_rows))
    try:
        assert processes_in(directory, uid) == ()
        assert not directory.exists()
        assert sweep(tmp_path) == 0  # the living one is left alone
        open_as(front, "alice").close()
    finally:
        runner.run(front.stop())


def reachable_python(uid: int) -> str:
    """An interpreter of our version that `uid` may run; a virtual environment below /root is none."""
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    for candidate in (sys.executable, shutil.which(version, path="/usr/bin:/usr/local/bin")):
        if candidate is None:
            continue
        try:
            subprocess.run([candidate, "-c", "import ctypes"], user=uid, check=True, capture_output=True)
        except (OSError, subprocess.CalledProcessError):
            continue
        return candidate
    pytest.skip("no interpreter that an unprivileged account may run; run the tests without root as well")


@pytest.mark.skipif(os.geteuid() != 0, reason="all other tests of this file run without root then")
def test_a_front_runs_without_root(tmp_path_factory: pytest.TempPathFactory) -> None:
    nobody = pwd.getpwnam("nobody")
    python = reachable_python(nobody.pw_uid)
    state = Path("/tmp") / f"hush-test-{os.getpid()}"
    state.mkdir(mode=0o700)
    os.chown(state, nobody.pw_uid, nobody.pw_gid)
    try:
        process, directory, uid, _ = start_proxy(
            state, python, user=nobody.pw_uid, group=nobody.pw_gid, extra_groups=[], cwd="/"
        )
        assert uid == nobody.pw_uid
        assert directory.parent == state  # its own state directory is reachable for itself
        end(process, signal.SIGKILL)
        wait_until(lambda: not processes_in(directory, uid))
    finally:
        shutil.rmtree(state)
