"""Does the size check see what is too long, and only that?"""

from __future__ import annotations

import ast

import pytest

from tools import sizes
from tools.sources import Source


def source(text: str, path: str = "proxy/x.py") -> Source:
    return Source(path, text, ast.parse(text))


def function(body_lines: int, prefix: str = "") -> str:
    return f"{prefix}def f() -> None:\n" + "    pass\n" * body_lines


def test_a_file_of_600_lines_is_accepted_and_of_601_refused() -> None:
    assert not list(sizes.findings(source("x = 1\n" * 600)))
    (found,) = sizes.findings(source("x = 1\n" * 601))
    assert "601 lines" in found.text


@pytest.mark.parametrize("prefix", ["", "async "])
def test_a_function_of_61_lines_is_refused(prefix: str) -> None:
    assert not list(sizes.findings(source(function(59, prefix))))
    (found,) = sizes.findings(source("\n" + function(60, prefix)))
    assert (found.line, found.text) == (2, "f: 61 lines; 60 at most")


def test_a_docstring_does_not_make_a_function_too_long() -> None:
    text = 'def f() -> None:\n    """One.\n\n    Two.\n    """\n' + "    pass\n" * 59
    assert not list(sizes.findings(source(text)))


def test_decorators_are_not_counted() -> None:
    assert not list(sizes.findings(source("@d\n@d\n" + function(59))))


def test_a_method_is_measured_too() -> None:
    text = "class C:\n    def f(self) -> None:\n" + "        pass\n" * 60
    assert [found.line for found in sizes.findings(source(text))] == [2]


def test_a_listed_table_may_be_long_but_have_no_functions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sizes.TABLES, "proxy/table.py", "codes")
    assert not list(sizes.findings(source("x = 1\n" * 900, "proxy/table.py")))
    (found,) = sizes.findings(source(function(1), "proxy/table.py"))
    assert "it has functions" in found.text
