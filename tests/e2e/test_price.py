"""What a statement would cost, told before it is asked."""

from __future__ import annotations

import psycopg
import pytest
from psycopg.rows import DictRow, dict_row

from tests.e2e.served import Client, Served
from tests.e2e.test_budget import budget, spent

PLANS = "SELECT plan, count(*) FROM users GROUP BY plan"
AGES = "SELECT count(*), avg(age) FROM users WHERE age > 40"


def estimated(client: Client, text: str) -> list[DictRow]:
    with client.cursor(row_factory=dict_row) as cursor:
        return cursor.execute("SELECT * FROM hush.estimate(%s)", (text,)).fetchall()


def test_an_estimate_of_several_statements_is_what_they_are_charged_then(served: Served) -> None:
    several = f"{PLANS}; {AGES}; select plan as p, count(*) n from users group by 1 order by 2;"
    with served.connect("spend", "u31") as client:
        rows = estimated(client, several)
        assert spent(client) == 0
        assert [(r["statement"], r["account"]) for r in rows] == [
            (n, kind) for n in (1, 2, 3, None) for kind in ("user", "session")
        ]
        assert [r["reused"] for r in rows[:6]] == [False, False, False, False, True, True]
        assert all(r["fits"] and r["refusal"] is None for r in rows)
        assert rows[0]["half_width_95"].startswith("count(*): ")
        assert "avg(age): " in rows[2]["half_width_95"]
        client.execute(PLANS)
        again = estimated(client, several)
        assert [(r["epsilon"], r["reused"]) for r in again[:2]] == [(0, True)] * 2
        client.execute(AGES)
        mine = budget(client)
        for row in rows[-2:]:
            assert row["rho"] == mine[row["account"]]["rho_spent"]
            assert row["epsilon"] == mine[row["account"]]["epsilon_spent"]
        client.execute("SET hush.fresh = on")
        assert sum(r["rho"] for r in estimated(client, f"{PLANS};{PLANS}")[:-2]) == 2 * sum(r["rho"] for r in rows[:2])


def test_an_estimate_says_what_would_be_refused_and_what_is_free(served: Served) -> None:
    statements = (
        "SELECT count(*) FROM stores; SELECT age FROM users; SET hush.epsilon = 1; SELECT sum(nothing) FROM users;"
        " CREATE TEMP TABLE kept AS SELECT count(*) FROM users; EXPLAIN SELECT count(*) FROM users;"
        " SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY age) FROM users WHERE plan = $1;"
    )
    with served.connect("spend", "u32") as client:
        rows = {r["statement"]: r for r in estimated(client, statements)}
        assert [rows[n]["half_width_95"] for n in (1, 6)] == ["exact", "exact"]
        reasons = [rows[n]["refusal"] for n in (2, 3, 4, 5, 7)]
        assert [r.partition(":")[0] for r in reasons[:1]] == ["DP004"]
        assert reasons[1] == "settings are those of the session: SET them before the estimate"
        assert "nothing" in reasons[2]
        assert reasons[3].startswith("only what stands alone")
        assert reasons[4].startswith("DP006")
        client.execute("SET hush.epsilon = 1.9")
        left = estimated(client, f"{PLANS}; {AGES}")
        assert [r["fits"] for r in left] == [True, True, True, False, True, False]
        client.execute("SET hush.max_charge = 1")
        (row, *_, total) = estimated(client, PLANS)
        assert (row["refusal"], row["epsilon"]) == ("hush.max_charge allows 1", 1.9)
        assert total["epsilon"] == 0
        assert spent(client) == 0


def test_estimates_stand_beside_other_relations(served: Served) -> None:
    with served.connect("spend", "u33") as client:
        told = client.execute(
            "SELECT b.kind, e.epsilon > 0 FROM hush.estimate($$ SELECT count(*) FROM users $$) AS e"
            " JOIN hush.budget b ON b.kind = e.account WHERE e.statement = 1 ORDER BY 1"
        ).fetchall()
        assert told == [("session", True), ("user", True)]
        asked = psycopg.RawCursor(client)
        asked.execute(
            "SELECT u.n, e.statement FROM (SELECT count(*) AS n FROM users) u, hush.estimate($1::text) e", [PLANS]
        )
        assert [statement for _, statement in asked.fetchall()] == [1, 1, None, None]
        client.execute("PREPARE priced (text) AS SELECT count(*) FROM hush.estimate($1)")
        assert client.execute("EXECUTE priced('SELECT count(*) FROM users')").fetchall() == [(4,)]


@pytest.mark.parametrize(
    ("text", "state"),
    [
        ("SELECT * FROM hush.estimate(plan) FROM users", "42601"),
        ("SELECT * FROM hush.estimate(lower('SELECT 1'))", "DP006"),
        ("SELECT hush.estimate('SELECT 1')", "DP006"),
        ("SELECT * FROM hush.estimate()", "42883"),
        ("SELECT * FROM hush.estimate(NULL)", "DP006"),
        ("SELECT * FROM hush.estimate", "42P01"),
        ("SELECT * FROM hush.guess('SELECT 1')", "42883"),
        ("SELECT * FROM hush.estimate('" + "SELECT 1;" * 201 + "')", "DP006"),
        ("SELECT * FROM hush.estimate('SELECT ''')", "DP006"),
    ],
)
def test_what_is_no_estimate_is_refused(served: Served, text: str, state: str) -> None:
    with served.connect("spend", "u33") as client, pytest.raises(psycopg.Error) as refused:
        client.execute(text.encode())
    assert refused.value.sqlstate == state, refused.value


def test_an_explained_charge_names_who_pays(served: Served) -> None:
    with served.connect("spend", "u34") as first, served.connect("spend", "u34") as second:
        first.execute(PLANS)
        lines = [line for (line,) in second.execute(f"EXPLAIN {PLANS}".encode())]
        assert "Charge to your accounts if run now: epsilon 0.5 (session alone)" in lines
        second.execute("SET hush.max_charge = 0.2")
        lines = [line for (line,) in second.execute(f"EXPLAIN {PLANS}".encode())]
        assert "It is refused if run now: hush.max_charge allows 0.2" in lines
        with pytest.raises(psycopg.Error) as refused:
            second.execute(PLANS)
        assert refused.value.diag.message_primary == "this statement costs epsilon 0.5, and hush.max_charge allows 0.2"
        second.execute("RESET hush.max_charge")
        second.execute(PLANS)
        second.execute("SET hush.max_charge = 0.2")
        assert len(second.execute(PLANS).fetchall()) > 1, "what is paid for is free"
