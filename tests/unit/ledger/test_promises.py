"""Both ledgers count what was spent for what is promised."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from proxy.ledger.base import Ledger
from proxy.ledger.exchange import Item
from proxy.ledger.moving import take_in
from proxy.ledger.postgres.books import take_in_at
from proxy.ledger.postgres.ledger import PostgresLedger
from proxy.ledger.sqlite.ledger import SqliteLedger
from tests.unit.ledger.promise_suite import PromiseSuite
from tests.unit.ledger.server import Database


class TestSqlitePromises(PromiseSuite):
    @pytest.fixture
    def open_ledger(self, tmp_path: Path) -> Callable[[], Ledger]:
        return lambda: SqliteLedger(tmp_path / "state")

    @pytest.fixture
    def take_in(self, tmp_path: Path) -> Callable[[Iterator[Item]], object]:
        return partial(take_in, tmp_path / "state")


class TestPostgresPromises(PromiseSuite):
    @pytest.fixture
    def open_ledger(self, database: Database, tmp_path: Path) -> Callable[[], Ledger]:
        return lambda: PostgresLedger(tmp_path / "state", database.url)

    @pytest.fixture
    def take_in(self, database: Database) -> Callable[[Iterator[Item]], object]:
        return partial(take_in_at, database.url)
