"""Sessions with the tests' Spark Connect server."""

from __future__ import annotations

import sys

from proxy.engines.spark_client import Address, Connection
from tests.sail_server import sail

_MOST = 1 << 30

# A worker of pytest-xdist is no file, which the library takes for a run of its own documentation's tests.
vars(sys.modules["__main__"]).setdefault("__file__", __file__)


class Client:
    """A session as the engine opens it, for texts of the tests."""

    def __init__(self) -> None:
        self._connection = Connection(Address(sail().url))

    def rows(self, sql: str, kept: list[list[object]] | None = None) -> list[tuple[object, ...]]:
        return self._connection.rows(sql, kept or [], max_bytes=_MOST)[1]

    def close(self) -> None:
        self._connection.close()
