"""What was paid for and never drawn, in both ledgers: the shared suite, and what only one of them can show."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from proxy.errors import LedgerFailed
from proxy.ledger import exchange, moving
from proxy.ledger.base import Ledger
from proxy.ledger.books import Books
from proxy.ledger.postgres.books import inspect_at, items_at
from proxy.ledger.postgres.ledger import PostgresLedger
from proxy.ledger.postgres.store import check_opened
from proxy.ledger.replay import inspect
from proxy.ledger.sqlite.ledger import SqliteLedger
from tests.unit.ledger.make import ask, key, payers, reserved_of, want
from tests.unit.ledger.relay import Cut, relayed
from tests.unit.ledger.retries import FREE, FULL, RetrySuite, attempted, ended, numbers
from tests.unit.ledger.server import Database


class TestSqliteRetry(RetrySuite):
    @pytest.fixture
    def open_ledger(self, tmp_path: Path) -> Callable[[], Ledger]:
        return lambda: SqliteLedger(tmp_path / "state")


class TestPostgresRetry(RetrySuite):
    @pytest.fixture
    def open_ledger(self, database: Database, tmp_path: Path) -> Callable[[], Ledger]:
        return lambda: PostgresLedger(tmp_path / "state", database.url)


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[SqliteLedger]:
    with closing(SqliteLedger(tmp_path / "files")) as opened:
        yield opened


# --- on the disk ------------------------------------------------------------------------------------------


def test_a_second_attempt_is_stored_on_the_disk_and_a_first_one_is_not(ledger: SqliteLedger) -> None:
    seen = list[object]()

    def watch(words: str) -> None:
        if "insert into release" in words:
            # asked of the connection that is at it, through another cursor of its own
            seen.append(ledger._store._connection.execute("pragma synchronous").fetchone()[0])

    ledger._store._connection.set_trace_callback(watch)
    (first,) = attempted(ledger)[1]
    ledger.store.put(first, b"noise")
    ledger.end(ended(*attempted(ledger, wanted=want("b"))[1]))
    (second,) = attempted(ledger, wanted=want("b"))[1]
    ledger.store.put(second, b"noise")
    assert seen == [1, 2]  # normal, full
    ledger._store._connection.set_trace_callback(None)
    assert ledger._store._connection.execute("pragma synchronous").fetchone() == (1,)


def test_a_second_attempt_is_stored_synchronously_by_a_server(shared: PostgresLedger) -> None:
    """Seen by a trigger, in the transaction that stores it."""
    shared._link.get().execute("create table waits (how text)")
    shared._link.get().execute(
        "create function note() returns trigger language plpgsql as $$ begin"
        " insert into hushql.waits values (current_setting('synchronous_commit')); return new; end $$"
    )
    shared._link.get().execute("create trigger note before insert on release for each row execute function note()")
    (first,) = attempted(shared)[1]
    shared.store.put(first, b"noise")
    shared.end(ended(*attempted(shared, wanted=want("b"))[1]))
    shared.store.put(attempted(shared, wanted=want("b"))[1][0], b"noise")
    assert shared._link.get().execute("select how from waits").fetchall() == [("off",), ("on",)]


def test_the_end_of_an_attempt_that_could_not_be_written_is_no_end(
    ledger: SqliteLedger, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, items = attempted(ledger)
    with monkeypatch.context() as patch:
        patch.setattr(ledger._history, "write", _failing)
        with pytest.raises(LedgerFailed, match="durable"):
            ledger.end(ended(*items))
    assert attempted(ledger)[0].charged == FULL


def _failing(_connection: object) -> object:
    raise OSError(5, "input/output error")


# --- several proxies --------------------------------------------------------------------------------------


def test_one_proxy_takes_up_what_another_one_ended(shared: PostgresLedger, other: PostgresLedger) -> None:
    _, (item,) = attempted(shared)
    shared.end(ended(item))
    receipt, (taken,) = attempted(other)
    assert (receipt.charged, numbers((taken,))) == (FREE, [(1, 2)])
    with pytest.raises(LedgerFailed):  # it has not heard of the second attempt, and ends the first once more
        shared.end(ended(item))
    assert attempted(shared)[0].charged == FULL
    other.store.put(taken, b"noise")
    assert shared.store.load(1, key()).payload == b"noise"


def test_a_proxy_that_wakes_up_late_drops_its_draw(shared: PostgresLedger, other: PostgresLedger) -> None:
    """It did not hear that its own attempt was ended, as if another process had the right to say so."""
    _, (item,) = attempted(shared)
    other.balances(payers())
    other.end(ended(item))
    _, (taken,) = attempted(other)
    other.store.put(taken, b"second")
    with pytest.raises(LedgerFailed):
        shared.store.put(item, b"first")
    assert shared.store.load(1, key()).payload == b"second"
    other.end(ended(*attempted(other, wanted=want("b"))[1]))
    (second,) = attempted(other, wanted=want("b"))[1]
    shared.balances(payers())
    shared.end(ended(second))
    (third,) = attempted(shared, wanted=want("b"))[1]
    with pytest.raises(LedgerFailed, match="an attempt that had ended"):
        other.store.put(second, b"stalled")
    shared.store.put(third, b"third")


def test_what_another_took_up_and_stored_while_it_was_verified_is_no_damage(
    shared: PostgresLedger, other: PostgresLedger
) -> None:
    shared.end(ended(*attempted(shared)[1]))
    other.store.put(attempted(other)[1][0], b"noise")
    assert len(shared._books.attempts.open_ids) == 1  # it has not heard of it
    check_opened(shared._link, shared._chain, shared._books)
    assert not shared._books.attempts.open_ids


def test_a_way_that_breaks_while_a_second_attempt_is_stored(database: Database, tmp_path: Path) -> None:
    with relayed(database.socket) as relay:
        url = f"postgresql://hush@127.0.0.1:{relay.port}/postgres"
        with closing(PostgresLedger(tmp_path / "far", url)) as far:
            far.end(ended(*attempted(far)[1]))
            (second,) = attempted(far)[1]
            relay.cut(b"insert into release", Cut.AFTER)
            far.store.put(second, b"noise")
            assert relay.has_cut
            assert far.store.load(1, key()).payload == b"noise"


# --- moved and damaged ------------------------------------------------------------------------------------


def test_books_that_move_keep_what_has_ended(ledger: SqliteLedger, tmp_path: Path, database: Database) -> None:
    ledger.end(ended(*attempted(ledger)[1]))
    ledger.end(ended(*attempted(ledger, wanted=want("b"))[1]))
    attempted(ledger, payers(session="s2"), want("b"))
    lines = list(exchange.written(moving.items_of(tmp_path / "files", Books())))
    assert exchange.verified(lines) == ledger.verify()
    moving.take_in(tmp_path / "new", exchange.read(lines))
    with closing(SqliteLedger(tmp_path / "new")) as moved:
        assert numbers(attempted(moved)[1]) == [(1, 2)]
        assert numbers(attempted(moved, wanted=want("b"))[1]) == [(3, 1)]


def test_a_result_of_an_attempt_that_had_ended_does_not_verify(
    ledger: SqliteLedger, tmp_path: Path, shared: PostgresLedger, database: Database
) -> None:
    row = 1, "plan a", "policy", "1", b"noise"
    for one in (ledger, shared):
        one.end(ended(*attempted(one, fresh=True)[1], fresh=True))
    ledger._store._connection.execute("insert into release values (?, ?, ?, ?, ?)", row)
    shared._link.get().execute("insert into release values (%s, %s, %s, %s, %s)", row)
    for attempt in (
        ledger.verify, lambda: inspect(tmp_path / "files"), shared.verify, lambda: inspect_at(database.url),
        lambda: list(exchange.written(items_at(database.url, Books()))),
    ):  # fmt: skip
        with pytest.raises(LedgerFailed, match="is stored whose attempt had ended"):
            attempt()
    for one in (ledger, shared):  # and it is not drawn again
        assert reserved_of(one.reserve(payers(), want(), ask(), fresh=True).items[0]).release_id == 2
        assert one.reserve(payers(), want(), ask()).charged == FREE
