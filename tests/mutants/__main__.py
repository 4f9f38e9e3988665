"""`make mutants`: is each seeded mistake noticed by the tests that are named for it, and how fast?

Works in a temporary copy of the tree. First all named tests must pass there without a mistake; then each mistake is
made for itself. Prints a page for the documents; --write keeps it. Ends with 1 if a mistake goes unnoticed.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.mutants.mistake import Seeded
from tests.mutants.seeded import SEEDED
from tests.mutants.sources import ROOT, copy_tree, made

PAGE = ROOT / "docs" / "mutants.md"
PATIENCE_S = 900
_FAILED = re.compile(r"^(?:FAILED|ERROR) \S+?::([\w:]+)", re.MULTILINE)
_TESTS_FAILED = 1  # pytest's status; 2 and more mean that it could not run them


@dataclass(frozen=True, slots=True)
class Outcome:
    """by: the first test that failed, "" if all passed."""

    mistake: Seeded
    by: str
    taken_s: float


def tested(tree: Path, files: Sequence[str], *, first: bool) -> tuple[str, float]:
    """The first test of these files that fails in the tree, "" for none, and how long that took."""
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "--tb=no",
        *(["-x"] if first else []),
        *files,
    ]
    started = time.perf_counter()
    done = subprocess.run(
        command, cwd=tree, env={**os.environ, "PYTHONPATH": str(tree), "CI": "1", "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True, text=True, timeout=PATIENCE_S * len(files), check=False,
    )  # fmt: skip
    taken_s = time.perf_counter() - started
    if done.returncode == 0:
        return "", taken_s
    found = _FAILED.search(done.stdout)
    if done.returncode != _TESTS_FAILED or found is None:
        raise SystemExit(f"pytest could not run {files}: {done.stdout[-2000:]}{done.stderr[-2000:]}")
    return found[1], taken_s


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument("--write", action="store_true", help=f"write {PAGE.relative_to(ROOT)}")
    parser.add_argument("--only", default="", help="mistakes whose name has this in it")
    options = parser.parse_args()
    chosen = [one for one in SEEDED if options.only in one.name]
    with tempfile.TemporaryDirectory(prefix="mutants") as folder:
        tree = copy_tree(Path(folder))
        failed, taken_s = tested(tree, sorted({one.caught_by for one in chosen}), first=True)
        if failed:
            raise SystemExit(f"{failed} fails without any mistake")
        print(f"all named tests pass without a mistake ({taken_s:.0f} s)", file=sys.stderr)
        outcomes = [_outcome(tree, one) for one in chosen]
    page = written(outcomes)
    print(page)
    if options.write:
        PAGE.write_text(page)
    return 0 if all(o.by for o in outcomes) else 1


def _outcome(tree: Path, one: Seeded) -> Outcome:
    with made(one, tree):
        by, taken_s = tested(tree, (one.caught_by,), first=True)
    print(f"{one.area}: {one.name}: {by or 'NOT CAUGHT'} ({taken_s:.1f} s)", file=sys.stderr, flush=True)
    return Outcome(one, by, taken_s)


def written(outcomes: Sequence[Outcome]) -> str:
    caught = sum(bool(o.by) for o in outcomes)
    lines = "".join(
        f"| {o.mistake.area} | {o.mistake.name} | `proxy/{o.mistake.module}` | {_by(o)} | {o.taken_s:.0f} s |\n"
        for o in outcomes
    )
    return f"""# Mistakes that are noticed

`make mutants` makes one mistake at a time in a copy of the sources and runs a file of tests that must notice it:
{caught} of {len(outcomes)} are caught. The time is that of the run of that file up to its first failure, the start of
Python included, on a machine that others were using too. More mistakes, made in a running process and looked for by
random queries, are in `tests/fuzz`.

| area | mistake | made in | caught by | after |
| --- | --- | --- | --- | --- |
{lines}"""


def _by(outcome: Outcome) -> str:
    file = Path(outcome.mistake.caught_by.partition("::")[0]).name
    return f"`{file}`: `{outcome.by}`" if outcome.by else "**nothing**"


if __name__ == "__main__":
    sys.exit(main())
