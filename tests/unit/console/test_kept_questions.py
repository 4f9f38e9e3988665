"""Questions under labels: whose they are, how many, and what of them stands in a file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from proxy.console.kept_questions import MOST_LABEL, MOST_QUESTIONS, MOST_STATEMENT, KeptQuestions
from proxy.console.wire import LoginPlace
from proxy.errors import ConfigError, InvalidParameter

COUNT = "SELECT count(*) FROM users"


def of(state: Path, login: str = "ann", database: str = "shop") -> KeptQuestions:
    return KeptQuestions(state, LoginPlace(login, database))


def test_a_question_is_kept_renamed_in_its_place_and_deleted(tmp_path: Path) -> None:
    ann = of(tmp_path)
    assert ann.all() == ()
    ann.keep(" first ", COUNT)
    ann.keep("second", "SELECT 2")
    ann.rename("first", "the first")
    assert [(q.label, q.statement) for q in of(tmp_path).all()] == [("the first", COUNT), ("second", "SELECT 2")]
    assert [q.label for q in ann.rename("second", "second")] == ["the first", "second"]
    assert [q.label for q in ann.delete("the first")] == ["second"]


@pytest.mark.parametrize(
    "login, database", [("bob", "shop"), ("../shop/ann", "shop"), ("ANN", "shop"), ("ann", "other")]
)
def test_no_other_login_reads_or_changes_them(tmp_path: Path, login: str, database: str) -> None:
    of(tmp_path).keep("mine", COUNT)
    other = of(tmp_path, login, database)
    assert other.all() == ()
    other.keep("mine", "SELECT 2")
    with pytest.raises(InvalidParameter, match="no question has that label"):
        of(tmp_path, "carl").delete("mine")
    assert [(q.label, q.statement) for q in of(tmp_path).all()] == [("mine", COUNT)]


def test_the_file_is_private_and_holds_labels_and_texts_alone(tmp_path: Path) -> None:
    of(tmp_path).keep("mine", COUNT)
    (path,) = tmp_path.rglob("*.json")
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700
    assert json.loads(path.read_text()) == [["mine", COUNT]]


@pytest.mark.parametrize("label", ["", "  ", "x" * (MOST_LABEL + 1), "two\nlines", "\u202eback", "a\0b"])
def test_a_label_that_could_not_be_read_is_refused(tmp_path: Path, label: str) -> None:
    with pytest.raises(InvalidParameter, match="a label has"):
        of(tmp_path).keep(label, COUNT)
    assert of(tmp_path).all() == ()


@pytest.mark.parametrize("statement", ["", " \n", "x" * (MOST_STATEMENT + 1)])
def test_nothing_and_too_much_are_not_kept(tmp_path: Path, statement: str) -> None:
    with pytest.raises(InvalidParameter, match="a statement that is kept has"):
        of(tmp_path).keep("label", statement)


def test_no_more_are_kept_than_may_be(tmp_path: Path) -> None:
    ann = of(tmp_path)
    for number in range(MOST_QUESTIONS):
        ann.keep(str(number), COUNT)
    with pytest.raises(InvalidParameter, match=f"{MOST_QUESTIONS} questions are kept"):
        ann.keep("one more", COUNT)
    assert len(ann.all()) == MOST_QUESTIONS


def test_a_label_names_one_question(tmp_path: Path) -> None:
    ann = of(tmp_path)
    ann.keep("one", COUNT)
    ann.keep("two", COUNT)
    with pytest.raises(InvalidParameter, match="another question has that label"):
        ann.keep("one", "SELECT 1")
    with pytest.raises(InvalidParameter, match="another question has that label"):
        ann.rename("two", "one")
    with pytest.raises(InvalidParameter, match="no question has that label"):
        ann.rename("three", "four")
    assert [q.label for q in ann.all()] == ["one", "two"]


@pytest.mark.parametrize("text", ["", "{", "{}x", '["a"]', "[[1, 2]]", '[["a", "b", "c"]]', '[["", "b"]]', "7"])
def test_a_file_that_holds_something_else_is_refused(tmp_path: Path, text: str) -> None:
    of(tmp_path).keep("mine", COUNT)
    (path,) = tmp_path.rglob("*.json")
    path.write_text(text)
    with pytest.raises(ConfigError, match="holds no questions"):
        of(tmp_path).keep("more", COUNT)
    assert path.read_text() == text


def test_a_directory_that_cannot_be_used_is_said(tmp_path: Path) -> None:
    (tmp_path / "questions").write_text("a file")
    with pytest.raises(ConfigError, match="cannot be made"):
        of(tmp_path).keep("mine", COUNT)
