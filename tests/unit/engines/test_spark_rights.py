"""When does the engine of Spark's protocol believe that a login may only read?"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing

import grpc
import pytest
from google.rpc.error_details_pb2 import ErrorInfo  # type: ignore[import-untyped]  # it has none
from pyspark.errors.exceptions.connect import convert_exception

from proxy.engines import spark
from proxy.engines.spark import SparkEngine
from proxy.engines.spark_client import SparkAddress, SparkConnection
from proxy.errors import ConfigError
from proxy.policy.model import SparkSource
from tests.sail_server import sail

_ANALYSIS, _FILES = "org.apache.spark.sql.AnalysisException", "java.nio.file.AccessDeniedException"
_DENIED_BEHIND = f"{_ANALYSIS}\n\tat org.x.Y.z(Y.scala:1)\nCaused by: {_FILES}: s3a://lake\n\tat a.B.c(B.java:2)"


def _said(status: str, kind: str, *, state: str = "", trace: str = "") -> Exception:
    """What the library makes of a server's failure; its words speak of rights in any case."""
    parts = {"classes": json.dumps([kind]), "stackTrace": trace, **({"sqlState": state} if state else {})}
    info, words = ErrorInfo(reason=kind, metadata=parts), "secret-of-ann: AccessDeniedException, PERMISSION_DENIED"
    found: Exception = convert_exception(info, words, None, grpc_status_code=getattr(grpc.StatusCode, status))
    return found


def test_a_server_in_which_a_table_can_be_made_is_refused() -> None:
    with pytest.raises(ConfigError, match="lets tables be created"):
        SparkEngine(SparkSource(sail().url))


def test_a_server_that_lets_nothing_be_made_is_served(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SparkConnection, "may", lambda _self, _command: False)
    SparkEngine(SparkSource(sail().url)).close()


@pytest.mark.parametrize(
    "said, is_denial",
    [
        (_said("PERMISSION_DENIED", _ANALYSIS), True),
        (_said("INTERNAL", "org.apache.spark.SparkException", state="42501"), True),
        (_said("INTERNAL", "x.AccessControlException", trace="x.AccessControlException: user ann"), True),
        (_said("INTERNAL", _ANALYSIS, trace=_DENIED_BEHIND), True),
        (_said("INTERNAL", _ANALYSIS), False),  # no such schema, say
        (_said("INTERNAL", _ANALYSIS, state="42704", trace=f"{_ANALYSIS}: x.AccessDeniedException"), False),
        (_said("INTERNAL", "org.apache.spark.sql.catalyst.parser.ParseException"), False),
        (_said("UNIMPLEMENTED", "java.lang.UnsupportedOperationException"), False),
        (_said("UNAUTHENTICATED", "x.Y"), False),
        (_said("UNAVAILABLE", "x.Y"), False),
        (ValueError("the channel is closed"), False),
    ],
)
def test_a_table_that_cannot_be_made_proves_reading_only_where_the_server_says_so(
    said: Exception, is_denial: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_asked: object) -> Iterator[object]:
        raise said

    with closing(SparkConnection(SparkAddress(sail().url))) as connection:
        monkeypatch.setattr(connection._client, "to_table_as_iterator", fails)
        if is_denial:
            spark._check_read_only(connection)
            return
        with pytest.raises(ConfigError, match="lets tables be created cannot be told") as refused:
            spark._check_read_only(connection)
        assert "secret" not in refused.value.text() + str(refused.value.__cause__)


@pytest.mark.parametrize("said", [_said("UNAVAILABLE", "x.Y"), _said("PERMISSION_DENIED", _ANALYSIS)])
def test_a_table_that_cannot_be_removed_again_is_named(said: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    def makes(*_asked: object) -> Iterator[object]:
        monkeypatch.setattr(connection._client, "to_table_as_iterator", removes)
        return iter(())

    def removes(*_asked: object) -> Iterator[object]:
        raise said

    with closing(SparkConnection(SparkAddress(sail().url))) as connection:
        monkeypatch.setattr(connection._client, "to_table_as_iterator", makes)
        with pytest.raises(ConfigError, match="lets tables be created") as refused:
            spark._check_read_only(connection)
    assert "hushql_may_not_write_" in refused.value.detail
