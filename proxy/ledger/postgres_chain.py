"""How is an entry appended to a chain that several proxies share?

Who charges locks the tip, books what others appended since, drafts the next entry against all of it, and commits entry
and tip together. Under READ COMMITTED each statement after the lock sees everything that was committed before it, so
no charge is checked against old sums. A commit whose answer was lost may have happened: nothing is answered for it, and
whether it counts is read from the chain before anything else is charged.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import psycopg

from proxy.errors import LedgerFailed
from proxy.ledger.books import Books
from proxy.ledger.chain import Entry, Event, digest, encode
from proxy.ledger.head import RESTORE_HINT, Mark, NoMark
from proxy.ledger.history import Outcomes, Repeats
from proxy.ledger.postgres_link import HINT, Connection, Link

_AT_A_TIME = 1000
_AFTER = "select body from entry where seq > %s order by seq limit %s"
_TIP = "select seq, digest from tip for update"
_REPEAT = "insert into repeat values (%s, %s, %s, %s) on conflict (number) do nothing"
_OUTCOME = "insert into outcome values (%s, %s) on conflict (statement) do update set outcome = excluded.outcome"


class Chain:
    """The chain behind one connection, and the books that follow it. Not thread-safe."""

    def __init__(self, link: Link, books: Books, mark: Mark | NoMark = NoMark()) -> None:  # noqa: B008 - a value
        self._link = link
        self._books = books
        self._mark = mark

    def catch_up(self) -> None:
        """Book what was appended since. Raises LedgerFailed."""
        try:
            self._link.twice(self._take_over)
        except psycopg.Error as error:
            raise LedgerFailed("the ledger's entries cannot be read", hint=HINT) from error

    def check_mark(self) -> None:
        """After the first `catch_up`: raises LedgerFailed if the chain ends before the mark."""
        if isinstance(self._mark, Mark) and self._mark.seq > self._books.seq:
            raise LedgerFailed(
                "the ledger is an older copy, or entries were cut off",
                detail=f"It ends at entry {self._books.seq}; entry {self._mark.seq} was written once.",
                hint=RESTORE_HINT,
            )

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """While inside nobody else appends, and the books hold everything. What was not appended is rolled back."""
        try:
            end = self._link.twice(self._begin)
            self._take_over(self._link.get())
            if end != (self._books.seq, self._books.head):
                raise LedgerFailed("entries of the ledger have vanished or were changed", hint=RESTORE_HINT)
            yield
        except psycopg.Error as error:
            raise LedgerFailed("the ledger cannot be charged now", hint=HINT) from error
        finally:
            self._link.end_transaction()

    def append(self, event: Event, repeats: Repeats, outcomes: Outcomes) -> None:
        """Make one entry durable, inside `locked` and once. Raises LedgerFailed: it may count or not."""
        connection, body = self._link.get(), encode(event)
        login = event.login if isinstance(event, Entry) else None
        try:
            with connection.pipeline():
                connection.execute("insert into entry values (%s, %s, %s)", (event.seq, login, body))
                connection.execute("update tip set seq = %s, digest = %s", (event.seq, digest(body)))
                write_notes(connection, repeats, outcomes)
                done = connection.execute("commit")
        except psycopg.Error as error:
            raise LedgerFailed("a charge could not be made durable; it may count all the same", hint=HINT) from error
        assert done.statusmessage == "COMMIT"
        self._books.book(event, body)

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

    def _begin(self, connection: Connection) -> tuple[object, ...] | None:
        """Begin, and lock the end of the chain: its number and hash. Books most of what is new."""
        with connection.pipeline():
            connection.execute("begin")
            tip = connection.execute(_TIP)
            rows = connection.execute(_AFTER, (self._books.seq, _AT_A_TIME))
        end = tip.fetchone()
        self._book(body for (body,) in rows.fetchall())
        return end

    def _take_over(self, connection: Connection) -> None:
        """Book everything that is new."""
        while rows := connection.execute(_AFTER, (self._books.seq, _AT_A_TIME)).fetchall():
            self._book(body for (body,) in rows)

    def _book(self, bodies: Iterator[str]) -> None:
        for body in bodies:
            self._books.apply(body)
            mark = self._mark
            if isinstance(mark, Mark) and self._books.seq == mark.seq and self._books.head != mark.digest:
                raise LedgerFailed(
                    "the ledger's entries are not the ones this state directory was used with", hint=RESTORE_HINT
                )


def write_notes(connection: Connection, repeats: Repeats, outcomes: Outcomes) -> None:
    """Write what waits for the history, inside the caller's transaction."""
    for number, at, login, query in repeats:
        connection.execute(_REPEAT, (number, at, login, query.encode("utf-8", "replace")))
    for row in outcomes:
        connection.execute(_OUTCOME, row)
