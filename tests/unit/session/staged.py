"""Sessions over empty tables that are asked statements in stages, and told values for these."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from prometheus_client import CollectorRegistry

from proxy.dp.mechanisms import Distribution
from proxy.errors import EngineFailed
from proxy.ledger.sqlite.ledger import SqliteLedger
from proxy.metrics import Metrics
from proxy.plan.charge import Reserved, Unpromised
from proxy.policy.model import Policy
from proxy.session.answering.grid import Clock, LoopClock, Threads
from proxy.session.asking.plancache import PlanCache
from proxy.session.contract import Asking, Row, Spliced
from proxy.session.dataset import Dataset
from proxy.session.session import ClientSession, Workers
from tests.unit.session.make import version
from tests.unit.session.running import NoRows, Slow
from tests.unit.session.thinking import InThread

SQL = "select count(*) from users where score > (select avg(age) from users)"
GROUPED = "select city, count(*) from users where age > (select avg(age) from users) group by city"
Told = tuple[Row, ...]
TOLD: Told = (("true", "numeric", "41.5"),)
OTHER: Told = (("true", "numeric", "42.5"),)
WHOLE = 0.02294  # the rho of epsilon 1


@dataclass(slots=True)
class Watched(NoRows):
    """An engine over empty tables that remembers what it was asked, and may fail."""

    asked: list[str] = field(default_factory=list)
    fails: bool = False
    fails_after: int = 1 << 30  # statements

    @contextmanager
    def stages(self, reserved: Reserved | Unpromised) -> Iterator[NoRows]:
        self.asked.append(reserved.sql)
        if self.fails or len(self.asked) > self.fails_after:
            raise EngineFailed("lost")
        yield self


@dataclass(slots=True)
class World:
    """A dataset, and sessions of its logins that are asked one statement each."""

    dataset: Dataset
    ledger: SqliteLedger
    workers: Workers
    engine: Watched

    def session(self, login: str = "ann", name: str = "1") -> ClientSession:
        return ClientSession(self.dataset, login, name, self.workers, PlanCache(), Metrics(CollectorRegistry()))

    def spent(self, login: str = "") -> float:
        """The rho of the dataset's account, or of a login's."""
        wanted = ("user", f"shop/{login}") if login else ("dataset", "shop")
        return sum(t.spent.pico for t in self.ledger.all_accounts() if (t.kind.value, t.name) == wanted) / 1e12

    def spent_by_sessions(self) -> list[int]:
        return [t.spent.pico for t in self.ledger.all_accounts() if t.kind.value == "session"]


@contextmanager
def serving(folder: Path, policy: Policy | None = None, clock: Clock | None = None) -> Iterator[World]:
    """A world whose ledger is in a folder."""
    noise, engine = Slow(), Watched()
    noise.may_go_on.set()
    workers = Workers(
        thinking=InThread(),
        waiting=ThreadPoolExecutor(1),
        private=Threads(1, "private"),
        local=Threads(1, "local"),
        clock=clock or LoopClock(),
    )
    with closing(SqliteLedger(folder)) as ledger, workers.waiting, closing(workers.private), closing(workers.local):
        served = Dataset(
            ledger=ledger, noise=dict.fromkeys(Distribution, noise), current=replace(version(policy), engine=engine)
        )
        yield World(served, ledger, workers, engine)


def begin(session: ClientSession, /, sql: str = SQL, epsilon: float = 1, **settings: str) -> Asking | Spliced:
    values = {"hush.epsilon": str(epsilon), **{f"hush.{n}": v for n, v in settings.items()}}

    async def released() -> Asking | Spliced:
        (piece,) = await session.prepare(sql, values)
        return await session.release(piece, (), values)

    return asyncio.run(released())


def go_on(session: ClientSession, asking: Asking | Spliced, told: Told = TOLD, epsilon: float = 1) -> Asking | Spliced:
    assert isinstance(asking, Asking)
    return asyncio.run(session.release(replace(asking.piece, told=told), (), {"hush.epsilon": str(epsilon)}))


def answer(
    world: World, sql: str = SQL, told: Told = TOLD, login: str = "ann", epsilon: float = 1, session: str = "1"
) -> Spliced:
    return answered(world.session(login, session), sql, told, epsilon)


def answered(session: ClientSession, sql: str, told: Told, epsilon: float) -> Spliced:
    found = begin(session, sql, epsilon)
    while isinstance(found, Asking):
        found = go_on(session, found, told, epsilon)
    return found


def explained(world: World, sql: str, *told: Told) -> Mapping[str, list[Mapping[str, object]]]:
    session = world.session()
    found = begin(session, f"explain (format json) {sql}")
    for rows in told:
        found = go_on(session, found, rows)
    assert isinstance(found, Spliced)
    text = found.arrays[0].text
    ((data,),) = (json.loads(text[2:-2].replace('\\"', '"').replace("\\\\", "\\")),)
    assert isinstance(data, dict)
    return data
