"""Which kind of failure is an error of the private PostgreSQL?

Told by its SQLSTATE alone; what the server says besides may quote a row. See docs/claims/retry.md for what follows.
"""

from __future__ import annotations

import psycopg

from proxy.engines.base import EngineStopped
from proxy.engines.postgres_open import EngineConnection
from proxy.errors import Failure

NOT_CONNECTED, BROKEN = "08001", "08006"  # what libpq finds by itself has no SQLSTATE

_KINDS = {
    Failure.UNREACHABLE: ("08001", "08004", "57P01", "57P03"),
    Failure.LOST: ("08000", "08003", "08006", "57P02"),
    # names, types and rights of a table or function
    Failure.CHANGED: ("3F000", "42501", "42703", "42704", "42804", "42809", "42846", "42883", "42P01"),
    Failure.LIMITS: ("53000", "53100", "53200", "53400", "54000", "57014"),
}
_KIND_OF = {code: kind for kind, codes in _KINDS.items() for code in codes}


def stopped(error: psycopg.Error, connection: EngineConnection) -> EngineStopped:
    """What a statement failed with. Where the server said nothing and the way to it is gone, that is the failure."""
    code = error.sqlstate or (BROKEN if connection.closed else "")
    return EngineStopped(type(error).__name__, _KIND_OF.get(code, Failure.OTHER), code)


def stopped_at_look(error: psycopg.Error, connection: EngineConnection | None) -> EngineStopped:
    """What a look failed with. A server that gives no session, or ends it, cannot be reached, whatever it says."""
    if connection is None:
        return EngineStopped(type(error).__name__, Failure.UNREACHABLE, error.sqlstate or NOT_CONNECTED)
    found = stopped(error, connection)
    return EngineStopped(found.exception_name, Failure.UNREACHABLE, found.code) if connection.closed else found
