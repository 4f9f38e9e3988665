"""Does an edit of how columns were randomized say what it means, and does it make another policy?"""

from __future__ import annotations

import pytest

from proxy.policy.diff import diff
from proxy.policy.load import load_policy
from proxy.policy.model import Policy

TEXT = """
version: 1
dataset: survey
source: {engine: duckdb, path: survey.duckdb, data_version: a}
privacy: {unit: person, delta: 1e-6}
budgets: {dataset: {epsilon: 20}}
tables:
  people:
    unit: person
    unit_unique: true
    columns:
      person: {type: integer, key: true}
      smokes: {type: boolean, nullable: false, randomized: {keep: 0.75}}
      drinks: {type: boolean, nullable: false, values: [false, true]}
"""
_SMOKES, _DRINKS = "nullable: false, randomized: {keep: 0.75}", "nullable: false, values: [false, true]"
_HALF = "keep 0.5 among 2 values, epsilon 1.099"
_MORE = "  more:\n    local: true\n    columns: {ill: {type: boolean, randomized: {keep: 0.75}}}\n"
_PUBLIC = "  more:\n    public: true\n    columns: {ill: {type: boolean}}\n"
_OWNED = "  more:\n    unit: person\n    unit_unique: true\n    columns: {ill: {type: boolean}}\n"
_SHOWN = _MORE.replace("local: true", "local: true\n    raw_select: allow")
_UNNAMED = _MORE.replace("columns: {", "columns: {who: {type: integer, public: true}, ")
_NAMED = _UNNAMED.replace("local: true", "local: true\n    unit: who")
_LOCAL = "all of it is public but what was randomized before it was stored"


def load(text: str) -> Policy:
    return load_policy(text, filename="survey.yaml", environment={})


def edited(old: str, new: str) -> Policy:
    assert TEXT.count(old) == 1, old
    return load(TEXT.replace(old, new))


@pytest.mark.parametrize("old, new, where, words", [
    (_SMOKES, "nullable: false, values: [false, true]", "smokes", "what is stored counts as the truth: is it?"),
    (_DRINKS, "nullable: false, randomized: {truth: 0.5, yes: 0.4}", "drinks",
     "what is stored counts as randomized by truth 0.5, else yes 0.4, epsilon 1.253: was it?"),
    ("keep: 0.75", "keep: 0.5", "smokes",
     f"keep 0.75 among 2 values, epsilon 1.946 becomes {_HALF}: answers are estimates by it, were values so?"),
])  # fmt: skip
def test_another_way_of_randomizing_is_a_change_and_another_policy(old: str, new: str, where: str, words: str) -> None:
    before, after = load(TEXT), edited(old, new)
    found = [(f"{c.effect.value} {c.where}", c.words) for c in diff(before, after)]
    assert (f"changes tables.people.columns.{where}.randomized", words) in found
    assert before.digest != after.digest


@pytest.mark.parametrize("old, new, where, words", [
    ("", _MORE, "opens tables.more", f"a new table with 1 column to ask about; {_LOCAL}"),
    (_MORE, "", "closes tables.more", "the table is not there for clients any more"),
    (_MORE, _SHOWN, "opens tables.more.raw_select", "its rows are shown as they are stored"),
    (_SHOWN, _MORE, "closes tables.more.raw_select", "its rows are no more shown as they are"),
    (_MORE, _NAMED, "changes tables.more.unit", "persons stand in who; nothing is protected by it"),
    (_NAMED, _UNNAMED, "changes tables.more.unit", "persons stand in no column; nothing is protected by it"),
    (_OWNED, _MORE, "opens tables.more.local", f"{_LOCAL}, and nothing is charged or promised any more"),
    (_MORE, _OWNED, "closes tables.more.local",
     "its rows are charged for and promised to be hidden, but what was answered exactly is known; the unit is person"),
    (_PUBLIC, _MORE, "closes tables.more.public",
     f"its rows are no more shown, but those that were are known; {_LOCAL}"),
    (_MORE, _PUBLIC, "opens tables.more.public", "its rows are shown to everybody, exactly and free"),
])  # fmt: skip
def test_a_table_that_becomes_local_opens_and_one_that_is_no_more_closes(
    old: str, new: str, where: str, words: str
) -> None:
    before, after = load(TEXT + old), load(TEXT + new)
    assert (where, words) in [(f"{c.effect.value} {c.where}", c.words) for c in diff(before, after)]
    assert before.digest != after.digest


def test_a_chance_written_otherwise_is_the_same_policy() -> None:
    assert edited("keep: 0.75", "keep: 0.750").digest == load(TEXT).digest
