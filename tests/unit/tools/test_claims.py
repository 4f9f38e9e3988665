"""Are pages found whose functions and tests are gone, and those that name what is there left alone?"""

from __future__ import annotations

import ast

import pytest

from tools import claims
from tools.sources import ROOT

CODE = '''
LIMIT: int = 1
TABLE = {}

def told():
    """Says so."""

def silent(): ...

class Books:
    """Books."""

    def draft(self):
        """An entry."""

class Suite:
    async def test_inside(self): ...
'''
DEFINED = {
    "proxy/a.py": claims.definitions(ast.parse(CODE)),
    "proxy/b.py": claims.definitions(ast.parse("def other():\n    'Another.'\n")),
    "tests/test_a.py": claims.definitions(ast.parse(CODE)),
    "docs/claims/a.md": frozenset(),
}


def page(carried: str, tests: str = "`tests/test_a.py`: `test_inside`") -> str:
    parts = f"## Claim\n\n`x`\n\n## Assumptions\n\n## Argument\n\n## Carried by\n{carried}\n## Tests\n{tests}\n"
    return f"# A claim\n\n{parts}"


@pytest.mark.parametrize(
    "carried",
    [
        "`proxy/a.py`: `told`, `Books.draft`, `Books`, `LIMIT`, `TABLE`",
        "`proxy/a.py`: `told`; `proxy/b.py`: `other`",
        "`proxy/a.py`, `proxy/b.py`: `other`",
        "`docs/claims`",
    ],
)
def test_what_is_there_is_left_alone(carried: str) -> None:
    assert not list(claims.findings("docs/claims/a.md", page(carried), DEFINED))


@pytest.mark.parametrize(
    ("carried", "found"),
    [
        ("`proxy/a.py`: `gone`", "`gone` is not defined in proxy/a.py"),
        ("`proxy/a.py`: `told`, `other`", "`other` is not defined in proxy/a.py"),
        ("`proxy/b.py`: `other`; `proxy/a.py`: `other`", "`other` is not defined in proxy/a.py"),
        ("`proxy/a.py`: `draft`", "`draft` is not defined in proxy/a.py"),
        ("`proxy/a.py`: `silent`", "`silent` carries a claim and has no docstring"),
        ("`proxy/gone.py`", "`proxy/gone.py` is not there"),
        ("`told`", "`told` is not defined in a file"),
        ("`proxy/a.py`: `told()`", "`told()` is not defined in proxy/a.py"),
    ],
)
def test_a_name_that_is_gone_is_found_with_its_line(carried: str, found: str) -> None:
    assert [(f.line, f.text) for f in claims.findings("docs/claims/a.md", page(carried), DEFINED)] == [(12, found)]


def test_a_test_that_is_gone_is_found() -> None:
    text = page("`proxy/a.py`: `told`", "`tests/test_a.py`: `test_gone`")
    assert [f.text for f in claims.findings("docs/claims/a.md", text, DEFINED)] == [
        "`test_gone` is not defined in tests/test_a.py"
    ]


def test_a_page_names_something_under_both_headings() -> None:
    assert [f.text for f in claims.findings("docs/claims/a.md", page("nothing"), DEFINED)] == [
        "names nothing under Carried by"
    ]


def test_a_page_without_one_of_its_parts_is_found() -> None:
    text = page("`proxy/a.py`: `told`").replace("## Assumptions\n", "")
    (found,) = claims.findings("docs/claims/a.md", text, DEFINED)
    assert found.text.startswith("needs the parts")


def test_every_page_of_the_project_names_what_is_there() -> None:
    assert not list(claims.project_findings(ROOT))
