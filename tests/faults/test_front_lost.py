"""The public PostgreSQL dies: its sessions are told, a new one takes its place, no charge is lost."""

from __future__ import annotations

import os
import signal
import time
from threading import Thread

import psycopg
import pytest

from tests.faults.proxied import COUNT, ENDLESS, PATIENCE_S, Client, Proxied, Site, distinct_count, is_at_rest, running

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
        errors: list[psycopg.Error] = []

        def wait_for_ever() -> None:
            try:
                busy.execute(ENDLESS.encode())
            except psycopg.Error as error:
                errors.append(error)

        waiting = Thread(target=wait_for_ever)
        waiting.start()
        while site.spent("tiny/bob") == 0:
            time.sleep(0.01)
        (front,) = proxied.fronts()
        os.kill(front, number)
        waiting.join(PATIENCE_S)
        with pytest.raises(psycopg.OperationalError) as told:
            idle.execute("select 1")
        for error in (told.value, *errors):
            assert error.sqlstate == GONE
            assert str(error).startswith("terminating connection")
        assert site.spent() == 2 * site.price()
        with connect_again(proxied) as client:
            assert client.execute(distinct_count(1).encode()).rowcount == 1
            assert client.execute(COUNT.encode()).rowcount == 1
        assert site.spent() == 3 * site.price()
        assert "front of tiny: crashed" in proxied.said()
        assert "front of tiny: restarted" in proxied.said()
        assert is_at_rest(proxied.pid)  # what the lost session asked of the engine has stopped
