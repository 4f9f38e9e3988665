"""What every test may ask for: the census table, and property tests with the same examples in every run."""

from __future__ import annotations

import importlib
import os
import pkgutil
from collections.abc import Generator
from pathlib import Path

import hypothesis
import pytest
from pytest_cov.engine import CovController
from xdist.remote import Producer
from xdist.scheduler import LoadFileScheduling

import proxy
from tests.census import write_census
from tests.thorough import mark_thorough

ROOT = Path(__file__).resolve().parent.parent
IS_CI = bool(os.environ.get("CI"))

# A shared machine makes any deadline a coin toss, and so would other examples in every run; `make fuzz` tries others.
hypothesis.settings.register_profile("search", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow])
hypothesis.settings.register_profile(
    "same", hypothesis.settings.get_profile("search"), derandomize=True, print_blob=True
)


def pytest_configure(config: pytest.Config) -> None:
    hypothesis.settings.load_profile("search" if config.getoption("markexpr") == "long" else "same")
    _count_once(config)


def _count_once(config: pytest.Config) -> None:
    """Leave one count of lines in each worker: others, which coverage and pytest-cov leave beside it, never pause."""
    counting = _counting(config)
    if hasattr(config, "workerinput"):
        if counting is not None:
            counting.pause()  # of a run without workers: that of the worker starts with its session
    elif config.getoption("numprocesses", None):
        os.environ.pop("COVERAGE_PROCESS_CONFIG", None)  # workers set it for what tests start


def _counting(config: pytest.Config) -> CovController | None:
    return getattr(config.pluginmanager.getplugin("_cov"), "cov_controller", None)


@pytest.hookimpl(wrapper=True)
def pytest_collection(session: pytest.Session) -> Generator[None, object, object]:
    """Count the lines of our modules as they are imported, and none while tests are read: it takes twice as long."""
    counting = _counting(session.config)
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


# Folders whose tests share servers, in which a worker would else start its own: those that take long first, but for the
# relay's, which is tested in a thread that lives on and whose lines are counted until the first test of another folder.
SHARING = ("tests/wire", "tests/e2e", "tests/attacks", "tests/faults", "tests/front")
LONG = ("tests/fuzz",)


class ByServer(LoadFileScheduling):  # type: ignore[misc]  # untyped
    """Gives each worker files, or a whole folder whose tests share servers."""

    def _split_scope(self, nodeid: str) -> str:
        return room_of(nodeid)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> ByServer | None:
    return ByServer(config, log) if config.getoption("dist") == "loadfile" else None


@pytest.hookimpl(tryfirst=True)  # before pytest leaves out what is marked
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """What takes long comes first, so that no worker is left alone with it at the end; see also `tests/thorough.py`."""
    if config.args == config.getini("testpaths"):  # whoever names a file wants all of it
        mark_thorough(items)
    order = [*SHARING, *LONG]
    items.sort(key=lambda item: next((n for n, f in enumerate(order) if item.nodeid.startswith(f)), len(order)))


def room_of(nodeid: str) -> str:
    """What is not divided among workers: a folder that shares servers, else a file."""
    return next((folder for folder in SHARING if nodeid.startswith(folder)), nodeid.partition("::")[0])


def find_adult_csv() -> Path | None:
    """The UCI Adult table: $ADULT_CSV, else data/adult.csv in the tree, else shared/data/adult.csv beside it."""
    named = os.environ.get("ADULT_CSV")
    candidates = (
        [Path(named)] if named else [ROOT / "data" / "adult.csv", ROOT.parent / "shared" / "data" / "adult.csv"]
    )
    return next((path for path in candidates if path.is_file()), None)


@pytest.fixture(scope="session")
def adult_csv(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Path of the UCI Adult table (32,561 rows, header). Absent: fails in CI, else made-up persons of its shape."""
    found = find_adult_csv()
    if found is None and IS_CI:
        pytest.fail("the UCI Adult table is not here: name it with ADULT_CSV=path, or put it at data/adult.csv")
    return found or write_census(tmp_path_factory.mktemp("census") / "adult.csv")
