"""Is what a dbt project says of its tables proposed, and checked against the data?"""

from __future__ import annotations

import json
from pathlib import Path

import duckdb
import pytest

from proxy.admin.proposing.dbt import read_project, with_dbt
from proxy.engines.described import ForeignKey, FoundColumn, FoundTable
from proxy.errors import ConfigError
from proxy.sqltypes import SqlType
from tests.e2e import served
from tests.e2e.served import hushql

Json = dict[str, object]


def model(name: str, description: str = "", schema: str = "main", **columns: str) -> Json:
    return {
        "resource_type": "model", "name": f"stg_{name}", "alias": name, "schema": schema, "database": "clinic",
        "description": description, "relation_name": f'"clinic"."{schema}"."{name}"',
        "columns": {n: {"name": n, "description": text, "meta": {}} for n, text in columns.items()},
    }  # fmt: skip


def fact(kind: str, of: str, column: str, *others: str, **kwargs: object) -> Json:
    return {
        "resource_type": "test", "name": f"{kind}_{of}_{column}", "schema": "dbt_test__audit", "column_name": column,
        "attached_node": f"model.clinic.{of}", "depends_on": {"nodes": [f"model.clinic.{n}" for n in (*others, of)]},
        "test_metadata": {"name": kind, "kwargs": {"column_name": column, **kwargs}, "namespace": None},
    }  # fmt: skip


def manifest(path: Path, *tests: Json, **models: Json) -> Path:
    nodes: Json = {f"model.clinic.{name}": node for name, node in models.items()}
    nodes |= {f"test.clinic.{n}": test for n, test in enumerate(tests)}
    path.write_text(
        json.dumps({"metadata": {"dbt_schema_version": ".../manifest/v12.json"}, "nodes": nodes, "sources": {}})
    )
    return path


def patients(*columns: str) -> FoundTable:
    return FoundTable(relation=("main", "patients"), columns=tuple(
        FoundColumn(name=n, stated_type="INTEGER", type=SqlType.INT4) for n in columns))  # fmt: skip


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


def test_what_a_test_says_of_some_rows_alone_is_no_fact(tmp_path: Path) -> None:
    some = fact("unique", "patients", "a", where="a > 5")
    other = fact("not_null", "patients", "a", config={"where": "b = 1"})
    gone = fact("unique", "patients", "no_such_column")
    found = with_dbt(
        [patients("a")], read_project(manifest(tmp_path / "m", some, other, gone, patients=model("patients")))
    )
    assert found == (patients("a"),)


def test_a_table_may_refer_to_itself_and_to_none_that_is_there(tmp_path: Path) -> None:
    itself = fact("relationships", "patients", "parent", to="ref('patients')", field="a")
    away = fact("relationships", "patients", "a", "doctors", to="ref('doctors')", field="a")
    project = read_project(manifest(tmp_path / "m", itself, away, patients=model("patients"), doctors=model("doctors")))
    (found,) = with_dbt([patients("a", "parent")], project)
    assert found.references == (ForeignKey(("parent",), ("main", "patients"), ("a",)),)


def test_a_table_of_another_schema_is_another(tmp_path: Path) -> None:
    project = read_project(manifest(tmp_path / "m", patients=model("patients", schema="elsewhere")))
    with pytest.raises(ConfigError, match="has no model, seed, snapshot or source among these tables"):
        with_dbt([patients("a")], project)


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"nodes": [], "sources": {}}', '{"nodes": {"a": 1}, "sources": {}}',
                                  '{"nodes": {"a": {}}, "sources": {}}'])  # fmt: skip
def test_what_is_no_manifest_is_said(text: str, tmp_path: Path) -> None:
    (tmp_path / "m.json").write_text(text)
    with pytest.raises(ConfigError, match=r"m\.json is no manifest of dbt"):
        read_project(tmp_path / "m.json")
