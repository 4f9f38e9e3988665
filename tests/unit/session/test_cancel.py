"""A private statement that is cancelled while its noise is drawn ends with the batch under way and stays charged."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry

from proxy.dp.mechanisms import Distribution
from proxy.engines.base import Cancellation, Facts
from proxy.errors import QueryCanceled
from proxy.ledger.base import Outcome
from proxy.ledger.sqlite import SqliteLedger
from proxy.metrics import Metrics
from proxy.plan.charge import Reserved
from proxy.policy.model import Policy, Table
from proxy.release.raw import Kept, RawResult
from proxy.session.dataset import Dataset
from proxy.session.plancache import PlanCache
from proxy.session.session import ClientSession, Workers
from tests.unit.session.make import version

#: 3 * 111 keys and NULLs times ten numbers of kids: several batches of noise
QUERY = "select age, plan, kids, count(*), avg(steps) from users group by 1, 2, 3"


class NoRows:
    """An engine over empty tables."""

    @contextmanager
    def stages(self, reserved: Reserved, *, timeout_s: float, cancellation: Cancellation) -> Iterator[NoRows]:
        yield self

    def rows(self, stage: int, kept: Kept) -> RawResult:
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
        assert self.may_go_on.wait(20)
        return (0,) * n


@contextmanager
def session_with(noise: Slow, state: Path) -> Iterator[tuple[ClientSession, SqliteLedger, Workers]]:
    """A session whose threads are ended at the end, when nothing may be left to do."""
    workers = Workers(thinking=ThreadPoolExecutor(1), waiting=ThreadPoolExecutor(1))
    with closing(SqliteLedger(state)) as ledger, workers.thinking, workers.waiting:
        served = Dataset(
            ledger=ledger, noise=dict.fromkeys(Distribution, noise), current=replace(version(), engine=NoRows())
        )
        yield ClientSession(served, "ann", "1", workers, PlanCache(), Metrics(CollectorRegistry())), ledger, workers


def test_a_cancelled_statement_takes_no_more_noise_and_stays_charged(tmp_path: Path) -> None:
    noise = Slow()
    with session_with(noise, tmp_path / "state") as (session, ledger, workers):

        async def cancelled() -> None:
            (piece,) = await session.prepare(QUERY, {})
            answering = asyncio.ensure_future(session.release(piece, (), (), {}))
            await asyncio.to_thread(noise.begun.wait, 20)
            answering.cancel()
            with pytest.raises(asyncio.CancelledError):
                await answering

        asyncio.run(cancelled())
        noise.may_go_on.set()
        workers.waiting.submit(int).result(20)  # the only thread is free again
        assert noise.sizes == [4096]
        assert all(t.spent.pico > 0 for t in ledger.all_accounts())
        (asked,) = ledger.history("shop/ann", 10)
        assert (asked.outcome, asked.cost.pico > 0) == (Outcome.CANCELLED, True)


def test_a_statement_that_goes_on_takes_a_value_for_each_moment_of_each_key(tmp_path: Path) -> None:
    noise = Slow()
    noise.may_go_on.set()
    with session_with(noise, tmp_path / "state") as (session, _ledger, _workers):

        async def answered() -> None:
            (piece,) = await session.prepare(QUERY, {})
            await session.release(piece, (), (), {})

        asyncio.run(answered())
    assert sum(noise.sizes) == 112 * 4 * 10 * 2
    assert set(noise.sizes[:-1]) == {4096}


def test_a_request_to_stop_is_a_cancelled_statement() -> None:
    cancellation = Cancellation()
    cancellation.check()
    cancellation.request()
    with pytest.raises(QueryCanceled, match="user request"):
        cancellation.check()
