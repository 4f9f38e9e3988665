"""The private PostgreSQL stops, refuses, crashes or loses its clients: what was never drawn is not paid for twice."""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from threading import Thread

import psycopg
import pytest

from proxy.ledger.postgres.books import inspect_at
from tests import places
from tests.faults.outages import (
    AGAIN,
    AWAY,
    GATE,
    NOTHING,
    STAYS,
    Asking,
    Outside,
    gated,
    lost_at_the_gate,
    outside,
    served_from,
    until_waiting,
)
from tests.faults.proxied import (
    COUNT,
    DATASET,
    Proxied,
    Site,
    distinct_count,
    hushql,
    launch_program,
    refusal_of,
    running,
    wait_until_it_listens,
)
from tests.unit.ledger.server import running_database


@pytest.fixture(scope="module")
def there() -> Iterator[Outside]:
    with outside() as made:
        yield made


@pytest.fixture
def far(template: Site, there: Outside, tmp_path: Path) -> Site:
    if there.server.process.poll() is not None:  # a test failed while it was away
        there.start()
    return served_from(template, there, tmp_path / "far")


def verified(site: Site) -> None:
    done = hushql("ledger", "verify", "--state", str(site.state))
    assert done.returncode == 0, done.stderr


def test_dashboards_that_refresh_during_an_outage_pay_nothing(far: Site, there: Outside) -> None:
    """50 tries of one statement and 20 other ones, over connections that were open and new ones, then it is back."""
    with running(far) as proxied, proxied.connect() as client:
        client.execute(distinct_count(1000).encode())
        shown, price = client.execute(distinct_count(1000).encode()).fetchall(), far.price()
        assert far.spent() == price
        there.stop()
        asked = [COUNT] * 50 + [distinct_count(number) for number in range(20)]
        for number, sql in enumerate(asked):
            if number % 10:
                with pytest.raises(psycopg.Error) as failed:
                    client.execute(sql.encode())
                diag = failed.value.diag
                assert (diag.sqlstate, diag.message_primary, diag.message_detail) == ("58000", AWAY, NOTHING)
            else:
                assert Asking(proxied, sql, "bob").told() == ("58000", AWAY, NOTHING)
        assert client.execute(distinct_count(1000).encode()).fetchall() == shown
        assert far.spent() == price
        assert far.report().entries == 2  # what is promised, and one charge
        there.start()
        for sql in dict.fromkeys(asked):
            assert client.execute(sql.encode()).rowcount == 1
        assert far.spent() == 22 * price
        assert client.execute("select count(*) from hush.history where outcome <> 'answered'").fetchone() == (0,)
    assert proxied.said().count("tiny: private PostgreSQL failed: unreachable, SQLSTATE") == 70
    verified(far)


def test_a_server_that_takes_no_session_costs_nothing(far: Site, there: Outside) -> None:
    with running(far) as proxied, proxied.connect() as client, there.owner() as owner:
        for refuse, allow in (
            ("alter role reader nologin", "alter role reader login"),
            ("alter role reader connection limit 0", "alter role reader connection limit -1"),
            ("revoke connect on database tiny from public", "grant connect on database tiny to public"),
        ):
            owner.execute(refuse.encode())
            there.end_sessions()
            with pytest.raises(psycopg.Error) as failed:
                client.execute(COUNT)
            assert failed.value.diag.message_detail == NOTHING
            owner.execute(allow.encode())
        assert far.report().entries == 1
        assert client.execute(COUNT).rowcount == 1


def test_made_up_rows_are_the_same_while_the_engine_is_away(template: Site, there: Outside, tmp_path: Path) -> None:
    privacy = {"unit": "person", "delta": 1e-6, "query_epsilon": 1, "time_grid": "0ms", "raw_select": "made_up"}
    shown = served_from(template, there, tmp_path / "shown", privacy=privacy)
    with running(shown) as proxied, proxied.connect() as client:
        before = client.execute("SELECT * FROM people").fetchall()
        there.stop()
        assert client.execute("SELECT * FROM people").fetchall() == before
        assert len(before) == 100
        with pytest.raises(psycopg.Error):
            client.execute(COUNT)
        there.start()
        assert client.execute("SELECT * FROM people").fetchall() == before
    assert shown.spent() == 0


def test_a_way_that_is_lost_in_the_middle_is_paid_for_once_in_three_attempts(far: Site, there: Outside) -> None:
    with running(far) as proxied:
        told = [lost_at_the_gate(proxied, there, gated(1)) for _ in range(3)]
        assert told == [("58000", AWAY, AGAIN), ("58000", AWAY, AGAIN), ("58000", AWAY, STAYS)]
        # each client is a session of its own, which pays as for any answer that is new to it
        assert [far.spent(name) for name in (DATASET, "tiny/ann")] == [far.price()] * 2
        assert lost_at_the_gate(proxied, there, gated(1)) == ("58000", AWAY, AGAIN)
        assert far.spent() == 2 * far.price()
        assert len(Asking(proxied, gated(1)).answered()) == 1
        assert far.spent() == far.spent("tiny/ann") == 2 * far.price()
    assert "private PostgreSQL failed: unreachable, SQLSTATE 57P01 (AdminShutdown)" in proxied.said()
    verified(far)


def test_a_server_that_crashes_in_the_middle_is_paid_for_once(far: Site, there: Outside) -> None:
    with running(far) as proxied:
        with there.shut() as owner:
            asking = Asking(proxied, gated(2))
            until_waiting(owner)
            found = owner.execute(
                "select pid from pg_stat_activity where usename = 'reader' and wait_event_type = 'Lock'"
            )
            os.kill(int(str(found.fetchall()[0][0])), signal.SIGKILL)
            assert asking.told() == ("58000", AWAY, AGAIN)
        assert "private PostgreSQL failed: lost, SQLSTATE" in proxied.said()
        with pytest.raises(psycopg.OperationalError):
            while True:  # it starts anew, and ends all sessions first
                owner.execute("select 1")
        there.stop()
        there.start()
        assert len(Asking(proxied, gated(2)).answered()) == 1
        assert far.spent() == far.spent("tiny/ann") == far.price()
    verified(far)


def test_cancels_and_time_limits_are_paid_for_each_time(template: Site, there: Outside, tmp_path: Path) -> None:
    far = served_from(template, there, tmp_path / "far", limits={"statement_timeout": "3s"})
    with running(far) as proxied, there.shut() as owner:
        assert Asking(proxied, gated(3)).told()[0] == "57014"
        until_waiting(owner, 0)
        with proxied.connect() as client:
            asking = Thread(target=refusal_of, args=[partial(client.execute, gated(3).encode())])
            asking.start()
            until_waiting(owner)
            client.cancel_safe()
            asking.join()
        until_waiting(owner, 0)
        hanging = proxied.connect()
        asking = Thread(target=refusal_of, args=[partial(hanging.execute, gated(3).encode())])
        asking.start()
        until_waiting(owner)
        with socket.socket(fileno=os.dup(hanging.fileno())) as way:
            way.shutdown(socket.SHUT_RDWR)
        until_waiting(owner, 0)
        asking.join()
        assert far.spent() == far.spent("tiny/ann") == 3 * far.price()
        assert far.report().entries == 4


def test_a_proxy_that_is_killed_between_the_end_of_an_attempt_and_its_answer(far: Site, there: Outside) -> None:
    """What it wrote is there, and its client was told nothing: asked again, it costs nothing."""
    dying = wait_until_it_listens(launch_program(far, "-m", "tests.faults.dying"))
    try:
        with there.shut() as owner:
            asking = Asking(dying, gated(4))
            until_waiting(owner)
            there.end_sessions()
            asking.join()
            assert isinstance(asking.error, psycopg.OperationalError)
            assert asking.error.sqlstate is None
        assert dying.process.wait(60) == -signal.SIGKILL
    finally:
        dying.end()
    assert far.spent() == far.price()
    assert far.report().entries == 3
    with running(far) as proxied:
        assert len(Asking(proxied, gated(4)).answered()) == 1
    assert far.spent() == far.price()
    verified(far)


def test_a_proxy_that_is_killed_in_the_middle_of_an_attempt_pays_again(far: Site, there: Outside) -> None:
    with running(far) as first, there.shut() as owner:
        asking = Asking(first, gated(5))
        until_waiting(owner)
        first.process.kill()
        first.process.wait()
        asking.join()
        there.end_sessions()
    with running(far) as proxied:
        assert len(Asking(proxied, gated(5)).answered()) == 1
    assert far.spent() == 2 * far.price()
    verified(far)


# --- several proxies ------------------------------------------------------------------------------------------


def test_two_proxies_race_for_what_may_be_attempted_once_more(template: Site, there: Outside, tmp_path: Path) -> None:
    """One of them takes it up; the other one's client pays for a release of its own."""
    sites = [served_from(template, there, tmp_path / name) for name in ("one", "other")]
    with running_database(places.fast()) as database:
        there_too = "--ledger", database.url
        with running(sites[0], *there_too) as one, running(sites[1], *there_too) as other:
            for number in range(6, 12):
                assert lost_at_the_gate(one, there, gated(number))[2] == AGAIN
                spent = _spent(database.url)
                with there.shut() as owner:
                    racers = [Asking(proxied, gated(number)) for proxied in (one, other)]
                    until_waiting(owner, 2)
                    owner.execute(f"select pg_advisory_unlock({GATE})".encode())
                    for racer in racers:
                        assert len(racer.answered()) == 1
                assert _spent(database.url) - spent == sites[0].price()
                shown = {tuple(map(str, Asking(p, gated(number)).answered())) for p in (one, other)}
                assert len(shown) == 1
        report = inspect_at(database.url)
        assert report.releases == 12


def test_an_attempt_that_stalls_and_wakes_up_is_an_attempt_of_its_own(
    template: Site, there: Outside, tmp_path: Path
) -> None:
    """Nobody may say that it has ended: the other proxy's client pays, and both get what they paid for."""
    sites = [served_from(template, there, tmp_path / name) for name in ("one", "other")]
    with running_database(places.fast()) as database:
        there_too = "--ledger", database.url
        with running(sites[0], *there_too) as one, running(sites[1], *there_too) as other:
            assert lost_at_the_gate(one, there, gated(12))[2] == AGAIN
            with there.shut() as owner:
                stalled = Asking(one, gated(12))  # the second attempt
                until_waiting(owner)
                one.signal(signal.SIGSTOP)
                _go_through(owner, other, 12)
                one.signal(signal.SIGCONT)
            assert len(stalled.answered()) == 1
            assert _spent(database.url) == 2 * sites[0].price()
        assert inspect_at(database.url).releases == 2


def _go_through(owner: psycopg.Connection[tuple[object, ...]], other: Proxied, number: int) -> None:
    """The other proxy's statement waits at the gate too, and passes it."""
    asking = Asking(other, gated(number))
    until_waiting(owner, 2)
    owner.execute(f"select pg_advisory_unlock({GATE})".encode())
    assert len(asking.answered()) == 1


def _spent(url: str) -> int:
    return next(t.spent.pico for t in inspect_at(url).totals if t.name == DATASET)
