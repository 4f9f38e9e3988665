"""A state directory as a released version left it, with the policy and the data that it is about, in one archive.

`python -m tests.e2e.kept_state` makes that of this tree, to be kept when a version is released.
"""

from __future__ import annotations

import json
import tarfile
import tempfile
from pathlib import Path

from proxy import __version__
from tests.e2e import served
from tests.e2e.served import Client, hushql

KEPT = Path(__file__).parent / "kept"
POLICY = """version: 1
dataset: clinic
source: {engine: duckdb, files: {visits: visits.csv}, data_version: "1"}
privacy: {unit: patient, time_grid: 0ms}
budgets: {dataset: {epsilon: 20}, user: {epsilon: 10, questions: 40}}
tables:
  visits:
    unit: patient
    columns:
      patient: {type: bigint, key: true}
      ward: {type: text, values: [A, B, C]}
      doctor: {type: text}
      minutes: {type: bigint, bounds: [0, 240]}
"""
ASKED = ("SELECT ward, count(*) FROM visits GROUP BY ward ORDER BY ward",
         "SELECT doctor, count(*) FROM visits GROUP BY 1",
         "SELECT avg(minutes), percentile_cont(0.5) WITHIN GROUP (ORDER BY minutes) FROM visits")  # fmt: skip
_NOT_KEPT = ("lock", "control", "front", "spill")


def figures(client: Client) -> list[tuple[object, ...]]:
    """What each account has spent and may."""
    return client.execute(
        "SELECT kind, rho_limit, rho_spent FROM hush.budget WHERE kind <> 'session' ORDER BY 1"
    ).fetchall()


def make(folder: Path, archive: Path) -> None:
    """Serve a clinic, ask of it as two logins, have it profiled and topped up, and keep what is left of that."""
    rows = (f"{r % 900},{'ABC'[r % 3]},doctor {r % 4},{r * 7 % 240}" for r in range(4000))
    (folder / "visits.csv").write_text("\n".join(("patient,ward,doctor,minutes", *rows, "")))
    (folder / "clinic.yaml").write_text(POLICY)
    served.write_users(folder / "users.yaml", {"ann": "analyst", "eve": "boss"})
    state, policy = str(folder / "state"), str(folder / "clinic.yaml")
    with served.serving(folder, [folder / "clinic.yaml"]) as running:
        for arguments in (
            ("profile", policy, "--state", state, "--epsilon", "1"),
            ("ledger", "top-up", "user", "clinic/ann", "--to", "12", "--reason", "kept", "--policy", policy,
             "--state", state),
        ):  # fmt: skip
            done = hushql(*arguments)
            assert done.returncode == 0, done.stderr
        with running.connect("clinic") as ann, running.connect("clinic", "eve") as eve:
            answers = [ann.execute(sql.encode()).fetchall() for sql in ASKED]
            eve.execute(ASKED[0].encode())
            spent = [figures(ann), figures(eve)]
    (folder / "told.json").write_text(json.dumps({"answers": answers, "spent": spent}, default=str))
    (folder / "log").unlink()
    with tarfile.open(archive, "w:gz") as kept:
        kept.add(folder, "clinic", filter=lambda one: None if Path(one.name).name.startswith(_NOT_KEPT) else one)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as made:
        make(Path(made), KEPT / f"{__version__}.tar.gz")
