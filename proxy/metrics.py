"""What may an operator count about a running proxy?

Counters and histograms whose labels come from closed sets of this program: never a query, a login, a table, a count of
rows or groups, or how long private data took to scan, but to a step of the time grid.
"""

from __future__ import annotations

import enum
import math
import socket
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from socketserver import ThreadingMixIn
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server
from wsgiref.types import StartResponse, WSGIEnvironment

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, make_wsgi_app
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from proxy.errors import ConfigError, Failure, HushError

#: A plan takes milliseconds, and a private scan up to the time limit of a statement.
STAGE_BUCKETS_S = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
#: A durable charge is a millisecond on a disk and tens on a shared database.
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


class MeasuredStage(enum.Enum):
    """On what a statement's time goes, beside the ledger."""

    PLANNING = "planning"  # from its text to its plan, the turn at a process included
    WAITING = "waiting"  # for a thread that asks the engine
    ENGINE = "engine"  # until the private work of one stage has ended, to a step of the time grid


class WaitingQueue(enum.Enum):
    """Where statements wait for their turn."""

    PLANNING = "planning"
    PRIVATE = "private"
    LOCAL = "local"


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountFigures:
    """An account of everybody or of a role: epsilon of its limit and of what was spent, and the share that is spent.

    limit: infinite where there is none; share is then 0. The share is one of rho, since epsilon does not add up.
    """

    dataset: str
    kind: str
    name: str
    limit: float
    spent: float
    share: float


@dataclass(frozen=True, slots=True, kw_only=True)
class DatasetFigures:
    """A dataset that is served. loaded_at: when policy and data were last read. not_ready: parts that do not work."""

    name: str
    loaded_at: datetime
    accounts: tuple[AccountFigures, ...]
    not_ready: tuple[str, ...]


#: What a dataset needs to answer.
PARTS = ("front", "ledger", "engine")
Watched = Callable[[], Sequence[DatasetFigures]]
QueueLengths = Callable[[], Mapping[WaitingQueue, int]]


def nothing_served() -> Sequence[DatasetFigures]:
    """No dataset yet."""
    return ()


def nothing_waits() -> Mapping[WaitingQueue, int]:
    """No queue is looked at yet."""
    return dict.fromkeys(WaitingQueue, 0)


def _family(sqlstate: str) -> str:
    """A five-character SQLSTATE as a label; anything else is told as an internal error."""
    return sqlstate if len(sqlstate) == 5 and sqlstate.isascii() and sqlstate.isalnum() else "XX000"


class Metrics:
    """The proxy's figures, registered in the registry that is passed in.

    Claim: no label value says more of private data than a client is told. Labels are members of the enumerations above,
    the kinds and SQLSTATEs of `proxy.errors`, and names of datasets and roles. Labels of statements that the engine
    computes depend on the query text and the policy only, and so does what accounts have spent. The time of a private
    scan depends on the rows scanned, so it is measured where the time grid lets go of the answer, as its client does.
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
        self._stage_s = Histogram(
            "hushql_stage_seconds", "Time of statements by what it went on.", ["stage"], buckets=STAGE_BUCKETS_S,
            registry=registry,
        )  # fmt: skip
        self._engine_failures = Counter(
            "hushql_engine_failures", "Failures of private engines, by kind.", ["kind"], registry=registry
        )
        self._reloads = Counter("hushql_policy_reloads", "Policy reloads by outcome.", ["accepted"], registry=registry)
        self._served = _Served()
        registry.register(self._served)
        for stage in MeasuredStage:
            self._stage_s.labels(stage.value)
        for kind in StatementKind:
            self._statements.labels(kind.value)
        for failure in Failure:
            self._engine_failures.labels(failure.value)
        for origin in ReleaseOrigin:
            self._releases.labels(origin.value)

    def watch(self, watched: Watched) -> None:
        """Tell, each time they are read, the figures of what is served, and whether that is ready."""
        self._served.watched = watched

    def watch_queues(self, lengths: QueueLengths) -> None:
        """Tell, each time it is read, how many statements wait where."""
        self._served.queue_lengths = lengths

    def serve(self, host: str, port: int) -> Callable[[], None]:
        """Answer over HTTP from threads; call the result to end it. Raises ConfigError.

        `/metrics` for Prometheus, `/healthz` while the process lives, `/readyz` when all that is served works.
        Everything else is 404.
        """
        try:
            server = make_server(host, port, self._answered, _Threads6 if ":" in host else _Threads, _Quiet)
        except OSError as error:
            raise ConfigError(
                f"cannot serve metrics on {host} port {port}: {error.strerror}",
                hint="Name another address with --metrics, or end what listens there.",
            ) from error
        thread = threading.Thread(target=server.serve_forever, name="hushql-metrics", daemon=True)
        thread.start()

        def stop() -> None:
            server.shutdown()
            server.server_close()
            thread.join()

        return stop

    def _answered(self, environ: WSGIEnvironment, start: StartResponse) -> Iterable[bytes]:
        match environ.get("PATH_INFO"), environ.get("REQUEST_METHOD"):
            case "/metrics", "GET" | "HEAD":
                found: Iterable[bytes] = make_wsgi_app(self._registry)(environ, start)
                return found
            case "/healthz", "GET" | "HEAD":
                return _text(start, "200 OK", "alive")
            case "/readyz", "GET" | "HEAD":
                served = self._served.watched()
                away = [f"{d.name}: {part}" for d in served for part in d.not_ready]
                if away or not served:
                    return _text(start, "503 Service Unavailable", "\n".join(away) or "nothing is served yet")
                return _text(start, "200 OK", "ready")
            case _:
                return _text(start, "404 Not Found", "/metrics, /healthz and /readyz are here")

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

    def took(self, stage: MeasuredStage, seconds: float) -> None:
        """A statement spent so long on something. The engine's time is that to a step of the time grid."""
        self._stage_s.labels(stage.value).observe(seconds)

    def reloaded(self, *, is_accepted: bool) -> None:
        self._reloads.labels("yes" if is_accepted else "no").inc()


class _Served(Collector):
    """Gauges of what is served, made when they are read."""

    def __init__(self) -> None:
        self.watched: Watched = nothing_served
        self.queue_lengths: QueueLengths = nothing_waits

    def describe(self) -> Iterable[GaugeMetricFamily]:
        """None ahead: they would be read while the registry is made."""
        return ()

    def collect(self) -> Iterator[GaugeMetricFamily]:
        limit = _gauge("account_limit_epsilon", "What an account may spend.", "dataset", "kind", "account")
        spent = _gauge("account_spent_epsilon", "What an account has spent.", "dataset", "kind", "account")
        share = _gauge("account_spent_ratio", "The share of its limit that is spent.", "dataset", "kind", "account")
        loaded = _gauge("loaded_timestamp_seconds", "When policy and data were last read.", "dataset")
        ready = _gauge("ready", "Whether a part of what a dataset needs works.", "dataset", "part")
        waiting = _gauge("waiting", "Statements that wait for their turn.", "queue")
        for queue, length in self.queue_lengths().items():
            waiting.add_metric([queue.value], length)
        for dataset in self.watched():
            loaded.add_metric([dataset.name], dataset.loaded_at.timestamp())
            for part in PARTS:
                ready.add_metric([dataset.name, part], float(part not in dataset.not_ready))
            for account in dataset.accounts:
                names = [account.dataset, account.kind, account.name]
                spent.add_metric(names, account.spent)
                share.add_metric(names, account.share)
                if math.isfinite(account.limit):
                    limit.add_metric(names, account.limit)
        yield from (limit, spent, share, loaded, ready, waiting)


def _gauge(name: str, words: str, *labels: str) -> GaugeMetricFamily:
    return GaugeMetricFamily(f"hushql_{name}", words, labels=labels)


def _text(start: StartResponse, status: str, words: str) -> Iterable[bytes]:
    start(status, [("Content-Type", "text/plain; charset=utf-8"), ("Cache-Control", "no-store")])
    return [f"{words}\n".encode()]


class _Threads(ThreadingMixIn, WSGIServer):
    """A client that reads slowly holds up nobody else."""

    daemon_threads = True


class _Threads6(_Threads):
    address_family = socket.AF_INET6


class _Quiet(WSGIRequestHandler):
    """Requests of a monitoring system are no news. A connection that says nothing is closed after a while."""

    timeout = 10

    def log_message(self, *_: object) -> None:
        """Said nowhere."""
