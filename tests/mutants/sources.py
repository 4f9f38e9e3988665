"""A copy of the tree in which one mistake at a time is made."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.mutants.mistake import Seeded

ROOT = Path(__file__).resolve().parents[2]
_COPIED = ("proxy", "tests", "tools", "policies", "docs", "benchmarks", "pyproject.toml", "README.md")


def patched(one: Seeded, text: str) -> str:
    """The module's text with the mistake. AssertionError unless its place is there once."""
    assert text.count(one.old) == 1, f"{one.name}: {text.count(one.old)} places in {one.module}"
    return text.replace(one.old, one.new)


def copy_tree(folder: Path) -> Path:
    """The sources and tests, without anything that was made of them."""
    for name in _COPIED:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, folder / name, ignore=shutil.ignore_patterns("__pycache__", "node_modules"))
        else:
            shutil.copy2(source, folder / name)
    return folder


@contextmanager
def made(one: Seeded, tree: Path) -> Iterator[None]:
    """The mistake, in a copy of the tree, until the block is over."""
    module = tree / "proxy" / one.module
    right = module.read_text()
    module.write_text(patched(one, right))
    try:
        yield
    finally:
        module.write_text(right)
