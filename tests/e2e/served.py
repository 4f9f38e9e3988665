"""Starts `hushql serve` as its own process, the way an admin does."""

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
from psycopg.rows import TupleRow
from ruamel.yaml import YAML

from proxy.front.binaries import wheel_directory
from proxy.wire.scram import make_verifier
from tests import places

ROOT = Path(__file__).resolve().parents[2]
CASES = ROOT / "tests" / "cases"
PASSWORD = "a pass word"
START_S, STOP_S = 200.0, 200.0  # a start takes a second, and twenty on a machine with ten times the load
Client = psycopg.Connection[TupleRow]
Document = dict[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """A running proxy. log: its standard error so far."""

    port: int
    process: subprocess.Popen[bytes]
    log: Path
    folder: Path

    def dsn(self, dataset: str, login: str = "ann") -> str:
        return f"host=127.0.0.1 port={self.port} dbname={dataset} user={login} password='{PASSWORD}'"

    def connect(self, dataset: str, login: str = "ann", *, options: str = "") -> Client:
        return psycopg.connect(self.dsn(dataset, login), autocommit=True, options=options)


def hushql(*arguments: str, environment: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """Run a command that ends by itself."""
    return subprocess.run(
        [sys.executable, "-m", "proxy", *arguments],
        env={**os.environ, "PYTHONPATH": str(ROOT), "HUSHQL_PASSWORD": PASSWORD, **(environment or {})},
        capture_output=True, text=True, timeout=START_S, check=False,
    )  # fmt: skip


def write_users(path: Path, logins: Mapping[str, str], roles: str = "") -> Path:
    """A users file with these logins and roles; `boss` is an admin, `clerk` may be given fewer tables."""
    verifier = make_verifier(PASSWORD, salt=b"sixteen bytes ..").text()
    lines = [f"  {login}: {{scram: '{verifier}', role: {role}}}" for login, role in logins.items()]
    every = f"roles: {{analyst: {{}}, boss: {{admin: true}}, clerk: {{{roles}}}}}"
    path.write_text("\n".join((every, "users:", *lines, "")))
    path.chmod(0o600)
    return path


@contextmanager
def serving(
    folder: Path,
    policies: Sequence[Path],
    environment: Mapping[str, str] | None = None,
    program: Sequence[str] = ("-m", "proxy"),
    options: Sequence[str] = (),
) -> Iterator[Served]:
    """A proxy that listens; ended at the end. program: what Python is to run. options: more of `serve`."""
    log = folder / "log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, *program, "serve", *map(str, policies), "--listen", "127.0.0.1:0", "--state",
             str(folder / "state"), "--front-bin", str(wheel_directory()[0]), *options],
            env={**places.environment(), "PYTHONPATH": str(ROOT), **(environment or {})},
            stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT,
        )  # fmt: skip
    try:
        yield Served(port=_port(process, log), process=process, log=log, folder=folder)
    finally:
        process.terminate()
        try:
            process.wait(STOP_S)
        finally:
            process.kill()
            process.wait()


def _port(process: subprocess.Popen[bytes], log: Path) -> int:
    deadline = time.monotonic() + START_S
    while True:
        found = re.search(r"serving .* port (\d+)", log.read_text())
        if found:
            return int(found[1])
        assert process.poll() is None, f"serve ended with {process.returncode}: {log.read_text()}"
        assert time.monotonic() < deadline, f"serve does not listen: {log.read_text()}"
        time.sleep(0.02)


# --- policies ---------------------------------------------------------------------------------------


def read_yaml(path: Path) -> dict[str, object]:
    loaded: dict[str, object] = YAML(typ="safe").load(path)
    return loaded


def write_yaml(path: Path, document: Mapping[str, object]) -> Path:
    YAML(typ="safe").dump(dict(document), path)
    return path


def shop_policy(**changes: object) -> Document:
    """The policy of the cases with other top-level parts."""
    return {**read_yaml(CASES / "shop.yaml"), **changes}


def public_twin(policy: Mapping[str, object]) -> Document:
    """The same tables, each public: every query over them is answered exactly by PostgreSQL."""
    tables = policy["tables"]
    assert isinstance(tables, dict)
    twins = {}
    for name, table in tables.items():
        columns = {column: {k: v for k, v in facts.items() if k != "key"} for column, facts in table["columns"].items()}
        twins[name] = {"public": True, "columns": columns, "relation": table.get("relation", name)}
    return {**policy, "dataset": "truth", "tables": twins}
