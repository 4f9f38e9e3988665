"""Manifests of dbt, as it writes them, for tests of what is made of them."""

from __future__ import annotations

import json
from pathlib import Path

Json = dict[str, object]


def model(name: str, description: str = "", schema: str = "main", **columns: str) -> Json:
    """A model, with descriptions of itself and of its columns."""
    return {
        "resource_type": "model", "name": f"stg_{name}", "alias": name, "schema": schema, "database": "clinic",
        "description": description, "relation_name": f'"clinic"."{schema}"."{name}"',
        "columns": {n: {"name": n, "description": text, "meta": {}} for n, text in columns.items()},
    }  # fmt: skip


def fact(kind: str, of: str, column: str, *others: str, **kwargs: object) -> Json:
    """A test of a column. others: the models that it depends on besides."""
    return {
        "resource_type": "test", "name": f"{kind}_{of}_{column}", "schema": "dbt_test__audit", "column_name": column,
        "attached_node": f"model.clinic.{of}", "depends_on": {"nodes": [f"model.clinic.{n}" for n in (*others, of)]},
        "test_metadata": {"name": kind, "kwargs": {"column_name": column, **kwargs}, "namespace": None},
    }  # fmt: skip


def manifest(path: Path, *tests: Json, **models: Json) -> Path:
    """Write the manifest of a project."""
    nodes: Json = {f"model.clinic.{name}": node for name, node in models.items()}
    nodes |= {f"test.clinic.{n}": test for n, test in enumerate(tests)}
    path.write_text(
        json.dumps({"metadata": {"dbt_schema_version": ".../manifest/v12.json"}, "nodes": nodes, "sources": {}})
    )
    return path
