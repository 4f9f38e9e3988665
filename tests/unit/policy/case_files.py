"""How are the cases of a text file read?"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

CASES = Path(__file__).parent / "cases"
BASE = (CASES / "base.yaml").read_text(encoding="utf-8")
USERS = (CASES / "users.yaml").read_text(encoding="utf-8")


@dataclass(slots=True)
class Case:
    """Edits of a base file and the problems they must cause."""

    title: str
    base: str
    edits: list[tuple[list[str], list[str]]] = field(default_factory=list)
    expected: list[str] = field(default_factory=list)

    def text(self) -> str:
        """The edited file; every edited text must stand in the base exactly once."""
        result = self.base
        for old, new in self.edits:
            found = "\n".join(old)
            assert result.count(found) == 1, f"{self.title}: {found!r} stands {result.count(found)} times in the base"
            result = result.replace(found, "\n".join(new))
        return result


def read_cases(name: str, base: str) -> list[Case]:
    """All cases of a file in `cases`, each with its edits of `base`."""
    cases: list[Case] = []
    for line in (CASES / name).read_text(encoding="utf-8").splitlines():
        mark, rest = line[:2], line[2:]
        if line.startswith("== "):
            cases.append(Case(line[3:], base))
        elif mark == "- ":
            if not cases[-1].edits or cases[-1].edits[-1][1]:
                cases[-1].edits.append(([], []))
            cases[-1].edits[-1][0].append(rest)
        elif mark == "+ ":
            cases[-1].edits[-1][1].append(rest)
        elif mark == "= ":
            cases[-1].expected.append(rest)
        else:
            assert not line or line.startswith("#"), f"{name}: cannot read {line!r}"
    return cases
