"""Does every module say which question it answers?"""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
MODULES = sorted(p for p in (ROOT / "proxy").rglob("*.py") if p.name != "__init__.py")


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(ROOT)))
def test_the_first_line_is_a_question(path: Path) -> None:
    first, *_ = (ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or "").split("\n")
    assert "?" in first
