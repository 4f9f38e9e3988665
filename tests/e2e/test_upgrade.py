"""Is what an older version left taken over: what was spent, what was answered, what is known?"""

from __future__ import annotations

import json
import sqlite3
import tarfile
from contextlib import closing
from pathlib import Path

import pytest

from tests import places
from tests.e2e import served
from tests.e2e.kept_state import ASKED, KEPT, figures
from tests.e2e.served import hushql

VERSIONS = sorted(path.name.removesuffix(".tar.gz") for path in KEPT.glob("*.tar.gz"))


def unpacked(version: str, folder: Path) -> Path:
    with tarfile.open(KEPT / f"{version}.tar.gz") as kept:
        kept.extractall(folder, filter="data")
    for made in (folder / "clinic" / "state").rglob("*"):
        made.chmod(0o700 if made.is_dir() else 0o600)
    (folder / "clinic" / "state").chmod(0o700)
    return folder / "clinic"


def test_the_first_version_is_kept() -> None:
    assert "0.1.0" in VERSIONS


@pytest.mark.parametrize("version", VERSIONS)
def test_a_state_of_that_version_is_taken_over(version: str, tmp_path: Path) -> None:
    folder = unpacked(version, tmp_path)
    told = json.loads((folder / "told.json").read_text())
    with (
        served.serving(folder, [folder / "clinic.yaml"], places.UNCOUNTED) as running,
        running.connect("clinic") as ann,
        running.connect("clinic", "eve") as eve,
    ):
        spent = [figures(ann), figures(eve)]
        assert json.loads(json.dumps(spent, default=str)) == told["spent"], "not less, not more, top-up included"
        answers = [ann.execute(sql.encode()).fetchall() for sql in ASKED]
        assert json.loads(json.dumps(answers, default=str)) == told["answers"], "the stored answers"
        assert [figures(ann), figures(eve)] == spent, "which are free"
        history = ann.execute("SELECT count(*) FROM hush.history WHERE outcome = 'answered'").fetchone()
        assert history is not None
        assert int(str(history[0])) >= len(ASKED)
        assert "profile" in str(ann.execute(f"EXPLAIN {ASKED[2]}".encode()).fetchall())
        ann.execute(b"SELECT sum(minutes) FROM visits WHERE ward = 'A'")
        assert figures(ann) != spent[0], "and new ones are charged"
    state = str(folder / "state")
    verified = hushql("ledger", "verify", "--state", state)
    assert verified.returncode == 0, verified.stderr
    exported = hushql("ledger", "export", "--state", state)
    assert exported.returncode == 0, exported.stderr


def test_a_ledger_of_a_later_format_is_not_touched(tmp_path: Path) -> None:
    folder = unpacked("0.1.0", tmp_path)
    ledger = folder / "state" / "ledger.db"
    with closing(sqlite3.connect(ledger)) as connection:
        connection.execute("pragma user_version = 99")
    before = ledger.read_bytes()
    found = hushql("serve", str(folder / "clinic.yaml"), "--state", str(folder / "state"), "--listen", "127.0.0.1:0")
    assert found.returncode == 1
    assert "version 99" in found.stderr
    assert ledger.read_bytes() == before
