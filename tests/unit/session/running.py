"""A session over empty tables, whose noise waits until it may go on."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from prometheus_client import CollectorRegistry

from proxy.dp.mechanisms import Distribution
from proxy.engines.base import Cancellation, Facts
from proxy.ledger.sqlite.ledger import SqliteLedger
from proxy.metrics import Metrics
from proxy.plan.charge import Reserved, Unpromised
from proxy.plan.profile.profile import TableProfile
from proxy.policy.model import Policy, Table
from proxy.release.raw import KeptKeys, RawResult
from proxy.session.answering.grid import Threads
from proxy.session.asking.plancache import PlanCache
from proxy.session.dataset import Dataset
from proxy.session.session import ClientSession, Workers
from tests.unit.session.make import version
from tests.unit.session.thinking import InThread


class NoRows:
    """An engine over empty tables."""

    @contextmanager
    def session(self, looked_at: Sequence[str], *, timeout_s: float, cancellation: Cancellation) -> Iterator[NoRows]:
        yield self

    @contextmanager
    def stages(self, reserved: Reserved | Unpromised) -> Iterator[NoRows]:
        yield self

    def rows(self, stage: int, kept: KeptKeys) -> RawResult:
        return RawResult(6, ())

    def check_facts(self, policy: Policy) -> Facts:
        return Facts(columns=(), joins=())

    def public_rows(self, table: Table) -> Iterator[tuple[object, ...]]:
        return iter(())

    def close(self) -> None:
        pass


@dataclass(slots=True)
class Slow:
    """Noise whose first batch begins, and waits until it may go on."""

    begun: threading.Event = field(default_factory=threading.Event)
    may_go_on: threading.Event = field(default_factory=threading.Event)
    sizes: list[int] = field(default_factory=list)

    def take(self, n: int) -> tuple[int, ...]:
        self.sizes.append(n)
        self.begun.set()
        assert self.may_go_on.wait(60)
        return (0,) * n


@contextmanager
def session_with(
    noise: Slow, state: Path, profiles: tuple[TableProfile, ...] = ()
) -> Iterator[tuple[ClientSession, SqliteLedger, Workers]]:
    """A session whose threads are ended at the end, when nothing may be left to do."""
    with sessions_with(noise, state, 1, profiles) as ((session,), ledger, workers):
        yield session, ledger, workers


@contextmanager
def sessions_with(
    noise: Slow, state: Path, count: int, profiles: tuple[TableProfile, ...] = ()
) -> Iterator[tuple[tuple[ClientSession, ...], SqliteLedger, Workers]]:
    """As many sessions of one login, and a thread to wait in for each."""
    workers = Workers(
        thinking=InThread(),
        waiting=ThreadPoolExecutor(count),
        private=Threads(count, "private"),
        local=Threads(count, "local"),
    )
    with closing(SqliteLedger(state)) as ledger, workers.waiting, closing(workers.private), closing(workers.local):
        served = Dataset(
            ledger=ledger,
            noise=dict.fromkeys(Distribution, noise),
            current=replace(version(), engine=NoRows(), profiles=profiles),
        )
        plans, metrics = PlanCache(), Metrics(CollectorRegistry())
        names = (str(number) for number in range(1, count + 1))
        yield tuple(ClientSession(served, "ann", name, workers, plans, metrics) for name in names), ledger, workers
