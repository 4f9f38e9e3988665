"""What may an operator count about a running proxy?

Counters and histograms whose labels come from closed sets of this program: never a query, a login, a table, a count of
rows or groups, or how long private data took to scan.
"""

from __future__ import annotations

import enum
from collections.abc import Callable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, start_http_server

from proxy.errors import ConfigError, Failure, HushError

#: Seconds; a durable charge is a millisecond on a disk and tens on a shared database.
RESERVE_BUCKETS_S = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)


class StatementKind(enum.Enum):
    """What became of a statement that named something private; all others pass uncounted."""

    PRIVATE = "private"  # answered by releases
    EXPLAIN = "explain"
    PROBE = "probe"  # asked for column types, got no rows
    RELATION = "relation"  # answered from the proxy's own relations: hush.budget, ...


class ReleaseOrigin(enum.Enum):
    """Whether a release was paid for now or had been before."""

    FRESH = "fresh"
    REUSED = "reused"


def _family(sqlstate: str) -> str:
    """A five-character SQLSTATE as a label; anything else is told as an internal error."""
    return sqlstate if len(sqlstate) == 5 and sqlstate.isascii() and sqlstate.isalnum() else "XX000"


class Metrics:
    """The proxy's figures, registered in the registry that is passed in.

    Claim: no label value says more of private data than a client is told. Labels are members of the enumerations above
    and the kinds and SQLSTATEs of `proxy.errors`; those of statements that the engine computes depend on the query text
    and the policy only. Latency is measured for the ledger alone,
    because the time of a private scan depends on the rows scanned.
    """

    def __init__(self, registry: CollectorRegistry) -> None:
        self._registry = registry
        self._sessions = Gauge("hushql_sessions", "Client sessions that are open.", registry=registry)
        self._connections = Counter("hushql_connections", "Logins that succeeded.", registry=registry)
        self._statements = Counter(
            "hushql_statements", "Statements by what became of them.", ["kind"], registry=registry
        )
        self._refusals = Counter("hushql_refusals", "Statements refused, by SQLSTATE.", ["sqlstate"], registry=registry)
        self._releases = Counter("hushql_releases", "Releases shown to a client.", ["origin"], registry=registry)
        self._reserve_s = Histogram(
            "hushql_reserve_seconds",
            "Time until a charge was durable in the ledger.",
            buckets=RESERVE_BUCKETS_S,
            registry=registry,
        )
        self._engine_failures = Counter(
            "hushql_engine_failures", "Failures of private engines, by kind.", ["kind"], registry=registry
        )
        self._reloads = Counter("hushql_policy_reloads", "Policy reloads by outcome.", ["accepted"], registry=registry)
        for kind in StatementKind:
            self._statements.labels(kind.value)
        for failure in Failure:
            self._engine_failures.labels(failure.value)
        for origin in ReleaseOrigin:
            self._releases.labels(origin.value)

    def serve(self, host: str, port: int) -> Callable[[], None]:
        """Answer Prometheus over HTTP from a thread; call the result to end it. Raises ConfigError."""
        try:
            server, thread = start_http_server(port, host, self._registry)
        except OSError as error:
            raise ConfigError(
                f"cannot serve metrics on {host} port {port}: {error.strerror}",
                hint="Name another address with --metrics, or end what listens there.",
            ) from error

        def stop() -> None:
            server.shutdown()
            server.server_close()
            thread.join()

        return stop

    def session_opened(self) -> None:
        self._connections.inc()
        self._sessions.inc()

    def session_closed(self) -> None:
        self._sessions.dec()

    def statement(self, kind: StatementKind) -> None:
        self._statements.labels(kind.value).inc()

    def refused(self, error: HushError) -> None:
        """Counts a refusal by its class's SQLSTATE; the message is not looked at."""
        self._refusals.labels(_family(type(error).sqlstate)).inc()

    def engine_failed(self, failure: Failure) -> None:
        """Counts a failure by the kind of which its client is told."""
        self._engine_failures.labels(failure.value).inc()

    def released(self, origin: ReleaseOrigin) -> None:
        self._releases.labels(origin.value).inc()

    def reserved(self, seconds: float) -> None:
        """One durable charge took this long. ValueError for a time that is negative or not a number."""
        if not seconds >= 0.0:
            raise ValueError(f"a charge cannot take {seconds} s")
        self._reserve_s.observe(seconds)

    def reloaded(self, *, is_accepted: bool) -> None:
        self._reloads.labels("yes" if is_accepted else "no").inc()
