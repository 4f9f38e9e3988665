"""What the editor of policies proposes is what a policy may say."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from proxy.console.policy_keys import policy_keys
from proxy.policy.document import ColumnDocument, PolicyDocument, TableDocument

STATIC = Path(__file__).resolve().parents[3] / "proxy" / "console" / "static"
_ASK = """
import { proposed } from "./policy_keys.js";
const [kinds, text] = JSON.parse(process.argv[1]);
const before = text.slice(0, text.indexOf("|")).split("\\n");
let from = 0;
const lines = text.replace("|", "").split("\\n").map((line) => {
  from += line.length + 1;
  return { text: line, from: from - line.length - 1 };
});
const doc = { line: (number) => lines[number - 1], lineAt: (pos) => {
  const at = lines.findLastIndex((line) => line.from <= pos);
  return { ...lines[at], number: at + 1 };
} };
const pos = text.indexOf("|");
const found = proposed(kinds, { doc }, pos);
console.log(JSON.stringify(found && [found.from - pos, found.options.map((one) => one.label)]));
"""


def test_each_kind_of_mapping_has_its_keys_with_what_they_say() -> None:
    keys = policy_keys()
    assert set(keys[""]) == set(PolicyDocument.model_fields)
    assert set(keys["TableDocument"]) == set(TableDocument.model_fields)
    assert set(keys["ColumnDocument"]) == {f.alias or name for name, f in ColumnDocument.model_fields.items()}
    assert all(key["about"] for kind in ("", "TableDocument", "ColumnDocument") for key in keys[kind].values())
    assert keys[""]["tables"]["each"] == "TableDocument"
    assert keys["BudgetsDocument"]["user"]["kind"] == "AccountDocument"
    assert keys["PrivacyDocument"]["accounting"]["values"] == ["zcdp", "pure"]
    assert keys["TableDocument"]["unit_unique"]["values"] == ["true", "false"]
    assert "bigint" in keys["ColumnDocument"]["type"]["values"]  # type: ignore[operator]  # a list of them


@pytest.mark.skipif(shutil.which("node") is None, reason="needs node, which `make clients` installs")
@pytest.mark.parametrize(
    "text, kind",
    [
        ("|", ""),
        ("version: 1\n|", ""),
        ("privacy:\n  acc|", "PrivacyDocument"),
        ("tables:\n  users:\n    # what it is\n    unit: id\n    |", "TableDocument"),
        ("tables:\n  'Odd: one':\n    columns:\n      id: {type: text, |", "ColumnDocument"),
        ("tables:\n  users:\n    columns:\n      id:\n        |", "ColumnDocument"),
        ("tables:\n  users:\n    unit: {|", "UnitPath"),
        ("budgets: {dataset: {epsilon: 1}, user: {|", "AccountDocument"),
        ("budgets: {dataset: {epsilon: 1}, |", "BudgetsDocument"),
    ],
)
def test_the_keys_of_the_mapping_at_the_cursor_are_proposed(text: str, kind: str) -> None:
    found = _proposed(text)
    assert found is not None
    assert found[1] == list(policy_keys()[kind])


@pytest.mark.skipif(shutil.which("node") is None, reason="needs node, which `make clients` installs")
@pytest.mark.parametrize(
    "text, found",
    [
        ("privacy:\n  accounting: p|", [-1, ["zcdp", "pure"]]),
        ("tables:\n  t:\n    public: |", [0, ["true", "false"]]),
        ("privacy:\n  unit: |", [0, []]),
        ("constructor: x|", [-1, []]),  # what every object of JavaScript has
        ("__proto__:\n  constructor:\n    |", None),
        ("tables:\n  |", None),  # names are one's own
        ("tables:\n  t:\n    columns:\n      |", None),
        ("tables:\n  t:\n    columns:\n      c: {values: [|", None),
        ("# pri|", None),
        ("nothing:\n  |", None),
    ],
)
def test_values_are_proposed_where_they_are_few_and_nothing_where_names_are_ones_own(
    text: str, found: list[object] | None
) -> None:
    assert _proposed(text) == found


def _proposed(text: str) -> list[object] | None:
    done = subprocess.run(
        ["node", "--input-type=module", "--eval", _ASK, json.dumps([policy_keys(), text])],
        cwd=STATIC, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found: list[object] | None = json.loads(done.stdout)
    return found
