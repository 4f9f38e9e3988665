"""Can an operator see what happens: who logged in, what was answered at which price, whether everything works?"""

from __future__ import annotations

import json
import signal
import time
import urllib.error
import urllib.request
from collections.abc import Iterator

import duckdb
import psycopg
import pytest

from tests.e2e.served import START_S, Served, hushql, serving, write_users
from tests.ports import reserved_port

_POLICY = """\
version: 1
dataset: clinic
source: {engine: duckdb, path: clinic.duckdb, data_version: "1"}
privacy: {unit: patient}
budgets: {dataset: {epsilon: 20}, user: {epsilon: 2, questions: 5}}
tables:
  patients: {unit: id, unit_unique: true, columns: {id: {type: integer, key: true}, ok: {type: boolean}}}
"""


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    with reserved_port() as port:
        yield port


@pytest.fixture(scope="module")
def clinic(tmp_path_factory: pytest.TempPathFactory, port: int) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("clinic")
    with duckdb.connect(str(folder / "clinic.duckdb")) as data:
        data.execute("create table patients as select i::integer as id, i % 2 = 0 as ok from range(2000) t(i)")
    (folder / "clinic.yaml").write_text(_POLICY)
    write_users(folder / "users.yaml", {"ann": "analyst", "eve": "boss"})
    options = ("--log-format", "json", "--metrics", f"127.0.0.1:{port}")
    with serving(folder, [folder / "clinic.yaml"], options=options) as served:
        yield served


def _lines(served: Served, event: str) -> list[dict[str, object]]:
    lines = [json.loads(line) for line in served.log.read_text().splitlines()]
    return [line for line in lines if line["event"] == event]


def _wait_for(served: Served, event: str, count: int) -> list[dict[str, object]]:
    deadline = time.monotonic() + START_S
    while len(found := _lines(served, event)) < count:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    return found


def test_what_happens_is_a_line_of_json_each(clinic: Served, port: int) -> None:
    with pytest.raises(psycopg.Error):
        psycopg.connect(f"host=127.0.0.1 port={clinic.port} dbname=clinic user=ann password=wrong")
    with clinic.connect("clinic") as client:
        client.execute("SELECT count(*) FROM patients WHERE ok")
        client.execute("SELECT count(*) FROM patients WHERE ok")
        with pytest.raises(psycopg.Error):
            client.execute("SELECT * FROM patients")
        for number in range(4):
            client.execute(f"SELECT count(*) FROM patients WHERE id IS NOT NULL AND {number} = {number} AND NOT ok")
            client.execute("SET hush.fresh = on")
        answered, reused, refused = _wait_for(clinic, "statement", 3)[:3]
    (failed,), logins = _lines(clinic, "login_failed"), _lines(clinic, "login")
    assert (failed["login"], failed["code"], failed["address"]) == ("ann", "28P01", "127.0.0.1")
    assert (logins[0]["login"], logins[0]["role"], logins[0]["dataset"]) == ("ann", "analyst", "clinic")
    assert (answered["outcome"], reused["outcome"], refused["outcome"]) == ("answered", "reused", "refused")
    assert answered["tables"] == ["patients"]
    assert answered["session"] == logins[0]["session"]
    assert refused["code"] == "DP004"
    assert "statement" not in answered, "what was asked is logged only on request"
    assert _wait_for(clinic, "account", 1)[0]["percent"] == 80.0
    spent = _metric(port, 'hushql_account_spent_ratio{account="clinic",dataset="clinic",kind="dataset"}')
    assert 0 < spent < 0.1


def test_readiness_and_reloads_are_told(clinic: Served, port: int) -> None:
    assert _asked(port, "/readyz") == 200
    assert _asked(port, "/healthz") == 200
    assert _asked(port, "/nothing") == 404
    path = clinic.folder / "clinic.yaml"
    path.write_text(_POLICY.replace("epsilon: 20", "epsilon: 30"))
    clinic.process.send_signal(signal.SIGHUP)
    (taken,) = _wait_for(clinic, "reload", 1)
    assert taken["accepted"] is True
    assert taken["opens"] == ["budgets.dataset: epsilon 20 becomes epsilon 30"]
    path.write_text("no policy")
    clinic.process.send_signal(signal.SIGHUP)
    assert _wait_for(clinic, "reload", 2)[1]["accepted"] is False
    assert _metric(port, 'hushql_ready{dataset="clinic",part="engine"}') == 1.0


def test_what_was_spent_is_reported_and_adds_up(clinic: Served) -> None:
    clinic.folder.joinpath("clinic.yaml").write_text(_POLICY)
    with clinic.connect("clinic", "eve") as client:
        client.execute("SELECT count(*) FROM patients")
    state, policy = str(clinic.folder / "state"), str(clinic.folder / "clinic.yaml")
    shown = json.loads(hushql("ledger", "show", "--state", state, "--policy", policy, "--json").stdout)
    spent = {row["account"]: float(row["spent"]) for row in shown}
    for by in ("user", "role", "table", "day"):
        told = hushql("ledger", "report", "--by", by, "--state", state, "--policy", policy, "--json")
        assert told.returncode == 0, told.stderr
        rows = json.loads(told.stdout)
        assert sum(float(row["spent"]) for row in rows) == pytest.approx(spent["clinic"], abs=1e-12)


def _asked(port: int, path: str) -> int:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=60) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as refused:
        with refused:
            return refused.code


def _metric(port: int, name: str) -> float:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=60) as answer:
        lines = answer.read().decode().splitlines()
    return next(float(line.rpartition(" ")[2]) for line in lines if line.startswith(name))
