"""How do several proxies charge to one ledger, kept by a PostgreSQL server?

Each proxy holds books of its own that follow one chain of entries (`postgres_chain`); releases are shared as well
(`postgres_store`). The state directory stays each proxy's own, with a marker of the last entry that it charged: a
server that was put back to an older copy is not opened. A statement that these accounts paid for takes no lock.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import psycopg

from proxy.errors import LedgerFailed
from proxy.ledger import history
from proxy.ledger.base import (
    LATEST,
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
from proxy.ledger.books import FINISHED, Books, Pick
from proxy.ledger.chain import Event, Line, decode
from proxy.ledger.postgres.append import StoredRow, write_notes
from proxy.ledger.postgres.chain import Chain
from proxy.ledger.postgres.link import HINT, Link, Queue
from proxy.ledger.postgres.schema import BLOCK, prepare
from proxy.ledger.postgres.store import PostgresStore, check_opened, row_of
from proxy.ledger.release_choice import (
    Shelf,
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
from proxy.ledger.replay import check_stored
from proxy.ledger.sqlite.directory import OwnedDirectory
from proxy.ledger.sqlite.head import MARKER_NAME, RESTORE_HINT, Mark, Marker, Marking, NoMark, read_mark
from proxy.plan.charge import Account, Cost, ReleaseKey, Request, Reserved
from proxy.policy.pledge import Pledge
from proxy.release.store import NotStored, ReleaseStore, StoredRelease

_CHARGED = (
    "select body, (select outcome from outcome where statement = seq) from entry"
    " where login = %s order by seq desc limit %s"
)
_REPEATED = (
    "select at, query, (select outcome from outcome where statement = -number) from repeat"
    " where login = %s order by at desc limit %s"
)
_DISK_HINT = "Look at the free space and the health of the disk of the state directory."
_RELEASES = "select count(*), coalesce(max(release_id), 0) from release"


@dataclass(frozen=True, slots=True)
class _Made:
    """What was made of a statement: which releases answer it, those stored already, what was charged, its number."""

    picks: Mapping[ReleaseKey, Pick]
    stored: Mapping[int, StoredRelease]
    lines: tuple[Line, ...]
    statement: int


class PostgresLedger:
    """Books that other processes charge to as well. Implements `base.Ledger`."""

    _marking: Marking

    def __init__(self, directory: Path, url: str) -> None:
        """Open or create the books and verify them from the first entry.

        Raises ConfigError if the directory or the address cannot be used, LedgerFailed if the books do not verify.
        """
        self._directory = OwnedDirectory(directory)
        self._url = url
        self._books = Books()
        self._tickets = Tickets()
        self._queue = Queue()  # for the connection that charges
        self._is_closed = False
        self._link = Link(url)
        try:
            self._open(read_mark(directory / MARKER_NAME))
        except psycopg.Error as error:
            self._abandon()
            raise LedgerFailed("the ledger's PostgreSQL cannot be used", detail=_words(error), hint=HINT) from error
        except OSError as error:
            self._abandon()
            raise LedgerFailed("the ledger's marker cannot be written") from error
        except BaseException:
            self._abandon()
            raise

    def _open(self, mark: Mark | NoMark) -> None:
        self._chain = Chain(self._link, self._books, mark)
        self._link.twice(prepare)
        number = self._link.twice(lambda c: c.execute("select nextval('block')").fetchone())
        assert number is not None
        self._notes = history.Notes(int(number[0]) * BLOCK)
        self._store = PostgresStore(Link(self._url, is_relaxed=True), self._check_current, self._put_again)
        releases = self._counted()
        self._chain.catch_up()
        self._chain.check_mark()
        check_stored(self._books, releases[1], 0)
        self._marker = Marker(self._directory.path / MARKER_NAME)
        self._mark().wait()

    def _abandon(self) -> None:
        self._link.drop()
        self._directory.close()

    @property
    def store(self) -> ReleaseStore:
        return self._store

    def shared_secret(self, name: str, drawn: bytes) -> bytes:
        """The secret that all proxies of this ledger share under a name: the one that was `drawn` first."""
        with self._used():
            self._link.twice(
                lambda c: c.execute("insert into secret values (%s, %s) on conflict do nothing", (name, drawn))
            )
            row = self._link.twice(lambda c: c.execute("select value from secret where name = %s", (name,)).fetchone())
        assert row is not None
        return bytes(row[0])

    # --- charging ---------------------------------------------------------------------------------

    def reserve(
        self, accounts: tuple[Account, ...], wanted: tuple[Wanted, ...], question: Question, *, fresh: bool = False
    ) -> Receipt:
        """Charge a whole statement to every account, or nothing to any, durably: see `base.Ledger.reserve`."""
        check_arguments(accounts, wanted)
        requests = tuple(one.request for one in wanted)
        shelf = self._shelf(() if fresh else requests)
        picks = pick_releases(self._books, shelf, accounts, requests, question.at, fresh=fresh)
        if self._are_paid(accounts, picks.values()):
            made = _Made(picks, stored_of(self._store, picks.values()), (), self._repeat(question))
        else:
            with self._used():
                made = self._chain.first(lambda: self._charge(accounts, requests, shelf, question, fresh=fresh))
        items = tuple(self._tickets.item(one, made.picks[one.request.key], made.stored) for one in wanted)
        return receipt_of(made.statement, items, made.lines, self._books.balances(accounts, question.at))

    def _charge(
        self, accounts: tuple[Account, ...], requests: tuple[Request, ...], shelf: Shelf, question: Question, *,
        fresh: bool,
    ) -> _Made:  # fmt: skip
        """Charge what the books as they are say. Raises AccountSpent, Overtaken if they were not the newest."""
        picks = pick_releases(self._books, shelf, accounts, requests, question.at, fresh=fresh)
        stored = stored_of(self._store, picks.values())
        entry = self._books.draft(accounts, tuple(picks.values()), question)
        is_new = entry.lines or entry.taken
        return _Made(picks, stored, entry.lines, self._append(entry) if is_new else self._repeat(question))

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
            return
        try:
            marking.wait()
        except OSError as error:
            raise LedgerFailed("a charge could not be marked", hint=_DISK_HINT) from error

    def bind(self, reserved: Reserved, wanted: Wanted, at: datetime) -> Reserved:
        """Give a later stage its key and SQL, once. Raises LedgerFailed for anything else than a waiting stage."""
        bound, keys = self._tickets.bind(reserved, wanted), wanted.request.keys
        if keys:
            with self._used():
                statement = self._chain.first(lambda: self._append(self._books.draft_keyed(bound.release_id, keys, at)))
            self.settle(statement)
        return bound

    def pledge(self, pledge: Pledge, account: Account, at: datetime) -> Restated:
        with self._used():
            self._chain.catch_up()  # a refusal is of the newest books
            restated = self._chain.first(lambda: self._pledged(pledge, account, at))
        self.settle(self._books.seq)
        return restated

    def _pledged(self, pledge: Pledge, account: Account, at: datetime) -> Restated:
        """State it in the books as they are. Raises Overtaken if they were not the newest."""
        before = self._books.spent_before(account, at)
        if not self._books.promises.is_stated(pledge):
            self._append(self._books.draft_pledge(pledge, at))
        return Restated(before, *self._books.balances((account,), at))

    def grant(self, gift: Gift) -> None:
        with self._used():
            self._chain.first(lambda: self._append(self._books.draft_grant(gift)))

    def end(self, ending: Ending) -> None:
        """Append that attempts have ended, and wait until it is marked: see `base.Ledger.end`."""
        with self._used():
            statement = self._chain.first(lambda: self._append(self._books.draft_ended(ending)))
        self.settle(statement)

    def _check_current(self, reserved: Reserved) -> None:
        """Raises LedgerFailed if the attempt is over, as far as is known here.

        The first attempt holds nobody up: whoever takes a release up looks first whether it is stored.
        """
        check_current(self._books, reserved)

    def _put_again(self, reserved: Reserved, payload: bytes) -> bool:
        """Store what a further attempt gave, on the disk, at a moment when it was the latest; whether it is stored."""

        def put() -> bool:
            check_current(self._books, reserved)
            return self._chain.store(StoredRow(*row_of(reserved, payload)))

        with self._used():
            return self._chain.first(put)

    def _shelf(self, requests: tuple[Request, ...]) -> Shelf:
        """The finished releases of these as they are now, so that they need not be looked up while others wait."""
        found = {key: tuple(self._store.completed(key)) for key in dict.fromkeys(r.key for r in requests)}
        return Shelf(of=lambda key: found[key], has=self._store.has)

    def _are_paid(self, accounts: tuple[Account, ...], picks: Iterable[Pick]) -> bool:
        """Whether all these releases exist and everybody has paid: nothing to charge, whatever others do meanwhile."""
        return all(
            pick.attempt == FINISHED and all(self._books.has_paid(a, pick.release_id) for a in accounts)
            for pick in picks
        )

    def _append(self, event: Event) -> int:
        repeats, outcomes = self._notes.waiting()
        try:
            if self._marking.has_failed():
                self._mark().wait()
            self._chain.append(event, repeats, outcomes)
            self._mark()
        except OSError as error:
            raise LedgerFailed("a charge could not be marked", hint=_DISK_HINT) from error
        self._notes.forget(history.numbers_of(repeats, outcomes))
        return event.seq

    def _mark(self) -> Marking:
        """Begin to mark the end of the books."""
        self._marking = self._marker.write(Mark(self._books.seq, self._books.head))
        return self._marking

    def _repeat(self, question: Question) -> int:
        self._notes.drop_oldest()
        return self._notes.add_repeat(question)

    @contextlib.contextmanager
    def _used(self) -> Iterator[None]:
        """The connection that charges, for one thread. Raises LedgerFailed if the ledger is closed or it fails."""
        try:
            with self._queue.first():
                if self._is_closed:
                    raise LedgerFailed("the ledger is closed")
                yield
        except psycopg.Error as error:
            raise LedgerFailed("the ledger's PostgreSQL cannot be used", hint=HINT) from error

    # --- reading ----------------------------------------------------------------------------------

    def seen(self, accounts: tuple[Account, ...], key: ReleaseKey) -> StoredRelease | NotStored:
        """The newest stored release of `key` that all these accounts paid for: see `base.Ledger.seen`."""
        return seen_by_all(self._books, self._store, accounts, key)

    def balances(self, accounts: tuple[Account, ...], at: datetime = LATEST) -> tuple[Balance, ...]:
        with self._used():
            self._chain.catch_up()
            return self._books.balances(accounts, at)

    def all_accounts(self) -> tuple[AccountTotal, ...]:
        with self._used():
            self._chain.catch_up()
            return self._books.totals()

    def note_outcome(self, statement: int, outcome: Outcome) -> None:
        self._notes.add_outcome(statement, outcome)
        if self._notes.is_full():
            with self._queue.lock:
                self._flush()
                self._notes.drop_oldest()

    def history(self, login: str, limit: int) -> tuple[HistoryLine, ...]:
        with self._used():
            self._flush()
            charged = self._link.twice(lambda c: c.execute(_CHARGED, (login, limit)).fetchall())
            repeated = self._link.twice(lambda c: c.execute(_REPEATED, (login, limit)).fetchall())
        rows = [(at, bytes(query).decode(), outcome) for at, query, outcome in repeated]
        return history.merged(charged, rows, limit)

    def entries(self, after: int = 0) -> Iterator[Event]:
        with self._used():
            self._chain.catch_up()
            last = self._books.seq
        link = Link(self._url, is_relaxed=True)
        try:
            yield from map(decode, Chain(link, Books()).bodies(after, last))
        finally:
            link.drop()

    def verify(self) -> VerifiedLedger:
        with self._used():
            self._chain.catch_up()
            check_opened(self._link, self._chain, self._books)
            last, head, totals = self._books.seq, self._books.head, self._books.totals()
        releases, fresh, link = self._counted(), Books(), Link(self._url, is_relaxed=True)
        try:
            for body in Chain(link, fresh).bodies(0, last):
                fresh.apply(body)
        finally:
            link.drop()
        if (fresh.head, fresh.totals()) != (head, totals):
            raise LedgerFailed("the ledger differs from what this process has seen of it", hint=RESTORE_HINT)
        return VerifiedLedger(entries=fresh.seq, releases=releases[0], head=fresh.head, totals=fresh.totals())

    def close(self) -> None:
        with self._queue.lock:
            if self._is_closed:
                return
            self._flush()
            self._is_closed = True
            self._store.close()
            self._link.drop()
            self._marker.close()
            self._directory.close()

    def _counted(self) -> tuple[int, int]:
        """How many releases there are, and the largest number. Takes its time. Raises psycopg.Error."""
        link = Link(self._url, is_patient=True)
        try:
            row = link.twice(lambda c: c.execute(_RELEASES).fetchone())
        finally:
            link.drop()
        return (int(row[0]), int(row[1])) if row else (0, 0)

    def _flush(self) -> None:
        """Write waiting repeats and outcomes. Failing to is no reason to fail a statement: they go on waiting."""
        repeats, outcomes = self._notes.waiting()

        try:
            self._link.twice(lambda connection: write_notes(connection, repeats, outcomes))
        except psycopg.Error:
            return
        self._notes.forget(history.numbers_of(repeats, outcomes))


def _words(error: psycopg.Error) -> str:
    """What the server or the way to it said, which is about connections, never about data."""
    return f"PostgreSQL says: {' '.join(str(error).split())[:300]}."
