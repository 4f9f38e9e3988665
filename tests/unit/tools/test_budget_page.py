"""What the guide says a budget buys."""

from __future__ import annotations

import pytest

from tools import budget_page
from tools.budget_page import PAGE, tables, written


def test_the_guide_says_what_is_charged() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert page == written(page, tables()), "run: .venv/bin/python -m tools.budget_page"


def test_a_page_without_markers_is_left_alone() -> None:
    with pytest.raises(ValueError, match="no place"):
        written("nothing", "tables")
    page = f"before {budget_page.BEGIN} old {budget_page.END} after"
    assert written(page, "new") == f"before {budget_page.BEGIN}\n\nnew\n\n{budget_page.END} after"
