"""Fixtures: a running front per kind of server binaries, and clients to it."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest

from proxy.front.front import Front, FrontOptions
from tests import places
from tests.front.samples import installed_servers, policy, store_rows, users

Client = psycopg.Connection[tuple[object, ...]]


@pytest.fixture(scope="session", autouse=True)
def fast_fronts() -> Iterator[None]:
    """Fronts choose the system's place for temporary files, as a test's own paths are too long for a socket."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tempfile, "tempdir", str(places.fast()))
        yield


@pytest.fixture(scope="session")
def runner() -> Iterator[asyncio.Runner]:
    with asyncio.Runner() as made:
        yield made


@pytest.fixture(scope="session", params=sorted(installed_servers()))
def front(
    request: pytest.FixtureRequest, runner: asyncio.Runner, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Front]:
    """Two logins that see everything, one that sees less; shared by tests that change nothing."""
    options = FrontOptions(
        state_dir=tmp_path_factory.mktemp("state"),
        binaries=installed_servers()[request.param],
        address_space_bytes=512 << 20,
        file_bytes=64 << 20,
    )
    logins = users(alice="all", bob="all", eve="some")
    made = runner.run(Front.start(policy(), logins, options, store_rows))
    yield made
    runner.run(made.stop())


@pytest.fixture
def connect(front: Front) -> Iterator[Callable[[str], Client]]:
    opened: list[Client] = []

    def open_client(login: str = "alice") -> Client:
        opened.append(open_as(front, login))
        return opened[-1]

    yield open_client
    for connection in opened:
        connection.close()


@pytest.fixture
def alice(connect: Callable[[str], Client]) -> Client:
    return connect("alice")


@pytest.fixture
def wheel_options(tmp_path: Path) -> FrontOptions:
    return FrontOptions(state_dir=tmp_path / "state", binaries=installed_servers()["wheel"])


def open_as(front: Front, login: str) -> Client:
    address = front.address_for(login)
    return psycopg.connect(
        host=address.socket_dir, port=address.port, user=address.user, dbname=address.database, autocommit=True
    )
