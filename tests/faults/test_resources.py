"""What a proxy holds on to: nothing grows with the statements answered, and nothing stays of sessions that are over."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from itertools import count

import psycopg
import pytest

from proxy import app
from proxy.config import Listen, ServeConfig
from tests.faults.proxied import (
    COUNT,
    DATASET,
    ENDLESS,
    LOGINS,
    PASSWORD,
    PATIENCE_S,
    Client,
    Proxied,
    Site,
    children_of,
    descriptors_of,
    distinct_count,
    resident_kib,
    running,
    threads_of,
    wait_until,
)

GROWTH_KIB = 20_000
PATIENT = {"statement_timeout": "10min", "login_timeout": "2min"}
MANY = {"max_sessions": 200, "max_sessions_per_user": 100}


def backends(proxied: Proxied) -> int:
    """Processes of the public PostgreSQL below its first."""
    (front,) = proxied.fronts()
    return len(children_of(front))


def ask(client: Client, first: int, times: int) -> None:
    """Different statements, different answers; one in ten is a repeat, one in ten public."""
    for number in range(first, first + times):
        client.execute(distinct_count(number - number % 10).encode() if number % 5 == 0 else b"select 1")
        client.execute(distinct_count(number).encode())


@pytest.mark.long
def test_memory_is_flat_over_two_thousand_statements(site: Site) -> None:
    """After the first ones, which fill the caches that there are."""
    with running(site) as proxied, proxied.connect() as client:
        ask(client, 0, 500)
        before, threads, descriptors = resident_kib(proxied.pid), threads_of(proxied.pid), descriptors_of(proxied.pid)
        for step in range(1, 5):
            ask(client, 500 * step, 500)
        assert resident_kib(proxied.pid) - before < GROWTH_KIB
        assert threads_of(proxied.pid) <= max(threads, 40)
        assert descriptors_of(proxied.pid) <= descriptors + 5


def test_sessions_leave_nothing_behind(site: Site) -> None:
    """Forty that end well, forty that just hang up, ten that are lost in a statement."""
    site.write_policy(limits=MANY)
    with running(site) as proxied:
        proxied.connect().close()
        with proxied.connect() as client:
            client.execute(COUNT.encode())
        wait_until(lambda: backends(proxied) <= 5)
        started = backends(proxied), descriptors_of(proxied.pid)
        with ExitStack() as open_ones:
            for number in range(40):
                client = open_ones.enter_context(proxied.connect(LOGINS[number % 4]))
                client.execute(COUNT.encode())
        for number in range(40):
            client = proxied.connect(LOGINS[number % 4])
            client.pgconn.finish()
            client.close()
        wait_until(lambda: (backends(proxied), descriptors_of(proxied.pid)) <= started)
        assert threads_of(proxied.pid) <= 60


async def talk(port: int, number: int) -> None:
    """A session that does a little of everything; every third hangs up in the middle."""
    dsn = f"host=127.0.0.1 port={port} dbname={DATASET} user={LOGINS[number % 4]} password='{PASSWORD}'"
    client = await psycopg.AsyncConnection.connect(dsn, autocommit=True)
    try:
        await client.execute(distinct_count(number).encode())
        await client.execute("set statement_timeout = 100")
        if number % 2:
            with pytest.raises(psycopg.errors.QueryCanceled):
                await client.execute(f"{ENDLESS} where age < {number}".encode())
        if number % 3:
            client.pgconn.send_query(f"{ENDLESS} where age <= {number}".encode())
    finally:
        await client.close()


def test_no_task_or_thread_outlives_its_session_or_the_proxy(site: Site) -> None:
    """The proxy in this process, where its tasks can be counted."""
    threads = set(threading.enumerate())
    config = ServeConfig(policies=(site.policy,), state=site.state, listen=Listen("127.0.0.1", 0))

    async def check() -> None:
        proxied = app.Proxy(config)
        server = await proxied.start()
        try:
            before = len(asyncio.all_tasks())
            await asyncio.gather(*(talk(server.port, number) for number in range(12)))
            async with asyncio.timeout(PATIENCE_S):
                while server.session_counts().total() or len(asyncio.all_tasks()) > before:  # noqa: ASYNC110
                    await asyncio.sleep(0.02)
        finally:
            await proxied.stop()
        assert asyncio.all_tasks() == {asyncio.current_task()}

    with asyncio.Runner() as runner:
        runner.run(check())
    assert set(threading.enumerate()) <= threads
    assert not list(site.state.glob("front-*"))


@pytest.mark.long
def test_a_thousand_idle_and_two_hundred_busy_sessions(site: Site) -> None:
    """Every busy session gets all its answers, every idle one is alive in the end, and all of it goes away.

    `benchmarks/sessions.py` says what they cost.
    """
    site.write_policy(limits={"max_sessions": 1300, "max_sessions_per_user": 400, **PATIENT})
    numbers = count()

    def work(login: str) -> int:
        with proxied.connect(login) as client:
            for _ in range(10):
                client.execute(distinct_count(next(numbers)).encode())
        return 10

    with running(site) as proxied:
        before = backends(proxied), descriptors_of(proxied.pid)
        with ExitStack() as open_ones, ThreadPoolExecutor(200) as threads:
            idle = [open_ones.enter_context(proxied.connect(LOGINS[i % 4])) for i in range(1000)]
            held = resident_kib(proxied.pid)
            answers = sum(threads.map(work, [LOGINS[i % 4] for i in range(200)]))
            assert answers == 2000
            assert site.spent() == 2000 * site.price()
            for client in idle:
                assert client.execute("select 1").fetchone() == (1,)
            assert resident_kib(proxied.pid) - held < 4 * GROWTH_KIB
        wait_until(lambda: backends(proxied) <= before[0])
        wait_until(lambda: descriptors_of(proxied.pid) <= before[1] + 5)
