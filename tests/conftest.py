"""What every test may ask for: the census table, and property tests with the same examples in every run."""

from __future__ import annotations

import importlib
import os
import pkgutil
from collections.abc import Generator, Iterable
from itertools import accumulate
from pathlib import Path

import hypothesis
import pytest

import proxy

ROOT = Path(__file__).resolve().parent.parent
IS_CI = bool(os.environ.get("CI"))

# A shared machine makes any deadline a coin toss, and so would other examples in every run; `make fuzz` tries others.
hypothesis.settings.register_profile("search", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow])
hypothesis.settings.register_profile(
    "same", hypothesis.settings.get_profile("search"), derandomize=True, print_blob=True
)


def pytest_configure(config: pytest.Config) -> None:
    hypothesis.settings.load_profile("search" if config.getoption("markexpr") == "long" else "same")


@pytest.hookimpl(wrapper=True)
def pytest_collection(session: pytest.Session) -> Generator[None, object, object]:
    """Count the lines of our modules as they are imported, and none while tests are read: it takes twice as long."""
    counting = getattr(session.config.pluginmanager.getplugin("_cov"), "cov_controller", None)
    if counting is None:
        return (yield)
    for module in pkgutil.walk_packages(proxy.__path__, "proxy."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    counting.pause()
    try:
        return (yield)
    finally:
        counting.resume()


# The relay is tested in a thread that lives on, whose lines are counted until the first test that is not to be counted.
FIRST = "tests/wire"
# Tests that wait for other processes, the longest first; and how many files like others one of tests/fuzz is worth.
WAITING = ("tests/faults", "tests/e2e", "tests/attacks", "tests/front")
FUZZ, WORTH = "tests/fuzz", 20


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mix files that wait with files that compute, so that no processor is idle; small ones come at the end."""
    places = places_of(dict.fromkeys(_file(item) for item in items))
    items.sort(key=lambda item: places[_file(item)])


def places_of(files: Iterable[str]) -> dict[str, float]:
    """Where each file stands: the first before 0, the others from 0 to 1, those that wait in the first four fifths."""
    given = list(files)
    waiting = [f for folder in WAITING for f in given if f.startswith(folder)]
    others = (f for f in given if not f.startswith((FIRST, *WAITING)))
    computing = sorted(others, key=lambda f: not f.startswith(FUZZ))
    worth = [WORTH if f.startswith(FUZZ) else 1 for f in computing]
    before = accumulate(worth, initial=0)
    return {
        **{f: -1.0 for f in given if f.startswith(FIRST)},
        **{f: 0.8 * number / len(waiting) for number, f in enumerate(waiting)},
        **{f: done / sum(worth) for f, done in zip(computing, before, strict=False)},
    }


def _file(item: pytest.Item) -> str:
    return item.nodeid.partition("::")[0]


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
