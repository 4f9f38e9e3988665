"""What somebody else did to the ledger's files is found."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from proxy.errors import ConfigError, LedgerFailed
from proxy.ledger.chain import GENESIS
from proxy.ledger.replay import inspect
from proxy.ledger.sqlite import schema
from proxy.ledger.sqlite.ledger import SqliteLedger
from tests.unit.ledger.make import ask, key, payers, reserved_of, want


@pytest.fixture
def state(tmp_path: Path) -> Path:
    return tmp_path / "state"


@pytest.fixture
def ledger(state: Path) -> Iterator[SqliteLedger]:
    opened = SqliteLedger(state)
    yield opened
    opened.close()


def change(state: Path, sql: str) -> None:
    with closing(sqlite3.connect(state / schema.FILE_NAME)) as connection:
        connection.execute(sql)
        connection.commit()


@pytest.fixture
def books(state: Path) -> Path:
    """Closed books of three entries and one stored release."""
    with closing(SqliteLedger(state)) as ledger:
        for name in ("a", "b"):
            ledger.reserve(payers(), want(name), ask())
        receipt = ledger.reserve(payers(), want("c"), ask())
        ledger.store.put(reserved_of(receipt.items[0]), b"noise")
    return state


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("update entry set body = replace(body, '1000', '1') where seq = 2", "verify"),
        ("update entry set body = replace(body, 'alice', 'bobby') where seq = 1", "entry 2 .* does not continue"),
        ("update entry set body = replace(body, '\"kind\"', ' \"kind\"') where seq = 2", "changed by hand"),
        ("update entry set body = 'x' where seq = 2", "cannot be read"),
        ("update entry set body = replace(body, 'count(', 'COUNT(') where seq = 3", "not the ones its marker"),
        ("delete from entry where seq = 3", "older copy, or entries were cut off"),
        ("delete from entry where seq = 1", "number 1 is missing"),
        ("delete from entry", "older copy"),
        ("update release set release_id = 9", "never charged"),
        ("drop table entry", "cannot be opened"),
    ],
)
def test_tampering_is_detected(books: Path, sql: str, message: str) -> None:
    if "entry" in sql and "index" not in sql:
        change(books, "drop index entry_login")
    change(books, sql)
    with pytest.raises(LedgerFailed, match=message):
        SqliteLedger(books)
    with pytest.raises(LedgerFailed, match=message.replace("opened", "read")):
        inspect(books)


def test_tampering_beside_a_running_ledger_is_found_by_verify(state: Path, ledger: SqliteLedger) -> None:
    ledger.reserve(payers(), want("a"), ask())
    change(state, "update entry set body = replace(body, 'alice', 'bobby')")
    with pytest.raises(LedgerFailed):
        ledger.verify()


def test_an_entry_that_appears_from_elsewhere_is_found_by_verify(state: Path, ledger: SqliteLedger) -> None:
    ledger.reserve(payers(), want("a"), ask())
    body = ledger._connection.execute("select body from entry").fetchone()[0]
    ledger._books = type(ledger._books)()
    with pytest.raises(LedgerFailed, match="differs from what this process charged"):
        ledger.verify()
    ledger._books.apply(body)
    ledger.verify()
    ledger._books.head = GENESIS
    with pytest.raises(LedgerFailed, match="differs from what this process charged"):
        ledger.verify()
    change(state, "drop table entry")
    with pytest.raises(LedgerFailed, match="cannot be read"):
        ledger.balances(payers())


def test_an_entry_removed_beside_a_running_ledger_stops_its_recovery(state: Path, ledger: SqliteLedger) -> None:
    ledger.reserve(payers(), want("a"), ask())
    change(state, "delete from entry")
    ledger._is_sound = False
    with pytest.raises(LedgerFailed, match="have vanished"):
        ledger.reserve(payers(), want("b"), ask())


def test_an_older_copy_put_back_is_refused(state: Path) -> None:
    SqliteLedger(state).close()
    with closing(SqliteLedger(state)) as ledger:
        ledger.reserve(payers(), want("a"), ask())
    old = (state / schema.FILE_NAME).read_bytes()
    with closing(SqliteLedger(state)) as ledger:
        ledger.reserve(payers(), want("b"), ask())
    (state / schema.FILE_NAME).write_bytes(old)
    with pytest.raises(LedgerFailed, match="older copy") as refused:
        SqliteLedger(state)
    assert "ends at entry 1; entry 2 was written once" in refused.value.detail
    assert "lower the budgets" in refused.value.hint


def test_a_copy_without_its_write_ahead_log_is_refused(state: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    with closing(SqliteLedger(state)) as ledger:
        ledger.reserve(payers(), want("a"), ask())
        copy.mkdir(mode=0o700)
        for name in ("ledger.db", "head"):
            (copy / name).write_bytes((state / name).read_bytes())
            (copy / name).chmod(0o600)
    with pytest.raises(LedgerFailed, match="older copy"):
        SqliteLedger(copy)


def test_a_removed_marker_is_refused(books: Path) -> None:
    (books / "head").unlink()
    with pytest.raises(LedgerFailed, match="marker file head is missing"):
        SqliteLedger(books)
    with pytest.raises(LedgerFailed, match="marker file head is missing"):  # and it stays refused
        SqliteLedger(books)


def test_a_removed_file_is_refused(books: Path) -> None:
    (books / schema.FILE_NAME).unlink()
    with pytest.raises(LedgerFailed, match="older copy"):
        SqliteLedger(books)
    with pytest.raises(ConfigError, match="no ledger"):
        inspect(books / "elsewhere")


def test_inspect_reads_beside_a_running_ledger(state: Path, ledger: SqliteLedger) -> None:
    ledger.reserve(payers(), want("a"), ask())
    assert inspect(state) == ledger.verify()


def test_reading_a_broken_file_is_a_ledger_failure(state: Path, ledger: SqliteLedger) -> None:
    ledger.reserve(payers(), want("a"), ask())
    change(state, "drop table repeat")
    with pytest.raises(LedgerFailed, match="history cannot be read"):
        ledger.history("alice", 1)
    change(state, "drop table release")
    with pytest.raises(LedgerFailed, match="stored releases cannot be read"):
        ledger.reserve(payers(), want("b"), ask())
    change(state, "drop table entry")
    with pytest.raises(LedgerFailed, match="cannot be read"):
        list(ledger.entries())


def test_a_stored_release_that_vanishes_is_a_ledger_failure(ledger: SqliteLedger) -> None:
    with pytest.raises(LedgerFailed, match="vanished"):
        ledger.store.load(7, key())
