"""Which versions of its policies has a proxy taken, and when? Their texts are kept in its state directory.

One file for each time that a dataset was served under another text than before, named after the time and the text's
hash; nothing removes them.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from proxy.admin.files import read_text, replace_text
from proxy.errors import ConfigError

_FOLDER = "policies"
_TIME = "%Y%m%dT%H%M%S.%fZ"
_NAME = re.compile(r"([0-9T.]+Z)-([0-9a-f]{64})\.yaml")
LEAST_DIGITS = 4  # of a digest that names a version


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """A version that was taken. digest: SHA-256 of its text, 64 hexadecimal digits."""

    dataset: str
    at: datetime
    digest: str
    path: Path


def keep_policy(state: Path, dataset: str, text: str, at: datetime) -> None:
    """Keep a text that was taken, durably, unless it is the latest of this dataset. Raises ConfigError."""
    digest = hashlib.sha256(text.encode("utf-8")).hexdigest()
    folder = state / _FOLDER / dataset
    latest = [kept.digest for kept in _of_dataset(folder)][-1:]
    if latest == [digest]:
        return
    try:
        folder.parent.mkdir(mode=0o700, exist_ok=True)
        folder.mkdir(mode=0o700, exist_ok=True)
    except OSError as error:
        raise ConfigError(f"{folder} cannot be made: {error.strerror}") from error
    replace_text(folder / f"{at.astimezone(UTC).strftime(_TIME)}-{digest}.yaml", text)


def kept_policies(state: Path) -> list[Kept]:
    """All that were taken, the first of each dataset first. Raises ConfigError for a directory that has none."""
    folder = state / _FOLDER
    found = [kept for path in sorted(folder.glob("*")) for kept in _of_dataset(path)]
    if not found:
        raise ConfigError(f"there are no policies in {state}", hint="Name the state directory of a proxy.")
    return found


def kept_text(kept: Sequence[Kept], digest: str) -> str:
    """The text of the one version that the first digits name. Raises ConfigError."""
    found = {one.digest: one.path for one in kept if one.digest.startswith(digest.lower())}
    if len(digest) < LEAST_DIGITS or len(found) != 1:
        some = ", ".join(dict.fromkeys(one.digest[:12] for one in kept[-5:]))
        fault = (
            f"{len(found)} versions begin with {digest}" if len(digest) >= LEAST_DIGITS else f"{digest} is too short"
        )
        raise ConfigError(fault, hint=f"The latest are {some}; `hushql policy history` lists all.")
    return read_text(next(iter(found.values())), "kept policy")


def _of_dataset(folder: Path) -> list[Kept]:
    """In the order of time; other files are none of ours."""
    names = sorted(path.name for path in folder.glob("*.yaml"))
    return [
        Kept(
            dataset=folder.name, digest=found[2], path=folder / name,
            at=datetime.strptime(found[1], _TIME).replace(tzinfo=UTC),
        )
        for name in names if (found := _NAME.fullmatch(name))
    ]  # fmt: skip
