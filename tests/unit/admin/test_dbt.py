"""What is taken from a dbt project, and what is none of it?"""

from __future__ import annotations

from pathlib import Path

import pytest

from proxy.admin.proposing.dbt import read_project, with_dbt
from proxy.engines.described import ForeignKey, FoundColumn, FoundTable
from proxy.errors import ConfigError
from proxy.sqltypes import SqlType
from tests.unit.admin.dbt_manifest import fact, manifest, model


def patients(*columns: str) -> FoundTable:
    return FoundTable(relation=("main", "patients"), columns=tuple(
        FoundColumn(name=n, stated_type="INTEGER", type=SqlType.INT4) for n in columns))  # fmt: skip


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
