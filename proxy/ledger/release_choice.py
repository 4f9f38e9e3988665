"""Which release answers each request of a statement, and what does the statement get for what was charged?

What every ledger decides alike, whatever keeps it: from books and the numbers of finished releases.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from proxy.errors import LedgerFailed
from proxy.ledger.attempts import Open
from proxy.ledger.base import NOTHING, Balance, Receipt, Wanted
from proxy.ledger.books import FINISHED, Books, Pick
from proxy.ledger.chain import Line
from proxy.plan.charge import Account, AccountKind, Cost, ReleaseKey, Request, Reserved
from proxy.release.store import NotStored, ReleaseStore, StoredRelease

NOT_FINISHED = 0
_NEVER_CHARGED = 2**62  # and all numbers above it


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Shelf:
    """What lies finished. of: numbers of the finished releases of a key, newest first. has: whether one is finished."""

    of: Callable[[ReleaseKey], Iterable[int]]
    has: Callable[[int], bool]


def shelf_of(store: ReleaseStore) -> Shelf:
    """What lies there when it is looked for."""
    return Shelf(of=store.completed, has=store.has)


def pick_releases(
    books: Books, shelf: Shelf, accounts: tuple[Account, ...], requests: Iterable[Request], at: datetime, *,
    fresh: bool,
) -> dict[ReleaseKey, Pick]:  # fmt: skip
    """The release for each distinct key: one that is finished, one that is attempted again, or a new one.

    Claim (docs/claims/reuse.md, docs/claims/retry.md): what the caller's own accounts pay depends on what they have
    paid before, and on nothing that others did.

    fresh: new noise is wanted, so finished ones are not looked for.
    """
    return _picks(books, shelf, accounts, dict.fromkeys(requests), at, books.last_release + 1, fresh=fresh)


def quoted(
    books: Books, shelf: Shelf, accounts: tuple[Account, ...], requests: Iterable[Request], at: datetime, *,
    fresh: bool,
) -> tuple[Cost, ...]:  # fmt: skip
    """What each account would be charged for these. Others may be charged meanwhile, for what has the next number."""
    picks = _picks(books, shelf, accounts, dict.fromkeys(requests), at, _NEVER_CHARGED, fresh=fresh)
    return tuple(books.due(account, tuple(picks.values())) for account in accounts)


def _picks(
    books: Books, shelf: Shelf, accounts: tuple[Account, ...], requests: Iterable[Request], at: datetime, next_id: int,
    *, fresh: bool,
) -> dict[ReleaseKey, Pick]:  # fmt: skip
    """next_id: number of the first new release."""
    day, found = books.day_at(at), dict[Request, int | Open]()
    for request in requests:
        best = NOT_FINISHED if fresh else _most_paid(books, accounts, shelf.of(request.key))
        is_shown = best != NOT_FINISHED and _has_paid(books, accounts, best)
        again = None if is_shown else _to_attempt_again(books, shelf, accounts, request.key, day, fresh=fresh)
        found[request] = best if again is None else again
    # a ticket is not taken up alone: the stage before it was lost then, or its noise was drawn anew
    groups = {o.group for o in found.values() if isinstance(o, Open) and not o.is_ticket}
    picks: dict[ReleaseKey, Pick] = {}
    for request, one in found.items():
        if isinstance(one, Open) and (not one.is_ticket or one.group in groups):
            picks[request.key] = Pick(request, one.release_id, one.attempt + 1)
        elif isinstance(one, int) and one != NOT_FINISHED:
            picks[request.key] = Pick(request, one, FINISHED)
        else:
            picks[request.key] = Pick(request, next_id)
            next_id += 1
    return picks


def _to_attempt_again(
    books: Books, shelf: Shelf, accounts: tuple[Account, ...], key: ReleaseKey, day: int, *, fresh: bool
) -> Open | None:
    """The newest release of a key that may be taken up: what its statement was shown before is there, it is not."""
    candidates = books.attempts.found(key, accounts, day, is_fresh=fresh)
    return next((o for o in candidates if all(map(shelf.has, o.after)) and not shelf.has(o.release_id)), None)


def _has_paid(books: Books, accounts: tuple[Account, ...], release_id: int) -> bool:
    """Whether the login of these accounts paid for a release; all of them, if there is no login."""
    own = tuple(a for a in accounts if a.kind is AccountKind.USER)
    return all(books.has_paid(a, release_id) for a in own or accounts)


def _most_paid(books: Books, accounts: tuple[Account, ...], found: Iterable[int]) -> int:
    """Of releases, newest first, the newest that most own accounts paid for, and then most accounts."""
    best, most = NOT_FINISHED, (-1, -1)
    for release_id in found:
        paid = [a.kind.is_own for a in accounts if books.has_paid(a, release_id)]
        if (sum(paid), len(paid)) > most:
            best, most = release_id, (sum(paid), len(paid))
        if len(paid) == len(accounts):
            break
    return best


def check_current(books: Books, reserved: Reserved) -> None:
    """Raises LedgerFailed if the attempt is over: its draw is dropped, as somebody else may have drawn."""
    if not books.attempts.is_current(reserved.release_id, reserved.attempt):
        raise LedgerFailed("a release was about to be stored by an attempt that had ended")


def stored_of(store: ReleaseStore, picks: Iterable[Pick]) -> dict[int, StoredRelease]:
    """The payloads of those picks that exist already."""
    return {
        pick.release_id: store.load(pick.release_id, pick.request.key) for pick in picks if pick.attempt == FINISHED
    }


def seen_by_all(
    books: Books, store: ReleaseStore, accounts: tuple[Account, ...], key: ReleaseKey
) -> StoredRelease | NotStored:
    """The newest stored release of `key` that all these accounts paid for."""
    for release_id in store.completed(key):
        if all(books.has_paid(account, release_id) for account in accounts):
            return store.load(release_id, key)
    return NotStored()


def receipt_of(
    statement: int, items: tuple[Reserved | StoredRelease, ...], lines: tuple[Line, ...], balances: tuple[Balance, ...]
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

    def item(self, one: Wanted, pick: Pick, stored: Mapping[int, StoredRelease]) -> Reserved | StoredRelease:
        """The stored release, or the proof that a new one is charged; to be called once it is."""
        if pick.release_id in stored:
            return stored[pick.release_id]
        if not one.sql:
            with self._lock:
                self._waiting.add(pick.release_id)
        return Reserved(
            release_id=pick.release_id, key=one.request.key, cost=one.request.cost, sql=one.sql, further=one.further,
            attempt=pick.attempt,
        )  # fmt: skip

    def bind(self, reserved: Reserved, wanted: Wanted) -> Reserved:
        """Give a waiting stage its key and SQL. Raises LedgerFailed for anything else, and the second time."""
        with self._lock:
            if reserved.release_id not in self._waiting or reserved.sql or not wanted.sql:
                raise LedgerFailed("only a reserved stage without SQL can be given one, and only once")
            self._waiting.remove(reserved.release_id)
        return Reserved(
            release_id=reserved.release_id, key=wanted.request.key, cost=reserved.cost, sql=wanted.sql,
            further=wanted.further,
            attempt=reserved.attempt,
        )  # fmt: skip
