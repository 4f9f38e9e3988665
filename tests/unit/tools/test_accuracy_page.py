"""The page about accuracy says what was measured, and what was measured is as good as it should be."""

from __future__ import annotations

import pytest

from benchmarks.accuracy.real import kept
from tools import accuracy_page
from tools.accuracy_page import PAGE, PICTURE, lines, page, picture, with_real


def test_the_page_and_its_picture_say_what_was_measured() -> None:
    text, found = PAGE.read_text(encoding="utf-8"), lines()
    again = "run: .venv/bin/python -m tools.accuracy_page"
    assert text == page(text, found), again
    assert PICTURE.read_text(encoding="utf-8") == picture(found), again


def test_the_page_says_what_whole_tables_gave() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert text == with_real(text, kept()), "run: .venv/bin/python -m tools.accuracy_page"
    with pytest.raises(ValueError, match="no place"):
        with_real("nothing", kept())
    assert {o.world for o in kept()} >= {"shop", "flights", "batting"}


def test_answers_are_as_near_as_those_of_the_best_other_way() -> None:
    """At most 3 % more error, and 1.7 times less where generous bounds meet skewed data."""
    for line in lines():
        is_generous = (line.data, line.bounds) == ("skewed", "generous")
        assert line.ratio <= (1 / 1.7 if is_generous else 1.03), line
    assert {(line.data, line.bounds) for line in lines()} == {
        (data, bounds) for data in ("skewed", "flat") for bounds in ("generous", "tight", "narrow")
    }


def test_a_page_without_markers_is_left_alone() -> None:
    with pytest.raises(ValueError, match="no place"):
        page("nothing", lines())
    text = f"before {accuracy_page.BEGIN} old {accuracy_page.END} after"
    assert page(text, ()).startswith(f"before {accuracy_page.BEGIN}\n\n| question ")
