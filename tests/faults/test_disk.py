"""A disk that fills up while the proxy runs: statements are refused, the books stay right, space heals everything."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from itertools import count
from pathlib import Path
from threading import Thread

import psycopg
import pytest

from tests.faults.proxied import (
    PATIENCE_S,
    Client,
    Proxied,
    Site,
    distinct_count,
    hushql,
    launch,
    launch_program,
    refusal_of,
    running,
    wait_until,
    wait_until_it_listens,
)

LEDGER_FAILED = "58030"
PAGE = 4096


@contextmanager
def no_more_space(proxied: Proxied, size: int) -> Iterator[None]:
    """The running proxy cannot write beyond `size` bytes of any file."""
    soft, hard = resource.prlimit(proxied.pid, resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))
    try:
        yield
    finally:
        resource.prlimit(proxied.pid, resource.RLIMIT_FSIZE, (soft, hard))


def ask(client: Client, number: int) -> object:
    row = client.execute(distinct_count(number).encode()).fetchone()
    assert row is not None
    return row[0]


def check_healed(proxied: Proxied, client: Client, first: int) -> None:
    """There is enough space again: an answer, its charge, and books that verify."""
    site = proxied.site
    before = site.spent()
    ask(client, first)
    assert site.spent() == before + site.price()
    assert hushql("ledger", "verify", "--state", str(site.state)).returncode == 0


def check_refused(client: Client, number: int) -> None:
    with pytest.raises(psycopg.Error) as refused:
        ask(client, number)
    assert refused.value.sqlstate == LEDGER_FAILED
    assert "free space" in str(refused.value.diag.message_hint)
    assert not refused.value.diag.message_detail
    assert "/" not in str(refused.value)


def test_a_charge_that_finds_the_disk_full_is_refused(site: Site) -> None:
    with running(site) as proxied, proxied.connect() as client:
        told = ask(client, 1)
        with no_more_space(proxied, PAGE):
            for number in (2, 3):
                check_refused(client, number)
            assert client.execute("select 1").fetchone() == (1,)
        assert site.spent() <= 3 * site.price()
        assert ask(client, 1) == told
        check_healed(proxied, client, 4)


def test_a_charge_cut_off_in_its_middle_is_refused_and_the_next_one_finds_its_way(site: Site) -> None:
    """The log of the ledger cannot grow, everything else can: recovery needs no more space than there is."""
    with running(site) as proxied, proxied.connect() as client:
        ask(client, 1)
        with no_more_space(proxied, (site.state / "ledger.db-wal").stat().st_size):
            check_refused(client, 2)
            check_healed(proxied, client, 3)
        check_healed(proxied, client, 4)


def _mount(folder: Path) -> bool:
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m,mode=0700", "tmpfs", str(folder)], check=False)
    return done.returncode == 0


@pytest.mark.long
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount a small disk; the limit on files is tested above")
def test_a_disk_that_fills_up_by_statements_refuses_them_and_heals(site: Site) -> None:
    """The same on a file system of one mebibyte, filled to the last byte by the ledger itself."""
    site.state.mkdir(mode=0o700)
    assert _mount(site.state)
    try:
        with running(site) as proxied, proxied.connect() as client:
            answered = fill(client)
            spent = site.spent()
            assert answered * site.price() <= spent <= (answered + 1) * site.price()
            with pytest.raises(psycopg.Error):
                ask(client, answered + 1)
            subprocess.run(["mount", "-o", "remount,size=8m", str(site.state)], check=True)
            check_healed(proxied, client, answered + 2)
        with running(site) as again, again.connect() as client:
            check_healed(again, client, answered + 3)
    finally:
        subprocess.run(["umount", str(site.state)], check=True)


def fill(client: Client) -> int:
    """Ask until the first refusal; the number of answers."""
    for number in range(100_000):
        refused = refusal_of(partial(ask, client, number))
        if refused is not None:
            assert refused.sqlstate == LEDGER_FAILED
            return number
    raise AssertionError("the disk is never full")


def test_a_disk_without_space_for_anything_is_refused_at_the_start_and_heals(site: Site) -> None:
    """No file may grow past one page."""
    started = launch_program(site, "-m", "tests.faults.small_files", str(PAGE))
    try:
        assert started.wait() in (1, 2)
    finally:
        started.end()
    assert len(started.said().splitlines()) == 1, started.said()
    assert "free space" in started.said()
    restarted = launch(site)
    try:
        wait_until_it_listens(restarted)
    finally:
        restarted.end()


def test_a_mapped_file_that_turns_bad_ends_the_proxy_with_a_word_and_loses_no_charge(site: Site) -> None:
    """SQLite maps the file beside the ledger's log: what cannot be read of it is a SIGBUS, which nothing survives."""
    started = wait_until_it_listens(launch(site))
    with started.connect() as client:
        ask(client, 1)
        os.truncate(site.state / "ledger.db-shm", 0)
        refused = refusal_of(lambda: ask(client, 2))
        assert refused is not None
    assert started.wait() == -signal.SIGBUS
    assert "Fatal Python error: Bus error" in started.said()
    with running(site) as proxied, proxied.connect() as client:
        assert site.price() <= site.spent() <= 2 * site.price()
        check_healed(proxied, client, 3)


@pytest.mark.parametrize("rounds", [2, pytest.param(20, marks=pytest.mark.long)])
def test_a_mapped_file_that_turns_bad_in_the_middle_of_charges_loses_none_again_and_again(
    site: Site, rounds: int
) -> None:
    asked, answered, numbers = 0, 0, count()
    for place in range(rounds):
        started = wait_until_it_listens(launch(site))
        clients = [Charging(started, numbers) for _ in range(4)]
        wait_until(lambda made=clients: min(c.answered for c in made) > 3)  # type: ignore[misc]
        time.sleep(place % 7 / 1000)
        os.truncate(site.state / "ledger.db-shm", (place % 2) * PAGE)
        for client in clients:
            client.join(PATIENCE_S)
        assert started.wait() == -signal.SIGBUS
        assert "Fatal Python error: Bus error" in started.said()
        asked, answered = asked + sum(c.asked for c in clients), answered + sum(c.answered for c in clients)
        with running(site) as proxied, proxied.connect() as again:
            assert answered * site.price() <= site.spent() <= asked * site.price()
            check_healed(proxied, again, next(numbers))
            asked, answered = asked + 1, answered + 1


class Charging(Thread):
    """A client that asks new statements until its session ends."""

    def __init__(self, proxied: Proxied, numbers: Iterator[int]) -> None:
        super().__init__()
        self.asked = self.answered = 0
        self._proxied, self._numbers = proxied, numbers
        self.start()

    def run(self) -> None:
        with self._proxied.connect() as client, suppress(psycopg.OperationalError):
            while True:
                self.asked += 1
                ask(client, next(self._numbers))
                self.answered += 1
