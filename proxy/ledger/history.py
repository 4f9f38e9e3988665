"""What has this login asked lately, and how did each statement end?

Charged statements stand in the chain. What is kept here costs no disk wait and may be lost in a crash: repeats that
cost nothing, and outcomes. Both wait in memory until the next charge is written, or until somebody reads the history.
A statement's number is its entry's number, or minus its repeat's number.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterable
from datetime import UTC, datetime

from proxy.ledger.base import HistoryLine, Outcome, Question
from proxy.ledger.chain import Entry, decode, preview
from proxy.plan.charge import AccountKind, Cost

MAX_WAITING = 1000

_OUTCOME = "(select outcome from outcome where statement = {})"
_CHARGED = (
    f"select body, {_OUTCOME.format('seq')} from entry"
    " where json_extract(body, '$.login') = ? order by seq desc limit ?"
)
_REPEATED = f"select at, query, {_OUTCOME.format('-number')} from repeat where login = ? order by number desc limit ?"


Repeats = list[tuple[int, str, str, str]]
Outcomes = list[tuple[int, str]]
WrittenEntries = tuple[frozenset[int], frozenset[int]]


class Notes:
    """Repeats and outcomes that wait to be written. Safe to call from any thread. last: number of the latest repeat."""

    def __init__(self, last: int) -> None:
        self._lock = threading.Lock()
        self._repeats: dict[int, tuple[str, str, str]] = {}
        self._outcomes: dict[int, str] = {}
        self._last = last

    def add_repeat(self, question: Question) -> int:
        """Remember a statement that cost nothing; its number."""
        at = question.at.astimezone(UTC).isoformat(timespec="microseconds")
        with self._lock:
            self._last += 1
            self._repeats[self._last] = (at, question.login, preview(question.query)[0])
            return -self._last

    def add_outcome(self, statement: int, outcome: Outcome) -> None:
        with self._lock:
            self._outcomes[statement] = outcome.value

    def is_full(self) -> bool:
        return len(self._repeats) + len(self._outcomes) >= MAX_WAITING

    def waiting(self) -> tuple[Repeats, Outcomes]:
        """Rows of what waits: number, time, login, query; statement, outcome."""
        with self._lock:
            repeats = [(number, *row) for number, row in self._repeats.items()]
            return repeats, list(self._outcomes.items())

    def forget(self, written: WrittenEntries) -> None:
        repeats, outcomes = written
        with self._lock:
            for number in repeats:
                self._repeats.pop(number, None)
            for statement in outcomes:
                self._outcomes.pop(statement, None)

    def drop_oldest(self) -> None:
        """Keep at most MAX_WAITING of each kind when they cannot be written."""
        with self._lock:
            for waiting in (self._repeats, self._outcomes):
                for number in list(waiting)[:-MAX_WAITING]:
                    del waiting[number]


def numbers_of(repeats: Repeats, outcomes: Outcomes) -> WrittenEntries:
    """What to `forget` once these rows are committed."""
    return frozenset(row[0] for row in repeats), frozenset(row[0] for row in outcomes)


class History(Notes):
    """Notes that go to SQLite."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        super().__init__(int(connection.execute("select coalesce(max(number), 0) from repeat").fetchone()[0]))

    def write(self, connection: sqlite3.Connection) -> WrittenEntries:
        """Write what waits, inside the caller's transaction; what to `forget` once that is committed."""
        repeats, outcomes = self.waiting()
        connection.executemany("insert or replace into repeat values (?, ?, ?, ?)", _ascii(repeats))
        connection.executemany("insert or replace into outcome values (?, ?)", outcomes)
        return numbers_of(repeats, outcomes)


def _ascii(rows: list[tuple[int, str, str, str]]) -> list[tuple[int, str, str, str]]:
    """Rows that SQLite can hold: half of a surrogate pair has no UTF-8 form."""
    return [(n, at, login, query.encode("utf-8", "replace").decode()) for n, at, login, query in rows]


def read(connection: sqlite3.Connection, login: str, limit: int) -> tuple[HistoryLine, ...]:
    """The latest `limit` statements of a login, newest first."""
    charged = connection.execute(_CHARGED, (login, limit)).fetchall()
    return merged(charged, connection.execute(_REPEATED, (login, limit)).fetchall(), limit)


def merged(
    charges: Iterable[tuple[str, str | None]], repeats: Iterable[tuple[str, str, str | None]], limit: int
) -> tuple[HistoryLine, ...]:
    """The latest of both, newest first: bodies of entries and (time, query), each with its outcome."""
    charged = [_charged(entry, outcome) for body, outcome in charges if isinstance(entry := decode(body), Entry)]
    repeated = [_repeated(*row) for row in repeats]
    return tuple(sorted(charged + repeated, key=lambda asked: asked.at, reverse=True)[:limit])


def _charged(entry: Entry, outcome: str | None) -> HistoryLine:
    paid = {line.kind: line.cost for line in entry.lines}
    is_reused = AccountKind.USER not in paid
    cost = paid.get(AccountKind.USER, Cost(0, 0))
    return HistoryLine(
        at=entry.at,
        query=entry.query,
        cost=cost,
        reused=is_reused,
        outcome=_outcome(outcome),
        accounting=entry.accounting,
    )


def _repeated(at: str, query: str, outcome: str | None) -> HistoryLine:
    asked_at = datetime.fromisoformat(at)
    return HistoryLine(at=asked_at, query=query, cost=Cost(0, 0), reused=True, outcome=_outcome(outcome))


def _outcome(text: str | None) -> Outcome:
    return Outcome.UNFINISHED if text is None else Outcome(text)
