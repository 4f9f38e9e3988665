"""One proxy for all attacks of a test process."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.attacks.hostile import Attacked, Client, serving


@pytest.fixture(scope="session")
def attacked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Attacked]:
    with serving(tmp_path_factory.mktemp("attacked")) as running:
        yield running


@pytest.fixture
def eve(attacked: Attacked) -> Iterator[Client]:
    """A login with plenty of budget and next to no noise."""
    with attacked.connect(epsilon=100) as client:
        yield client
