"""Statements are planned in processes of their own: what if one ends, or its proxy does?"""

from __future__ import annotations

import os
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psycopg
import pytest

from tests.faults.proxied import PATIENCE_S, Client, Proxied, Site, children_of, running

LONG = f"select count(*) from people where {' and '.join(f'(age + {n}) * 2 > {n}' for n in range(30_000))}"


def thinkers(proxied: Proxied) -> list[int]:
    """The processes that plan, and where they come from."""
    nurseries = [pid for pid in children_of(proxied.pid) if b"proxy.workers.nursery" in _command(pid)]
    return [*nurseries, *(child for pid in nurseries for child in children_of(pid))]


def _command(pid: int) -> bytes:
    return Path(f"/proc/{pid}/cmdline").read_bytes()


def until_none_is_left(pids: list[int]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while any(map(is_there, pids)):
        assert time.monotonic() < deadline, "they do not end"
        time.sleep(0.01)


def is_there(pid: int) -> bool:
    """Whether such a process runs; one that has closed its files is a zombie, or no more."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


def ask(client: Client, least: int) -> None:
    ((found,),) = client.execute(f"select count(*) from people where age > {least}".encode()).fetchall()
    assert isinstance(found, int)


def test_a_planner_that_is_killed_is_replaced(site: Site) -> None:
    with running(site) as proxied, proxied.connect() as client:
        for number in range(3):
            ask(client, number)
            planners = thinkers(proxied)[1:]
            assert planners
            for pid in planners:
                os.kill(pid, signal.SIGKILL)
            until_none_is_left(planners)
        nursery, *_ = thinkers(proxied)  # which may have replaced one already
        os.kill(nursery, signal.SIGKILL)
        until_none_is_left([nursery])
        ask(client, 10)
        assert client.execute("select 1").fetchall() == [(1,)]


def test_a_planner_that_is_killed_in_the_middle_is_one_clear_error(site: Site) -> None:
    with running(site) as proxied, proxied.connect() as client, ThreadPoolExecutor(1) as thread:
        ask(client, 0)
        before = set(thinkers(proxied))
        asked = thread.submit(client.execute, LONG.encode())
        (planner,) = until_more(proxied, before)
        os.kill(planner, signal.SIGKILL)
        with pytest.raises(
            psycopg.errors.SystemError, match="the process that planned this statement has ended"
        ) as lost:
            asked.result(PATIENCE_S)
        assert lost.value.diag.message_hint
        ask(client, 1)
    assert "a process that plans has ended: by SIGKILL" in proxied.said()
    assert "SELECT" not in proxied.said()


def until_more(proxied: Proxied, before: set[int]) -> list[int]:
    deadline = time.monotonic() + PATIENCE_S
    while not (more := [pid for pid in thinkers(proxied) if pid not in before]):
        assert time.monotonic() < deadline, "nobody plans"
        time.sleep(0.001)
    return more


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_no_planner_outlives_its_proxy(site: Site, number: signal.Signals) -> None:
    with running(site) as proxied:
        with proxied.connect() as client:
            ask(client, 0)
            found = thinkers(proxied)
            assert len(found) > 1
            proxied.signal(number)
            proxied.wait()
        until_none_is_left(found)


def test_others_are_answered_while_a_long_statement_is_planned(site: Site) -> None:
    """Its planner stands still, so that it is under way for as long as others ask."""
    with running(site) as proxied, proxied.connect() as client, ThreadPoolExecutor(1) as thread:
        with proxied.connect() as other:
            ask(other, 0)
            before = set(thinkers(proxied))
            asked = thread.submit(client.execute, LONG.encode())
            (planner,) = until_more(proxied, before)
            os.kill(planner, signal.SIGSTOP)
            assert other.execute("select 1").fetchall() == [(1,)]
            for least in range(1, 4):
                ask(other, least)
            assert not asked.done()
            os.kill(planner, signal.SIGKILL)
        with pytest.raises(psycopg.errors.SystemError):
            asked.result(PATIENCE_S)
