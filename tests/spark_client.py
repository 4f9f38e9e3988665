"""Sessions with the tests' Spark Connect server."""

from __future__ import annotations

from proxy.engines.spark_client import SparkAddress, SparkConnection
from tests.sail_server import sail

_MOST = 1 << 30


class Client:
    """A session as the engine opens it, for texts of the tests."""

    def __init__(self) -> None:
        self._connection = SparkConnection(SparkAddress(sail().url))

    def rows(self, sql: str, kept: list[list[object]] | None = None) -> list[tuple[object, ...]]:
        return self._connection.rows(sql, kept or [], max_bytes=_MOST)[1]

    def close(self) -> None:
        self._connection.close()
