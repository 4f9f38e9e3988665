"""Does `hushql policy check` say what randomized columns protect, and what a row of them does?"""

from __future__ import annotations

from pathlib import Path

import pytest

from proxy.admin.local_words import local_lines
from proxy.policy.load import load_policy
from tests.unit.admin.command_line import CommandLine

_HEAD = """
version: 1
dataset: survey
source: {engine: duckdb, path: survey.duckdb, data_version: a}
privacy: {unit: person, delta: 1e-6}
budgets: {dataset: {epsilon: 20}}
tables:
  answers:
    local: true
    columns:
      region: {type: text, public: true}
      smokes: {type: boolean, randomized: {truth: 0.5, yes: 0.5}}
      income: {type: double precision, bounds: [0, 200], randomized: {laplace: 50}}
"""
_HEIGHT = "      height: {type: numeric, bounds: [1.5, 2], randomized: {gaussian: 0.5}}\n"
_COLUMNS = [
    "answers.smokes was randomized: truth 0.5, else yes 0.5, epsilon 1.099",
    "answers.income was randomized: Laplace noise of scale 50, epsilon 4",
]


def said(text: str) -> list[str]:
    return [*local_lines(load_policy(text, filename="survey.yaml", environment={}))]


def test_epsilons_of_a_row_add_up() -> None:
    """ln 3 + 4."""
    assert said(_HEAD) == [*_COLUMNS, "answers: protected when collected, epsilon 5.099 for each row"]


def test_beside_gaussian_noise_the_sum_is_in_rho() -> None:
    """(ln 3)^2/2 + 4^2/2 + 1/2 = 9.10347"""
    lines = said(_HEAD + _HEIGHT)
    assert lines[2] == "answers.height was randomized: Gaussian noise of standard deviation 0.5, rho 0.5"
    assert lines[3].startswith("answers: protected when collected, rho 9.103, which is epsilon ")
    assert lines[3].endswith(" at delta 0.000001, for each row")


def test_without_a_delta_a_rho_has_no_epsilon() -> None:
    lines = said(_HEAD.replace("delta: 1e-6", "accounting: pure") + _HEIGHT)
    assert lines[-1] == "answers: protected when collected, rho 9.103 for each row"


def test_policy_check_tells_it_and_counts_local_tables(command: CommandLine, tmp_path: Path) -> None:
    policy = tmp_path / "survey.yaml"
    policy.write_text(_HEAD, encoding="utf-8")
    assert command("policy", "check", str(policy)) == 0
    first, *lines = command.out.splitlines()
    assert first.startswith("survey: 0 private, 1 local and 0 public tables, ")
    assert lines[:3] == said(_HEAD)


_ROWS = "smokes,income,region\ntrue,7,north\n"
_SECOND = "  more:\n    local: true\n    columns: {ill: {type: boolean, randomized: {keep: 0.75}}}\n"


@pytest.mark.parametrize("more, table, words", [
    (_SECOND, "", "the policy has several local tables"),
    (_SECOND, "other", '"other" is no local table'),
    ("", "other", '"other" is no local table'),
])  # fmt: skip
def test_randomize_asks_which_local_table_is_meant(
    command: CommandLine, tmp_path: Path, more: str, table: str, words: str
) -> None:
    (tmp_path / "survey.yaml").write_text(_HEAD + more, encoding="utf-8")
    (tmp_path / "in.csv").write_text(_ROWS, encoding="utf-8")
    options = ("--policy", str(tmp_path / "survey.yaml"), *(("--table", table) if table else ()))
    assert command("randomize", str(tmp_path / "in.csv"), str(tmp_path / "out.csv"), *options) == 2
    assert words in command.err
    assert not (tmp_path / "out.csv").exists()
    options = ("--policy", str(tmp_path / "survey.yaml"), "--table", "answers")
    assert command("randomize", str(tmp_path / "in.csv"), str(tmp_path / "out.csv"), *options) == 0, command.err
    assert command("randomize", str(tmp_path / "in.csv"), str(tmp_path / "out.csv"), *options, "--force") == 0


def test_a_policy_without_a_local_table_randomizes_nothing(command: CommandLine, tmp_path: Path) -> None:
    text = _HEAD[: _HEAD.index("  answers:")] + "  people: {public: true, columns: {age: {type: integer}}}\n"
    (tmp_path / "survey.yaml").write_text(text, encoding="utf-8")
    files = str(tmp_path / "in.csv"), str(tmp_path / "out.csv")
    assert command("randomize", *files, "--policy", str(tmp_path / "survey.yaml")) == 2
    assert "the policy has no local table" in command.err
