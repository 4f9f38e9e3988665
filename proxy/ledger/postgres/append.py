"""In which one message does the server compare the end of the chain, append to it, and give up all that it holds?

The simple query protocol, on purpose: the server begins when the whole message has arrived and runs it to its end, so
it never waits for the sender while it holds something. In the extended protocol it does, between Execute and Sync; and
a Flush after Sync, with which psycopg ends a pipeline, disarms PostgreSQL's idle_in_transaction_session_timeout.
What the server sends before it commits is a few bytes, so that it need not wait for a reader either.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import psycopg
from psycopg.pq import TransactionStatus

from proxy.ledger.chain import Entry, Event, digest, encode
from proxy.ledger.history import Outcomes, Repeats
from proxy.ledger.postgres.link import LedgerConnection

TURN_S = 1  # how long the server keeps the chain for a proxy that does not answer
_LOCK = 6_843_218_705_518_224  # any number that nobody else uses; it orders appends, no safety rests on it
AT_MOST = 1000  # entries that one reply holds
_IN_A_TURN = 8  # few enough for the server to send them to somebody who does not read

_AFTER = "select body from entry where seq > %s order by seq limit %s;"
_BEGIN = "begin; select pg_advisory_xact_lock(%s);"
_TURN = f"{_BEGIN} set local idle_in_transaction_session_timeout = '{TURN_S}s'; {_AFTER}"
_APPEND = (
    "with moved as (update tip set seq = %s, digest = %s where seq = %s and digest = %s returning seq)"
    " insert into entry select seq, %s, %s from moved; commit;"
)
_STORE = (
    "set local synchronous_commit = on; with here as (select from tip where seq = %s and digest = %s for share)"
    " insert into release select %s, %s, %s, %s, %s from here on conflict do nothing; commit;"
    " select payload from release where release_id = %s;"
)
_REPEAT = "insert into repeat values (%s, %s, %s, %s) on conflict (number) do nothing;"
_OUTCOME = "insert into outcome values (%s, %s) on conflict (statement) do update set outcome = excluded.outcome;"


@dataclass(frozen=True, slots=True)
class End:
    """Where a chain ends: the number and hash of its last entry."""

    seq: int
    head: str


@dataclass(frozen=True, slots=True)
class Reply:
    """is_appended: the server says that it committed the entry. bodies: the entries after `End`, this one included."""

    is_appended: bool
    bodies: tuple[str, ...]


def append(connection: LedgerConnection, end: End, event: Event, repeats: Repeats, outcomes: Outcomes) -> Reply:
    """Append an entry if the chain ends there, and write what waits for the history. Raises psycopg.Error."""
    body, login = encode(event), event.login if isinstance(event, Entry) else None
    begin, lock = ("", ()) if has_turn(connection) else (_BEGIN, (_LOCK,))
    notes, values = _notes(repeats, outcomes)
    entry = (event.seq, digest(body), end.seq, end.head, login, body)
    cursor = _run(connection, f"{begin}{_APPEND}{notes}{_AFTER}", (*lock, *entry, *values, end.seq, AT_MOST))
    bodies = tuple(str(row[0]) for row in cursor.set_result(-1).fetchall())
    committed = cursor.set_result(begin.count(";") + 1).statusmessage
    assert committed == "COMMIT", committed
    return Reply(cursor.set_result(begin.count(";")).rowcount == 1, bodies)


@dataclass(frozen=True, slots=True)
class StoredRow:
    """A finished release as it is stored."""

    release_id: int
    fingerprint: str
    policy_digest: str
    data_version: str
    payload: bytes


@dataclass(frozen=True, slots=True)
class Appended:
    """is_there: whether this payload is what is stored. bodies: entries after `End`."""

    is_there: bool
    bodies: tuple[str, ...]


def store(connection: LedgerConnection, end: End, row: StoredRow) -> Appended:
    """Store a release on the disk if the chain ends there, which it does until that is done. Raises psycopg.Error."""
    begin = "" if has_turn(connection) else "begin;"
    values = (row.release_id, row.fingerprint, row.policy_digest, row.data_version, row.payload)
    arguments = (end.seq, end.head, *values, row.release_id, end.seq, AT_MOST)
    cursor = _run(connection, f"{begin}{_STORE}{_AFTER}", arguments)
    bodies = tuple(str(found[0]) for found in cursor.set_result(-1).fetchall())
    payloads = cursor.set_result(-2).fetchall()
    return Appended(payloads == [(row.payload,)], bodies)


def take_turn(connection: LedgerConnection, end: End) -> tuple[str, ...]:
    """Have the chain kept for the next `append`, which must come soon; the first entries after `end`."""
    values = (_LOCK, end.seq, _IN_A_TURN)
    return tuple(str(row[0]) for row in _run(connection, _TURN, values).set_result(-1).fetchall())


def has_turn(connection: LedgerConnection) -> bool:
    return connection.info.transaction_status is TransactionStatus.INTRANS


def write_notes(connection: LedgerConnection, repeats: Repeats, outcomes: Outcomes) -> None:
    """Write what waits for the history, which may be lost in a crash."""
    notes, values = _notes(repeats, outcomes)
    if notes:
        _run(connection, notes, values)


def _notes(repeats: Repeats, outcomes: Outcomes) -> tuple[str, list[object]]:
    """Behind the charge, so that nobody waits for it, in a transaction that waits for no disk."""
    values: list[object] = []
    for number, at, login, query in repeats:
        values += [number, at, login, query.encode("utf-8", "replace")]
    for row in outcomes:
        values += row
    sql = _REPEAT * len(repeats) + _OUTCOME * len(outcomes)
    return (f"begin; set local synchronous_commit = off; {sql} commit;" if sql else ""), values


def _run(
    connection: LedgerConnection, message: str, values: Sequence[object]
) -> psycopg.ClientCursor[tuple[object, ...]]:
    return psycopg.ClientCursor(connection).execute(message.encode(), values)
