"""The public PostgreSQL dies: its sessions are told, a new one takes its place, no charge is lost."""

from __future__ import annotations

import os
import shutil
import signal
import time
from pathlib import Path
from threading import Semaphore, Thread

import psycopg
import pytest

from tests.farewell import Farewell, farewell_of
from tests.faults.proxied import (
    COUNT,
    ENDLESS,
    PATIENCE_S,
    Client,
    Proxied,
    Site,
    distinct_count,
    is_at_rest,
    running,
    wait_until,
)

GONE = "57P01"


def connect_again(proxied: Proxied) -> Client:
    """As soon as sessions are taken again; until then each refusal is a clean one."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        try:
            return proxied.connect()
        except psycopg.OperationalError as error:
            told = str(error)
        assert "the public PostgreSQL" in told
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.mark.parametrize("number", [signal.SIGKILL, pytest.param(signal.SIGQUIT, marks=pytest.mark.long)])
def test_a_killed_front_ends_its_sessions_cleanly_and_the_next_one_works(site: Site, number: int) -> None:
    with running(site) as proxied, proxied.connect() as idle, proxied.connect("bob") as busy:
        idle.execute(distinct_count(1).encode())
        told: list[Farewell] = []

        def wait_for_ever() -> None:
            try:
                busy.execute(ENDLESS.encode())
            except psycopg.Error as error:
                told.append(Farewell(error.sqlstate, str(error)))

        waiting = Thread(target=wait_for_ever)
        waiting.start()
        wait_until(lambda: site.spent("tiny/bob") > 0)
        (front,) = proxied.fronts()
        os.kill(front, number)
        waiting.join(PATIENCE_S)
        told.append(farewell_of(idle))
        assert [each.sqlstate for each in told] == [GONE, GONE]
        assert all(each.message.startswith("terminating connection") for each in told)
        assert site.spent() == 2 * site.price()
        with connect_again(proxied) as client:
            assert client.execute(distinct_count(1).encode()).rowcount == 1
            assert client.execute(COUNT.encode()).rowcount == 1
        assert site.spent() == 3 * site.price()
        assert "front of tiny: crashed" in proxied.said()
        wait_until(lambda: "front of tiny: restarted" in proxied.said())
        assert is_at_rest(proxied.pid)  # what the lost session asked of the engine has stopped


def home_of(pid: int) -> Path:
    """The directory of a front, from where its server works."""
    return Path(os.readlink(f"/proc/{pid}/cwd")).parent


@pytest.mark.parametrize("what", ["socket", "data", "everything"])
def test_a_front_that_nobody_can_reach_is_built_anew(site: Site, what: str) -> None:
    """Also if something that cleans up has removed all that it is made of."""
    with running(site) as proxied, proxied.connect() as old:
        (front,) = proxied.fronts()
        home = home_of(front)
        match what:
            case "socket":
                (home / "s" / ".s.PGSQL.5432").unlink()
            case "data":
                shutil.rmtree(home / "data")
            case _:
                shutil.rmtree(home.parent)
        wait_until(lambda: "front of tiny: restarted" in proxied.said())
        assert farewell_of(old).sqlstate == GONE
        with connect_again(proxied) as client:
            assert client.execute(COUNT.encode()).rowcount == 1
        (line,) = [line for line in proxied.said().splitlines() if "front of tiny: lost" in line]
        assert "its socket or its data directory is gone" in line
        assert proxied.fronts() != (front,)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGQUIT])
def test_sessions_that_read_rows_hear_that_the_front_has_gone(site: Site, number: int) -> None:
    """Wherever in a row the stream was cut."""
    told: list[str | None] = []

    def read(client: Client, ready: Semaphore) -> None:
        try:
            for _ in client.cursor().stream(b"select repeat('x', 300), generate_series(1, 100000000)"):
                ready.release()
        except psycopg.Error as error:
            told.append(error.sqlstate)

    with running(site) as proxied:
        ready, clients = Semaphore(0), [proxied.connect() for _ in range(8)]
        readers = [Thread(target=read, args=(client, ready)) for client in clients]
        for reader in readers:
            reader.start()
        for _ in range(5000):
            ready.acquire()
        (front,) = proxied.fronts()
        os.kill(front, number)
        for reader, client in zip(readers, clients, strict=True):
            reader.join(PATIENCE_S)
            client.close()
        wait_until(lambda: "front of tiny: restarted" in proxied.said())
    assert told == [GONE] * len(readers)


READ, WAIT = (
    "select repeat('x', 300), generate_series(1, 100000000)",
    "select count(*) from generate_series(1, 100000) a, generate_series(1, 100000) b",
)


def told_when_the_front_dies(proxied: Proxied, each: int) -> list[str | None]:
    """What sessions hear when it is killed: as many that are idle, in a transaction, waiting for it, and reading."""
    quiet = [connect_again(proxied) for _ in range(2 * each)]
    for client in quiet[each:]:
        client.execute(b"begin")
    told: list[str | None] = []

    def run(client: Client, sql: str, ready: Semaphore) -> None:
        try:
            for _ in client.cursor().stream(sql.encode()):
                ready.release()
        except psycopg.Error as error:
            told.append(error.sqlstate)

    ready, others = Semaphore(0), [connect_again(proxied) for _ in range(2 * each)]
    threads = [Thread(target=run, args=(c, sql, ready)) for c, sql in zip(others, (READ, WAIT) * each, strict=True)]
    for thread in threads:
        thread.start()
    for _ in range(1000 * each):
        ready.acquire()
    (front,) = proxied.fronts()
    os.kill(front, signal.SIGKILL)
    told += [farewell_of(client).sqlstate for client in quiet]
    for thread, client in zip(threads, others, strict=True):
        thread.join(PATIENCE_S)
        client.close()
    return told


@pytest.mark.parametrize("rounds", [2, pytest.param(20, marks=pytest.mark.long)])
def test_each_of_24_sessions_hears_again_and_again_that_the_front_has_gone(site: Site, rounds: int) -> None:
    with running(site) as proxied:
        for number in range(1, rounds + 1):
            assert told_when_the_front_dies(proxied, 6) == [GONE] * 24
            wait_until(lambda n=number: proxied.said().count("front of tiny: restarted") >= n)  # type: ignore[misc]


def segments_made_by(pid: int) -> int:
    rows = [line.split() for line in Path("/proc/sysvipc/shm").read_text().splitlines()]
    maker = rows[0].index("cpid")
    return sum(row[maker] == str(pid) for row in rows[1:])


def test_a_killed_front_leaves_no_shared_memory(site: Site) -> None:
    with running(site) as proxied:
        for count in range(1, 4):
            (front,) = proxied.fronts()
            assert segments_made_by(front) == 1
            os.kill(front, signal.SIGKILL)
            wait_until(lambda n=count: proxied.said().count("front of tiny: restarted") >= n)  # type: ignore[misc]
            assert segments_made_by(front) == 0


def test_the_next_start_removes_the_shared_memory_of_a_killed_proxy_and_front(site: Site) -> None:
    with running(site) as proxied:
        (front,) = proxied.fronts()
        os.kill(front, signal.SIGSTOP)  # so that it cannot clean up when its proxy ends
        proxied.signal(signal.SIGKILL)
        proxied.wait()
        os.kill(front, signal.SIGKILL)
        assert segments_made_by(front) == 1
    with running(site):
        assert segments_made_by(front) == 0
