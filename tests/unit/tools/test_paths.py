"""Are names of files that are gone found, and those that are there left alone?"""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tools import paths
from tools.sources import ROOT

TREE = paths.Tree(
    frozenset((".", "docs", "docs/a.md", "docs/guide", "docs/guide/b.md", "proxy", "proxy/sql", "proxy/sql/bind.py",
               "proxy/sql/bind_times.py", "README.md")),
    frozenset((("docs/a.md", "what-is-it"), ("docs/guide/b.md", "here"))),
)  # fmt: skip


@pytest.mark.parametrize(
    "line",
    [
        "`proxy/sql/gone.py`", "`docs/guide/gone.md`", "`sql/gone`", "`proxy/gone_*`", "`gone.py`", "`gone.md`",
        "see [it](gone.md)", "[it](../a.md#nowhere)", "[it](#nowhere)", "[it](../../docs/gone)",
    ],
)  # fmt: skip
def test_what_is_gone_is_found(line: str) -> None:
    (found,) = paths.findings("docs/guide/b.md", f"first\n{line}\n", TREE)
    assert found.line == 2


@pytest.mark.parametrize(
    "line",
    [
        "`proxy/sql/bind.py`", "`proxy/sql/`", "`sql/bind`", "`sql/bind_*`", "`bind.py`", "`b.md`", "`docs/guide`",
        "`x / y`", "`a/b`", "`/etc/passwd`", "`users.yaml`", "`SELECT 1`", "[it](../a.md)", "[it](../a.md#what-is-it)",
        "[it](#here)", "[it](https://example.org/gone.md)", "[it](../guide)", "[it](../..)", "`[a](b)`",
    ],
)  # fmt: skip
def test_what_is_there_or_no_path_is_left_alone(line: str) -> None:
    assert not list(paths.findings("docs/guide/b.md", line, TREE))


def test_blocks_of_code_are_not_looked_at() -> None:
    assert not list(paths.findings("README.md", "```sh\ncat `docs/gone.md`\n```\n", TREE))


def test_anchors_are_those_of_headings(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    (tmp_path / "README.md").write_text("# What's `it`?\n```\n# no heading\n```\n[it](#whats-it)\n[no](#no-heading)\n")
    assert [found.line for found in paths.project_findings(tmp_path)] == [6]


def test_every_document_of_the_project_names_what_is_there() -> None:
    assert not list(paths.project_findings(ROOT))
