"""What do the commands do with books in PostgreSQL, also while proxies charge to them?"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import assert_never

import psycopg

from proxy.errors import ConfigError, LedgerFailed
from proxy.ledger.base import AccountTotal, Gift, Restated, VerifiedLedger
from proxy.ledger.books import Books
from proxy.ledger.chain import Entry, digest
from proxy.ledger.exchange import Body, Item
from proxy.ledger.postgres.chain import Chain
from proxy.ledger.postgres.link import HINT, LedgerConnection, Link, check_address
from proxy.ledger.postgres.schema import prepare
from proxy.ledger.postgres.store import check_opened
from proxy.ledger.replay import check_stored, restated
from proxy.plan.charge import Account, ReleaseKey
from proxy.policy.pledge import Pledge
from proxy.release.store import StoredRelease

_INSERT_ENTRY = "insert into entry values (%s, %s, %s)"
_INSERT_RELEASE = "insert into release values (%s, %s, %s, %s, %s)"
_RELEASES = (
    "select release_id, fingerprint, policy_digest, data_version, payload from release"
    " where release_id > %s order by release_id limit 100"
)


def items_at(url: str, books: Books) -> Iterator[Item]:
    """All entries, then the releases stored for them, also beside running proxies.

    books: new ones; from the first item on they have it all added up. Raises ConfigError, LedgerFailed.
    """
    with _opened(url) as link:
        chain = Chain(link, books)
        chain.catch_up()
        for text in Chain(link, Books()).bodies(0, books.seq):
            yield Body(text)
        last = 0
        while rows := link.get().execute(_RELEASES, (last,)).fetchall():
            for release_id, fingerprint, policy_digest, data_version, payload in rows:
                last = release_id
                if release_id <= books.last_release:
                    key = ReleaseKey(fingerprint=fingerprint, policy_digest=policy_digest, data_version=data_version)
                    yield StoredRelease(release_id=release_id, key=key, payload=bytes(payload))


def inspect_at(url: str) -> VerifiedLedger:
    """Add everything up again. Raises ConfigError if there is no ledger, LedgerFailed if it does not verify."""
    with _opened(url) as link:
        books = Books()
        row = link.get().execute("select count(*), coalesce(max(release_id), 0) from release").fetchone()
        assert row is not None
        chain = Chain(link, books)
        chain.check_end()
        check_opened(link, chain, books)
        check_stored(books, row[1], 0)
        return VerifiedLedger(entries=books.seq, releases=int(row[0]), head=books.head, totals=books.totals())


def foretell_at(url: str, pledge: Pledge, account: Account, at: datetime) -> Restated:
    """What `Ledger.pledge` would give, with nothing stated. Raises as that does, and ConfigError if there is none."""
    with _opened(url) as link:
        books = Books()
        Chain(link, books).catch_up()
        return restated(books, pledge, account, at)


def grant_at(url: str, gift: Gift) -> AccountTotal:
    """Give an account more; its figures afterwards. Raises ConfigError if there is no ledger, LedgerFailed."""
    with _opened(url) as link:
        books = Books()
        chain = Chain(link, books)
        chain.catch_up()
        chain.first(lambda: chain.append(books.draft_grant(gift), [], []))
        return next(t for t in books.totals() if (t.kind, t.name) == (gift.kind, gift.name))


def take_in_at(url: str, items: Iterable[Item]) -> VerifiedLedger:
    """Fill a ledger that has no entries yet: all of it or nothing. Raises ConfigError, LedgerFailed."""
    check_address(url)
    with _failing_closed(Link(url, is_patient=True)) as link:
        link.twice(prepare)
        books, releases = Books(), 0
        with link.get().transaction():
            if link.get().execute("select seq from tip for update").fetchone() != (0,):
                raise ConfigError("the database holds a ledger already", hint="Import into a new database.")
            for item in items:
                releases += _fill(link.get(), books, item)
            link.get().execute("update tip set seq = %s, digest = %s", (books.seq, books.head))
        return VerifiedLedger(entries=books.seq, releases=releases, head=books.head, totals=books.totals())


def _fill(connection: LedgerConnection, books: Books, item: Item) -> int:
    """Insert one item; 1 for a release."""
    match item:
        case Body(text):
            event = books.apply(text)
            assert books.head == digest(text)
            connection.execute(_INSERT_ENTRY, (event.seq, event.login if isinstance(event, Entry) else None, text))
            return 0
        case StoredRelease(release_id=number, key=key, payload=payload):
            row = (number, key.fingerprint, key.policy_digest, key.data_version, payload)
            connection.execute(_INSERT_RELEASE, row)
            return 1
        case _ as never:
            assert_never(never)


@contextlib.contextmanager
def _opened(url: str) -> Iterator[Link]:
    check_address(url)
    with _failing_closed(Link(url, is_patient=True)) as link:
        if link.get().execute("select to_regclass('hushql.tip')").fetchone() == (None,):
            raise ConfigError("there is no ledger in that database", hint="Name the database that the proxies use.")
        yield link


@contextlib.contextmanager
def _failing_closed(link: Link) -> Iterator[Link]:
    try:
        yield link
    except psycopg.Error as error:
        words = " ".join(str(error).split())[:300]
        raise LedgerFailed("the ledger's PostgreSQL cannot be used", detail=f"It says: {words}.", hint=HINT) from error
    finally:
        link.drop()
