"""Does every page of docs/claims have its parts, and do the functions and tests exist that it names?

Looks at the headings and at code spans under `Carried by` and `Tests`: first files, then what they define. A function
that carries a claim needs a docstring. Whether the argument is right is for readers.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tools.sources import ROOT, Finding, project_files, python_sources, report

#: Every page has these, in this order; others may stand between them.
PARTS = ("Claim", "Assumptions", "Argument", "Carried by", "Tests")

_HEADING = re.compile(r"## (.+)")
_SPAN = re.compile(r"`([^`]+)`")
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_NAME = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*")


@dataclass(frozen=True, slots=True)
class Definition:
    """What a file defines. has_docstring is true of a constant, which has none."""

    name: str
    has_docstring: bool = True


def definitions(tree: ast.Module) -> frozenset[Definition]:
    """Functions, classes, methods as `Class.method`, tests by their name, and the module's constants."""
    found: list[Definition] = []
    for node in tree.body:
        match node:
            case ast.ClassDef(body=body):
                found.append(Definition(node.name, bool(ast.get_docstring(node))))
                found += (_method(node.name, inner) for inner in body if isinstance(inner, _FUNCTIONS))
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                found.append(Definition(node.name, bool(ast.get_docstring(node))))
            case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
                found.append(Definition(name))
            case _:
                pass
    return frozenset(found)


def _method(of: str, method: ast.FunctionDef | ast.AsyncFunctionDef) -> Definition:
    """A test goes by its own name, as pytest's reports have it; whose class it is in says nothing."""
    name = method.name if method.name.startswith("test_") else f"{of}.{method.name}"
    return Definition(name, bool(ast.get_docstring(method)))


def spans(text: str) -> Iterator[tuple[str, int, str]]:
    """The code spans of a page, each with its part and line."""
    part = ""
    for number, line in enumerate(text.splitlines(), start=1):
        heading = _HEADING.fullmatch(line)
        part = heading[1] if heading else part
        for span in _SPAN.findall(line):
            yield part, number, span


def findings(path: str, text: str, defined: dict[str, frozenset[Definition]]) -> Iterator[Finding]:
    """What is wrong with one page. defined: what each file of the project defines; nothing unless it is Python."""
    headings = [heading[1] for line in text.splitlines() if (heading := _HEADING.fullmatch(line))]
    if [part for part in headings if part in PARTS] != list(PARTS):
        yield Finding(path, 1, f"needs the parts {', '.join(PARTS)}, in this order")
    for part in ("Carried by", "Tests"):
        yield from _unknown(path, [(line, span) for at, line, span in spans(text) if at == part], part, defined)


def _unknown(
    path: str, named: list[tuple[int, str]], part: str, defined: dict[str, frozenset[Definition]]
) -> Iterator[Finding]:
    """A name belongs to one of the files that stand right before it and the names beside it."""
    files: list[str] = []
    were_names = True
    if not named:
        yield Finding(path, 1, f"names nothing under {part}")
    for line, span in named:
        if "/" in span:
            files = [span] if were_names else [*files, span]
            were_names = False
            if not any(known == span or known.startswith(f"{span}/") for known in defined):
                yield Finding(path, line, f"`{span}` is not there")
            continue
        were_names = True
        found = [made for file in files for made in defined.get(file, ()) if made.name == span]
        if not _NAME.fullmatch(span) or not found:
            yield Finding(path, line, f"`{span}` is not defined in {' or '.join(files) or 'a file'}")
        elif part == "Carried by" and not all(made.has_docstring for made in found):
            yield Finding(path, line, f"`{span}` carries a claim and has no docstring")


def project_findings(root: Path) -> Iterator[Finding]:
    """Every such line of the project's pages."""
    defined = {path.relative_to(root).as_posix(): frozenset[Definition]() for path in project_files(root)}
    defined |= {source.path: definitions(source.tree) for source in python_sources(root, "proxy", "tests")}
    for name in sorted(defined):
        if name.startswith("docs/claims/"):
            yield from findings(name, (root / name).read_text(encoding="utf-8"), defined)


def main() -> int:
    return report("claims", project_findings(ROOT))


if __name__ == "__main__":
    sys.exit(main())
