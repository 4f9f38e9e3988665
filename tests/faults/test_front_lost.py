"""The public PostgreSQL dies: its sessions are told, a new one takes its place, no charge is lost."""

from __future__ import annotations

import os
import signal
import time
from threading import Thread

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
