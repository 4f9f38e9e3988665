"""How tables look that commands print."""

from __future__ import annotations

import pytest

from proxy.admin.output import print_table


def test_columns_stand_under_each_other_and_numbers_are_aligned_right(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(("city", "count"), (("Zürich", "5"), ("東京", "12345")), right=frozenset({1}))
    assert capsys.readouterr().out.splitlines() == ["city    count", "Zürich      5", "東京    12345"]


def test_a_table_without_rows_is_its_headings(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(("a", "b"), ())
    assert capsys.readouterr().out == "a  b\n"


def test_words_are_never_wrapped_and_steer_no_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(("a",), (("x" * 500,), ("\x1b[31m",)))
    assert capsys.readouterr().out.splitlines()[1:] == ["x" * 500, "\\x1b[31m"]
