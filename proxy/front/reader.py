"""Which values do texts stand for, as PostgreSQL itself reads them?

A text that a client wrote is read by the input function of its type, on a connection of the proxy's own: the client's
transaction, search path, types and tables have no say, and what is read changes nothing there. The settings that
PostgreSQL reads by are those of the client's session. Nothing private is involved.
"""

from __future__ import annotations

import select
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import psycopg
from psycopg import pq

from proxy.errors import FrontFailed, HushError, NotReadable
from proxy.front.roles import READERS
from proxy.sql.algebra.constants import ANY_MODIFIER, InputStyle, InputText

_MOST_AT_ONCE = 1000  # of 1,664 columns that a row of PostgreSQL may have
_TEXT_OID = 25

FrontConnection = psycopg.Connection[tuple[object, ...]]
#: The bytes of a value as PostgreSQL sends it, None for NULL.
ReadText = bytes | None


@dataclass(slots=True)
class _Line:
    """A connection, and in which style it reads."""

    connection: FrontConnection
    style: InputStyle


class FrontReader:
    """Reads texts. Safe to call from any thread; a call waits for the front, and not for long."""

    def __init__(self, connect: Callable[[], FrontConnection], timeout_s: float = 10.0) -> None:
        """connect: opens a connection to the front as it is now. Raises psycopg.Error, FrontFailed."""
        self._connect = connect
        self._timeout_s = timeout_s
        self._idle: list[_Line] = []
        self._free = threading.BoundedSemaphore(READERS)

    def read(self, texts: Sequence[InputText], style: InputStyle) -> tuple[ReadText, ...]:
        """The value of each text, in binary.

        Raises NotReadable with PostgreSQL's own words where it refuses one, FrontFailed.
        """
        with self._free:
            while self._idle:
                try:
                    return self._read(self._idle.pop(), texts, style)
                except psycopg.Error:
                    continue  # of a front that is gone
            try:
                return self._read(_Line(self._connect(), InputStyle()), texts, style)
            except psycopg.Error as error:
                raise FrontFailed("the public PostgreSQL does not answer", hint=_AGAIN) from error

    def close(self) -> None:
        """End the connections that nobody uses."""
        while self._idle:
            self._idle.pop().connection.close()

    def _read(self, line: _Line, texts: Sequence[InputText], style: InputStyle) -> tuple[ReadText, ...]:
        deadline, found = time.monotonic() + self._timeout_s, list[ReadText]()
        try:
            if line.style != style:
                _set(line.connection, style, deadline)
                line.style = style
            for start in range(0, len(texts), _MOST_AT_ONCE):
                found += _values(line.connection, texts[start : start + _MOST_AT_ONCE], deadline)
        except BaseException as error:
            if isinstance(error, NotReadable):
                self._idle.append(line)
            else:
                line.connection.close()
            raise
        self._idle.append(line)
        return tuple(found)


_AGAIN = "Try again in a moment."


def _set(connection: FrontConnection, style: InputStyle, deadline: float) -> None:
    calls = ", ".join(f"pg_catalog.set_config(${2 * n + 1}, ${2 * n + 2}, false)" for n in range(len(style.values)))
    if calls:
        data = [part.encode() for pair in style.values for part in pair]
        result = _asked(connection, f"SELECT {calls}", data, [_TEXT_OID] * len(data), deadline)
        if result.status != pq.ExecStatus.TUPLES_OK:
            raise psycopg.DataError("the front takes none of the session's settings")


def _values(connection: FrontConnection, texts: Sequence[InputText], deadline: float) -> list[ReadText]:
    """Sent as parameters, each with the number of its type: no name is looked up, and no statement quotes a value."""
    wanted = ", ".join(_wanted(n, text) for n, text in enumerate(texts, start=1))
    oids = [text.oid if text.modifier == ANY_MODIFIER else _TEXT_OID for text in texts]
    data = [text.text.encode("utf-8", "surrogateescape") for text in texts]
    result = _asked(connection, f"SELECT {wanted}", data, oids, deadline)
    if result.status == pq.ExecStatus.TUPLES_OK:
        return [result.get_value(0, n) for n in range(len(texts))]
    if connection.pgconn.status != pq.ConnStatus.OK:
        raise psycopg.OperationalError("the front has gone")
    raise _refusal(result)


def _wanted(number: int, text: InputText) -> str:
    """An interval's fields decide how its text is read, not what is kept of it: they are for its input function."""
    if text.modifier == ANY_MODIFIER:
        return f"${number}"
    return f"pg_catalog.interval_in(${number}::pg_catalog.cstring, 0::pg_catalog.oid, {text.modifier})"


def _asked(
    connection: FrontConnection, sql: str, data: Sequence[bytes], oids: Sequence[int], deadline: float
) -> pq.abc.PGresult:
    """The result of a statement, in binary. A front that stands still holds nobody up longer than until the deadline.

    Raises psycopg.Error, and FrontFailed at the deadline.
    """
    line = connection.pgconn
    line.send_query_params(sql.encode(), data, oids, None, pq.Format.BINARY)
    while line.flush():
        _wait_for(line, select.POLLIN | select.POLLOUT, deadline)
        line.consume_input()
    while line.is_busy():
        _wait_for(line, select.POLLIN, deadline)
        line.consume_input()
    found = last = line.get_result()
    while last is not None:
        last = line.get_result()
    if found is None:
        raise psycopg.OperationalError("the front has gone")
    return found


def _wait_for(line: pq.abc.PGconn, events: int, deadline: float) -> None:
    poll = select.poll()
    poll.register(line.socket, events)
    if not poll.poll(max(0.0, deadline - time.monotonic()) * 1000):
        raise FrontFailed("the public PostgreSQL does not answer", hint=_AGAIN)


def _refusal(result: pq.abc.PGresult) -> HushError:
    def field(code: pq.DiagnosticField) -> str:
        return (result.error_field(code) or b"").decode("utf-8", "replace")

    return NotReadable(
        field(pq.DiagnosticField.MESSAGE_PRIMARY), sqlstate=field(pq.DiagnosticField.SQLSTATE),
        detail=field(pq.DiagnosticField.MESSAGE_DETAIL), hint=field(pq.DiagnosticField.MESSAGE_HINT),
    )  # fmt: skip
