"""One proxy for all attacks of a test process. No lines are counted here."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import places
from tests.attacks.hostile import Attacked, Client, serving


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    places.leave_uncounted(items, Path(__file__).parent)


@pytest.fixture(scope="session")
def attacked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Attacked]:
    with serving(tmp_path_factory.mktemp("attacked")) as running:
        yield running


@pytest.fixture
def eve(attacked: Attacked) -> Iterator[Client]:
    """A login with plenty of budget and next to no noise."""
    with attacked.connect(epsilon=100) as client:
        yield client
