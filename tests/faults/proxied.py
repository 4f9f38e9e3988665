"""A proxy as its own process over a handful of made-up rows, to be hurt in every way a machine knows.

`write_site` makes policy, data and logins; `launch` starts a proxy without waiting; `running` waits for it and ends it.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Protocol

import duckdb
import psycopg
from ruamel.yaml import YAML

from proxy.admin.files import read_policy, replace_text
from proxy.analysis.key_values import MOST_KEYS
from proxy.dp.accounting import knob_pico
from proxy.ledger.base import VerifiedLedger
from proxy.ledger.replay import inspect
from proxy.policy.model import Login, NoLimit
from proxy.policy.users import with_login
from proxy.wire.scram import SALT_BYTES, make_verifier
from tests.faults.nursery import environment, nursery

DATASET, PASSWORD = "tiny", "a pass word"
LOGINS = ("ann", "bob", "cat", "dan")
ADMIN = "boss"
EPSILON = 0.1
PEOPLE = 60
PATIENCE_S = 200.0
COUNT = "select count(*) from people"
#: As many public keys as a domain may have, with five moments each.
WIDE = "select place, count(*), avg(place), avg(place + 1), avg(place + 2) from wide where age < {} group by place"
#: Runs for hours: the relation behind it is a view over a hundred billion made-up rows.
ENDLESS = "select count(*) from slow"
Client = psycopg.Connection[tuple[object, ...]]
_NUMBERS = count(1)
_LISTENS = re.compile(r"serving .* port (\d+)")


# --- what is served ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Site:
    """A folder with everything that one proxy needs."""

    folder: Path

    @property
    def policy(self) -> Path:
        return self.folder / "tiny.yaml"

    @property
    def data(self) -> Path:
        return self.folder / "tiny.duckdb"

    @property
    def users(self) -> Path:
        return self.folder / "users.yaml"

    @property
    def state(self) -> Path:
        return self.folder / "state"

    def new_log(self) -> Path:
        """Where the next proxy's output goes."""
        path = self.folder / f"log-{next(_NUMBERS)}"
        path.touch()
        return path

    def copy(self, folder: Path, **changes: object) -> Site:
        """The same data and logins elsewhere, under a policy with other top-level parts; no state."""
        folder.mkdir(parents=True, exist_ok=True)
        for path in (self.data, self.users):
            shutil.copy2(path, folder / path.name)
        copied = Site(folder)
        copied.write_policy(**changes)
        return copied

    def write_policy(self, **changes: object) -> None:
        YAML(typ="safe").dump({**policy_document(), **changes}, self.policy)

    def price(self, epsilon: float = EPSILON) -> int:
        """What one fresh count costs, in 1e-12 of rho."""
        return knob_pico(read_policy(self.policy, {}).privacy, epsilon)

    def report(self) -> VerifiedLedger:
        """The books, verified from the files alone."""
        return inspect(self.state)

    def spent(self, account: str = DATASET) -> int:
        """All that an account ever spent, in 1e-12 of rho. A user's account is called `tiny/<login>`."""
        return sum(t.spent.pico for t in self.report().totals if t.name == account)


def write_site(folder: Path) -> Site:
    """A new site."""
    site = Site(folder)
    write_data(site.data)
    text = "roles: {analyst: {}, admin: {admin: true}}\nusers: {}\n"
    for name in (*LOGINS, ADMIN):
        verifier, role = make_verifier(PASSWORD, salt=b"x" * SALT_BYTES).text(), "admin" if name == ADMIN else "analyst"
        text = with_login(text, Login(name=name, scram=verifier, role=role, budget=NoLimit()), filename="users")
    replace_text(site.users, text)
    site.write_policy()
    return site


def write_data(path: Path, people: int = PEOPLE) -> None:
    """`people`: one row for each person; `wide`: the same with a key of very many possible values.

    `slow`: what no engine comes to the end of.
    """
    with duckdb.connect(str(path)) as connection:
        connection.execute(
            "create table people as select i::integer as person_id, (i * 7 % 90)::integer as age,"
            f" i * 1000 as score from range({people}) as made(i)"
        )
        connection.execute("create view wide as select person_id, age, age + 1 as place from people")
        connection.execute(
            "create view slow as select (i % 1000)::integer as person_id, (i % 90)::integer as age"
            " from range(100000000000) as made(i)"
        )


def policy_document() -> dict[str, object]:
    person = {"type": "integer", "key": True}
    age = {"type": "integer", "bounds": [0, 110]}
    place = {"type": "integer", "bounds": [1, MOST_KEYS], "nullable": False}
    score = {"type": "bigint", "bounds": [0, 10**12]}
    return {
        "version": 1,
        "dataset": DATASET,
        "source": {"engine": "duckdb", "path": "tiny.duckdb", "data_version": "1"},
        "privacy": {"unit": "person", "delta": 1e-6, "query_epsilon": EPSILON, "time_grid": "0ms"},
        "budgets": {"dataset": {"epsilon": 1_000_000}, "user": {"epsilon": 1_000_000}},
        "tables": {
            "people": {
                "unit": "person_id",
                "unit_unique": True,
                "columns": {"person_id": person, "age": age, "score": score},
            },
            "wide": {
                "unit": "person_id",
                "unit_unique": True,
                "columns": {"person_id": person, "age": age, "place": place},
            },
            "slow": {"unit": "person_id", "max_rows_per_unit": 3, "columns": {"person_id": person, "age": age}},
        },
        "access": {"users_file": "users.yaml"},
    }


def distinct_count(number: int) -> str:
    """A statement that costs the same as every other and shares its release with none."""
    return f"{COUNT} where score < {number + 1}"


# --- who serves it ----------------------------------------------------------------------------------------


class Process(Protocol):
    """What is done with a proxy's process; as `subprocess.Popen` does it."""

    @property
    def pid(self) -> int: ...
    def poll(self) -> int | None: ...
    def wait(self, timeout: float | None = None) -> int: ...
    def send_signal(self, number: int, /) -> None: ...
    def terminate(self) -> None: ...
    def kill(self) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Proxied:
    """A proxy process. port: 0 until it listens. log: its standard output and error."""

    site: Site
    process: Process
    log: Path
    port: int = 0

    @property
    def pid(self) -> int:
        return self.process.pid

    def said(self) -> str:
        return self.log.read_text()

    def dsn(self, login: str = "ann") -> str:
        return f"host=127.0.0.1 port={self.port} dbname={DATASET} user={login} password='{PASSWORD}'"

    def connect(self, login: str = "ann") -> Client:
        return psycopg.connect(self.dsn(login), autocommit=True, connect_timeout=60)

    def signal(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def wait(self) -> int:
        """Its exit status."""
        return self.process.wait(PATIENCE_S)

    def end(self) -> None:
        """End it in whatever state it is."""
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(PATIENCE_S)
            finally:
                self.process.kill()
                self.process.wait()

    def fronts(self) -> tuple[int, ...]:
        """The process numbers of its public PostgreSQL servers."""
        return tuple(pid for pid in children_of(self.pid) if b"postgres" in _command(pid))


def launch(site: Site, *, listen: str = "127.0.0.1:0", state: Path | None = None, more: Sequence[str] = ()) -> Proxied:
    """Start `hushql serve` and return at once. more: options of its command line."""
    log = site.new_log()
    arguments = [*serve_arguments(site, listen, state), *more]
    return Proxied(site=site, process=nursery().bear(arguments, site.folder, log), log=log)


def launch_program(site: Site, *program: str) -> Proxied:
    """Start the proxy as a program of its own: `-m proxy`, or one that prepares something first."""
    log = site.new_log()
    with log.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, *program, *serve_arguments(site)], env=environment(),
            cwd=site.folder, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT,
        )  # fmt: skip
    return Proxied(site=site, process=process, log=log)


def serve_arguments(site: Site, listen: str = "127.0.0.1:0", state: Path | None = None) -> list[str]:
    return ["serve", str(site.policy), "--listen", listen, "--state", str(state or site.state)]


def wait_until_it_listens(started: Proxied) -> Proxied:
    """The same proxy with its port."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        found = _LISTENS.search(started.said())
        if found:
            return Proxied(site=started.site, process=started.process, log=started.log, port=int(found[1]))
        assert started.process.poll() is None, f"serve ended: {started.said()}"
        assert time.monotonic() < deadline, f"serve does not listen: {started.said()}"
        time.sleep(0.01)


@contextmanager
def running(site: Site, *more: str) -> Iterator[Proxied]:
    """A proxy that listens; it is ended, and must not have failed, when the block is over."""
    started = launch(site, more=more)
    try:
        yield wait_until_it_listens(started)
    finally:
        started.end()
    assert "Traceback" not in started.said(), started.said()


def refusal_of(work: Callable[[], object]) -> psycopg.Error | None:
    """What a client is told when it does this; None if it works."""
    try:
        work()
    except psycopg.Error as error:
        return error
    return None


def wait_until(is_so: Callable[[], bool]) -> None:
    """Soon, or the test fails."""
    deadline = time.monotonic() + PATIENCE_S
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def hushql(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a command that ends by itself."""
    with tempfile.TemporaryDirectory() as folder:
        log, output = Path(folder, "log"), Path(folder, "output")
        status = nursery().bear(arguments, Path(folder), log, output).wait(PATIENCE_S)
        return subprocess.CompletedProcess(arguments, status, output.read_text(), log.read_text())


# --- what the system knows of it --------------------------------------------------------------------------


def children_of(pid: int) -> tuple[int, ...]:
    """Direct children, whichever of its threads has started them; none of what has ended meanwhile."""
    found: list[int] = []
    with suppress(FileNotFoundError, ProcessLookupError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            with suppress(FileNotFoundError, ProcessLookupError):
                found += [int(word) for word in (task / "children").read_text().split()]
    return tuple(found)


def _command(pid: int) -> bytes:
    return Path(f"/proc/{pid}/cmdline").read_bytes()


def resident_kib(pid: int) -> int:
    """Memory that the process holds now."""
    text = Path(f"/proc/{pid}/status").read_text()
    return int(text.split("VmRSS:")[1].split()[0])


def threads_of(pid: int) -> int:
    return len(list(Path(f"/proc/{pid}/task").iterdir()))


def descriptors_of(pid: int) -> int:
    return len(list(Path(f"/proc/{pid}/fd").iterdir()))


def cpu_s(pid: int) -> float:
    """Processor time it has used so far, all threads together."""
    words = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")


def processes_under(folder: Path) -> tuple[int, ...]:
    """Processes whose command line names the folder, as that of a proxy on it does."""
    wanted = os.fsencode(folder)
    found: list[int] = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            command = path.read_bytes()
        except OSError:
            continue  # it has ended
        if wanted in command and int(path.parent.name) != os.getpid():
            found.append(int(path.parent.name))
    return tuple(found)


def is_at_rest(pid: int) -> bool:
    """Whether the process comes to use next to no processor time."""
    for _ in range(40):
        before = cpu_s(pid)
        time.sleep(0.25)
        if cpu_s(pid) - before <= 0.05:
            return True
    return False
