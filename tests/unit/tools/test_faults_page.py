"""Does every row of docs/faults.md name tests that there are, and is no test of faults missing from it?"""

from __future__ import annotations

import re
from collections.abc import Iterator

from tools.sources import ROOT

PAGE = ROOT / "docs" / "faults.md"
#: About what parts a proxy is made of, not about faults.
OTHER_SUBJECTS = frozenset({"tests/faults/test_composition.py"})


def rows() -> Iterator[tuple[str, ...]]:
    """The table's rows but for its head and the titles of its parts."""
    table, _, _ = PAGE.read_text(encoding="utf-8").partition("\n## ")
    for line in table.splitlines():
        if line.startswith("| ") and not line.startswith(("| fault |", "| **")):
            yield tuple(cell.strip() for cell in line.strip("|").split(" | "))


def defined() -> dict[str, set[str]]:
    """The files in which each test is defined."""
    found: dict[str, set[str]] = {}
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        for name in re.findall(r"^def (test_\w+)", path.read_text(encoding="utf-8"), re.MULTILINE):
            found.setdefault(name, set()).add(path.relative_to(ROOT).as_posix())
    return found


def test_every_row_says_what_was_seen_and_names_tests_that_there_are() -> None:
    known, found = defined(), list(rows())
    assert len(found) > 40
    for row in found:
        assert len(row) == 4, row
        assert row[1], row
        named = re.findall(r"`(\w+)`", row[3])
        assert named, row
        assert not [name for name in named if name not in known], row


def test_every_test_of_faults_is_named() -> None:
    named = set(re.findall(r"`(test_\w+)`", PAGE.read_text(encoding="utf-8")))
    faults = {
        name
        for name, files in defined().items()
        if any(file.startswith("tests/faults/") for file in files - OTHER_SUBJECTS)
    }
    assert faults
    assert sorted(faults - named) == []
