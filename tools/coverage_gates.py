"""Are the branches of each package exercised as much as the house rules ask?

Reads the JSON that coverage writes; runs nothing.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tools.sources import Finding, report

#: Percent of lines and branches, per package; every other package must reach REST.
FULL = ("proxy/dp", "proxy/plan", "proxy/ledger", "proxy/wire")
REST = 90.0


@dataclass(frozen=True, slots=True)
class Covered:
    """Exercised and existing lines and branches of a group of files."""

    done: int
    all: int

    @property
    def percent(self) -> float:
        return 100.0 * self.done / self.all if self.all else 100.0

    def __add__(self, other: Covered) -> Covered:
        return Covered(self.done + other.done, self.all + other.all)


def package_of(path: str) -> str:
    """`proxy/dp/x.py` belongs to `proxy/dp`; a module directly below proxy stands for itself."""
    parts = path.replace("\\", "/").split("/")
    return "/".join(parts[:2])


def file_coverage(summary: Mapping[str, int]) -> Covered:
    done = summary["covered_lines"] + summary["covered_branches"]
    return Covered(done, summary["num_statements"] + summary["num_branches"])


def findings(measured: Mapping[str, Any]) -> Iterator[Finding]:
    """Packages below their gate. Raises KeyError when branches were not measured."""
    packages: dict[str, Covered] = {}
    for path, entry in measured["files"].items():
        covered = file_coverage(entry["summary"])
        package = package_of(path)
        packages[package] = packages.get(package, Covered(0, 0)) + covered
        if package in FULL and covered.done < covered.all:
            lines = ", ".join(map(str, entry["missing_lines"]))
            branches = ", ".join(f"{a}->{b}" for a, b in entry["missing_branches"])
            yield Finding(path, 1, f"not exercised: lines [{lines}] branches [{branches}]; 100 % wanted here")
    for package in sorted(set(FULL) - set(packages)):
        yield Finding(package, 1, "not measured at all")
    for package, covered in packages.items():
        if package not in FULL and covered.percent < REST:
            yield Finding(package, 1, f"{covered.percent:.1f} % of lines and branches; {REST:.0f} % wanted")


def main(arguments: list[str]) -> int:
    measured = json.loads(Path(arguments[0]).read_text(encoding="utf-8"))
    print(f"coverage: {measured['totals']['percent_covered']:.1f} % of lines and branches")
    return report("coverage", findings(measured))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
