"""One made-up site for all tests, and one proxy on it for those that do not end it. No lines are counted here."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import places
from tests.faults.proxied import Proxied, Site, running, write_site


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    places.leave_uncounted(items, Path(__file__).parent)


@pytest.fixture(scope="session")
def template(tmp_path_factory: pytest.TempPathFactory) -> Site:
    """To be copied, not served."""
    return write_site(tmp_path_factory.mktemp("site"))


@pytest.fixture
def site(template: Site, tmp_path: Path) -> Site:
    """A site of the test's own."""
    return template.copy(tmp_path / "own")


@pytest.fixture(scope="session")
def shared(template: Site, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Proxied]:
    """A proxy that outlives the test. Statements get longer than tests wait for other reasons to end them."""
    limits = {"statement_timeout": "10min", "login_timeout": "6s", "idle_timeout": "10min"}
    with running(template.copy(tmp_path_factory.mktemp("shared"), limits=limits)) as proxied:
        yield proxied
