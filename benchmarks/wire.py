"""What does a statement cost besides the engine's work, from a client's point of view?

A proxy of its own serves a small shop, so that the engine's share is small; its policy has no time grid and all the
budget there is. Reported are whole round trips of psycopg, ledger on disk included.
"""

from __future__ import annotations

import json
import statistics
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from pathlib import Path

import psycopg

from benchmarks.engine import ROOT, shop_at
from benchmarks.measure import Work, interleaved, milliseconds
from benchmarks.serving import LOGIN, PASSWORD, connect, serving

_POLICY = ROOT / "policies" / "shop.yaml"
_SCALE = 0.02
_WARM_UP = 20


@dataclass(frozen=True, slots=True)
class FixedCost:
    """Median milliseconds of one kind of statement, and the most accepted; 0 for any."""

    name: str
    median_ms: float
    most_ms: float

    @property
    def is_within(self) -> bool:
        return not self.most_ms or self.median_ms <= self.most_ms


def fixed_costs(data: Path, runs: int) -> Iterator[FixedCost]:
    """Start a proxy, time each kind of statement `runs` times, stop it."""
    with (
        tempfile.TemporaryDirectory(prefix="bench") as folder,
        serving(Path(folder), _POLICY, {"SHOP_DUCKDB": str(shop_at(data, _SCALE))}) as served,
        connect(f"host=127.0.0.1 port={served.port} dbname=shop user={LOGIN} password={PASSWORD}") as client,
    ):
        yield from _private(client, runs)
        with connect(f"host={_socket(Path(folder))} dbname=shop user={LOGIN}") as direct:
            yield from _public(client, direct, runs)


def _private(client: psycopg.Connection, runs: int) -> Iterator[FixedCost]:
    number = count(1)
    question = "SELECT count(*) FROM users WHERE age >= 40"

    def new_text() -> None:
        text = "SELECT plan, count(*), sum(age), avg(age) FROM users WHERE newsletter AND joined >= '2020-01-01'"
        client.execute(f"{text} GROUP BY plan HAVING count(*) > {next(number)} ORDER BY 2 DESC".encode())

    def simple_new_text() -> None:
        client.execute(f"SELECT count(*) FROM users WHERE age >= 18 + {next(number)}".encode())

    def same_text() -> None:
        client.execute(question.encode())

    client.execute("SET hush.fresh = on")
    yield FixedCost("new text, grouped", _median(new_text, runs), 15.0)
    yield FixedCost("new text, one count", _median(simple_new_text, runs), 15.0)
    yield FixedCost("repeated text, fresh release", _median(same_text, runs), 3.0)
    client.execute("SET hush.fresh = off")
    yield FixedCost("reused release", _median(same_text, runs), 1.5)


def _public(client: psycopg.Connection, direct: psycopg.Connection, runs: int) -> Iterator[FixedCost]:
    for name, sql in (("public table", "SELECT count(*) FROM stores"), ("no table", "SELECT 1")):
        works: tuple[Work, Work] = (lambda s=sql: direct.execute(s), lambda s=sql: client.execute(s))  # type: ignore[misc]
        for work in works:
            _warm(work)
        pair = interleaved(*works, runs)
        yield FixedCost(f"{name}, direct to PostgreSQL", pair.plain_ms, 0.0)
        yield FixedCost(f"{name}, relay over direct", pair.other_ms - pair.plain_ms, 0.2)


def _warm(work: Work) -> None:
    for _ in range(_WARM_UP):
        work()


def _median(work: Work, runs: int) -> float:
    _warm(work)
    return statistics.median(milliseconds(work) for _ in range(runs))


def _socket(folder: Path) -> Path:
    """The directory of the front's socket, from the proxy's own record of where it put its front."""
    (record,) = (folder / "state").rglob("front-*.json")
    (socket,) = Path(json.loads(record.read_text())["directory"]).rglob(".s.PGSQL.5432")
    return socket.parent
