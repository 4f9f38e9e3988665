"""What does a policy say, what would an edit open, and how does it come into force? For administrators.

What is wrong and what changes is said by the functions that `hushql policy check` and `hushql policy diff` use. From
the console nobody changes where the data and the logins are, nor reads the server's environment.
"""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path

from proxy.admin.files import locked_folder, read_text, replace_text
from proxy.admin.kept_policies import Kept, kept_policies, kept_text
from proxy.console.served import ServedPolicy
from proxy.errors import ConfigError, HushError
from proxy.policy.diff import Change, diff
from proxy.policy.load import load_policy
from proxy.policy.model import Policy
from proxy.policy.problems import FileProblems, dotted
from proxy.policy.tree import references


@dataclass(frozen=True, slots=True)
class Fault:
    """What is wrong, at which line (from 1)."""

    line: int
    words: str


@dataclass(frozen=True, slots=True)
class Text:
    """The text of a policy file as it is on disk. mark: what an edit is based on, the digest of a kept version."""

    text: str

    @property
    def mark(self) -> str:
        return hashlib.sha256(self.text.encode()).hexdigest()


def read(served: ServedPolicy) -> Text:
    """The file as it is now. Raises ConfigError."""
    return Text(read_text(served.path, "policy"))


@dataclass(frozen=True, slots=True)
class Wrong:
    """An edit that cannot be taken."""

    faults: tuple[Fault, ...]


@dataclass(frozen=True, slots=True)
class Right:
    """An edit that can be read, with the policy of the file before it."""

    before: Policy
    after: Policy

    def changes(self) -> tuple[Change, ...]:
        """What it opens and closes, in words."""
        return tuple(diff(self.before, self.after))


def judged(served: ServedPolicy, present: Text, text: str) -> Right | Wrong:
    """What an edited text means. Raises FileProblems if the file itself is wrong by now."""
    before = load_policy(present.text, filename=str(served.path), environment=os.environ)
    if text == present.text:  # as a page is opened; to read it once more would take as long again
        return Right(before, before)
    try:
        added = _added_variables(served, present, text)
        if added:
            return Wrong(added)
        after = load_policy(text, filename=str(served.path), environment=os.environ)
    except FileProblems as error:
        return Wrong(tuple(Fault(p.line, _worded(p.path, p.message)) for p in error.problems))
    except HushError as error:
        return Wrong((Fault(1, error.text()),))
    return _within_reach(before, after)


def _added_variables(served: ServedPolicy, present: Text, text: str) -> tuple[Fault, ...]:
    """Values that read the server's environment where the file does not, or otherwise. Raises FileProblems.

    A variable stays in its place and its words: in a comment its value would be told to everybody.
    """
    held, wanted = (references(t, str(served.path)) for t in (present.text, text))
    return tuple(
        Fault(value.line, f"{dotted(path)}: variables of the server are added in the file, not here")
        for path, value in wanted.items()
        if path not in held or held[path].text != value.text
    )


def _within_reach(before: Policy, after: Policy) -> Right | Wrong:
    """Where the data and the logins are is for who can write the server's files."""
    for what, is_same in (
        ("dataset", before.dataset == after.dataset),
        ("source", before.source == after.source),
        ("access.users_file", before.users_file == after.users_file),
    ):
        if not is_same:
            return Wrong((Fault(1, f"{what}: is changed in the file on the server, not here"),))
    return Right(before, after)


def _worded(path: tuple[str | int, ...], message: str) -> str:
    return f"{dotted(path)}: {message}" if path else message


# --- versions -------------------------------------------------------------------------------------------


def versions_of(state: Path, dataset: str) -> tuple[Kept, ...]:
    """What was in force of a dataset, the latest first, as `hushql policy history` has it. Raises ConfigError."""
    return tuple(kept for kept in reversed(kept_policies(state)) if kept.dataset == dataset)


def version(state: Path, dataset: str, digest: str) -> str:
    """The text of one of them. Raises ConfigError where the dataset has none such."""
    return kept_text(versions_of(state, dataset), digest)


def write(served: ServedPolicy, text: str, *, based_on: str) -> Text:
    """Replace the file, at once; what it held is returned. Raises ConfigError and FileProblems.

    based_on: the mark of the text that was edited; if the file holds another by now, nothing is written.
    """
    with locked_folder(served.path):
        present = read(served)
        if present.mark != based_on:
            raise ConfigError(
                "somebody else has changed the policy since you opened it",
                hint="Copy your text, open the page again and look at what is different.",
            )
        found = judged(served, present, text)
        if isinstance(found, Wrong):
            raise ConfigError(f"line {found.faults[0].line}: {found.faults[0].words}")
        replace_text(served.path, text)
    return present


def restore(served: ServedPolicy, text: Text, written: str) -> None:
    """Put a text back in the place of one that was not taken, unless the file was changed again."""
    with locked_folder(served.path):
        if read(served).text == written:
            replace_text(served.path, text.text)
