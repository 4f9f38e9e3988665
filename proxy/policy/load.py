"""Which policy does a text describe, or everything that is wrong with it?

Pure: the text and the environment are handed in; reading files is the caller's business.
"""

from __future__ import annotations

import posixpath
from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

from proxy.policy.budgets import read_budgets, read_questions
from proxy.policy.digest import policy_digest
from proxy.policy.document import PolicyDocument
from proxy.policy.model import Policy, Table
from proxy.policy.paths import connect
from proxy.policy.problems import Path, ProblemReport
from proxy.policy.response import NotRandomized
from proxy.policy.settings import (
    DocumentPlaces,
    check_dataset,
    lake_relations,
    read_limits,
    read_privacy,
    read_source,
    read_zone,
)
from proxy.policy.shape import Shaped, read_shape
from proxy.policy.tables import read_drafts
from proxy.policy.tree import Plain, read_tree

_SECRET_KEYS = frozenset({"dsn", "token"})

# What takes the place of faulty required parts, so that the rest is checked in the same run. Never used in a policy.
_STAND_INS: Mapping[Path, Plain] = {
    ("version",): 1,
    ("dataset",): "dataset",
    ("source",): {"engine": "duckdb", "path": "file", "data_version": "0"},
    ("source", "engine"): "duckdb",
    ("source", "data_version"): "0",
    ("privacy",): {"unit": "unit"},
    ("privacy", "unit"): "unit",
    ("budgets",): {"dataset": {"epsilon": 100}},
    ("budgets", "dataset"): {"epsilon": 100},
}


def load_policy(text: str, *, filename: str, environment: Mapping[str, str]) -> Policy:
    """Read and check a policy.

    filename: how messages call the file; relative data paths start at its folder.
    environment: where `${NAME}` is looked up.
    Raises FileProblems (a PolicyError) with every problem, one line each: `file:line: path.to.key: ...`.
    """
    tree = read_tree(text, filename, environment, secret_keys=_SECRET_KEYS)
    report = tree.report
    shaped = read_shape(tree, PolicyDocument, stand_ins=_STAND_INS)
    if not isinstance(shaped, Shaped):
        report.raise_if_any(filename)
        raise AssertionError("a document without shape has no problem")
    policy = _policy(shaped, posixpath.dirname(filename), report)
    report.raise_if_any(filename)
    if policy is None:
        raise AssertionError("a policy is missing and no problem says why")
    return policy


def _policy(shaped: Shaped[PolicyDocument], folder: str, report: ProblemReport) -> Policy | None:
    """The policy as far as it can be read; None only if the report has a problem."""
    document = shaped.document
    check_dataset(document.dataset, report)
    zone = read_zone(document.privacy.time_zone, report)
    row_unit = document.privacy.unit == "row"
    drafts = read_drafts(document.tables, shaped.cut, zone=zone, row_unit=row_unit, report=report)
    lost = frozenset(str(cut[1]) for cut in shaped.cut if cut[0] == "tables" and len(cut) == 2)
    tables = connect(drafts, lost=lost, row_unit=row_unit, report=report)
    _check_files_have_no_relations(document, report)
    _check_one_promise_for_each_relation(tables, document, report)
    places = DocumentPlaces(folder, document.tables, lost, is_known="source" not in {str(cut[0]) for cut in shaped.cut})
    source = read_source(document.source, places, report)
    relations = lake_relations(document.source)
    tables = {n: replace(t, relation=relations.get(n, t.relation)) for n, t in tables.items()}
    if document.source.engine == "spark":
        _check_nothing_randomized(tables, report)
    privacy = read_privacy(document.privacy, tables.values(), report)
    budgets = read_budgets(document.budgets, privacy.query_epsilon, report)
    privacy = replace(privacy, questions=read_questions(document, report))
    limits = read_limits(document.limits, report)
    if source is None or report.problems:
        return None
    return Policy(
        dataset=document.dataset,
        source=source,
        data_version=document.source.data_version,
        privacy=privacy,
        budgets=budgets,
        tables=MappingProxyType(_sorted(tables, document)),
        digest=policy_digest(document.dataset, document.source, privacy, tables.values()),
        users_file=posixpath.join(folder, document.access.users_file),
        limits=limits,
        unit_changed_from=document.privacy.unit_changed_from or "",
    )


def _sorted(tables: Mapping[str, Table], document: PolicyDocument) -> dict[str, Table]:
    """Tables in the order of the file."""
    return {name: tables[name] for name in document.tables if name in tables}


def _check_one_promise_for_each_relation(
    tables: Mapping[str, Table], document: PolicyDocument, report: ProblemReport
) -> None:
    """No rows are both promised to be hidden and shown, or answered exactly, under another table's name.

    A name without a schema may be that of any; engines differ in whether case counts.
    """
    files = document.source.files or {}

    def rows_of(table: Table) -> tuple[str, ...]:
        return (files[table.name],) if table.name in files else tuple(part.lower() for part in table.relation)

    for shown in (t for t in tables.values() if not t.is_promised):
        for hidden in (t for t in tables.values() if t.is_promised and t.name.lower() != shown.name.lower()):
            both = sorted((rows_of(shown), rows_of(hidden)), key=len)
            if both[1][-len(both[0]) :] == both[0]:
                what = "public" if shown.is_public else "local"
                words = f"has the rows of table '{hidden.name}', which are promised to be hidden, and is {what}"
                help_ = "let them be of different relations, each with its schema, as main.orders"
                report.add(("tables", shown.name, "relation"), f"{words}; {help_}")


def _check_nothing_randomized(tables: Mapping[str, Table], report: ProblemReport) -> None:
    """Of what engine spark cannot check. Its other limits show when a statement is planned, or in the data's types."""
    for table in tables.values():
        for column in table.columns:
            if not isinstance(column.randomized, NotRandomized):
                path = ("tables", table.name, "columns", column.name, "randomized")
                report.add(path, "engine spark serves no randomized columns; use duckdb or postgres for them")


def _check_files_have_no_relations(document: PolicyDocument, report: ProblemReport) -> None:
    if document.source.files is not None:
        for name, table in document.tables.items():
            if table.relation is not None:
                report.add(("tables", name, "relation"), "has no meaning with source.files; remove the line")
