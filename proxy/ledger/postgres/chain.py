"""How is an entry appended to a chain that several proxies share, so that none can hold the others up?

An entry is drafted against what was read before, and the server appends it only if the chain still ends there. A proxy
that stops, at any moment, holds nothing, and finds when it wakes that others were faster. Who lost reads what they
appended, and has the chain kept for it while it drafts anew: for a moment, by the server's clock. While others go on
to append in between, the chain is kept for every charge, so that all get their turn however far away they are.

A commit whose answer was lost may have happened: nothing is answered for it, and whether it counts is read from the
chain before anything else is charged.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

import psycopg

from proxy.errors import BudgetSpent, LedgerFailed
from proxy.ledger.books import Books
from proxy.ledger.chain import Event, encode
from proxy.ledger.history import Outcomes, Repeats
from proxy.ledger.postgres.append import AT_MOST, End, Reply, StoredRow, append, store, take_turn
from proxy.ledger.postgres.link import HINT, LedgerConnection, Link
from proxy.ledger.sqlite.head import RESTORE_HINT, Mark, NoMark

T = TypeVar("T")

_PATIENCE_S, _LEAST_TRIES = 5.0, 8  # for a charge that is overtaken again and again, or after a long sleep
_AT_A_TIME = 1000
_AFTER = "select body from entry where seq > %s order by seq limit %s"
_TIP = "select seq, digest, (select coalesce(max(seq), 0) from entry) from tip"
_CHANGED = "entries of the ledger have vanished or were changed"
_NOT_NOW = "the ledger cannot be charged now"
_UNKNOWN = "a charge could not be made durable; it may count all the same"
_WAITED = (psycopg.errors.LockNotAvailable, psycopg.errors.QueryCanceled)  # for others: nothing was written


class Overtaken(LedgerFailed):
    """Others appended first: the entry is not in the chain and never will be."""


class Chain:
    """The chain behind one connection, and the books that follow it. Not thread-safe."""

    def __init__(self, link: Link, books: Books, mark: Mark | NoMark = NoMark()) -> None:  # noqa: B008 - a value
        self._link = link
        self._books = books
        self._mark = mark
        self._has_rivals = False

    def catch_up(self) -> bool:
        """Book what was appended since; whether there was anything. Raises LedgerFailed."""
        before = self._books.seq
        try:
            self._link.twice(self._take_over)
        except psycopg.Error as error:
            raise LedgerFailed("the ledger's entries cannot be read", hint=HINT) from error
        return self._books.seq > before

    def check_mark(self) -> None:
        """After the first `catch_up`: raises LedgerFailed if the chain ends before the mark."""
        if isinstance(self._mark, Mark) and self._mark.seq > self._books.seq:
            raise LedgerFailed(
                "the ledger is an older copy, or entries were cut off",
                detail=f"It ends at entry {self._books.seq}; entry {self._mark.seq} was written once.",
                hint=RESTORE_HINT,
            )

    def check_end(self) -> None:
        """Book everything up to the end as the server names it. Raises LedgerFailed if it is another."""
        seq, head, last = self._link.twice(lambda c: c.execute(_TIP).fetchone()) or (0, "", 0)
        self._book(self.bodies(self._books.seq, seq))
        if (seq, head, last) != (self._books.seq, self._books.head, self._books.seq):
            raise LedgerFailed(_CHANGED, hint=RESTORE_HINT)

    def first(self, attempt: Callable[[], T]) -> T:
        """What `attempt` gives, which drafts from the books and appends; again while others are faster.

        A refusal stands if nothing is newer than the books it was drafted from. Raises what `attempt` raises, and
        LedgerFailed if the server cannot be reached or others were faster all the time.
        """
        until, tries = time.monotonic() + _PATIENCE_S, 0
        try:
            while tries < _LEAST_TRIES or time.monotonic() < until:
                tries += 1
                try:
                    if self._has_rivals:
                        self._link.twice(self._take_turn)
                    return attempt()
                except Overtaken:
                    self._has_rivals = True
                except BudgetSpent:
                    if not self.catch_up():
                        raise
            raise LedgerFailed(_NOT_NOW, detail="Other proxies were always faster.", hint=HINT)
        except psycopg.Error as error:
            raise LedgerFailed(_NOT_NOW, hint=HINT) from error
        finally:
            self._link.end_transaction()

    def append(self, event: Event, repeats: Repeats, outcomes: Outcomes) -> None:
        """Make one entry durable, once, if the chain ends where the books do; book it, or what others appended.

        Claim (docs/claims/filter.md): it returns only if the server has committed the entry and the new end together,
        at a moment when the chain ended where the books did. Raises Overtaken; LedgerFailed: it may count or not, but
        for an entry that would not verify when it is read back, of which nothing is sent.
        """
        end, body, sent = End(self._books.seq, self._books.head), encode(event), 0
        self._books.check(body)

        def send(connection: LedgerConnection) -> Reply:
            nonlocal sent
            sent += 1
            return append(connection, end, event, repeats, outcomes)

        try:
            reply = self._link.twice(send)
        except _WAITED:
            raise
        except psycopg.Error as error:
            raise LedgerFailed(_UNKNOWN, hint=HINT) from error
        if not reply.bodies:
            raise LedgerFailed(_CHANGED, hint=RESTORE_HINT)
        self._book(reply.bodies)
        if len(reply.bodies) == AT_MOST:
            self.catch_up()
        if not reply.is_appended:
            may_count = sent > 1 and reply.bodies[0] == body  # the first message may have arrived
            raise LedgerFailed(_UNKNOWN, hint=HINT) if may_count else Overtaken(_NOT_NOW)

    def store(self, row: StoredRow) -> bool:
        """Store a release on the disk at a moment when the chain ends where the books do; whether it is there then.

        Claim (docs/claims/retry.md): nobody has taken the release up by then that the books do not know of. Raises
        Overtaken if the chain went on, psycopg.Error: it may be stored or not.
        """
        end = End(self._books.seq, self._books.head)
        kept = self._link.twice(lambda connection: store(connection, end, row))
        self._book(kept.bodies)
        if kept.bodies and not kept.is_there:
            raise Overtaken(_NOT_NOW)
        return kept.is_there

    def bodies(self, after: int, last: int) -> Iterator[str]:
        """The texts of entries with a number above `after`, up to `last`. Raises LedgerFailed."""
        while after < last:
            try:
                rows = self._link.twice(lambda c, a=after: c.execute(_AFTER, (a, min(_AT_A_TIME, last - a))).fetchall())  # type: ignore[misc]
            except psycopg.Error as error:
                raise LedgerFailed("the ledger's entries cannot be read", hint=HINT) from error
            if not rows:
                raise LedgerFailed("entries of the ledger have vanished", hint=RESTORE_HINT)
            for (body,) in rows:
                yield body
            after += len(rows)

    def _take_turn(self, connection: LedgerConnection) -> None:
        new = take_turn(connection, End(self._books.seq, self._books.head))
        self._book(new)
        self._has_rivals = bool(new)

    def _take_over(self, connection: LedgerConnection) -> None:
        """Book everything that is new."""
        while rows := connection.execute(_AFTER, (self._books.seq, _AT_A_TIME)).fetchall():
            self._book(body for (body,) in rows)

    def _book(self, bodies: Iterable[str]) -> None:
        for body in bodies:
            self._books.apply(body)
            mark = self._mark
            if isinstance(mark, Mark) and self._books.seq == mark.seq and self._books.head != mark.digest:
                raise LedgerFailed(
                    "the ledger's entries are not the ones this state directory was used with", hint=RESTORE_HINT
                )
