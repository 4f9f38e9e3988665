"""Do the coverage gates hold packages to what the house rules ask of them?"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tools import coverage_gates


def entry(lines: tuple[int, int], branches: tuple[int, int] = (0, 0)) -> dict[str, Any]:
    summary = {
        "covered_lines": lines[0],
        "num_statements": lines[1],
        "covered_branches": branches[0],
        "num_branches": branches[1],
    }
    missing_branches = [[3, 5]] * (branches[1] - branches[0])
    return {"summary": summary, "missing_lines": [9] * (lines[1] - lines[0]), "missing_branches": missing_branches}


FULL = {f"{package}/x.py": entry((10, 10), (4, 4)) for package in coverage_gates.FULL}


def texts(files: dict[str, Any]) -> list[str]:
    return [str(found) for found in coverage_gates.findings({"files": files})]


def test_everything_exercised_passes() -> None:
    assert not texts({**FULL, "proxy/sql/x.py": entry((90, 100)), "proxy/empty.py": entry((0, 0))})


def test_one_missing_branch_in_a_guarded_package_is_named() -> None:
    (text,) = texts({**FULL, "proxy/dp/samplers.py": entry((10, 10), (3, 4))})
    assert text.startswith("proxy/dp/samplers.py:1:")
    assert "branches [3->5]" in text


def test_a_guarded_package_that_was_not_measured_is_named() -> None:
    files = {path: value for path, value in FULL.items() if not path.startswith("proxy/wire")}
    assert texts(files) == ["proxy/wire:1: not measured at all"]


def test_another_package_below_90_percent_is_named() -> None:
    (text,) = texts({**FULL, "proxy/sql/a.py": entry((80, 100)), "proxy/sql/b.py": entry((9, 10))})
    assert text == "proxy/sql:1: 80.9 % of lines and branches; 90 % wanted"


def test_the_exit_status_tells(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    measured = tmp_path / "coverage.json"
    measured.write_text(json.dumps({"totals": {"percent_covered": 12.3}, "files": FULL}))
    assert coverage_gates.main([str(measured)]) == 0
    measured.write_text(json.dumps({"totals": {"percent_covered": 12.3}, "files": {}}))
    assert coverage_gates.main([str(measured)]) == 1
    assert "not measured at all" in capsys.readouterr().err
