"""What do the books say, read back from disk and added up again from the first entry?"""

from __future__ import annotations

import json
import sqlite3
from datetime import datetime
from pathlib import Path

from proxy.errors import ConfigError, LedgerFailed
from proxy.ledger.base import Restated, VerifiedLedger
from proxy.ledger.books import Books
from proxy.ledger.chain import encode
from proxy.ledger.sqlite.head import MARKER_NAME, RESTORE_HINT, Mark, NoMark, read_mark
from proxy.ledger.sqlite.schema import FILE_NAME, reading
from proxy.plan.charge import Account
from proxy.policy.pledge import Pledge

_OPENED = "select count(*) from release where release_id in (select value from json_each(?))"


def catch_up(books: Books, connection: sqlite3.Connection, mark: Mark | NoMark) -> None:
    """Apply every entry after the books' last one and compare with the marker.

    Raises LedgerFailed for a changed, missing or shortened chain, sqlite3.Error for an unreadable file.
    """
    last = connection.execute("select coalesce(max(seq), 0) from entry").fetchone()[0]
    if last < books.seq:
        raise LedgerFailed("entries of the ledger have vanished from its file", hint=RESTORE_HINT)
    for (body,) in connection.execute("select body from entry where seq > ? order by seq", (books.seq,)):
        books.apply(body)
        if isinstance(mark, Mark) and books.seq == mark.seq and books.head != mark.digest:
            raise LedgerFailed("the ledger's entries are not the ones its marker was written for", hint=RESTORE_HINT)
    _compare(books, mark)


def _compare(books: Books, mark: Mark | NoMark) -> None:
    match mark:
        case NoMark() if books.seq > 0:
            raise LedgerFailed(
                f"the ledger has {books.seq} entries and its marker file {MARKER_NAME} is missing", hint=RESTORE_HINT
            )
        case Mark(seq=seq) if seq > books.seq:
            raise LedgerFailed(
                "the ledger is an older copy, or entries were cut off",
                detail=f"Its file ends at entry {books.seq}; entry {seq} was written once.",
                hint=RESTORE_HINT,
            )
        case _:
            return


def check_releases(books: Books, connection: sqlite3.Connection) -> int:
    """The number of stored releases. Raises LedgerFailed for one that was not charged, or whose attempt ended."""
    count, last = connection.execute("select count(*), coalesce(max(release_id), 0) from release").fetchone()
    (opened,) = connection.execute(_OPENED, (json.dumps(books.attempts.open_ids),)).fetchone()
    check_stored(books, last, opened)
    return int(count)


def check_stored(books: Books, last: int, opened: int) -> None:
    """last: number of the last stored release. opened: how many are stored of those that nobody attempts."""
    if last > books.last_release:
        raise LedgerFailed("a stored release was never charged to anybody", hint=RESTORE_HINT)
    if opened:
        raise LedgerFailed("a release is stored whose attempt had ended before", hint=RESTORE_HINT)


def inspect(directory: Path) -> VerifiedLedger:
    """Verify a ledger from its files alone, also while a proxy is running on it.

    Raises ConfigError if there is none, LedgerFailed if it does not verify.
    """
    check_present(directory)
    books = Books()
    releases = reread(books, directory)
    return VerifiedLedger(entries=books.seq, releases=releases, head=books.head, totals=books.totals())


def foretell(directory: Path, pledge: Pledge, account: Account, at: datetime) -> Restated:
    """What `Ledger.pledge` would give, with nothing stated, also while a proxy is running. Raises as that does."""
    check_present(directory)
    books = Books()
    reread(books, directory)
    return restated(books, pledge, account, at)


def restated(books: Books, pledge: Pledge, account: Account, at: datetime) -> Restated:
    """State a promise in books that nobody keeps."""
    before = books.spent_before(account, at)
    if not books.promises.is_stated(pledge):
        event = books.draft_pledge(pledge, at)
        books.book(event, encode(event))
    return Restated(before, *books.balances((account,), at))


def check_present(directory: Path) -> None:
    """Raise ConfigError if the directory holds no ledger."""
    if not (directory / FILE_NAME).is_file():
        raise ConfigError(f"there is no ledger in {directory}", hint="Name the state directory of the proxy.")


def reread(books: Books, directory: Path) -> int:
    """Take over what the files hold beyond `books`, in one snapshot; the number of stored releases."""
    mark = read_mark(directory / MARKER_NAME)  # before the entries: they may only be ahead of it
    try:
        with reading(directory / FILE_NAME) as connection:
            connection.execute("begin")
            catch_up(books, connection, mark)
            return check_releases(books, connection)
    except sqlite3.Error as error:
        raise LedgerFailed("the ledger's file cannot be read", hint=RESTORE_HINT) from error
