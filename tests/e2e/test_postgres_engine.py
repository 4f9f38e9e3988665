"""Does everything work together when the private rows are in a PostgreSQL?"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import psycopg
import pytest

from tests.e2e.conftest import ELSEWHERE
from tests.e2e.served import Client, Served
from tests.e2e.test_cases_live import ask, compares, explain, reach, stated_noise
from tests.postgres_server import private_server
from tests.unit.sql.corpus import Case

_QUESTIONS = (
    "SELECT count(*) FROM users WHERE age BETWEEN 30 AND 50 AND newsletter",
    "SELECT plan, count(*) FROM users WHERE plan IS NOT NULL GROUP BY plan ORDER BY plan",
    "SELECT status, sum(amount) FROM orders WHERE status IS NOT NULL GROUP BY status ORDER BY status",
    "SELECT count(*) FROM items JOIN orders USING (order_id) JOIN stores USING (store_id) WHERE region = 'north'",
    "SELECT extract(year FROM joined), count(*) FROM users WHERE joined >= '2020-01-01' GROUP BY 1 ORDER BY 1 LIMIT 4",
    "SELECT count(*) FROM \"Odd \"\"Table\" WHERE \"Mixed Case\" = 'A b'",
)  # fmt: skip


@pytest.fixture
def elsewhere(served: Served) -> Iterator[Client]:
    with served.connect("elsewhere", "u60") as connection:
        yield connection


def _rho(client: Client) -> float:
    row = client.execute("SELECT rho_spent FROM hush.budget WHERE kind = 'user'").fetchone()
    assert row is not None
    return float(str(row[0]))


def test_answers_are_near_the_exact_ones(served: Served, elsewhere: Client) -> None:
    """Within six standard deviations of the noise that EXPLAIN states: a false alarm in 500 million numbers."""
    with served.connect("truth") as truth:
        for case in (Case(place="", sql=sql, facts={}) for sql in _QUESTIONS):
            (columns, found), (_, exact) = ask(elsewhere, case), ask(truth, case)
            noise = stated_noise(explain(elsewhere, case), case)
            within = [reach(column, noise) for column in columns]
            assert compares("same", found, exact, within), f"{case.sql}: {found} {exact} {within}"
        public = "SELECT * FROM stores ORDER BY store_id"
        assert elsewhere.execute(public).fetchall() == truth.execute(public).fetchall()


def test_a_release_is_explained_and_paid_once(elsewhere: Client) -> None:
    sql = "SELECT sum(quantity) FROM items WHERE line = 1"
    plan = "\n".join(str(row[0]) for row in elsewhere.execute(f"EXPLAIN {sql}".encode()).fetchall())
    assert "FLOAT8" in plan
    assert "TRY" not in plan
    before = _rho(elsewhere)
    first = elsewhere.execute(sql.encode()).fetchall()
    paid = _rho(elsewhere)
    assert paid > before
    assert elsewhere.execute(sql.encode()).fetchall() == first
    assert _rho(elsewhere) == paid


def test_what_the_engine_does_not_compute_is_refused_free(elsewhere: Client) -> None:
    before = _rho(elsewhere)
    with pytest.raises(psycopg.Error) as refused:
        elsewhere.execute("SELECT count(*) FROM users WHERE log(2, age + 1) > 5")
    assert refused.value.sqlstate == "DP006"
    assert "a logarithm to base 2 is not supported over private rows with engine postgres" in str(refused.value)
    assert refused.value.diag.message_hint
    assert _rho(elsewhere) == before


def test_a_table_that_is_not_what_it_was_is_noticed_before_anything_is_charged(elsewhere: Client) -> None:
    before = _rho(elsewhere)
    with private_server().owner(ELSEWHERE) as owner:
        owner.execute("alter table items rename column price to cost")
        try:
            with pytest.raises(psycopg.Error) as failed:
                elsewhere.execute("SELECT avg(price) FROM items WHERE line = 2")
            elsewhere.execute("SELECT count(*) FROM items WHERE line = 2")  # does not need it
        finally:
            owner.execute("alter table items rename column cost to price")
    assert failed.value.sqlstate == "58000"
    assert failed.value.diag.message_primary == "the private data have changed since the policy was loaded"
    assert failed.value.diag.message_detail == "Nothing was charged."
    assert "price" not in str(failed.value)
    spent = _rho(elsewhere)
    elsewhere.execute("SELECT avg(price) FROM items WHERE line = 2")
    assert _rho(elsewhere) - spent == pytest.approx(spent - before)  # one each


def _until_there_wait(owner: Client, count: int) -> None:
    """For a lock."""
    while owner.execute("select from pg_locks where not granted").rowcount != count:
        time.sleep(0.01)


def _cancel_what_waits(owner: Client, client: Client) -> None:
    _until_there_wait(owner, 1)
    client.cancel_safe()


def test_a_statement_that_waits_for_a_lock_ends_by_its_time_or_by_a_cancel_and_costs_nothing(
    elsewhere: Client,
) -> None:
    """It was looked at, and nothing reserved."""
    before = _rho(elsewhere)
    with private_server().owner(ELSEWHERE) as owner, owner.transaction():
        owner.execute("lock table items in access exclusive mode")
        with pytest.raises(psycopg.errors.QueryCanceled, match="statement timeout"):
            elsewhere.execute("SELECT count(*) FROM items WHERE line = 1 AND quantity = 3")
        _until_there_wait(owner, 0)
        cancelling = threading.Thread(target=_cancel_what_waits, args=(owner, elsewhere))
        cancelling.start()
        with pytest.raises(psycopg.errors.QueryCanceled, match="user request"):
            elsewhere.execute("SELECT count(*) FROM items WHERE line = 1 AND quantity = 4")
        cancelling.join()
    assert _rho(elsewhere) == before
    assert elsewhere.execute("SELECT count(*) > 0 FROM items WHERE quantity = 5").fetchall() == [(True,)]
