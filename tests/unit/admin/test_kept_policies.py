"""Is every text of a policy that was taken kept once, and found again?"""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from proxy.admin.kept_policies import keep_policy, kept_policies
from proxy.errors import ConfigError
from tests.unit.admin.command_line import CommandLine
from tests.unit.policy.case_files import BASE


def _at(minute: int) -> datetime:
    return datetime(2026, 1, 1, 12, minute, tzinfo=UTC)


@pytest.fixture
def state(tmp_path: Path) -> Path:
    for minute, text in enumerate(("one: 1\n", "one: 1\n", "two: 2\n", "one: 1\n")):
        keep_policy(tmp_path, "shop", text, _at(minute))
    keep_policy(tmp_path, "adult", "adult: 1\n", _at(9))
    return tmp_path


def test_a_text_is_kept_when_it_is_another_than_the_latest(state: Path) -> None:
    assert [(k.dataset, k.at.minute) for k in kept_policies(state)] == [
        ("adult", 9), ("shop", 0), ("shop", 2), ("shop", 3)
    ]  # fmt: skip
    assert {k.path.stat().st_mode & 0o777 for k in kept_policies(state)} == {0o600}
    assert (state / "policies").stat().st_mode & 0o777 == 0o700


def test_the_commands_list_and_print_them(command: CommandLine, state: Path) -> None:
    assert command("policy", "history", "--state", str(state), "--json") == 0
    listed = json.loads(command.out)
    assert [row["at"] for row in listed if row["dataset"] == "shop"] == [
        f"2026-01-01T12:0{minute}:00+00:00" for minute in (0, 2, 3)
    ]
    assert command("policy", "show", listed[2]["digest"], "--state", str(state)) == 0
    assert command.out == "two: 2\n"
    assert command("policy", "history", "--state", str(state)) == 0
    assert listed[2]["digest"] in command.out


@pytest.mark.parametrize(
    "digest, words", [("abc", "abc is too short"), ("0123456789", "0 versions begin with 0123456789")]
)
def test_what_names_no_version_is_said(command: CommandLine, state: Path, digest: str, words: str) -> None:
    assert command("policy", "show", digest, "--state", str(state)) == 2
    assert words in command.err
    assert not command.out


def test_a_directory_without_policies_and_one_that_cannot_be_made_are_said(
    command: CommandLine, tmp_path: Path
) -> None:
    assert command("policy", "history", "--state", str(tmp_path)) == 2
    assert "there are no policies in" in command.err
    (tmp_path / "policies").touch()
    with pytest.raises(ConfigError, match="cannot be made"):
        keep_policy(tmp_path, "shop", "x", _at(0))


def test_an_edit_is_compared_with_what_is_in_force(command: CommandLine, tmp_path: Path) -> None:
    for minute, epsilon in enumerate((5, 7)):
        keep_policy(tmp_path, "shop", BASE.replace("epsilon: 20", f"epsilon: {epsilon}"), _at(minute))
    new, state = tmp_path / "new.yaml", str(tmp_path)
    new.write_text(BASE.replace("epsilon: 20", "epsilon: 7"))
    assert command("policy", "diff", str(new), "--state", state) == 0, command.err
    assert command.out == "The two mean the same.\n"
    new.write_text(BASE.replace("epsilon: 20", "epsilon: 9"))
    assert command("policy", "diff", str(new), "--state", state) == 1
    assert "budgets.dataset" in command.out
    assert "opens" in command.out


def test_what_has_nothing_to_be_compared_with_is_said(command: CommandLine, state: Path, tmp_path: Path) -> None:
    new = tmp_path / "new.yaml"
    new.write_text(BASE.replace("dataset: shop", "dataset: other"))
    assert command("policy", "diff", str(new)) == 2
    assert "Give OLD and NEW, or --state" in command.err
    assert command("policy", "diff", str(new), "--state", str(state)) == 2
    assert 'has taken no policy of the dataset "other"' in command.err
    assert command("policy", "diff", str(new), "--state", str(tmp_path / "nowhere")) == 2
    assert "there are no policies in" in command.err
