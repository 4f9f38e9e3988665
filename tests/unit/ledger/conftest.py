"""One PostgreSQL server for all tests of the shared ledger, started when it is first needed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from proxy.ledger.postgres.ledger import PostgresLedger
from tests import places
from tests.unit.ledger.server import Database, running_database


@pytest.fixture(scope="session")
def server() -> Iterator[Database]:
    with running_database(places.fast()) as running:
        yield running


@pytest.fixture
def database(server: Database) -> Database:
    """The server without a ledger."""
    server.execute("drop schema if exists hushql cascade")
    return server


@pytest.fixture
def shared(database: Database, tmp_path: Path) -> Iterator[PostgresLedger]:
    with closing(PostgresLedger(tmp_path / "state", database.url)) as opened:
        yield opened


@pytest.fixture
def other(database: Database, tmp_path: Path, shared: PostgresLedger) -> Iterator[PostgresLedger]:
    """A second proxy's."""
    with closing(PostgresLedger(tmp_path / "other", database.url)) as opened:
        yield opened
