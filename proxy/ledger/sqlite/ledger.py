"""How does one process charge durably with nothing but a local disk?

`reserve` appends one entry to a chain in SQLite (one commit, one fsync), writes the marker beside it, and only then
returns. The marker's own fsync goes on meanwhile; `settle` waits for it before the answer leaves. Prices, limits and
balances come from `Books`, which hold the entries on disk. Only this process charges; another may append a grant
(`ledger.grants`), which is taken over when it matters. A statement that these accounts paid for before
touches the disk for reading only.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

from proxy.errors import LedgerFailed
from proxy.ledger import history, replay
from proxy.ledger.base import (
    LATEST,
    AccountSpent,
    AccountTotal,
    Balance,
    Ending,
    Gift,
    HistoryLine,
    Outcome,
    Question,
    Receipt,
    Restated,
    VerifiedLedger,
    Wanted,
)
from proxy.ledger.books import Books, Pick
from proxy.ledger.chain import Entry, Event, Grant, decode, encode
from proxy.ledger.release_choice import (
    Tickets,
    check_arguments,
    check_current,
    pick_releases,
    quoted,
    receipt_of,
    seen_by_all,
    shelf_of,
    stored_of,
)
from proxy.ledger.sqlite import schema
from proxy.ledger.sqlite.directory import OwnedDirectory, make_private
from proxy.ledger.sqlite.head import MARKER_NAME, RESTORE_HINT, Mark, Marker, Marking, read_mark
from proxy.plan.charge import Account, Cost, ReleaseKey, Request, Reserved
from proxy.policy.pledge import Pledge
from proxy.release.store import NotStored, ReleaseStore, SqliteStore, StoredRelease

_BODIES_AFTER = "select body from entry where seq > ? order by seq"
_DISK_HINT = "Look at the free space and the health of the disk of the state directory."


class SqliteLedger:
    """The books in one directory, owned by this process until `close`. Implements `base.Ledger`."""

    _marking: Marking  # the latest; all before it are durable

    def __init__(self, directory: Path) -> None:
        """Open or create the books and verify them from the first entry.

        Raises ConfigError if the directory cannot be used or is in use, LedgerFailed if the books do not verify.
        """
        self._directory = OwnedDirectory(directory)
        self._path = directory / schema.FILE_NAME
        self._books = Books()
        self._lock = threading.Lock()  # one writer at a time; readers of the books need none
        self._tickets = Tickets()
        self._is_sound = False
        self._is_closed = False
        try:
            mark = read_mark(directory / MARKER_NAME)
            self._marker = Marker(directory / MARKER_NAME)
            make_private(self._path)
            self._connection = schema.open_durable(self._path)
            replay.catch_up(self._books, self._connection, mark)
            replay.check_releases(self._books, self._connection)
            self._history = history.History(self._connection)
            self._store = SqliteStore(schema.open_relaxed(self._path), self._attempting)
            self._mark_head()
        except (sqlite3.Error, OSError) as error:
            self._directory.close()
            raise LedgerFailed(
                "the ledger cannot be opened", detail=f"SQLite says: {error}.", hint=_DISK_HINT
            ) from error
        except BaseException:
            self._directory.close()
            raise

    @property
    def store(self) -> ReleaseStore:
        return self._store

    def shared_secret(self, name: str, drawn: bytes) -> bytes:
        return drawn  # the directory that keeps it belongs to this process

    # --- charging ---------------------------------------------------------------------------------

    def reserve(
        self, accounts: tuple[Account, ...], wanted: tuple[Wanted, ...], question: Question, *, fresh: bool = False
    ) -> Receipt:
        """Charge a whole statement to every account, or nothing to any, durably: see `base.Ledger.reserve`."""
        check_arguments(accounts, wanted)
        with self._lock:
            self._recover()
            requests = tuple(one.request for one in wanted)
            picks = pick_releases(self._books, shelf_of(self._store), accounts, requests, question.at, fresh=fresh)
            stored = stored_of(self._store, picks.values())
            entry, statement = self._charge(accounts, tuple(picks.values()), question)
            if self._history.is_full():
                self._flush()
                self._history.drop_oldest()
            items = tuple(self._tickets.item(one, picks[one.request.key], stored) for one in wanted)
        return receipt_of(statement, items, entry.lines, self._books.balances(accounts, question.at))

    def quote(
        self, accounts: tuple[Account, ...], requests: tuple[Request, ...], at: datetime = LATEST, *,
        fresh: bool = False,
    ) -> tuple[Cost, ...]:  # fmt: skip
        """What `reserve` would charge each account: see `base.Ledger.quote`."""
        return quoted(self._books, shelf_of(self._store), accounts, requests, at, fresh=fresh)

    def settle(self, statement: int) -> None:
        """Wait for the marker of a statement: see `base.Ledger.settle`."""
        marking = self._marking
        if 0 < statement < marking.seq:
            return  # the marker moved on when this one was durable, or after a recovery
        try:
            marking.wait()
        except OSError as error:
            with self._lock:
                self._is_sound = self._is_sound and self._marking is not marking
            raise LedgerFailed("a charge could not be marked", hint=_DISK_HINT) from error

    def bind(self, reserved: Reserved, wanted: Wanted, at: datetime) -> Reserved:
        """Give a later stage its key and SQL, once. Raises LedgerFailed for anything else than a waiting stage."""
        bound, keys = self._tickets.bind(reserved, wanted), wanted.request.keys
        if keys:
            with self._lock:
                self._recover()
                statement = self._append(lambda: self._books.draft_keyed(bound.release_id, keys, at))
            self.settle(statement)
        return bound

    def end(self, ending: Ending) -> None:
        """Write that attempts have ended, and wait until it is marked: see `base.Ledger.end`."""
        with self._lock:
            self._recover()
            statement = self._append(lambda: self._books.draft_ended(ending))
        self.settle(statement)

    @contextmanager
    def _attempting(self, reserved: Reserved) -> Iterator[None]:
        """While a release is stored its attempt stays the latest one. Raises LedgerFailed if it is not.

        The first attempt holds nobody up: whoever takes a release up looks first whether it is stored.
        """
        if reserved.attempt == 1:
            check_current(self._books, reserved)
            yield
            return
        with self._lock:
            self._recover()
            check_current(self._books, reserved)
            yield

    def _charge(self, accounts: tuple[Account, ...], picks: tuple[Pick, ...], question: Question) -> tuple[Entry, int]:
        """Draft and book the charge; its entry and the statement's number. Again if a grant came in between."""
        while True:
            try:
                entry = self._books.draft(accounts, picks, question)
                is_new = entry.lines or entry.taken
                return entry, self._commit(entry) if is_new else self._history.add_repeat(question)
            except (AccountSpent, _Overtaken):
                if not self._take_over():
                    raise

    def _append(self, draft: Callable[[], Event]) -> int:
        """Book what is drafted; again if a grant came in between. The entry's number."""
        while True:
            try:
                return self._commit(draft())
            except _Overtaken:
                if not self._take_over():
                    raise

    def _take_over(self) -> bool:
        """Book the grants that another process appended. Whether there were any."""
        try:
            bodies = [body for (body,) in self._connection.execute(_BODIES_AFTER, (self._books.seq,))]
            if not all(isinstance(decode(body), Grant) for body in bodies):
                raise LedgerFailed("the ledger's file differs from what this process charged", hint=RESTORE_HINT)
            for body in bodies:
                self._books.apply(body)
            if bodies:
                self._mark_head()
        except (sqlite3.Error, OSError) as error:
            raise LedgerFailed("the ledger's file cannot be read", hint=RESTORE_HINT) from error
        return bool(bodies)

    def _commit(self, entry: Event) -> int:
        """Make an entry durable, then write the marker. After any failure `_recover` comes before the next charge.

        Raises LedgerFailed, with nothing written, for an entry that would not verify when it is read back, and
        _Overtaken if another process took its number.
        """
        body = encode(entry)
        self._books.check(body)
        self._is_sound = False
        try:
            self._marking.wait()
            with self._connection:
                self._connection.execute("begin immediate")
                self._connection.execute("insert into entry values (?, ?)", (entry.seq, body))
                written = self._history.write(self._connection)
            self._history.forget(written)
            self._books.book(entry, body)
            self._marking = self._marker.write(Mark(self._books.seq, self._books.head))
        except sqlite3.IntegrityError as error:
            self._is_sound = True
            raise _Overtaken("the number of a charge is taken", hint=RESTORE_HINT) from error
        except (sqlite3.Error, OSError) as error:
            raise LedgerFailed("a charge could not be made durable", hint=_DISK_HINT) from error
        self._is_sound = True
        return entry.seq

    def _mark_head(self) -> None:
        self._marking = self._marker.write(Mark(self._books.seq, self._books.head))
        self._marking.wait()
        self._is_sound = True

    def _recover(self) -> None:
        """After a failed write: reopen, take over what did reach the disk, and force all of it to the main file.

        A commit that failed may still be found on disk, and counts then. An fsync that failed once may report
        success next time without having written, so everything is written again by a checkpoint.
        """
        if self._is_closed:
            raise LedgerFailed("the ledger is closed")
        if self._is_sound:
            return
        try:
            self._connection.close()
            self._connection = schema.open_durable(self._path)
            replay.catch_up(self._books, self._connection, read_mark(self._directory.path / MARKER_NAME))
            is_busy = self._connection.execute("pragma wal_checkpoint(truncate)").fetchone()[0]
            if is_busy:
                raise LedgerFailed("the ledger is busy and cannot be recovered now")
            self._mark_head()
        except (sqlite3.Error, OSError) as error:
            raise LedgerFailed("the ledger has not recovered from a failed write", hint=_DISK_HINT) from error

    # --- reading ----------------------------------------------------------------------------------

    def seen(self, accounts: tuple[Account, ...], key: ReleaseKey) -> StoredRelease | NotStored:
        """The newest stored release of `key` that all these accounts paid for: see `base.Ledger.seen`."""
        return seen_by_all(self._books, self._store, accounts, key)

    def balances(self, accounts: tuple[Account, ...], at: datetime = LATEST) -> tuple[Balance, ...]:
        with self._lock:
            if self._is_sound and not self._is_closed:
                self._take_over()
            return self._books.balances(accounts, at)

    def pledge(self, pledge: Pledge, account: Account, at: datetime) -> Restated:
        with self._lock:
            self._recover()
            self._take_over()
            before = self._books.spent_before(account, at)
            if not self._books.promises.is_stated(pledge):
                self._append(lambda: self._books.draft_pledge(pledge, at))
            restated = Restated(before, *self._books.balances((account,), at))
        self.settle(self._books.seq)
        return restated

    def grant(self, gift: Gift) -> None:
        with self._lock:
            self._recover()
            self._append(lambda: self._books.draft_grant(gift))

    def all_accounts(self) -> tuple[AccountTotal, ...]:
        with self._lock:
            return self._books.totals()

    def note_outcome(self, statement: int, outcome: Outcome) -> None:
        self._history.add_outcome(statement, outcome)
        if self._history.is_full():
            with self._lock:
                self._flush()
                self._history.drop_oldest()

    def history(self, login: str, limit: int) -> tuple[HistoryLine, ...]:
        with self._lock:
            self._recover()
            self._flush()
            try:
                return history.read(self._connection, login, limit)
            except sqlite3.Error as error:
                raise LedgerFailed("the history cannot be read", hint=_DISK_HINT) from error

    def entries(self, after: int = 0) -> Iterator[Event]:
        try:
            with schema.reading(self._path) as connection:
                for (body,) in connection.execute(_BODIES_AFTER, (after,)):
                    yield decode(body)
        except sqlite3.Error as error:
            raise LedgerFailed("the ledger's file cannot be read", hint=RESTORE_HINT) from error

    def verify(self) -> VerifiedLedger:
        fresh = Books()
        replay.reread(fresh, self._directory.path)  # the long part, while others go on charging
        with self._lock:
            self._recover()
            self._take_over()
            releases = replay.reread(fresh, self._directory.path)
            if (fresh.head, fresh.totals()) != (self._books.head, self._books.totals()):
                raise LedgerFailed("the ledger's file differs from what this process charged", hint=RESTORE_HINT)
        return VerifiedLedger(entries=fresh.seq, releases=releases, head=fresh.head, totals=fresh.totals())

    def close(self) -> None:
        with self._lock:
            if self._is_closed:
                return
            self._flush()
            self._is_closed = True
            self._is_sound = False
            self._store.close()
            self._connection.close()
            self._marker.close()
            self._directory.close()

    def _flush(self) -> None:
        """Write waiting repeats and outcomes. Failing to is no reason to fail a statement: they go on waiting."""
        try:
            with self._connection:
                self._connection.execute("begin immediate")
                written = self._history.write(self._connection)
        except sqlite3.Error:
            return
        self._history.forget(written)


class _Overtaken(LedgerFailed):
    """Another process appended an entry since the books were last compared with the file."""
