"""SIGTERM, SIGINT and SIGHUP, with statements under way."""

from __future__ import annotations

import signal
import time
from threading import Thread

import psycopg
import pytest

from tests.farewell import farewell_of
from tests.faults.proxied import (
    ADMIN,
    COUNT,
    ENDLESS,
    LOGINS,
    PATIENCE_S,
    WIDE,
    Client,
    Site,
    distinct_count,
    launch_program,
    refusal_of,
    resident_kib,
    running,
    wait_until,
)

SHUTDOWN = "57P01"
DRAIN_S = 10.0


def noticed(client: Client) -> list[str | None]:
    """What the session is told from now on besides results: also its end, when that comes with the last result."""
    told: list[str | None] = []
    client.add_notice_handler(lambda diagnostic: told.append(diagnostic.sqlstate))
    return told


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_proxy_that_is_asked_to_end_finishes_what_it_does_and_exits_with_0(
    site: Site, number: signal.Signals
) -> None:
    """The transaction under way is finished, the idle session ends at once, new ones are not taken."""
    with running(site) as proxied, proxied.connect() as idle, proxied.connect("bob") as busy:
        busy.execute("begin")
        proxied.signal(number)
        assert farewell_of(idle).sqlstate == SHUTDOWN
        wait_until(lambda: not can_connect(proxied.dsn()))
        assert busy.execute(distinct_count(1).encode()).rowcount == 1
        told = noticed(busy)
        busy.execute("commit")
        assert proxied.wait() == 0
        assert SHUTDOWN in (farewell_of(busy).sqlstate, *told)
        assert site.spent() == site.price()
        words = [line.split()[4].rstrip(":") for line in proxied.said().splitlines()]
        assert [w for w in words if w in ("ending", "ended")] == ["ending", "ended"]
        assert words[-1] == "ended"
        assert "Traceback" not in proxied.said()
    assert not list(site.state.glob("front-*"))


def can_connect(dsn: str) -> bool:
    refused = refusal_of(lambda: psycopg.connect(dsn, connect_timeout=60).close())
    assert refused is None or "refused" in str(refused)
    return refused is None


@pytest.mark.long
def test_a_statement_without_end_is_ended_when_the_proxy_ends(site: Site) -> None:
    """It is told so after the time that all sessions get, its charge stands, and the exit status is 0."""
    with running(site) as proxied, proxied.connect() as busy:
        errors: list[psycopg.Error] = []
        waiting = Thread(target=lambda: errors.append(failure_of(busy, ENDLESS)))
        waiting.start()
        wait_until(lambda: site.spent() > 0)
        proxied.signal(signal.SIGTERM)
        assert proxied.wait() == 0
        waiting.join(PATIENCE_S)
        assert [error.sqlstate for error in errors] == [SHUTDOWN]
    assert site.spent() == site.price()


@pytest.mark.long
def test_statements_with_very_many_keys_do_not_hold_up_the_end(site: Site) -> None:
    """Each would take seconds of processor time for its noise and its figures."""
    with running(site) as proxied:
        clients = [proxied.connect(login) for login in LOGINS]
        asking = [
            Thread(target=lambda c=client, n=number: refusal_of(lambda: c.execute(WIDE.format(n).encode())))
            for number, client in enumerate(clients, 20)
        ]
        for thread in asking:
            thread.start()
        wait_until(lambda: site.spent() > 0)
        started = time.monotonic()
        proxied.signal(signal.SIGTERM)
        assert proxied.wait() == 0
        assert time.monotonic() - started < DRAIN_S + 5
        for thread in asking:
            thread.join(PATIENCE_S)
            assert not thread.is_alive()


def failure_of(client: Client, statement: str) -> psycopg.Error:
    with pytest.raises(psycopg.Error) as failed:
        client.execute(statement.encode())
    return failed.value


@pytest.mark.parametrize("number", [signal.SIGTERM, pytest.param(signal.SIGINT, marks=pytest.mark.long)])
def test_a_proxy_that_is_asked_to_end_while_it_starts_does(site: Site, number: signal.Signals) -> None:
    started = launch_program(site, "-m", "proxy")
    try:
        wait_until((site.state / "ledger.db").exists)
        started.signal(number)
        assert started.wait() in (0, 130, -number)
    finally:
        started.end()
    assert "Traceback" not in started.said()
    assert not list(site.state.glob("front-*"))


def test_a_hangup_takes_a_right_policy_and_keeps_the_old_one_for_a_wrong_one(site: Site) -> None:
    with running(site) as proxied, proxied.connect() as client:
        client.execute(distinct_count(1).encode())
        site.policy.write_text(site.policy.read_text().replace("110", "nonsense"))
        proxied.signal(signal.SIGHUP)
        wait_until(lambda: "was not taken" in proxied.said())
        line = next(line for line in proxied.said().splitlines() if "was not taken" in line)
        assert "tiny.yaml:" in line
        assert client.execute(distinct_count(1).encode()).rowcount == 1
        assert client.execute("select distinct status from hush.policy").fetchone() == ("in force",)
        with proxied.connect(ADMIN) as boss:
            (status,) = boss.execute("select distinct status from hush.policy").fetchone() or ("",)
        assert "was not taken" in str(status)
        site.write_policy(privacy={"unit": "person", "delta": 1e-6, "query_epsilon": 0.2, "time_grid": "0ms"})
        proxied.signal(signal.SIGHUP)
        wait_until(lambda: "is in force" in proxied.said())
        spent = site.spent()
        client.execute(distinct_count(2).encode())  # an old session keeps its settings
        with proxied.connect() as fresh:
            fresh.execute(distinct_count(3).encode())
        assert site.spent() == spent + site.price(0.1) + site.price(0.2)
        assert proxied.process.poll() is None


def test_a_hangup_reads_files_once(site: Site) -> None:
    """Also an edit of the moment before is not taken twice."""
    with running(site) as proxied:
        for number in (1, 2):
            site.write_policy(limits={"max_sessions": 50 + number})
            proxied.signal(signal.SIGHUP)
            wait_until(lambda n=number: proxied.said().count("is in force") >= n)  # type: ignore[misc]
        site.policy.write_text("nonsense")
        wait_until(lambda: "was not taken" in proxied.said())
        assert proxied.said().count("is in force") == 2
        assert proxied.said().count("was not taken") == 1


def test_hundreds_of_hangups_without_an_edit_hold_no_memory(site: Site) -> None:
    """The same version is the same engine: the memory that is used once is used again."""
    with running(site) as proxied, proxied.connect() as client:
        client.execute(COUNT.encode())
        taken = 0
        sizes = []
        for rounds in (20, 200):
            for _ in range(rounds):
                taken += 1
                proxied.signal(signal.SIGHUP)
                wait_until(lambda n=taken: proxied.said().count("is in force") >= n)  # type: ignore[misc]
            sizes.append(resident_kib(proxied.pid))
        assert sizes[1] < 1.15 * sizes[0], "an engine for each had doubled it"
        assert len(list(site.state.glob("spill-*"))) == 1
        assert client.execute(distinct_count(1).encode()).rowcount == 1


@pytest.mark.parametrize("edits", [8, pytest.param(200, marks=pytest.mark.long)])
def test_hundreds_of_edits_leave_one_engine_open(site: Site, edits: int) -> None:
    """Each engine has a directory of its own for what it spills, until it is closed; idle sessions keep none open."""

    def engines() -> int:
        return len(list(site.state.glob("spill-*")))

    with running(site) as proxied, proxied.connect() as idle, proxied.connect("bob") as busy:
        idle.execute(COUNT.encode())
        seen = []
        for taken in range(1, edits + 1):
            site.write_policy(limits={"statement_timeout": "60s", "max_sessions": 50 + taken % 2})
            proxied.signal(signal.SIGHUP)
            wait_until(lambda n=taken: proxied.said().count("is in force") >= n)  # type: ignore[misc]
            seen.append(engines())
            if taken % 4 == 0:
                assert busy.execute(distinct_count(taken).encode()).rowcount == 1
        assert max(seen) <= 3, "the present one, and what is about to be closed"
        wait_until(lambda: engines() == 1)
        assert idle.execute(distinct_count(1).encode()).rowcount == 1


@pytest.mark.parametrize("is_there", [False, True], ids=["missing", "damaged"])
def test_a_policy_that_waits_for_its_data_is_taken_when_they_come(site: Site, is_there: bool) -> None:
    new = site.folder / "new.duckdb"
    if is_there:
        new.write_text("not a database")
    with running(site) as proxied, proxied.connect() as client:
        site.write_policy(source={"engine": "duckdb", "path": new.name, "data_version": "2"})
        wait_until(lambda: "was not taken" in proxied.said())
        assert client.execute(distinct_count(1).encode()).rowcount == 1
        site.data.replace(new)
        wait_until(lambda: "is in force" in proxied.said())
        assert client.execute(distinct_count(1).encode()).rowcount == 1
        assert proxied.said().count("was not taken") == 1


def test_a_policy_that_vanishes_while_it_is_served_changes_nothing(site: Site) -> None:
    with running(site) as proxied, proxied.connect() as client:
        site.policy.unlink()
        proxied.signal(signal.SIGHUP)
        wait_until(lambda: "was not taken" in proxied.said())
        assert client.execute(COUNT.encode()).rowcount == 1
        site.write_policy()
        wait_until(lambda: "is in force" in proxied.said())
        assert client.execute(distinct_count(1).encode()).rowcount == 1
