"""Where do finished releases lie that all proxies of a ledger share?"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import psycopg

from proxy.errors import LedgerFailed
from proxy.ledger.books import Books
from proxy.ledger.postgres.chain import Chain
from proxy.ledger.postgres.link import HINT, LedgerConnection, Link, Queue
from proxy.ledger.replay import check_stored
from proxy.plan.charge import ReleaseKey, Reserved
from proxy.release.store import NotStored, StoredRelease

_STORED = "select release_id from release where release_id = any(%s)"
_COMPLETED = (
    "select release_id from release where fingerprint = %s and policy_digest = %s and data_version = %s"
    " order by release_id desc"
)


class PostgresStore:
    """Implements `release.store.ReleaseStore` over a connection of its own, which need not wait for a disk.

    check: raises if an attempt is over. again: stores what a further attempt gave, on the disk; whether it is there.
    """

    def __init__(self, link: Link, check: Callable[[Reserved], None], again: Callable[[Reserved, bytes], bool]) -> None:
        self._link = link
        self._check, self._again = check, again
        self._queue = Queue()
        self._is_closed = False

    def put(self, reserved: Reserved, payload: bytes) -> None:
        """Claim (docs/claims/retry.md): only the latest attempt stores, once; a further one on the disk."""
        row = row_of(reserved, payload)

        def insert(connection: LedgerConnection) -> list[tuple[Any, ...]]:
            done = connection.execute("insert into release values (%s, %s, %s, %s, %s) on conflict do nothing", row)
            if done.rowcount:
                return [(payload,)]
            return connection.execute("select payload from release where release_id = %s", row[:1]).fetchall()

        # of two tries the first may have reached the server: what is stored then is this very payload
        if reserved.attempt > 1:
            is_there = self._again(reserved, payload)
        else:
            self._check(reserved)
            is_there = self._run(insert) == [(payload,)]
        if not is_there:
            raise LedgerFailed("a release was about to be stored twice under one charge")

    def completed(self, key: ReleaseKey) -> Iterator[int]:
        values = (key.fingerprint, key.policy_digest, key.data_version)
        for (release_id,) in self._run(lambda c: c.execute(_COMPLETED, values).fetchall()):
            yield int(release_id)

    def load(self, release_id: int, key: ReleaseKey) -> StoredRelease:
        sql = "select payload from release where release_id = %s"
        rows = self._run(lambda c: c.execute(sql, (release_id,)).fetchall())
        if not rows:
            raise LedgerFailed("a stored release has vanished")
        return StoredRelease(release_id=release_id, key=key, payload=bytes(rows[0][0]))

    def has(self, release_id: int) -> bool:
        sql = "select 1 from release where release_id = %s"
        return bool(self._run(lambda c: c.execute(sql, (release_id,)).fetchall()))

    def get(self, key: ReleaseKey) -> StoredRelease | NotStored:
        newest = next(self.completed(key), 0)
        return self.load(newest, key) if newest else NotStored()

    def close(self) -> None:
        with self._queue.lock:
            self._is_closed = True
            self._link.drop()

    def _run(self, work: Callable[[LedgerConnection], list[tuple[Any, ...]]]) -> list[tuple[Any, ...]]:
        """Run it, once more if the connection was lost meanwhile. Raises LedgerFailed."""
        try:
            with self._queue.first():
                if self._is_closed:
                    raise LedgerFailed("the store of releases is closed")
                return self._link.twice(work)
        except psycopg.Error as error:
            raise LedgerFailed("stored releases cannot be reached", hint=HINT) from error


def row_of(reserved: Reserved, payload: bytes) -> tuple[int, str, str, str, bytes]:
    """A finished release as it is stored."""
    key = reserved.key
    return reserved.release_id, key.fingerprint, key.policy_digest, key.data_version, payload


def check_opened(link: Link, chain: Chain, books: Books) -> None:
    """Raises LedgerFailed if a release is stored that nobody attempts."""
    opened = list(books.attempts.open_ids)
    stored = {number for (number,) in link.twice(lambda c: c.execute(_STORED, (opened,)).fetchall())}
    if stored and chain.catch_up():  # others may have attempted and stored it since
        stored &= set(books.attempts.open_ids)
    check_stored(books, books.last_release, len(stored))
