"""How long do others wait while eight sessions send statements that take long to plan, and do two cores plan more?

A proxy of its own serves a small shop. Beside the waits stand those of a quiet proxy, and beside the throughput the
processor's seconds that each part took for a statement: the clients, the public PostgreSQL and this machine's other
work share the two cores with the proxy, and what they take is not there to be planned with.
"""

from __future__ import annotations

import asyncio
import os
import socket
import statistics
import tempfile
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from benchmarks.engine import ROOT, shop_at
from benchmarks.serving import LOGIN, PASSWORD, Served, connect, serving

_POLICY = ROOT / "policies" / "shop.yaml"
_SCALE = 0.02
_LONG_SESSIONS, _MANY_SESSIONS = 8, 200
_RUNS = 3  # of each number of cores, in turn
_READY = b"Z\0\0\0\5"  # and one byte more
_PAUSE_S = 0.02
_NUMBERS = count(1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One figure of a group. at_most, at_least: what is aimed at; 0 for nothing. load: on the machine at that time."""

    group: str
    name: str
    value: float
    unit: str = "ms"
    at_most: float = 0.0
    at_least: float = 0.0
    load: float = 0.0

    @property
    def is_within(self) -> bool:
        return not (self.at_most and self.value > self.at_most) and not (self.at_least and self.value < self.at_least)

    @property
    def goal(self) -> str:
        if self.at_most:
            return f"<= {self.at_most:g}"
        return f">= {self.at_least:g}" if self.at_least else ""


_LONG = (
    f"count(*) FROM users WHERE age IN ({', '.join(map(str, range(50_000)))})",
    f"count(*) FROM users WHERE {' AND '.join(f'age > {n}' for n in range(20_000))}",
    f"sum(CASE {' '.join(f'WHEN age = {n} THEN {n % 9}' for n in range(5_000))} END) FROM users WHERE TRUE",
    f"{', '.join(f'sum(least(age, {n}))' for n in range(1_500))} FROM users WHERE TRUE",
)


def long_statement(number: int) -> str:
    """One that nobody asked before; each family has its turn."""
    return f"SELECT {_LONG[number % len(_LONG)]} AND age > -{number}"


def figures(data: Path, seconds: float) -> Iterator[Figure]:
    """Waits beside long statements, and the throughput of one and of two cores."""
    environment = {"SHOP_DUCKDB": str(shop_at(data, _SCALE))}
    with _served(environment) as served:
        yield from asyncio.run(_waits(served, seconds))
    yield from _throughput(environment, seconds)


@contextmanager
def _served(environment: dict[str, str], cores: Sequence[int] = ()) -> Iterator[Served]:
    with (
        tempfile.TemporaryDirectory(prefix="bench") as folder,
        serving(Path(folder), _POLICY, environment, sessions=_MANY_SESSIONS + 20, cores=cores) as served,
    ):
        yield served


# --- waits --------------------------------------------------------------------------------------------


async def _waits(served: Served, seconds: float) -> list[Figure]:
    with ExitStack() as stack:
        sessions = [stack.enter_context(_Session.at(served)) for _ in range(_LONG_SESSIONS + 2)]
        *long, public, private = sessions
        for one in sessions:
            await one.ask("SELECT 1")
        await private.ask(_small())
        found = []
        for group in ("quiet", "eight sessions with long statements"):
            is_quiet = group == "quiet"
            answered = Counter[str]()
            noise = [asyncio.create_task(_sending(s, n, answered)) for n, s in enumerate([] if is_quiet else long)]
            waited = await asyncio.gather(
                _asked(public, lambda: "SELECT 1", seconds, _PAUSE_S), _asked(private, _small, seconds, _PAUSE_S)
            )
            for task in noise:
                task.cancel()
            await asyncio.gather(*noise, return_exceptions=True)
            load = os.getloadavg()[0]
            for name, taken, most in zip(("SELECT 1", "small private statement"), waited, (20.0, 150.0), strict=True):
                cuts = statistics.quantiles(taken, n=100)
                found += [
                    Figure(group=group, name=f"{name}, half", value=cuts[49], load=load),
                    Figure(group=group, name=f"{name}, 99 of 100", value=cuts[98], load=load,
                           at_most=0.0 if is_quiet else most),
                    Figure(group=group, name=f"{name}, asked", value=len(taken), unit="times", load=load),
                ]  # fmt: skip
            if not is_quiet:
                found += [Figure(group=group, name=f"long statements {how}", value=times, unit="times")
                          for how, times in answered.items()]  # fmt: skip
        return found


async def _sending(session: _Session, first: int, answered: Counter[str]) -> None:
    """Send one long statement after the other, for ever."""
    for number in count(first, _LONG_SESSIONS + 1):
        is_answered = await session.ask(long_statement(number))
        answered["answered" if is_answered else "refused"] += 1


def _small() -> str:
    return f"SELECT count(*) FROM users WHERE age >= 18 + {next(_NUMBERS)}"


async def _asked(session: _Session, text: Callable[[], str], seconds: float, pause_s: float = 0.0) -> list[float]:
    """Milliseconds of each answer, for so long, with a pause behind each: no statement waits for its own kind."""
    taken, end = [], time.perf_counter() + seconds
    while time.perf_counter() < end:
        started = time.perf_counter()
        if not await session.ask(text()):
            raise RuntimeError("a small statement was refused")
        taken.append((time.perf_counter() - started) * 1e3)
        if pause_s:
            await asyncio.sleep(pause_s)
    return taken


# --- throughput -----------------------------------------------------------------------------------------


def _throughput(environment: dict[str, str], seconds: float) -> Iterator[Figure]:
    cores = sorted(os.sched_getaffinity(0))[:2]
    rates: dict[int, list[float]] = {1: [], 2: []}
    spent: dict[int, dict[str, list[float]]] = {1: {}, 2: {}}
    for _ in range(_RUNS):
        for number, found in rates.items():
            with _served(environment, cores[:number]) as served:
                rate, parts = asyncio.run(_rate(served, seconds / 2))
            found.append(rate)
            for part, value in parts.items():
                spent[number].setdefault(part, []).append(value)
    load = os.getloadavg()[0]
    group = f"{_MANY_SESSIONS} sessions with new small statements"
    for number, rates_of in rates.items():
        of = f"{number} of 2 cores"
        yield Figure(
            group=group, name=f"{of} for the proxy", value=statistics.median(rates_of), unit="a second", load=load
        )
        for part, values in spent[number].items():
            name = f"{of}, processor's time for a statement: {part}"
            yield Figure(group=group, name=name, value=statistics.median(values))
    ratio = statistics.median(two / one for one, two in zip(rates[1], rates[2], strict=True))
    yield Figure(group=group, name="2 cores over 1", value=ratio, unit="times", at_least=1.6, load=load)
    parts = {part: statistics.median(values) for part, values in spent[2].items()}
    yield Figure(group=group, name="2 cores over 1, at most: the proxy's own process plans nothing",
                 value=sum(parts[p] for p in ("proxy", "planning", "public PostgreSQL")) / parts["proxy"],
                 unit="times")  # fmt: skip


async def _rate(served: Served, seconds: float) -> tuple[float, dict[str, float]]:
    """Statements a second, and milliseconds of the processor that each part takes for one."""
    with ExitStack() as stack:
        sessions = [stack.enter_context(_Session.at(served)) for _ in range(_MANY_SESSIONS)]
        await asyncio.gather(*(s.ask(_small()) for s in sessions))
        before, clients, started = _spent(served.pid), time.process_time(), time.perf_counter()
        taken = await asyncio.gather(*(_asked(s, _small, seconds) for s in sessions))
        took, clients = time.perf_counter() - started, time.process_time() - clients
        after, answered = _spent(served.pid), sum(map(len, taken))
    parts = {name: after[name] - before.get(name, 0.0) for name in after} | {"clients": clients}
    return answered / took, {name: 1e3 * seconds / answered for name, seconds in parts.items()}


def _spent(pid: int) -> dict[str, float]:
    """Seconds of the processor, user and system, that each part of a proxy has taken."""
    found = {"proxy": _seconds(pid), "planning": 0.0, "public PostgreSQL": 0.0}
    for below in _below(pid):
        is_planner = b"proxy.workers.nursery" in Path(f"/proc/{below}/cmdline").read_bytes()
        found["planning" if is_planner else "public PostgreSQL"] += _seconds(below)
    return found


def _seconds(pid: int) -> float:
    """Of all threads that live; sessions are many and each takes less than the clock's tick."""
    return sum(int((t / "schedstat").read_text().split()[0]) for t in Path(f"/proc/{pid}/task").iterdir()) / 1e9


def _below(pid: int) -> list[int]:
    """All processes below one."""
    found: list[int] = []
    for task in Path(f"/proc/{pid}/task").iterdir():
        for child in (task / "children").read_text().split():
            found += [int(child), *_below(int(child))]
    return found


# --- a client that costs little -----------------------------------------------------------------------------


class _Session:
    """A session that was opened by a driver, and then sends queries and waits for their end without reading rows."""

    def __init__(self, connected: socket.socket) -> None:
        self._socket = connected

    @classmethod
    @contextmanager
    def at(cls, served: Served) -> Iterator[_Session]:
        address = f"host=127.0.0.1 port={served.port} dbname=shop user={LOGIN} password={PASSWORD} sslmode=disable"
        with connect(address) as client, socket.socket(fileno=os.dup(client.fileno())) as connected:
            connected.setblocking(False)
            yield cls(connected)

    async def ask(self, text: str) -> bool:
        """Send a Query, read until the server is ready for the next, and say whether it was answered."""
        loop, raw = asyncio.get_running_loop(), text.encode() + b"\0"
        sending: Awaitable[None] = loop.sock_sendall(self._socket, b"Q" + (len(raw) + 4).to_bytes(4, "big") + raw)
        await sending
        read = b""
        while read[-6:-1] != _READY:
            more = await loop.sock_recv(self._socket, 2**16)
            read += more
            if not more:
                raise RuntimeError("the proxy has hung up")
        return read[:1] != b"E"
