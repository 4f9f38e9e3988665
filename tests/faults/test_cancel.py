"""A long private statement is ended by a time-out or a cancel request: 57014, charged, its transaction has failed."""

from __future__ import annotations

import time
from threading import Thread

import psycopg
import pytest
from psycopg.pq import TransactionStatus

from tests.faults.proxied import COUNT, ENDLESS, Client, Proxied, Site, is_at_rest, running, wait_until

CANCELED = "57014"
#: Time enough on a busy machine, and far less than the policy gives to a statement.
SOON_S = 120.0


def failure_of(client: Client, number: int) -> tuple[psycopg.Error, float]:
    """How a statement of its own price without end fails, and after how long."""
    started = time.monotonic()
    with pytest.raises(psycopg.Error) as failed:
        client.execute(f"{ENDLESS} where age < {number}".encode())
    return failed.value, time.monotonic() - started


def status(client: Client) -> TransactionStatus:
    return client.info.transaction_status


def test_the_policy_ends_a_long_statement_and_it_stays_charged(site: Site) -> None:
    """Four seconds here; a larger statement_timeout of the client's own changes nothing."""
    site.write_policy(limits={"statement_timeout": "4s"})
    with running(site) as proxied, proxied.connect("bob") as client:
        client.execute("set statement_timeout = '1h'")
        error, seconds = failure_of(client, 10)
        assert error.sqlstate == CANCELED
        assert "statement timeout" in str(error)
        assert 3.5 < seconds < SOON_S
        assert status(client) is TransactionStatus.IDLE
        assert site.spent("tiny/bob") == site.price()
        assert is_at_rest(proxied.pid)
        assert client.execute(COUNT.encode()).rowcount == 1


def test_a_client_may_ask_for_less_time(shared: Proxied) -> None:
    """Time enough to be charged on a busy machine; the history has it with its charge."""
    site, before = shared.site, shared.site.spent("tiny/cat")
    with shared.connect("cat") as client:
        client.execute("set statement_timeout = 3000")
        error, seconds = failure_of(client, 11)
        assert error.sqlstate == CANCELED
        assert seconds < SOON_S
        assert status(client) is TransactionStatus.IDLE
        client.execute("reset statement_timeout")
        last = "select outcome, epsilon > 0 from hush.history order by at desc limit 1"
        # it is unfinished until the engine has let go of it
        wait_until(lambda: client.execute(last).fetchone() == ("cancelled", True))
    assert site.spent("tiny/cat") == before + site.price()


def test_a_timed_out_statement_fails_its_transaction(shared: Proxied) -> None:
    with shared.connect("cat") as client:
        client.execute("begin")
        client.execute("create temp table kept on commit drop as select 1")
        client.execute("set local statement_timeout = 300")
        assert failure_of(client, 12)[0].sqlstate == CANCELED
        assert status(client) is TransactionStatus.INERROR
        with pytest.raises(psycopg.errors.InFailedSqlTransaction):
            client.execute("select 1")
        client.execute("rollback")
        assert status(client) is TransactionStatus.IDLE
        assert client.execute("show statement_timeout").fetchone() == ("0",)


@pytest.mark.parametrize("is_in_transaction", [False, True])
@pytest.mark.parametrize("is_prepared", [False, True])
def test_a_cancel_request_ends_a_private_statement(shared: Proxied, is_in_transaction: bool, is_prepared: bool) -> None:
    """In both protocols; what was charged stays charged."""
    site, number = shared.site, 20 + 2 * is_in_transaction + is_prepared
    with shared.connect("ann") as client:
        if is_in_transaction:
            client.execute("begin")
        before = site.spent("tiny/ann")
        errors: list[psycopg.Error] = []

        def work() -> None:
            try:
                client.execute(
                    f"{ENDLESS} where age < {number}".encode(), () if is_prepared else None, prepare=is_prepared
                )
            except psycopg.Error as error:
                errors.append(error)

        working = Thread(target=work)
        working.start()
        wait_until(lambda: site.spent("tiny/ann") > before)
        started = time.monotonic()
        client.cancel_safe()
        working.join()
        assert time.monotonic() - started < SOON_S
        assert [error.sqlstate for error in errors] == [CANCELED]
        assert "user request" in str(errors[0])
        wanted = TransactionStatus.INERROR if is_in_transaction else TransactionStatus.IDLE
        assert status(client) is wanted
        client.execute("rollback")
        assert client.execute(COUNT.encode()).rowcount == 1
        assert site.spent("tiny/ann") >= before + site.price()
    assert is_at_rest(shared.pid)


def test_a_cancel_request_ends_a_public_statement(shared: Proxied) -> None:
    with shared.connect("dan") as client:
        errors: list[psycopg.Error] = []

        def work() -> None:
            try:
                client.execute("select count(*) from generate_series(1, 1000000000)")
            except psycopg.Error as error:
                errors.append(error)

        working = Thread(target=work)
        working.start()
        while working.is_alive():
            client.cancel_safe()
            working.join(0.1)
        assert [error.sqlstate for error in errors] == [CANCELED]
        assert client.execute("select 1").fetchone() == (1,)
