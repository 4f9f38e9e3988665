"""What every test may ask for: the census table, and reproducible property tests in CI."""

from __future__ import annotations

import os
from pathlib import Path

import hypothesis
import pytest

ROOT = Path(__file__).resolve().parent.parent
IS_CI = bool(os.environ.get("CI"))

# A shared machine makes any deadline a coin toss; in CI the same examples run every time.
hypothesis.settings.register_profile("local", deadline=None)
hypothesis.settings.register_profile("ci", deadline=None, derandomize=True, print_blob=True)
hypothesis.settings.load_profile("ci" if IS_CI else "local")


# Files that take longest begin first, so that no worker is left with one of them at the end.
LONGEST = (("tests/fuzz",), ("tests/faults", "tests/e2e", "tests/attacks", "tests/front", "tests/wire"))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: next((n for n, t in enumerate(LONGEST) if item.nodeid.startswith(t)), len(LONGEST)))


def find_adult_csv() -> Path | None:
    """The UCI Adult table: $ADULT_CSV, else data/adult.csv in the tree, else shared/data/adult.csv beside it."""
    named = os.environ.get("ADULT_CSV")
    candidates = (
        [Path(named)] if named else [ROOT / "data" / "adult.csv", ROOT.parent / "shared" / "data" / "adult.csv"]
    )
    return next((path for path in candidates if path.is_file()), None)


@pytest.fixture(scope="session")
def adult_csv() -> Path:
    """Path of the UCI Adult table (32,561 rows, header). Absent: fails in CI, else says what is missing."""
    found = find_adult_csv()
    if found is None:
        message = "the UCI Adult table is not here: name it with ADULT_CSV=path, or put it at data/adult.csv"
        if IS_CI:
            pytest.fail(message)
        pytest.skip(message)
    return found
