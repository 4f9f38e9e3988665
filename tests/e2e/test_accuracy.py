"""Statements that are asked for an accuracy instead of an epsilon, and shares of it."""

from __future__ import annotations

import psycopg
import pytest

from tests.e2e.served import Client, Served
from tests.e2e.test_budget import notices_of, spent

COUNT = "SELECT count(*) FROM users WHERE age > 17"


def reach(client: Client) -> float:
    row = client.execute("SELECT max(half_width_95) FROM hush.last_query").fetchone()
    assert row is not None
    return float(row[0])


def test_a_statement_costs_what_the_wanted_accuracy_needs(served: Served) -> None:
    with served.connect("spend", "u50") as client:
        heard = notices_of(client)
        client.execute("SET hush.target_error = 30")
        (plan, *_), *_ = client.execute(f"EXPLAIN {COUNT}".encode()).fetchall()
        client.execute(COUNT)
        assert 29.5 < reach(client) <= 30
        charged = heard[-1].removeprefix("NOTICE: charged epsilon ").partition(";")[0]
        assert plan.startswith(f"Privacy plan: 1 release, epsilon {charged} ")
        client.execute(COUNT)
        assert heard[-1].startswith("NOTICE: charged nothing")
        client.execute("SET hush.target_error = 300")
        client.execute(COUNT)
        assert heard[-2].startswith("NOTICE: charged nothing"), "what is nearer is near enough"
        client.execute("SET hush.max_charge = 0.3; SET hush.target_error = 3")
        with pytest.raises(psycopg.Error) as refused:
            client.execute(COUNT)
        assert refused.value.sqlstate == "DP007"
        assert "at most 0.3 is allowed" in str(refused.value)


def test_a_share_is_of_what_was_shown(served: Served) -> None:
    """No noise is further out than 1.4 deviations (`tests.e2e.tamed`). The first answer, of 871 rows, is so wide that
    the second lies in no run below its lower end, from which a third would cost again.
    """
    both = "SELECT count(*), avg(steps) FROM users WHERE age > 16"
    with served.connect("spend", "u51") as client:
        heard = notices_of(client)
        client.execute("SET hush.target_error = '2%'")
        with pytest.raises(psycopg.Error) as refused:
            client.execute(both)
        assert refused.value.sqlstate == "DP007"
        client.execute("SET hush.epsilon = 0.15; RESET hush.target_error")
        client.execute(both)
        client.execute("SET hush.target_error = '2%'")
        client.execute(both)
        paid = spent(client)
        width = "hush.high(count(*)) - hush.low(count(*))"
        row = client.execute(f"SELECT {width}, avg(steps) FROM users WHERE age > 16".encode()).fetchone()
        assert row is not None
        assert row[0] / 2 <= 0.02 * (871 + 64), "2 % of what the first answer told"
        client.execute(both)
        assert spent(client) == paid
        assert heard[-1].startswith("NOTICE: c")
        with served.connect("spend", "u51") as other, pytest.raises(psycopg.Error) as refused:
            other.execute("SET hush.target_error = '2%'")
            other.execute(f"EXPLAIN {both}".encode())
        assert refused.value.sqlstate == "DP007", "this session has not paid for it"


def test_shares_move_noise_to_what_matters_less(served: Served) -> None:
    both = "SELECT count(*), sum(steps) FROM users WHERE age > 15"
    with served.connect("spend", "u52") as client:
        client.execute(both)
        alike: dict[str, float] = dict(client.execute('SELECT "column", sd FROM hush.last_query').fetchall())
        client.execute("SET hush.weights = '9, 1'")
        client.execute(both)
        first: dict[str, float] = dict(client.execute('SELECT "column", sd FROM hush.last_query').fetchall())
        assert first["count(*)"] < alike["count(*)"]
        assert first["sum(steps)"] > alike["sum(steps)"]
        with pytest.raises(psycopg.Error) as refused:
            client.execute(COUNT)
        assert refused.value.sqlstate == "DP007"
