"""How do books leave the files of a state directory, and come into new ones?"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing
from pathlib import Path
from typing import assert_never

from proxy.errors import ConfigError, LedgerFailed
from proxy.ledger import replay
from proxy.ledger.base import VerifiedLedger
from proxy.ledger.books import Books
from proxy.ledger.exchange import Body, Item
from proxy.ledger.sqlite import schema
from proxy.ledger.sqlite.directory import OwnedDirectory, make_private
from proxy.ledger.sqlite.head import MARKER_NAME, RESTORE_HINT, Mark, Marker, NoMark, read_mark
from proxy.plan.charge import ReleaseKey
from proxy.release.store import StoredRelease

_RELEASES = "select release_id, fingerprint, policy_digest, data_version, payload from release order by release_id"


def items_of(directory: Path, books: Books) -> Iterator[Item]:
    """Everything in one snapshot, also beside a running proxy, compared with the marker first.

    books: new ones; from the first item on they have it all added up. Raises ConfigError if there is no ledger,
    LedgerFailed.
    """
    replay.check_present(directory)
    mark = read_mark(directory / MARKER_NAME)
    try:
        with schema.reading(directory / schema.FILE_NAME) as connection:
            connection.execute("begin")
            replay.catch_up(books, connection, mark)
            for (body,) in connection.execute("select body from entry order by seq"):
                yield Body(body)
            for release_id, *key, payload in connection.execute(_RELEASES):
                yield StoredRelease(release_id=release_id, key=_key(*key), payload=payload)
    except sqlite3.Error as error:
        raise LedgerFailed("the ledger's file cannot be read", hint=RESTORE_HINT) from error


def take_in(directory: Path, items: Iterable[Item]) -> VerifiedLedger:
    """Fill a state directory that has no books yet: all of it, durably, or nothing.

    Raises ConfigError if it has some or is in use, LedgerFailed, and whatever `items` raises.
    """
    with closing(OwnedDirectory(directory)):
        path = directory / schema.FILE_NAME
        if not isinstance(read_mark(directory / MARKER_NAME), NoMark) or path.exists():
            raise ConfigError(f"{directory} holds a ledger already", hint="Import into a new state directory.")
        try:
            make_private(path)
            with closing(schema.open_durable(path)) as connection:
                books, releases = _fill(connection, items)
            with closing(Marker(directory / MARKER_NAME)) as marker:
                marker.write(Mark(books.seq, books.head)).wait()
        except BaseException as error:
            path.unlink(missing_ok=True)
            if isinstance(error, (sqlite3.Error, OSError)):
                raise LedgerFailed("the ledger could not be written") from error
            raise
    return VerifiedLedger(entries=books.seq, releases=releases, head=books.head, totals=books.totals())


def _fill(connection: sqlite3.Connection, items: Iterable[Item]) -> tuple[Books, int]:
    books, releases = Books(), 0
    connection.execute("begin immediate")
    for item in items:
        match item:
            case Body(text):
                books.apply(text)
                connection.execute("insert into entry values (?, ?)", (books.seq, text))
            case StoredRelease(release_id=number, key=key, payload=payload):
                row = (number, key.fingerprint, key.policy_digest, key.data_version, payload)
                connection.execute("insert into release values (?, ?, ?, ?, ?)", row)
                releases += 1
            case _ as never:
                assert_never(never)
    connection.execute("commit")
    return books, releases


def _key(fingerprint: str, policy_digest: str, data_version: str) -> ReleaseKey:
    return ReleaseKey(fingerprint=fingerprint, policy_digest=policy_digest, data_version=data_version)
