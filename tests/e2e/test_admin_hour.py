"""Does an administrator get from a database that nobody prepared to useful answers in an hour, with commands alone?

Proposed, decided, checked with data, profiled, served, asked, edited while it is served, reported: a DuckDB file
without keys, a PostgreSQL with keys and names in mixed case, and CSV files. What is refused on the way is tried too.
"""

from __future__ import annotations

import json
import re
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import psycopg
import pytest

from tests.e2e.served import START_S, Served, hushql, serving
from tests.e2e.strange_data import MUSIC, PLAYERS, write_baseball, write_baseball_files
from tests.postgres_server import private_server


@dataclass(frozen=True, slots=True, kw_only=True)
class Hour:
    """sources: options of `init`. decided: texts of the proposal and what the administrator makes of them.

    count: a query whose exact answer is `truth`. groups, mean: two more. edit: a text that is opened later, and what is
    asked of it then.
    """

    sources: Callable[[Path], list[str]]
    dataset: str
    decided: tuple[tuple[str, str], ...]
    count: str
    truth: int
    groups: str
    mean: str
    edit: tuple[str, str]
    later: str


def _duckdb(folder: Path) -> list[str]:
    write_baseball(folder / "baseball.duckdb")
    return ["--from", str(folder / "baseball.duckdb")]


def _csv(folder: Path) -> list[str]:
    return [part for path in write_baseball_files(folder) for part in ("--from", str(path))]


def _postgres(folder: Path) -> list[str]:
    server = private_server()
    server.create("admin hour", MUSIC)
    return ["--from", server.dsn("admin hour"), "--dataset", "music"]


_DUCKDB = Hour(
    sources=_duckdb, dataset="baseball", mean="SELECT avg(hr) FROM batting",
    decided=(("hr: {type: bigint}", "hr: {type: bigint, bounds: [0, 80]}"),),
    count="SELECT count(*) FROM people", truth=PLAYERS,
    groups="SELECT birthcountry, count(*) FROM people GROUP BY birthcountry",
    edit=("      # namefirst: {type: text}", "      namelast: {type: text}"),
    later="SELECT count(*) FROM people WHERE namelast = 'Last7'",
)  # fmt: skip
HOURS = {
    "duckdb": _DUCKDB,
    "csv": replace(
        _DUCKDB, sources=_csv, dataset="people", mean="SELECT avg(weight) FROM people",
        decided=(("bounds: [0, 500]", "bounds: [100, 300]"),),
    ),
    "postgres": Hour(
        sources=_postgres, dataset="music", mean='SELECT avg("Total") FROM invoice',
        decided=(("Total: {type: numeric}", "Total: {type: numeric, bounds: [0, 30]}"),),
        count="SELECT count(*) FROM customer", truth=6000,
        groups='SELECT "Country", count(*) FROM customer GROUP BY 1',
        edit=("      # FirstName: {type: text}", "      FirstName: {type: text}"),
        later="""SELECT count(*) FROM customer WHERE "FirstName" = 'First 7'""",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", HOURS)
def test_an_unknown_database_is_served_and_answered_in_an_hour(name: str, tmp_path: Path) -> None:
    hour, policy, users, state = HOURS[name], tmp_path / "p.yaml", tmp_path / "users.yaml", tmp_path / "state"
    found = hushql("policy", "init", *hour.sources(tmp_path), "--out", str(policy))
    assert found.returncode == 0, found.stderr
    assert int(found.stderr.split(" decisions")[0].rpartition(" ")[2]) <= 10
    _decide(policy, hour.decided)
    assert hushql("policy", "check", str(policy), "--data").returncode == 1, "there are no logins yet"
    assert hushql("user", "add", "ann", "--role", "analyst", "--users", str(users)).returncode == 0
    _checked(policy)
    learned = hushql("profile", str(policy), "--state", str(state), "--epsilon", "1")
    assert learned.returncode == 0, learned.stderr
    with serving(tmp_path, [policy]) as served, served.connect(hour.dataset) as client:
        ((count,),) = client.execute(hour.count.encode()).fetchall()
        assert abs(int(str(count)) - hour.truth) < 0.05 * hour.truth
        assert len(client.execute(hour.groups.encode()).fetchall()) >= 3
        ((mean,),) = client.execute(hour.mean.encode()).fetchall()
        assert float(str(mean)) > 0
        with pytest.raises(psycopg.Error) as refused:
            client.execute(hour.later.encode())
        assert "does not exist" in str(refused.value)
        text = policy.read_text()
        policy.write_text(text.replace("tables:", "tables: no table"))
        served.process.send_signal(signal.SIGHUP)
        _until(lambda: "the old policy stays in force" in served.log.read_text())
        client.execute(hour.count.encode())  # nothing is lost by a policy that is wrong
        policy.write_text(text)
        _decide(policy, (hour.edit,))
        served.process.send_signal(signal.SIGHUP)
        _until(lambda: _is_answered(served, hour))  # by a new session: an open one keeps its columns
    _reported(policy, state, hour.dataset)


def _decide(policy: Path, decided: tuple[tuple[str, str], ...]) -> None:
    text = policy.read_text()
    for proposed, wanted in decided:
        assert proposed in text
        text = text.replace(proposed, wanted)
    policy.write_text(re.sub(r" *# DECIDE: (?!which).*", "", text))


def _checked(policy: Path) -> None:
    checked = hushql("policy", "check", str(policy), "--data")
    assert checked.returncode == 0, checked.stderr
    assert "the data keep what is declared" in checked.stdout


def _is_answered(served: Served, hour: Hour) -> bool:
    try:
        with served.connect(hour.dataset) as client:
            client.execute(hour.later.encode())
    except psycopg.Error:
        return False
    return True


def _until(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + START_S
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.1)


def _reported(policy: Path, state: Path, dataset: str) -> None:
    told = hushql("ledger", "report", "--by", "user", "--state", str(state), "--policy", str(policy), "--json")
    assert told.returncode == 0, told.stderr
    rows = {row["name"]: float(row["spent"]) for row in json.loads(told.stdout)}
    assert rows["ann"] > 0
    shown = hushql("ledger", "show", "--state", str(state), "--policy", str(policy), "--json")
    spent = {row["account"]: float(row["spent"]) for row in json.loads(shown.stdout)}
    assert sum(rows.values()) == pytest.approx(spent[dataset], abs=1e-12)
