"""Does `hushql policy check --data` find what a start would refuse, and touch nothing?"""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest

from proxy.admin.data_check import data_problems
from proxy.app import check_data
from proxy.engines.duckdb import DuckDBEngine
from proxy.policy.load import load_policy
from tests.e2e.served import write_users
from tests.unit.admin.command_line import CommandLine

_POLICY = """\
version: 1
dataset: clinic
source: {engine: duckdb, path: clinic.duckdb, data_version: "1"}
privacy: {unit: patient}
budgets: {dataset: {epsilon: 20}}
tables:
  patients: {unit: id, unit_unique: true, columns: {id: {type: integer, key: true}}}
  wards: {public: true, columns: {name: {type: text}}}
"""


@pytest.fixture
def clinic(tmp_path: Path) -> Path:
    with duckdb.connect(str(tmp_path / "clinic.duckdb")) as data:
        data.execute("create table patients as select i::integer as id from range(9) t(i)")
        data.execute("create table wards as select 'A' as name")
    path = tmp_path / "clinic.yaml"
    path.write_text(_POLICY)
    return path


def _problems(path: Path) -> tuple[str, ...]:
    policy = load_policy(path.read_text(), filename=str(path), environment={})
    return data_problems(policy, path.parent / "users.yaml", DuckDBEngine)


def test_what_would_start_is_right_and_leaves_nothing_behind(clinic: Path) -> None:
    write_users(clinic.parent / "users.yaml", {"ann": "analyst"})
    before = sorted(clinic.parent.iterdir())
    policy = load_policy(clinic.read_text(), filename=str(clinic), environment={})
    assert check_data(policy, clinic.parent / "users.yaml") == ()
    assert sorted(clinic.parent.iterdir()) == before


def test_logins_and_data_are_both_looked_at(clinic: Path) -> None:
    with duckdb.connect(str(clinic.parent / "clinic.duckdb")) as data:
        data.execute("insert into patients values (3)")
    users, facts = _problems(clinic)
    assert "users.yaml does not exist" in users
    assert "patients.id: 'unit_unique' is declared, and a unit has more than one row" in facts
    (clinic.parent / "clinic.duckdb").unlink()
    write_users(clinic.parent / "users.yaml", {"ann": "analyst"})
    (data_words,) = _problems(clinic)
    assert "clinic.duckdb does not exist" in data_words


def test_the_command_looks_at_the_data_of_a_policy_that_is_right(command: CommandLine, clinic: Path) -> None:
    assert command("policy", "check", str(clinic)) == 0
    assert not command.checked
    assert command("policy", "check", "--data", str(clinic)) == 0
    assert "the data keep what is declared" in command.out
    assert command.checked == [("clinic", clinic.parent / "users.yaml")]
    command.data_faults = ("patients.id: twice",)
    assert command("policy", "check", "--data", "--users", "others.yaml", str(clinic)) == 1
    assert command.err == f"{clinic}: patients.id: twice\n"
    assert command.checked[1] == ("clinic", Path("others.yaml"))
    clinic.write_text(_POLICY.replace("epsilon: 20", "epsilon: many"))
    assert command("policy", "check", "--data", str(clinic)) == 1
    assert len(command.checked) == 2, "the data of a policy that is wrong are not opened"
