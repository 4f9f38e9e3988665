"""The SQLite ledger: the shared suite, and what only files on a disk can do wrong."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import datetime
from pathlib import Path

import pytest

from proxy.errors import ConfigError, LedgerFailed
from proxy.ledger import history
from proxy.ledger.base import Ledger, Outcome
from proxy.ledger.books import Books
from proxy.ledger.chain import Event, Pledged
from proxy.ledger.grants import grant_in_files
from proxy.ledger.replay import inspect
from proxy.ledger.sqlite import schema
from proxy.ledger.sqlite.head import Mark, Marker, Marking
from proxy.ledger.sqlite.ledger import SqliteLedger, _Overtaken
from proxy.plan.charge import Cost
from proxy.policy.model import Promise
from proxy.policy.pledge import Pledge
from proxy.release.store import SqliteStore
from tests.unit.ledger.make import account, ask, full_disk, gift, payers, pledge, reserved_of, want
from tests.unit.ledger.suite import LedgerSuite


class TestSqliteLedger(LedgerSuite):
    @pytest.fixture
    def open_ledger(self, tmp_path: Path) -> Callable[[], Ledger]:
        return lambda: SqliteLedger(tmp_path / "state")


@pytest.fixture
def state(tmp_path: Path) -> Path:
    return tmp_path / "state"


@pytest.fixture
def ledger(state: Path) -> Iterator[SqliteLedger]:
    opened = SqliteLedger(state)
    yield opened
    opened.close()


def marks_written_by(work: Callable[[], object], monkeypatch: pytest.MonkeyPatch) -> int:
    """How often `work` moved the marker, which every durable charge does."""
    marks: list[Mark] = []
    original = Marker.write

    def write(marker: Marker, mark: Mark) -> Marking:
        marks.append(mark)
        return original(marker, mark)

    with monkeypatch.context() as patch:
        patch.setattr(Marker, "write", write)
        work()
    return len(marks)


# --- files ----------------------------------------------------------------------------------------


def test_files_are_private(state: Path, ledger: SqliteLedger) -> None:
    ledger.reserve(payers(), want(), ask())
    modes = {path.name: path.stat().st_mode & 0o777 for path in state.iterdir()}
    assert modes == dict.fromkeys(["ledger.db", "ledger.db-wal", "ledger.db-shm", "head", "lock"], 0o600)
    assert state.stat().st_mode & 0o777 == 0o700


def test_charges_are_synchronous_and_stores_are_not(ledger: SqliteLedger) -> None:
    assert ledger._connection.execute("pragma synchronous").fetchone() == (2,)
    assert ledger._connection.execute("pragma journal_mode").fetchone() == ("wal",)
    assert isinstance(ledger.store, SqliteStore)
    assert ledger.store._connection.execute("pragma synchronous").fetchone() == (1,)


def test_a_second_process_is_told_who_owns_the_directory(state: Path, ledger: SqliteLedger) -> None:
    imports = "from pathlib import Path; from proxy.ledger.sqlite.ledger import SqliteLedger"
    code = f"{imports}; SqliteLedger(Path({str(state)!r}))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert run.returncode == 1
    assert f"state directory {state} is in use by process " in run.stderr
    assert (state / "lock").read_text().strip() in run.stderr
    ledger.reserve(payers(), want(), ask())


def test_a_file_of_another_version_is_refused(state: Path) -> None:
    SqliteLedger(state).close()
    with closing(sqlite3.connect(state / schema.FILE_NAME)) as connection:
        connection.execute("pragma user_version = 99")
    with pytest.raises(LedgerFailed, match="cannot be opened") as refused:
        SqliteLedger(state)
    assert "version 99" in refused.value.detail


def test_a_file_that_is_no_database_is_refused_and_the_lock_given_back(state: Path) -> None:
    state.mkdir(mode=0o700)
    (state / schema.FILE_NAME).write_bytes(b"not a database, but long enough to be looked at" * 20)
    (state / schema.FILE_NAME).chmod(0o600)
    with pytest.raises(LedgerFailed):
        SqliteLedger(state)
    (state / schema.FILE_NAME).unlink()
    SqliteLedger(state).close()


def test_a_directory_in_the_place_of_a_file_is_reported(state: Path) -> None:
    (state / "head").mkdir(parents=True)
    state.chmod(0o700)
    with pytest.raises((ConfigError, LedgerFailed), match="head"):
        SqliteLedger(state)


# --- the marker -----------------------------------------------------------------------------------


def test_a_statement_is_settled_once_its_marker_is_on_the_disk(
    ledger: SqliteLedger, monkeypatch: pytest.MonkeyPatch
) -> None:
    order, may_go_on, force = list[str](), threading.Event(), os.fdatasync

    def slow(handle: int) -> None:
        assert may_go_on.wait(60)
        force(handle)
        order.append("forced")

    monkeypatch.setattr(os, "fdatasync", slow)
    paid = ledger.reserve(payers(), want("a"), ask())
    ledger.store.put(reserved_of(paid.items[0]), b"noise")
    repeated = ledger.reserve(payers(), want("a"), ask())
    with ThreadPoolExecutor(2) as pool:
        settling = [pool.submit(ledger.settle, receipt.statement) for receipt in (paid, repeated)]
        for one in settling:
            one.add_done_callback(lambda _: order.append("settled"))
        may_go_on.set()
    assert order == ["forced", "settled", "settled"]
    ledger.settle(paid.statement)
    later = ledger.reserve(payers(), want("b"), ask())
    ledger.settle(paid.statement)
    ledger.settle(later.statement)


def test_a_marker_that_is_not_forced_to_the_disk_settles_nothing(
    ledger: SqliteLedger, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(os, "fdatasync", failing)
        paid = ledger.reserve(payers(), want("a"), ask())
        for _ in range(2):
            with pytest.raises(LedgerFailed, match="could not be marked"):
                ledger.settle(paid.statement)
    after = ledger.reserve(payers(), want("b"), ask())
    ledger.settle(paid.statement)
    ledger.settle(after.statement)
    assert ledger.verify().entries == 2


def test_nothing_is_charged_after_a_marker_that_is_not_on_the_disk(
    state: Path, ledger: SqliteLedger, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(os, "fdatasync", failing)
        paid = ledger.reserve(payers(), want("a"), ask())
        with pytest.raises(LedgerFailed, match="durable"):
            ledger.reserve(payers(), want("b"), ask())
        with pytest.raises(LedgerFailed, match="recovered"):
            ledger.reserve(payers(), want("b"), ask())
        assert ledger.balances(payers()) == paid.balances
    ledger.settle(ledger.reserve(payers(), want("b"), ask()).statement)
    assert inspect(state).entries == 2


def failing(_handle: int) -> None:
    raise OSError(5, "input/output error")


# --- a full disk ----------------------------------------------------------------------------------


def test_a_full_disk_loses_nothing_and_is_survived(state: Path, ledger: SqliteLedger) -> None:
    paid = ledger.reserve(payers(), want("a"), ask())
    with full_disk(state / "head"):
        for name in ("b", "c"):
            with pytest.raises(LedgerFailed) as failed:
                ledger.reserve(payers(), want(name), ask())
            assert "disk" in failed.value.hint
        with pytest.raises(LedgerFailed, match="stored"):
            ledger.store.put(reserved_of(paid.items[0]), b"x" * 100_000)
        assert ledger.balances(payers()) == paid.balances
    ledger.store.put(reserved_of(paid.items[0]), b"x" * 100_000)
    receipt = ledger.reserve(payers(), want("b"), ask())
    assert receipt.balances[0].spent.pico >= 2000
    assert ledger.verify().totals == ledger.all_accounts()


def test_a_full_disk_at_the_first_start_is_reported(state: Path, tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.touch()
    with full_disk(empty), pytest.raises((ConfigError, LedgerFailed)):
        SqliteLedger(state)
    SqliteLedger(state).close()


def test_a_charge_whose_marker_failed_counts(ledger: SqliteLedger, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_marker: Marker, _mark: Mark) -> None:
        raise OSError("no space")

    with monkeypatch.context() as patch:
        patch.setattr(Marker, "write", fail)
        with pytest.raises(LedgerFailed, match="could not be made durable"):
            ledger.reserve(payers(), want("a"), ask())
        with pytest.raises(LedgerFailed, match="has not recovered"):
            ledger.reserve(payers(), want("b"), ask())
    assert ledger.reserve(payers(), want("c"), ask()).balances[0].spent == Cost(2000, 14)
    assert ledger.verify().entries == 2


def test_recovery_waits_for_whoever_keeps_the_file_busy(
    state: Path, ledger: SqliteLedger, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger.reserve(payers(), want("a"), ask())
    monkeypatch.setattr(schema, "BUSY_TIMEOUT_S", 0.05)
    ledger._is_sound = False
    with schema.reading(state / schema.FILE_NAME) as reader:
        reader.execute("begin")
        reader.execute("select * from entry").fetchone()
        with pytest.raises(LedgerFailed, match="busy"):
            ledger.reserve(payers(), want("b"), ask())
    assert ledger.reserve(payers(), want("b"), ask()).balances[0].spent.pico == 2000


# --- repeats --------------------------------------------------------------------------------------


def test_a_repeat_waits_for_no_disk(ledger: SqliteLedger, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger.store.put(reserved_of(ledger.reserve(payers(), want(), ask()).items[0]), b"noise")
    entries_before, changes = ledger.verify().entries, ledger._connection.total_changes
    assert marks_written_by(lambda: [ledger.reserve(payers(), want(), ask()) for _ in range(50)], monkeypatch) == 0
    assert ledger._connection.total_changes == changes
    assert ledger.verify().entries == entries_before
    assert marks_written_by(lambda: ledger.reserve(payers(), want("b"), ask()), monkeypatch) == 1
    monkeypatch.setattr(os, "fdatasync", failing)
    ledger.reserve(payers(), want(), ask())
    with pytest.raises(LedgerFailed):
        ledger.settle(ledger.reserve(payers(), want("c"), ask()).statement)


# --- the history's memory -------------------------------------------------------------------------


def test_waiting_notes_are_written_in_bulk(ledger: SqliteLedger, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history, "MAX_WAITING", 10)
    receipt = ledger.reserve(payers(), want(), ask())
    ledger.store.put(reserved_of(receipt.items[0]), b"noise")
    for _ in range(25):
        ledger.note_outcome(ledger.reserve(payers(), want(), ask()).statement, Outcome.ANSWERED)
    assert len(ledger._history._repeats) + len(ledger._history._outcomes) <= 10
    assert len(ledger.history("alice", 100)) == 26


def test_notes_that_cannot_be_written_are_bounded_and_fail_nobody(
    state: Path, ledger: SqliteLedger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(history, "MAX_WAITING", 10)
    ledger.store.put(reserved_of(ledger.reserve(payers(), want(), ask()).items[0]), b"noise")
    with full_disk(state / "head"):
        for number in range(100):
            statement = ledger.reserve(payers(), want(), ask("q" * 1000)).statement
            ledger.note_outcome(statement if number % 2 else number, Outcome.ANSWERED)
        assert len(ledger._history._repeats) <= 10
        assert len(ledger._history._outcomes) <= 10
    assert len(ledger.history("alice", 100)) >= 10


def test_what_a_grant_overtakes_is_stated_and_granted_behind_it(
    ledger: SqliteLedger, state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    who, original, given = account("dataset", "shop"), Books.draft_pledge, list[str]()

    def overtaken(books: Books, stated: Pledge, at: datetime) -> Pledged:
        if not given:
            given.append("once")
            grant_in_files(state, gift(who, 5))
        return original(books, stated, at)

    monkeypatch.setattr(Books, "draft_pledge", overtaken)
    assert ledger.pledge(pledge(Promise(2)), who, ask().at).balance.granted.pico == 5
    assert [type(e).__name__ for e in ledger.entries()] == ["Grant", "Pledged"]


def test_a_number_that_is_taken_by_nobody_known_is_a_failure(
    ledger: SqliteLedger, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(entry: Event) -> int:
        raise _Overtaken("taken")

    monkeypatch.setattr(ledger, "_commit", refuse)
    with pytest.raises(LedgerFailed, match="taken"):
        ledger.pledge(pledge(), account("dataset", "shop"), ask().at)
