"""Is every file one subject and does every function fit on a screen?

Measures lines only; complexity is ruff's business (C901).
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator

from tools.sources import ROOT, Finding, Source, python_sources, report

MAX_FILE_LINES = 600
MAX_FUNCTION_LINES = 60

#: Files that hold one data table and nothing else; each has its reason.
TABLES: dict[str, str] = {}


def function_lines(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Lines from `def` to the last statement; decorators and the docstring's own lines are not counted."""
    end = node.end_lineno or node.lineno
    total = end - node.lineno + 1
    first = node.body[0]
    if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str):
        total -= (first.end_lineno or first.lineno) - first.lineno + 1
    return total


def is_only_a_table(tree: ast.Module) -> bool:
    """Whether a module defines no function and no method."""
    return not any(isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) for node in ast.walk(tree))


def findings(source: Source) -> Iterator[Finding]:
    """What is too long in one file."""
    lines = source.text.count("\n")
    if source.path in TABLES:
        if not is_only_a_table(source.tree):
            yield Finding(source.path, 1, "listed as a data table, but it has functions")
    elif lines > MAX_FILE_LINES:
        yield Finding(source.path, 1, f"{lines} lines; {MAX_FILE_LINES} at most")
    for node in ast.walk(source.tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            length = function_lines(node)
            if length > MAX_FUNCTION_LINES:
                yield Finding(source.path, node.lineno, f"{node.name}: {length} lines; {MAX_FUNCTION_LINES} at most")


def main() -> int:
    sources = python_sources(ROOT, "proxy", "tests", "tools", "benchmarks", "examples")
    return report("sizes", (found for source in sources for found in findings(source)))


if __name__ == "__main__":
    sys.exit(main())
