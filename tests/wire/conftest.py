"""One front and one server for all tests of the wire; tests that disturb either start their own."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
import uvloop

from tests import places
from tests.wire.front import TestFront, remove, start_front
from tests.wire.serving import Serving, start_serving


@pytest.fixture(scope="session")
def front_directory() -> Iterator[Path]:
    """Short enough for a socket's name, and open to the account PostgreSQL runs as."""
    directory = Path(tempfile.mkdtemp(prefix="hush-wire-", dir=places.fast()))
    directory.chmod(0o755)
    yield directory
    remove(directory)


@pytest.fixture(scope="session")
def front(front_directory: Path) -> Iterator[TestFront]:
    started = start_front(front_directory)
    yield started
    started.stop()


@pytest.fixture(scope="session")
def shared(front: TestFront) -> Iterator[Serving]:
    serving = start_serving(front, new_loop=uvloop.new_event_loop)
    yield serving
    serving.stop()


@pytest.fixture
def serving(shared: Serving) -> Serving:
    """The shared server with an empty diary."""
    shared.diary.prepared.clear()
    shared.diary.released.clear()
    shared.diary.refused.clear()
    shared.diary.cancelled = 0
    shared.call(shared.diary.sleeping.clear)
    return shared
