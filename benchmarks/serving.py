"""How is a proxy of the benchmarks' own started, with all the budget there is?"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psycopg
from ruamel.yaml import YAML

from proxy.wire.scram import make_verifier

ROOT = Path(__file__).resolve().parents[1]
LOGIN, PASSWORD = "bench", "bench"
_START_S, _STOP_S = 60.0, 30.0


@dataclass(frozen=True, slots=True)
class Served:
    """A proxy that listens."""

    pid: int
    port: int


def connect(address: str) -> psycopg.Connection:
    return psycopg.connect(address, autocommit=True)


@contextmanager
def serving(
    folder: Path, policy: Path, environment: Mapping[str, str], time_grid: int | str = 0, sessions: int = 100,
    cores: Sequence[int] = (),
) -> Iterator[Served]:  # fmt: skip
    """A proxy that serves the policy, on this time grid, with all the budget there is and room for so many sessions.

    cores: which it may use, all if none are named.
    """
    log = folder / "log"
    command = [
        *(["taskset", "--cpu-list", ",".join(map(str, cores))] if cores else []),
        sys.executable,
        "-m",
        "proxy",
        "serve",
        str(_generous(folder, policy, time_grid, sessions)),
        "--listen",
        "127.0.0.1:0",
    ]
    with log.open("wb") as output:
        process = subprocess.Popen(
            [*command, "--state", str(folder / "state")], cwd=ROOT, env={**os.environ, **environment},
            stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT,
        )  # fmt: skip
    try:
        yield Served(process.pid, _port(process, log))
    finally:
        process.terminate()
        process.wait(_STOP_S)


def _generous(folder: Path, policy: Path, time_grid: int | str, sessions: int) -> Path:
    yaml = YAML(typ="safe")
    document = yaml.load(policy)
    document["privacy"]["time_grid"] = time_grid
    document["budgets"] = {"dataset": {"epsilon": 1_000_000}}
    document["limits"] = {**document.get("limits", {}), "max_sessions": sessions, "max_sessions_per_user": sessions}
    document["access"] = {"users_file": "users.yaml"}
    verifier = make_verifier(PASSWORD, salt=os.urandom(16)).text()
    users = folder / "users.yaml"
    users.write_text(f"roles: {{analyst: {{}}}}\nusers:\n  {LOGIN}: {{scram: '{verifier}', role: analyst}}\n")
    users.chmod(0o600)
    path = folder / policy.name
    yaml.dump(document, path)
    return path


def _port(process: subprocess.Popen[bytes], log: Path) -> int:
    deadline = time.monotonic() + _START_S
    while time.monotonic() < deadline and process.poll() is None:
        found = re.search(r"serving .* port (\d+)", log.read_text())
        if found:
            return int(found[1])
        time.sleep(0.05)
    raise RuntimeError(f"the proxy does not listen: {log.read_text()}")
