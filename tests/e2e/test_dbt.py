"""Is what a dbt project says of its tables proposed, and checked against the data?"""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest

from tests.e2e import served
from tests.e2e.served import hushql
from tests.unit.admin.dbt_manifest import Json, fact, manifest, model


@pytest.fixture
def clinic(tmp_path: Path) -> Path:
    with duckdb.connect(str(tmp_path / "clinic.duckdb")) as data:
        data.execute("create table patients as select r::integer as patient_no, 'a' || r % 2 as ward"
                     " from range(900) t(r);"
                     "create table visits as select (r % 900)::integer as who, (r % 60)::integer as minutes,"
                     " case when r % 2 = 0 then 'x' else 'y' end as outcome from range(4000) t(r)")  # fmt: skip
    served.write_users(tmp_path / "users.yaml", {"ann": "analyst"})
    return tmp_path


def proposed(clinic: Path, *tests: Json) -> tuple[str, int, str]:
    """The policy, and what a check of it with the data says."""
    target = manifest(
        clinic / "manifest.json", *tests,
        patients=model("patients", "Who was\nhere", patient_no="the number on the card"),
        visits=model("visits", minutes="how long"),
    )  # fmt: skip
    made = hushql("policy", "init", "--from", str(clinic / "clinic.duckdb"), "--dbt", str(target), "--unit", "patients",
                  "--out", str(clinic / "p.yaml"))  # fmt: skip
    assert made.returncode == 0, made.stderr
    checked = hushql("policy", "check", "--data", str(clinic / "p.yaml"))
    return (clinic / "p.yaml").read_text(), checked.returncode, checked.stdout + checked.stderr


def test_a_database_without_keys_is_served_by_what_dbt_says(clinic: Path) -> None:
    text, status, said = proposed(
        clinic, fact("unique", "patients", "patient_no"), fact("not_null", "patients", "patient_no"),
        fact("relationships", "visits", "who", "patients", to="ref('stg_patients')", field="patient_no"),
        fact("accepted_values", "visits", "outcome", values=["x", "y"]), fact("not_null", "visits", "outcome"),
        fact("expression_is_true", "visits", "minutes", expression=">= 0"),
    )  # fmt: skip
    assert status == 0, said
    assert 'comment: "Who was here"' in text
    assert "# the number on the card" in text
    assert "unit_unique: true" in text
    assert 'who: "patients.patient_no"' in text
    assert 'outcome: {type: text, values: [x, "y"], nullable: false}' in text
    with served.serving(clinic, [clinic / "p.yaml"]) as running, running.connect("clinic") as client:
        found = client.execute("SELECT outcome, count(*) FROM visits GROUP BY outcome ORDER BY outcome").fetchall()
        assert [row[0] for row in found] == ["x", "y"]


def test_a_test_that_the_data_do_not_pass_is_found(clinic: Path) -> None:
    with duckdb.connect(str(clinic / "clinic.duckdb")) as data:
        data.execute("insert into patients values (5, 'a1')")
    _, status, said = proposed(
        clinic, fact("unique", "patients", "patient_no"), fact("not_null", "patients", "patient_no")
    )
    assert status == 1
    assert "patients" in said
