"""An engine over empty tables that is away, or fails in the middle, as it is told to."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from proxy.engines.base import Cancellation, EngineStopped
from proxy.errors import Failure, HushError
from proxy.ledger.chain import Ended, Entry
from proxy.release.raw import KeptKeys, RawResult
from tests.unit.session.running import NoRows
from tests.unit.session.staged import Watched, World, begin

COUNT = "select count(*) from users"
MEDIAN = "select count(*), percentile_cont(0.5) within group (order by age) from users"
TWO = "select (select count(*) from users where age > 30), (select count(*) from users where age > 50)"


@dataclass(slots=True)
class Flaky(Watched):
    """away: what a look fails with. fails_at: what statements fail with, by number, of those that are run, from 1.

    log: what happened, in order. before: done before each statement. found: done when a look has found all there.
    """

    away: HushError | None = None
    fails_at: dict[int, HushError] = field(default_factory=dict)
    log: list[str] = field(default_factory=list)
    before: Callable[[Cancellation], object] = lambda _: None
    found: Callable[[Cancellation], object] = lambda _: None
    run: int = 0
    cancellation: Cancellation = field(default_factory=Cancellation)

    @contextmanager
    def session(self, looked_at: Sequence[str], *, timeout_s: float, cancellation: Cancellation) -> Iterator[NoRows]:
        assert timeout_s > 0
        self.log.append(f"look at {len(looked_at)}")
        if self.away is not None:
            raise self.away
        self.cancellation = cancellation
        self.found(cancellation)
        try:
            yield self
        finally:
            self.log.append("session over")

    def rows(self, stage: int, kept: KeptKeys) -> RawResult:
        self.run += 1
        self.before(self.cancellation)
        if self.run in self.fails_at:
            raise self.fails_at[self.run]
        return NoRows.rows(self, stage, kept)


def stopped(failure: Failure, code: str = "") -> EngineStopped:
    return EngineStopped("Oops", failure, code)


def flaky(world: World) -> Flaky:
    """What the world is served by from now on."""
    engine = Flaky()
    world.dataset.swap(replace(world.dataset.current, engine=engine))
    return engine


def refused(
    world: World, sql: str = COUNT, login: str = "ann", session: str = "1", epsilon: float = 1, **settings: str
) -> HushError:
    """How a statement fails."""
    try:
        begin(world.session(login, session), sql, epsilon, **settings)
    except HushError as error:
        return error
    raise AssertionError("it was answered")


def entries(world: World) -> list[str]:
    """What was written: a charge, an attempt that ended, one that is made again."""
    words = []
    for event in world.ledger.entries():
        match event:
            case Ended():
                words.append("ended")
            case Entry(lines=lines, taken=taken):
                words.append(" and ".join(["charged"] * bool(lines) + ["taken up"] * bool(taken)))
            case _:
                words.append(type(event).__name__.lower())
    return words
