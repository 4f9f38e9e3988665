"""Which release answers each request of a statement, and what does the statement get for what was charged?

What every ledger decides alike, whatever keeps it: from books and the numbers of finished releases.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping

from proxy.errors import LedgerFailed
from proxy.ledger.base import NOTHING, Balance, Receipt, Wanted
from proxy.ledger.books import Books, Pick
from proxy.ledger.chain import Line
from proxy.plan.charge import Account, AccountKind, Cost, ReleaseKey, Request, Reserved
from proxy.release.store import Missing, ReleaseStore, Stored

_NEVER_CHARGED = 2**62  # and all numbers above it
Finished = Callable[[ReleaseKey], Iterable[int]]


def check_arguments(accounts: tuple[Account, ...], wanted: tuple[Wanted, ...]) -> None:
    """Refuse calls that no correct session makes, before anything is charged. Raises ValueError."""
    names = {(a.kind, a.name) for a in accounts}
    if len(names) != len(accounts):
        raise ValueError("accounts must be different")
    if [a.kind for a in accounts].count(AccountKind.DATASET) != 1:
        raise ValueError("exactly one dataset account pays for every statement")
    by_key: dict[ReleaseKey, Wanted] = {}
    if not wanted or any(by_key.setdefault(one.request.key, one) != one for one in wanted):
        raise ValueError("a statement wants at least one release, and one price and SQL per key")
    if any(w.request.cost.pico == 0 for w in wanted):
        raise ValueError("a release that costs nothing cannot be private")
    policies = {w.request.key.policy_digest for w in wanted}
    if len(policies) != 1 or len({(a.promise, a.accounting) for a in accounts}) != 1:
        raise ValueError("one statement is planned under one policy")


def pick_releases(
    books: Books, finished: Finished, accounts: tuple[Account, ...], requests: Iterable[Request]
) -> dict[ReleaseKey, Pick]:
    """The release for each distinct key: the finished one that most of these accounts paid for, or a new one.

    finished: the numbers of the finished releases of a key, newest first; none if fresh noise is wanted.
    """
    return _picks(books, finished, accounts, requests, books.last_release + 1)


def quoted(
    books: Books, finished: Finished, accounts: tuple[Account, ...], requests: Iterable[Request]
) -> tuple[Cost, ...]:
    """What each account would be charged for these. Others may be charged meanwhile, for what has the next number."""
    picks = tuple(_picks(books, finished, accounts, requests, _NEVER_CHARGED).values())
    return tuple(books.due(account, picks) for account in accounts)


def _picks(
    books: Books, finished: Finished, accounts: tuple[Account, ...], requests: Iterable[Request], next_id: int
) -> dict[ReleaseKey, Pick]:
    picks: dict[ReleaseKey, Pick] = {}
    for request in dict.fromkeys(requests):
        pick = Pick(request, _most_paid(books, accounts, finished(request.key), next_id))
        picks[request.key] = pick
        if pick.release_id == next_id:
            next_id += 1
    return picks


def _most_paid(books: Books, accounts: tuple[Account, ...], found: Iterable[int], if_none: int) -> int:
    """Of releases, newest first, the newest that most accounts paid for."""
    best, most = if_none, -1
    for release_id in found:
        payers = sum(books.has_paid(account, release_id) for account in accounts)
        if payers > most:
            best, most = release_id, payers
        if payers == len(accounts):
            break
    return best


def none_finished(_key: ReleaseKey) -> Iterable[int]:
    """For statements that want fresh noise."""
    return ()


def stored_of(books: Books, store: ReleaseStore, picks: Iterable[Pick]) -> dict[int, Stored]:
    """The payloads of those picks that exist already."""
    return {
        pick.release_id: store.load(pick.release_id, pick.request.key)
        for pick in picks
        if pick.release_id <= books.last_release
    }


def seen_by_all(books: Books, store: ReleaseStore, accounts: tuple[Account, ...], key: ReleaseKey) -> Stored | Missing:
    """The newest stored release of `key` that all these accounts paid for."""
    for release_id in store.completed(key):
        if all(books.has_paid(account, release_id) for account in accounts):
            return store.load(release_id, key)
    return Missing()


def receipt_of(
    statement: int, items: tuple[Reserved | Stored, ...], lines: tuple[Line, ...], balances: tuple[Balance, ...]
) -> Receipt:
    """What a statement gets: balances are of its accounts, in their order."""
    paid = {(line.kind, line.name): line.cost for line in lines}
    charged = tuple(paid.get((b.account.kind, b.account.name), NOTHING) for b in balances)
    return Receipt(statement=statement, items=items, charged=charged, balances=balances)


class Tickets:
    """Hands out `Reserved`, and gives each later stage its SQL once. Safe to call from any thread."""

    def __init__(self) -> None:
        self._waiting: set[int] = set()
        self._lock = threading.Lock()

    def item(self, one: Wanted, pick: Pick, stored: Mapping[int, Stored]) -> Reserved | Stored:
        """The stored release, or the proof that a new one is charged; to be called once it is."""
        if pick.release_id in stored:
            return stored[pick.release_id]
        if not one.sql:
            with self._lock:
                self._waiting.add(pick.release_id)
        return Reserved(
            release_id=pick.release_id, key=one.request.key, cost=one.request.cost, sql=one.sql, further=one.further
        )

    def bind(self, reserved: Reserved, wanted: Wanted) -> Reserved:
        """Give a waiting stage its key and SQL. Raises LedgerFailed for anything else, and the second time."""
        with self._lock:
            if reserved.release_id not in self._waiting or reserved.sql or not wanted.sql:
                raise LedgerFailed("only a reserved stage without SQL can be given one, and only once")
            self._waiting.remove(reserved.release_id)
        return Reserved(
            release_id=reserved.release_id, key=wanted.request.key, cost=reserved.cost, sql=wanted.sql,
            further=wanted.further,
        )  # fmt: skip
