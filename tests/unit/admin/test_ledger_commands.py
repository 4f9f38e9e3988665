"""Are the books shown and verified from the files alone?"""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest

from proxy.dp.accounting import ATTO, PICO
from proxy.ledger.base import Question, Wanted
from proxy.ledger.schema import FILE_NAME
from proxy.ledger.sqlite import SqliteLedger
from proxy.plan.charge import Account, AccountKind, Cost, ReleaseKey, Request
from tests.unit.admin.command_line import CommandLine
from tests.unit.policy.case_files import BASE

RHO = 6_220_000_000  # of epsilon 0.5 at delta 1e-6 with half of it for keys, about
LIMIT = Cost(10 * PICO, ATTO)


def charge(ledger: SqliteLedger, name: str) -> None:
    accounts = (
        Account(kind=AccountKind.DATASET, name="shop", limited=True, limit=LIMIT),
        Account(kind=AccountKind.USER, name="shop/alice", limited=False, limit=LIMIT),
    )
    key = ReleaseKey(fingerprint=name, policy_digest="d", data_version="1")
    wanted = (Wanted(Request(key=key, cost=Cost(RHO, 25_000)), "select 1"),)
    ledger.reserve(accounts, wanted, Question(login="alice", query=name, at=datetime(2026, 1, 1, tzinfo=UTC)))


@pytest.fixture
def state(tmp_path: Path) -> Path:
    """A ledger of two charges."""
    folder = tmp_path / "state"
    ledger = SqliteLedger(folder)
    charge(ledger, "one")
    charge(ledger, "two")
    ledger.close()
    return folder


def test_show(command: CommandLine, state: Path) -> None:
    assert command("ledger", "show", "--state", str(state)) == 0
    assert [line.split() for line in command.out.splitlines()] == [
        ["kind", "account", "spent", "delta"],
        ["dataset", "shop", "0.01244", "5e-14"],
        ["user", "shop/alice", "0.01244", "5e-14"],
    ]


def test_show_as_epsilon_of_a_policy(command: CommandLine, state: Path, tmp_path: Path) -> None:
    policy = tmp_path / "p.yaml"
    policy.write_text(BASE, encoding="utf-8")
    assert command("ledger", "show", "--state", str(state), "--policy", str(policy), "--json") == 0
    shown = json.loads(command.out)
    assert [row["account"] for row in shown] == ["shop", "shop/alice"]
    assert all(0.70 < float(row["epsilon"]) < 0.75 for row in shown)  # 0.5 * sqrt(2), nearly


def test_other_policy_says_nothing_about_an_account(command: CommandLine, state: Path, tmp_path: Path) -> None:
    policy = tmp_path / "p.yaml"
    policy.write_text(BASE.replace("dataset: shop", "dataset: sho"), encoding="utf-8")
    assert command("ledger", "show", "--state", str(state), "--policy", str(policy), "--json") == 0
    assert all("epsilon" not in row for row in json.loads(command.out))


def test_verify(command: CommandLine, state: Path) -> None:
    assert command("ledger", "verify", "--state", str(state)) == 0
    assert command.out.startswith(f"{state}: 2 charges and 0 releases verified, head ")
    assert command("ledger", "verify", "--state", str(state), "--json") == 0
    found = json.loads(command.out)
    assert (found["entries"], found["releases"], len(found["head"])) == (2, 0, 64)


def test_verify_beside_a_running_proxy(command: CommandLine, state: Path) -> None:
    ledger = SqliteLedger(state)
    try:
        charge(ledger, "three")
        assert command("ledger", "verify", "--state", str(state)) == 0
        assert command.out.startswith(f"{state}: 3 charges")
    finally:
        ledger.close()


@pytest.mark.parametrize("name", ["show", "verify"])
def test_changed_books_are_status_1(command: CommandLine, state: Path, name: str) -> None:
    with closing(sqlite3.connect(state / FILE_NAME)) as connection, connection:
        connection.execute("update entry set body = replace(body, '6220000000', '6220000001') where seq = 1")
    assert command("ledger", name, "--state", str(state)) == 1
    assert command.err.startswith("hushql: ")
    assert command.err.count("\n") == 1
    assert command.out == ""


def test_no_ledger_is_status_2(command: CommandLine, tmp_path: Path) -> None:
    assert command("ledger", "show", "--state", str(tmp_path)) == 2
    assert command.err.startswith(f"hushql: there is no ledger in {tmp_path}.")
