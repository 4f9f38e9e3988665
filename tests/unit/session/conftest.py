"""What the tests of sessions share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.session.staged import World, serving


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with serving(tmp_path / "state") as served:
        yield served
