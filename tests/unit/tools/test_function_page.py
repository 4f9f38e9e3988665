"""Does the guide list exactly the functions that are accepted, with what is true of them?"""

from __future__ import annotations

from functools import cache

import pytest

from tools import function_page
from tools.function_page import PAGE, SECTIONS, Form, tables, written

pytestmark = pytest.mark.no_cover  # every spelling is bound for every type, which has tests of its own


made = cache(tables)  # no fixture: lines are counted while those are made


def test_the_page_is_what_the_code_does() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert page == written(page, made()), "run: .venv/bin/python -m tools.function_page"


def test_a_stale_table_is_replaced_and_the_rest_kept() -> None:
    page = f"before\n{function_page.BEGIN}\nold\n{function_page.END}\nafter\n"
    assert written(page, "new") == f"before\n{function_page.BEGIN}\n\nnew\n\n{function_page.END}\nafter\n"
    with pytest.raises(ValueError, match="must hold the lines"):
        written("a page without markers", "new")


def test_a_function_without_a_spelling_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    title, forms = SECTIONS[0]
    spelled = tuple(form for form in forms if "~" in form.shown)
    monkeypatch.setattr(function_page, "SECTIONS", ((title, spelled),))
    with pytest.raises(ValueError, match=r"no spelling .* is of .*like") as missing:
        tables()
    assert "matches" not in str(missing.value).partition(" is of ")[2].split(", ")


@pytest.mark.parametrize(
    ("form", "problem"),
    [
        (Form("`sha256(x)`", ("sha256({0})",)), "no type of argument is accepted by sha256"),
        (Form("`lower(x)`, `length(x)`", ("lower({0})", "length({0})")), "differ, so they need lines of their own"),
    ],
)
def test_a_wrong_line_is_an_error(monkeypatch: pytest.MonkeyPatch, form: Form, problem: str) -> None:
    monkeypatch.setattr(function_page, "SECTIONS", (("Wrong", (form,)), *SECTIONS))
    with pytest.raises(ValueError, match=problem):
        tables()


@pytest.mark.parametrize(
    ("shown", "facts"),
    [
        ("`x + y`", "two numbers | kept | kept: integer | without bounds"),
        ("`x / y`", "two numbers | kept | kept: integer | without bounds"),
        ("`lower(x)`", "text |  | kept | never"),
        ("`length(x)`", "text | kept | kept | never"),
        ("`extract(month FROM x)", "time | always | always | without bounds"),
        ("`date_part(", "time | always | always | without bounds"),
        ("`nullif(x, y)`", "two of a kind, any | kept | kept: integer, text, boolean, uuid, date | possible"),
        ("`NOT a`", "boolean |  | always | never"),
        ("uuid |", "nothing else"),
    ],
)
def test_facts_of_a_line(shown: str, facts: str) -> None:
    (line,) = (line for line in made().splitlines() if line.startswith(f"| {shown}"))
    assert facts in line
