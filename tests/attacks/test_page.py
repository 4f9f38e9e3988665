"""Does docs/attacks.md name every attack's tests, and tests that exist?"""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LEAST = 60  # lines of the page
_TEST = re.compile(r"^ *(?:async )?def (test_\w+)", re.MULTILINE)


def names_in(folder: Path) -> set[str]:
    return {name for path in folder.rglob("test_*.py") for name in _TEST.findall(path.read_text(encoding="utf-8"))}


def test_the_page_names_all_attacks_and_tests_that_exist() -> None:
    page = (ROOT / "docs" / "attacks.md").read_text(encoding="utf-8")
    lines = [line.split("|") for line in page.splitlines() if line.startswith("| ") and "| tests |" not in line]
    tried = [cells for cells in lines if "---" not in cells[1]]
    assert len(tried) >= LEAST
    assert not [cells[1] for cells in tried if not re.search(r"`test_\w+`", cells[3])], "an attack without a test"
    named = set(re.findall(r"`(test_\w+)`", page))
    ours = names_in(ROOT / "tests" / "attacks")
    assert not named - names_in(ROOT / "tests"), "tests that do not exist"
    assert not ours - named - {"test_the_page_names_all_attacks_and_tests_that_exist"}, "tests that are not named"
