"""What does the ledger add to a query: the charge until it is durable, the release kept, the marker on the disk?

Four accounts pay for a new release each time, on the disk that holds temporary files; PostgreSQL is a server of the
benchmark's own on this machine, as durable as the product asks for.
"""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from itertools import count
from pathlib import Path

from benchmarks.measure import Work, milliseconds
from benchmarks.wire import FixedCost
from proxy.ledger.base import Ledger, Outcome, Question, Wanted
from proxy.ledger.postgres.ledger import PostgresLedger
from proxy.ledger.sqlite.ledger import SqliteLedger
from proxy.plan.charge import Account, AccountKind, Cost, ReleaseKey, Request, Reserved
from tests.unit.ledger.server import running_database

_SQLITE_MS, _POSTGRES_MS = 3.0, 5.0
_WARM_UP = 20
_PAYLOAD = bytes(2000)
_LIMIT = Cost(10**18, 10**18)
_ACCOUNTS = tuple(
    Account(kind=kind, name=name, limited=True, limit=_LIMIT)
    for kind, name in zip(AccountKind, ("shop", "shop/analyst", "shop/ann", "shop/ann/1"), strict=True)
)


def charges(runs: int) -> Iterator[FixedCost]:
    """Charge each ledger `runs` times."""
    with tempfile.TemporaryDirectory(prefix="bench") as folder:
        with closing(SqliteLedger(Path(folder) / "files")) as ledger:
            yield FixedCost("charge, SQLite", _median(_charge(ledger), runs), _SQLITE_MS)
        with (
            running_database(Path(tempfile.gettempdir())) as database,
            closing(PostgresLedger(Path(folder) / "shared", database.url)) as ledger,
        ):
            yield FixedCost("charge, PostgreSQL", _median(_charge(ledger), runs), _POSTGRES_MS)


def _charge(ledger: Ledger) -> Work:
    numbers = count()

    def charge() -> None:
        key = ReleaseKey(fingerprint=f"{next(numbers):064x}", policy_digest="0" * 64, data_version="1")
        wanted = (Wanted(Request(key=key, cost=Cost(6_220_000_000, 25_000)), "select 1"),)
        question = Question(login="shop/ann", query="SELECT count(*) FROM users", at=datetime.now(UTC))
        receipt = ledger.reserve(_ACCOUNTS, wanted, question)
        (item,) = receipt.items
        assert isinstance(item, Reserved)
        ledger.store.put(item, _PAYLOAD)
        ledger.settle(receipt.statement)
        ledger.note_outcome(receipt.statement, Outcome.ANSWERED)

    return charge


def _median(work: Work, runs: int) -> float:
    for _ in range(_WARM_UP):
        work()
    return statistics.median(milliseconds(work) for _ in range(runs))
