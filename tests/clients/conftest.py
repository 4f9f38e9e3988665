"""A served census, and the programs that are its clients."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import psycopg
import pytest
from ruamel.yaml import YAML

from tests.ports import reserved_port

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
LOGIN, PASSWORD = "ada", "correct horse"
START_TIMEOUT_S = 90.0
STOP_TIMEOUT_S = 30.0
#: Noise of the counts below has a standard deviation under 10 at the served epsilon: 100 is never reached by chance.
TOLERANCE = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """Where a served dataset answers, and who may log in."""

    port: int
    host: str = "127.0.0.1"
    database: str = "adult"
    login: str = LOGIN
    password: str = PASSWORD

    @property
    def libpq_environment(self) -> dict[str, str]:
        """What libpq and node-postgres read, on top of a bare environment without anybody's start-up files."""
        return {
            "PATH": os.environ["PATH"],
            "HOME": "/nonexistent",
            "LC_ALL": "C.UTF-8",
            "PGHOST": self.host,
            "PGPORT": str(self.port),
            "PGDATABASE": self.database,
            "PGUSER": self.login,
            "PGPASSWORD": self.password,
        }

    @property
    def dsn(self) -> str:
        return f"host={self.host} port={self.port} dbname={self.database} user={self.login} password='{self.password}'"


def run(command: list[str], environment: Mapping[str, str], *, cwd: Path, stdin: str = "") -> str:
    """Standard output of a client program; fails with its standard error when it fails."""
    done = subprocess.run(
        command, env=dict(environment), cwd=cwd, input=stdin, capture_output=True, text=True, timeout=100, check=False
    )
    assert done.returncode == 0, f"{command[0]} exited {done.returncode}:\n{done.stdout}\n{done.stderr}"
    return done.stdout


def told(output: str) -> dict[str, str]:
    """The `name<TAB>value` lines of a client program, which must have reached its end."""
    lines = dict(line.split("\t", 1) for line in output.splitlines() if "\t" in line)
    assert lines.get("done") == "yes", output
    return lines


def near(value: str, expected: int) -> bool:
    """Whether a noisy count is one."""
    return abs(int(value) - expected) < TOLERANCE


def _write_policy(directory: Path) -> Path:
    """The published census policy with budgets that last for the whole run."""
    yaml = YAML()
    document = yaml.load(ROOT / "policies" / "adult.yaml")
    document["privacy"]["query_epsilon"] = 1.0
    document["budgets"] = {"dataset": {"epsilon": 1000}, "user": {"epsilon": 1000}, "session": {"epsilon": 500}}
    document["access"] = {"users_file": "users.yaml"}
    path = directory / "adult.yaml"
    yaml.dump(document, path)
    return path


def _wait_until_served(server: Server, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + START_TIMEOUT_S
    while True:
        assert process.poll() is None, f"hushql serve exited {process.returncode}:\n{log.read_text()}"
        try:
            psycopg.connect(server.dsn, connect_timeout=5).close()
            return
        except psycopg.OperationalError:
            assert time.monotonic() < deadline, f"hushql serve does not answer:\n{log.read_text()}"
            time.sleep(0.1)


@pytest.fixture(scope="session")
def port() -> Iterator[int]:
    with reserved_port() as port:
        yield port


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory, adult_csv: Path, port: int) -> Iterator[Server]:
    """`hushql serve` on the census with one analyst, as its own process."""
    directory = tmp_path_factory.mktemp("served")
    hushql = [sys.executable, "-m", "proxy"]
    environment = {**os.environ, "ADULT_CSV": str(adult_csv), "HUSHQL_PASSWORD": PASSWORD, "PYTHONPATH": str(ROOT)}
    users = directory / "users.yaml"
    run([*hushql, "user", "add", LOGIN, "--role", "analyst", "--users", str(users)], environment, cwd=directory)
    policy = _write_policy(directory)
    served = Server(port=port)
    log = directory / "log"
    command = [
        *hushql,
        "serve",
        str(policy),
        "--listen",
        f"127.0.0.1:{served.port}",
        "--state",
        str(directory / "state"),
    ]
    with log.open("wb") as output:
        process = subprocess.Popen(command, env=environment, cwd=directory, stdout=output, stderr=subprocess.STDOUT)
    try:
        _wait_until_served(served, process, log)
        yield served
    finally:
        process.terminate()
        process.wait(STOP_TIMEOUT_S)
