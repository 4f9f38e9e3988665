"""Are words that are not about the project found, and ordinary prose left alone?"""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tools import words


@pytest.mark.parametrize(
    "line",
    [
        "see " + "/wo" + "rk/shared for more",
        "path: " + "/ho" + "me/ada/data.csv",
        "find-links " + "/op" + "t/wheels",
        "as iss" + "ue 12 says",
        "Fix" + "es #12",
        "see #" + "123.",
        "index https://py" + "pi.org/simple",
        "registry.npm" + "js.org",
        "TO" + "DO later",
    ],
)
def test_a_planted_word_is_found(line: str) -> None:
    (found,) = words.findings("x.md", f"first\n{line}\n")
    assert found.line == 2


@pytest.mark.parametrize(
    "line",
    [
        "the /workspace and network/work of the client",
        "#12ab34 is a colour, &#160; a character",
        "the work is done",
        "issues a warning after 10 minutes",
        "a virtual environment below /root, say",
        "PyPI",
    ],
)
def test_ordinary_prose_is_left_alone(line: str) -> None:
    assert not list(words.findings("x.md", line))


def test_only_files_of_the_project_are_read(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    (tmp_path / ".gitignore").write_text("ignored\n")
    (tmp_path / "ignored").write_text("TO" + "DO\n")
    (tmp_path / "picture").write_bytes(b"\xff\xfe\x00TO" + b"DO")
    (tmp_path / "requirements.lock").write_text("TO" + "DO\n")
    (tmp_path / "seen").write_text("TO" + "DO\n")
    assert [found.path for found in words.project_findings(tmp_path)] == ["seen"]
