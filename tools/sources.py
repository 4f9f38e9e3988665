"""Which files does a check read, and how does it say what it found?

Knows nothing about any rule.
"""

from __future__ import annotations

import ast
import functools
import subprocess
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


@dataclass(frozen=True, slots=True, order=True)
class Finding:
    """One line of a file that breaks a rule. path is relative to the tree's root, line counts from 1."""

    path: str
    line: int
    text: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.text}"


@dataclass(frozen=True, slots=True)
class Source:
    """A Python file with its syntax tree. path is relative to the tree's root, with forward slashes."""

    path: str
    text: str
    tree: ast.Module


@functools.cache
def project_files(root: Path) -> tuple[Path, ...]:
    """The files that belong to the project: what git tracks or would add, in order. Asked of git once."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=root,
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    paths = (root / name for name in sorted(set(listed.split("\0"))) if name)
    return tuple(path for path in paths if path.is_file())


@functools.cache
def parse(root: Path, path: Path) -> Source:
    """Reads one Python file, once for all rules. Raises SyntaxError with the file's name."""
    text = path.read_text(encoding="utf-8")
    name = path.relative_to(root).as_posix()
    return Source(name, text, ast.parse(text, filename=name))


def python_sources(root: Path, *folders: str) -> Iterator[Source]:
    """Every Python file of the project below the given top-level folders."""
    for path in project_files(root):
        if path.suffix == ".py" and path.relative_to(root).parts[0] in folders:
            yield parse(root, path)


def report(rule: str, findings: Iterable[Finding]) -> int:
    """Prints what was found, one line each; returns the exit status."""
    found = sorted(findings)
    for finding in found:
        print(finding, file=sys.stderr)
    if found:
        print(f"{rule}: {len(found)} to mend", file=sys.stderr)
    return 1 if found else 0
