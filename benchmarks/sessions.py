"""`python -m benchmarks.sessions`: what do a thousand idle and two hundred busy sessions cost, and what limits them?

A proxy of its own serves a small shop. Prints one table of memory and latency and keeps it with the other results;
ends with 1 if a session was lost or an answer is missing.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import resource
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from datetime import UTC, datetime
from itertools import count
from pathlib import Path

import psycopg

from benchmarks.engine import ROOT, shop_at
from benchmarks.serving import LOGIN, PASSWORD, Served, serving

_POLICY = ROOT / "policies" / "shop.yaml"
_RESULTS = Path(__file__).resolve().parent / "results"
_SCALE = 0.02
_AT_ONCE = 20  # connections that are opened side by side
_ROUNDS = 20
Client = psycopg.AsyncConnection[tuple[object, ...]]
Ask = Callable[[Client, str], Awaitable[None]]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.sessions", description=__doc__)
    parser.add_argument("--idle", type=int, default=1000)
    parser.add_argument("--busy", type=int, default=200)
    parser.add_argument("--data", type=Path, default=ROOT / ".state" / "bench")
    parser.add_argument("--write", action="store_true", help=f"keep the figures in {_RESULTS.relative_to(ROOT)}")
    options = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    options.data.mkdir(parents=True, exist_ok=True)
    environment = {"SHOP_DUCKDB": str(shop_at(options.data, _SCALE))}
    places = options.idle + options.busy + 10
    with (
        tempfile.TemporaryDirectory(prefix="bench") as folder,
        serving(Path(folder), _POLICY, environment, sessions=places) as served,
    ):
        figures = asyncio.run(_measure(served, options.idle, options.busy))
    for name, value in figures.items():
        print(f"{name:<58} {value:>12,.2f}")
    if options.write:
        path = _RESULTS / f"{datetime.now(UTC):%Y-%m-%d}-sessions.json"
        path.write_text(json.dumps(figures, indent=2) + "\n")
    return 0 if figures["sessions lost"] == 0 else 1


async def _measure(served: Served, idle: int, busy: int) -> dict[str, float]:
    """All figures of one run; times in milliseconds, memory in MB."""
    found: dict[str, float] = {"idle sessions": idle, "busy sessions": busy}
    async with AsyncExitStack() as open_ones:
        first = await _connected(open_ones, served, 1)
        await _asked(first, "", 20, _new_count)
        before = _memory(served.pid)
        started = time.perf_counter()
        resting = await _connected(open_ones, served, idle)
        found["opening one session"] = (time.perf_counter() - started) * 1e3 / max(1, idle)
        held = _memory(served.pid)
        found["proxy, MB before"], found["public PostgreSQL, MB before"] = before
        found["proxy, MB for an idle session"] = (held[0] - before[0]) / max(1, idle)
        found["public PostgreSQL, MB for an idle session"] = (held[1] - before[1]) / max(1, idle)
        found |= _quantiles("select 1, one busy session", await _asked(first, "alone", 100, _select_1))
        found |= _quantiles("new count, one busy session", await _asked(first, "alone", 50, _new_count))
        working = await _connected(open_ones, served, busy)
        started = time.perf_counter()
        found |= _quantiles(f"new count, {busy} busy sessions", await _asked(working, "many", _ROUNDS, _new_count))
        found["new counts a second"] = busy * _ROUNDS / (time.perf_counter() - started)
        found |= _quantiles(f"select 1, {busy} busy sessions", await _asked(working, "many", 5 * _ROUNDS, _select_1))
        found["proxy, MB in the end"], found["public PostgreSQL, MB in the end"] = _memory(served.pid)
        found["sessions lost"] = sum([not await _lives(client) for client in (*first, *resting, *working)])
    return found


async def _connected(open_ones: AsyncExitStack, served: Served, number: int) -> list[Client]:
    address = f"host=127.0.0.1 port={served.port} dbname=shop user={LOGIN} password={PASSWORD} connect_timeout=120"
    turn = asyncio.Semaphore(_AT_ONCE)

    async def connect() -> Client:
        async with turn:
            return await psycopg.AsyncConnection.connect(address, autocommit=True)

    clients = await asyncio.gather(*(connect() for _ in range(number)))
    for client in clients:
        open_ones.push_async_callback(client.close)
    return clients


_NUMBERS = count()


async def _new_count(client: Client, name: str) -> None:
    """A statement that nobody has asked before."""
    sql = f"SELECT count(*) /* {name} */ FROM users WHERE age >= 18 + {next(_NUMBERS)}"
    assert len(await (await client.execute(sql.encode())).fetchall()) == 1


async def _select_1(client: Client, _name: str) -> None:
    assert await (await client.execute("select 1")).fetchone() == (1,)


async def _asked(clients: list[Client], name: str, times: int, ask: Ask) -> list[float]:
    """Milliseconds of each answer while all the clients ask side by side."""
    taken: list[float] = []

    async def work(client: Client) -> None:
        for _ in range(times):
            started = time.perf_counter()
            await ask(client, name)
            taken.append((time.perf_counter() - started) * 1e3)

    await asyncio.gather(*(work(client) for client in clients))
    return taken


def _quantiles(name: str, taken: list[float]) -> dict[str, float]:
    cuts = statistics.quantiles(taken, n=100)
    return {f"{name}, median": cuts[49], f"{name}, 99 of 100": cuts[98]}


async def _lives(client: Client) -> bool:
    try:
        await _select_1(client, "")
    except psycopg.Error:
        return False
    return True


# --- memory ---------------------------------------------------------------------------------------------------


def _memory(pid: int) -> tuple[float, float]:
    """Megabytes of the proxy, and of its PostgreSQL servers with all their backends; shared pages in parts."""
    below = _below(pid)
    return _share_mb(pid), sum(_share_mb(one) for one in below)


def _below(pid: int) -> list[int]:
    """All processes below one."""
    found: list[int] = []
    for task in Path(f"/proc/{pid}/task").iterdir():
        for child in (task / "children").read_text().split():
            found += [int(child), *_below(int(child))]
    return found


def _share_mb(pid: int) -> float:
    text = Path(f"/proc/{pid}/smaps_rollup").read_text()
    return int(text.split("\nPss:")[1].split()[0]) / 1024


if __name__ == "__main__":
    sys.exit(main())
