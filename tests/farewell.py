"""What a server says when it ends a session."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from select import select
from typing import Any

import psycopg
from psycopg.pq import ConnStatus

_PATIENCE_S = 60.0


@dataclass(frozen=True, slots=True)
class Farewell:
    """The last that a session was told. sqlstate: None if the connection ended without a word."""

    sqlstate: str | None = None
    message: str = ""


def farewell_of(client: psycopg.Connection[Any]) -> Farewell:
    """How the session ends, now or in a moment.

    Only by reading: a statement that is sent on a connection whose other end is closed may be answered by the kernel,
    and psycopg then gives up without the message that had come before.
    """
    heard: list[Farewell] = []
    client.add_notice_handler(lambda told: heard.append(Farewell(told.sqlstate, told.message_primary or "")))
    libpq = client.pgconn
    while libpq.status == ConnStatus.OK:
        assert select([libpq.socket], [], [], _PATIENCE_S)[0], "the session does not end"
        with suppress(psycopg.OperationalError):  # the end, after which the status is another
            libpq.consume_input()
        libpq.notifies()  # has libpq take what has come apart
    return heard[-1] if heard else Farewell()
