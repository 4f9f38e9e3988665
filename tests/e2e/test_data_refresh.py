"""Are new data served by one command, and is nothing changed when they are not what the policy declares?"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

from tests import places
from tests.e2e import served
from tests.e2e.served import Client, Served, hushql

POLICY = """# visits of a clinic
version: 1
dataset: clinic
source:
  engine: duckdb
  path: ${CLINIC}
  data_version: 7   # the label of a load
privacy: {unit: patient, query_epsilon: 100, time_grid: 0ms}
budgets: {dataset: {epsilon: 1000000}}
tables:
  visits:
    unit: patient
    max_rows_per_unit: 1
    columns: {patient: {type: integer, key: true}, minutes: {type: integer, bounds: [0, 90]}}
"""
ASKED = b"SELECT count(*) FROM visits"


def write(path: Path, patients: int, minutes: str = "integer") -> Path:
    """A file of so many visits, put in the place of another one by renaming."""
    beside = path.with_suffix(".new")
    with duckdb.connect(str(beside)) as data:
        data.execute(f"create table visits as select r::integer as patient, (r % 60)::{minutes} as minutes"
                     f" from range({patients}) t(r)")  # fmt: skip
    return beside.replace(path)


@pytest.fixture(scope="module")
def clinic(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("clinic")
    served.write_users(folder / "users.yaml", {"ann": "analyst"})
    policy = folder / "clinic.yaml"
    policy.write_text(POLICY)
    policy.chmod(0o640)
    write(folder / "first.duckdb", 1000)
    with served.serving(folder, [policy], {**places.UNCOUNTED, "CLINIC": str(folder / "first.duckdb")}) as running:
        yield running


def counted(client: Client) -> int:
    return int(str(client.execute(ASKED).fetchall()[0][0]))


def refresh(running: Served, *options: str) -> tuple[int, str]:
    """Exit status, and what was said."""
    found = hushql("data", "refresh", *options, "--state", str(running.folder / "state"))
    return found.returncode, found.stdout + found.stderr


def test_new_data_are_served_under_their_own_label(clinic: Served) -> None:
    policy = clinic.folder / "clinic.yaml"
    second = write(clinic.folder / "second.duckdb", 3000)
    with clinic.connect("clinic") as client:
        old = counted(client)
        assert abs(old - 1000) < 50
        status, said = refresh(clinic, "clinic", "--path", os.path.relpath(second), "--version", "load 8")
        assert status == 0, said
        assert f"data version load 8 is served, from {second}" in said
        assert abs(counted(client) - 3000) < 50
    text = policy.read_text()
    assert text == POLICY.replace("${CLINIC}", f'"{second}"').replace("data_version: 7", 'data_version: "load 8"')
    assert stat.S_IMODE(policy.stat().st_mode) == 0o640, "who may read it stays as it was"

    write(second, 500)  # the same name again: nothing but the command tells of it
    status, said = refresh(clinic, "clinic")
    assert status == 0, said
    with clinic.connect("clinic") as client:
        assert abs(counted(client) - 500) < 50
    label = policy.read_text().split("data_version: ")[1].split("   #")[0]
    assert label.startswith('"20')
    assert label.endswith('Z"')
    history = hushql("policy", "history", "--state", str(clinic.folder / "state"))
    assert history.stdout.count("clinic") == 3
    assert "Traceback" not in clinic.log.read_text()


@pytest.mark.parametrize(("options", "words"), [
    (("clinic", "--path", "wrong.duckdb"), "minutes: is DOUBLE in the data, integer in the policy"),
    (("clinic", "--path", "nowhere.duckdb"), "does not exist"),
    (("elsewhere",), 'does not serve a dataset "elsewhere". It serves clinic'),
])  # fmt: skip
def test_what_cannot_be_served_changes_nothing(options: tuple[str, ...], words: str, clinic: Served) -> None:
    write(clinic.folder / "wrong.duckdb", 9, "double")
    here = [str(clinic.folder / o) if o.endswith(".duckdb") else o for o in options]
    before = (clinic.folder / "clinic.yaml").read_text()
    with clinic.connect("clinic") as client:
        answer = counted(client)
        status, said = refresh(clinic, *here)
        assert status == 1
        assert words in said
        assert counted(client) == answer
        assert client.execute("SELECT DISTINCT status FROM hush.policy").fetchall() == [("in force",)]
    assert (clinic.folder / "clinic.yaml").read_text() == before


def test_a_policy_that_is_wrong_on_disk_is_told(clinic: Served) -> None:
    policy = clinic.folder / "clinic.yaml"
    text = policy.read_text()
    policy.write_text(text.replace("dataset:", "{ dataset:", 1))
    try:
        status, said = refresh(clinic, "clinic")
        assert status == 1
        assert "not valid YAML" in said
        assert policy.read_text() != text, "it is not written over"
    finally:
        policy.write_text(text)


def test_the_label_of_the_data_that_are_served_is_refused(clinic: Served) -> None:
    write(clinic.folder / "third.duckdb", 800)
    third = ("--path", str(clinic.folder / "third.duckdb"), "--version", "the third")
    assert refresh(clinic, "clinic", *third)[0] == 0
    status, said = refresh(clinic, "clinic", *third)
    assert status == 1
    assert 'have the label "the third" already' in said


def test_without_a_proxy_it_says_what_to_do(tmp_path: Path) -> None:
    found = hushql("data", "refresh", "clinic", "--state", str(tmp_path))
    assert found.returncode == 2
    assert f"no proxy runs on the state directory {tmp_path}" in found.stderr
    assert "source.data_version" in found.stderr
