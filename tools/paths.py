"""Do the documents name files that are there?

Looks at links, their anchors included, and at code spans that are paths of the repository. A path may leave out
`proxy/` and `.py`, as `wire/relay` does, and may hold a star. Blocks of code are not looked at.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath

from tools.sources import ROOT, Finding, project_files, report

_FENCE = re.compile(r"^\s*```")
_SPAN = re.compile(r"`([^`]+)`")
_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
_PATH = re.compile(r"[\w.*-]+(?:/[\w.*-]+)+/?")
_FILE = re.compile(r"\w[\w-]*\.(?:py|md|sh)")
_HEADING = re.compile(r"#+ +(.*)")
_SCHEME = re.compile(r"[a-z][a-z+.-]*:")


@dataclass(frozen=True, slots=True)
class Tree:
    """Every file and folder of the project, with forward slashes, and the anchors of its documents."""

    names: frozenset[str]
    anchors: frozenset[tuple[str, str]]

    def has(self, pattern: str) -> bool:
        return pattern in self.names or ("*" in pattern and any(fnmatchcase(name, pattern) for name in self.names))

    def has_file(self, name: str) -> bool:
        return any(PurePosixPath(known).name == name for known in self.names)

    def is_of_repository(self, first: str) -> bool:
        """Whether a path that starts so means the repository: one of its folders, or a package of the program."""
        return first in self.names or f"proxy/{first}" in self.names


def read_tree(root: Path) -> Tree:
    files = {path.relative_to(root).as_posix() for path in project_files(root)}
    folders = {parent.as_posix() for name in files for parent in PurePosixPath(name).parents}
    anchors = {
        (name, anchor)
        for name in files
        if name.endswith(".md")
        for anchor in _anchors((root / name).read_text(encoding="utf-8"))
    }
    return Tree(frozenset(files | folders), frozenset(anchors))


def _anchors(text: str) -> Iterator[str]:
    """The names by which headings are linked to."""
    for _, line in _prose(text):
        heading = _HEADING.fullmatch(line.strip())
        if heading:
            yield re.sub(r"[^\w\- ]", "", heading[1].lower()).replace(" ", "-")


def _prose(text: str) -> Iterator[tuple[int, str]]:
    """Lines outside fenced blocks, with their numbers."""
    is_code = False
    for number, line in enumerate(text.splitlines(), start=1):
        if _FENCE.match(line):
            is_code = not is_code
        elif not is_code:
            yield number, line


def findings(path: str, text: str, tree: Tree) -> Iterator[Finding]:
    """What one document names and is not there."""
    for number, line in _prose(text):
        for span in _SPAN.findall(line):
            if _is_missing(span, tree):
                yield Finding(path, number, f"`{span}` is not there")
        for target in _LINK.findall(_SPAN.sub("", line)):
            if _is_broken(target, path, tree):
                yield Finding(path, number, f"the link to {target} leads nowhere")


def _is_missing(span: str, tree: Tree) -> bool:
    if _FILE.fullmatch(span):
        return not tree.has_file(span)
    if not _PATH.fullmatch(span) or not tree.is_of_repository(span.partition("/")[0]):
        return False
    name = span.rstrip("/")
    return not any(tree.has(known) for known in (name, f"proxy/{name}", f"proxy/{name}.py"))


def _is_broken(target: str, path: str, tree: Tree) -> bool:
    if _SCHEME.match(target):
        return False
    place, _, anchor = target.partition("#")
    name = _resolved(PurePosixPath(path).parent / place) if place else path
    return not tree.has(name) or (bool(anchor) and (name, anchor) not in tree.anchors)


def _resolved(path: PurePosixPath) -> str:
    """The path without its dots."""
    parts: list[str] = []
    for part in path.parts:
        if part == ".." and parts:
            parts.pop()
        elif part != ".":
            parts.append(part)
    return "/".join(parts) or "."


def project_findings(root: Path) -> Iterator[Finding]:
    """Every such line of the README and of the documents."""
    tree = read_tree(root)
    for name in sorted(tree.names):
        if name in ("README.md", "CHANGELOG.md") or (name.startswith("docs/") and name.endswith(".md")):
            yield from findings(name, (root / name).read_text(encoding="utf-8"), tree)


def main() -> int:
    return report("paths", project_findings(ROOT))


if __name__ == "__main__":
    sys.exit(main())
