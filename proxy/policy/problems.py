"""What is wrong with a file, where, and how is all of it said at once?

A problem has a path inside the document and a line; a report gathers them and raises one error that
lists every problem. Values from the environment, and those of keys that hold secrets, are never quoted.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from proxy.errors import PolicyError

Path = tuple[str | int, ...]

_LONGEST_QUOTE = 60


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing to correct. line is 1-based; path is empty for the document as a whole."""

    line: int
    path: Path
    message: str

    def render(self, filename: str) -> str:
        place = f"{filename}:{self.line}: "
        return place + (f"{dotted(self.path)}: {self.message}" if self.path else self.message)


class FileProblems(PolicyError):
    """Every problem of one file; the message has a line `file:line: path.to.key: ...` for each."""

    def __init__(self, filename: str, problems: Iterable[Problem]) -> None:
        self.filename = filename
        self.problems = tuple(sorted(problems, key=lambda p: p.line))
        super().__init__("\n".join(p.render(filename) for p in self.problems))


@dataclass(frozen=True, slots=True)
class DocumentMarks:
    """Where each path of a document stands, and which values are secret."""

    lines: Mapping[Path, int]
    secret: frozenset[Path]

    def line(self, path: Path) -> int:
        """Line of the path, or of its nearest ancestor that is written in the file."""
        for end in range(len(path), -1, -1):
            if path[:end] in self.lines:
                return self.lines[path[:end]]
        return 1

    def show(self, path: Path, value: object) -> str:
        """A value quoted for a message; never a secret."""
        if any(path[:end] in self.secret for end in range(len(path) + 1)):
            return "a value that is not shown"
        return shown(value)


@dataclass(slots=True)
class ProblemReport:
    """Gathers problems while a file is checked."""

    marks: DocumentMarks
    problems: list[Problem] = field(default_factory=list)

    def add(self, path: Path, message: str) -> None:
        problem = Problem(self.marks.line(path), path, message)
        if problem not in self.problems:
            self.problems.append(problem)

    def show(self, path: Path, value: object) -> str:
        return self.marks.show(path, value)

    def names(self, path: Path) -> bool:
        """Whether a problem at or below the path is known already."""
        return any(p.path[: len(path)] == path for p in self.problems)

    def raise_if_any(self, filename: str) -> None:
        if self.problems:
            raise FileProblems(filename, self.problems)


def dotted(path: Path) -> str:
    """`tables.users.columns.age.bounds[0]`; keys that would be ambiguous are quoted."""
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
            continue
        plain = part.replace("_", "a").replace("-", "a").isalnum()
        text += ("." if text else "") + (part if plain else shown(part))
    return text


def shown(value: object) -> str:
    """A value of the file on one line, cut if long."""
    match value:
        case None:
            return "nothing"
        case bool():
            return "true" if value else "false"
        case dict():
            return "a mapping"
        case list() | tuple():
            return "a list"
        case str():
            text = ascii(value) if not value.isprintable() else f"'{value}'"
        case _:
            text = str(value)
    return text if len(text) <= _LONGEST_QUOTE else text[: _LONGEST_QUOTE - 3] + "..."


def one_of(names: Iterable[str]) -> str:
    """A list of accepted words, readable when it is long."""
    known = list(names)
    return ", ".join(known[:30]) + (f" and {len(known) - 30} more" if len(known) > 30 else "")


def did_you_mean(wrong: str, names: Iterable[str]) -> str:
    """` (did you mean 'bounds'?)` when one of the names is close, else nothing."""
    by_lower = {n.lower(): n for n in names}
    close = difflib.get_close_matches(wrong.lower(), list(by_lower), n=1, cutoff=0.6)
    return f" (did you mean '{by_lower[close[0]]}'?)" if close else ""
