"""Does the main job work through real clients: the census and the shop, asked, answered and charged?"""

from __future__ import annotations

import asyncio
import csv
import json
from pathlib import Path

import asyncpg
import psycopg
import pytest
import sqlalchemy

from tests.e2e.served import PASSWORD, Served

BY_CLASS = "SELECT class, count(*), avg(age), sum(hours_per_week) FROM adult GROUP BY class ORDER BY 2 DESC"
INT8, NUMERIC, TEXT = 20, 1700, 25


@pytest.fixture(scope="module")
def people(adult_csv: Path) -> list[dict[str, str]]:
    with adult_csv.open(newline="") as file:
        return list(csv.DictReader(file))


def truth_by_class(people: list[dict[str, str]]) -> list[tuple[str, int, float, int]]:
    found = []
    for name in ("<=50K", ">50K"):
        ours = [p for p in people if p["class"] == name]
        ages = sum(int(p["age"]) for p in ours)
        found.append((name, len(ours), ages / len(ours), sum(int(p["hours_per_week"]) for p in ours)))
    return found


def test_a_count_is_right_within_its_stated_noise(served: Served, people: list[dict[str, str]]) -> None:
    with served.connect("adult") as client:
        client.execute("SET hush.epsilon = 20")
        row = client.execute("SELECT count(*), hush.sd(count(*)) FROM adult WHERE age >= 40").fetchone()
    assert row is not None
    count, sd = row
    assert isinstance(count, int)
    assert isinstance(sd, float)
    assert sum(int(p["age"]) >= 40 for p in people) == 14237
    assert abs(count - 14237) <= 7 * sd + 1  # one in 10^11 runs is further away


@pytest.mark.parametrize("binary", [False, True])
def test_groups_are_right_in_psycopg(served: Served, people: list[dict[str, str]], binary: bool) -> None:
    with served.connect("adult") as client:
        client.execute("SET hush.epsilon = 50")
        cursor = client.cursor(binary=binary)
        rows = cursor.execute(BY_CLASS).fetchall()
        assert [(c.name, c.type_code) for c in cursor.description or ()] == [
            ("class", TEXT), ("count", INT8), ("avg", NUMERIC), ("sum", INT8)]  # fmt: skip
    check_by_class(rows, people)


def check_by_class(rows: list[tuple[object, ...]], people: list[dict[str, str]]) -> None:
    for row, (name, count, age, hours) in zip(rows, truth_by_class(people), strict=True):
        assert row[0] == name
        assert float(str(row[1])) == pytest.approx(count, abs=10)
        assert float(str(row[2])) == pytest.approx(age, abs=0.2)
        assert float(str(row[3])) == pytest.approx(hours, abs=500)


def test_groups_are_right_in_asyncpg(served: Served, people: list[dict[str, str]]) -> None:
    async def ask() -> list[tuple[object, ...]]:
        client = await asyncpg.connect(
            host="127.0.0.1", port=served.port, user="ann", password=PASSWORD, database="adult"
        )
        try:
            await client.execute("SET hush.epsilon = 50")
            return [tuple(r.values()) for r in await client.fetch(BY_CLASS)]
        finally:
            await client.close()

    check_by_class(asyncio.run(ask()), people)


def test_groups_are_right_in_sqlalchemy(served: Served, people: list[dict[str, str]]) -> None:
    url = sqlalchemy.URL.create(
        "postgresql+psycopg", "ann", PASSWORD, "127.0.0.1", served.port, "adult", {"options": "-c hush.epsilon=50"}
    )
    engine = sqlalchemy.create_engine(url)
    with engine.connect() as client:
        rows = [tuple(r) for r in client.execute(sqlalchemy.text(BY_CLASS))]
        assert "adult" in sqlalchemy.inspect(client).get_table_names()
    engine.dispose()
    check_by_class(rows, people)


def test_a_parameter_may_stand_inside_and_outside(served: Served) -> None:
    with served.connect("adult") as client:
        client.execute("SET hush.epsilon = 50")
        cursor = client.execute(
            "SELECT class, count(*) * %s AS n FROM adult WHERE age >= %s GROUP BY class HAVING count(*) > %s",
            (10, 40, 100),
        )
        assert [c.name for c in cursor.description or ()] == ["class", "n"]
        assert len(cursor.fetchall()) == 2


def spent(client: psycopg.Connection[tuple[object, ...]], kind: str) -> float:
    row = client.execute("SELECT rho_spent FROM hush.budget WHERE kind = %s", (kind,)).fetchone()
    assert row is not None
    return float(str(row[0]))


def test_a_wrapper_and_a_count_over_it_cost_one_release(served: Served) -> None:
    inner = "SELECT status, count(*) AS n FROM orders WHERE amount > 17 GROUP BY status"
    with served.connect("shop") as client:
        first = client.execute(f"SELECT * FROM ({inner}) AS t WHERE n > 10 ORDER BY n DESC LIMIT 100").fetchall()
        after_first = spent(client, "session")
        assert client.execute(f"SELECT count(*) FROM ({inner}) t WHERE n > 10").fetchone() == (len(first),)
        assert spent(client, "session") == after_first > 0


def test_the_query_for_one_person_never_sharpens(served: Served, people: list[dict[str, str]]) -> None:
    one = people[0]
    query = (
        f"SELECT count(*), hush.sd(count(*)) FROM adult WHERE age = {one['age']} AND final_weight = "
        f"{one['final_weight']} AND education = '{one['education']}' AND hours_per_week = {one['hours_per_week']}"
    )
    with served.connect("adult") as client:
        usual = client.execute("SELECT hush.sd(count(*)) FROM adult").fetchone()
        answers = {client.execute(query).fetchone() for _ in range(100)}
    assert len(answers) == 1
    assert usual is not None
    answer = answers.pop()
    assert answer is not None
    assert answer[1] == usual[0]


def test_a_budget_runs_out_with_a_clear_refusal(served: Served) -> None:
    with served.connect("spend", "u29") as client:
        asked = 0
        with pytest.raises(psycopg.Error) as refused:
            for asked in range(1000):
                client.execute(f"SELECT count(*) FROM users WHERE age > 1 AND age < {asked + 20}")
                if asked > 200:
                    break
        assert refused.value.sqlstate == "DP001"
        assert "hush.epsilon" in str(refused.value.diag.message_hint)
        left = client.execute("SELECT queries_left FROM hush.budget WHERE kind = 'session'").fetchone()
        assert left == (0,)
        history = client.execute("SELECT count(*) FROM hush.history WHERE outcome = 'answered'").fetchone()
        assert history == (asked,)


def test_explain_costs_nothing_in_text_and_json(served: Served) -> None:
    query = "SELECT status, avg(amount) FROM orders WHERE amount > 3 GROUP BY status"
    with served.connect("shop", "u30") as client:
        text = "\n".join(str(r[0]) for r in client.execute(f"EXPLAIN {query}").fetchall())
        assert "Private SQL" in text
        assert "Sensitivity" in text
        cursor = client.execute(f"EXPLAIN (FORMAT JSON) {query}")
        row = cursor.fetchone()
        assert row is not None
        plan = row[0] if isinstance(row[0], list) else json.loads(str(row[0]))
        assert plan[0]["releases"][0]["mechanism"] == "discrete_gaussian"
        assert spent(client, "user") == 0
        with pytest.raises(psycopg.Error, match="EXPLAIN ANALYZE"):
            client.execute(f"EXPLAIN ANALYZE {query}")


def test_intervals_are_appended_when_switched_on(served: Served) -> None:
    with served.connect("shop") as client:
        client.execute("SET hush.intervals = on")
        for parameters in (None, (5,)):
            cursor = client.execute("SELECT count(*) AS n FROM orders WHERE amount > 5" if parameters is None
                                    else "SELECT count(*) AS n FROM orders WHERE amount > %s", parameters)  # fmt: skip
            assert [c.name for c in cursor.description or ()] == ["n", "n_low", "n_high"]
            row = cursor.fetchone()
            assert row is not None
            assert float(str(row[1])) <= float(str(row[0])) <= float(str(row[2]))


@pytest.mark.parametrize(
    ("statement", "sqlstate"),
    [
        ("SELECT * FROM users", "DP004"),
        ("SELECT user_id, count(*) FROM users GROUP BY user_id", "DP005"),
        ("SELECT count(*) FROM users WHERE user_id = 3", "DP007"),
        ("SELECT count(*) FROM users, orders", "DP003"),
        ("SELECT max(city) FROM users", "DP006"),
        ("SET hush.epsilon = 0", "22023"),
        ("SET hush.epsilon = 'nan'", "22023"),
        ("SET hush.max_groups = -1", "22023"),
    ],
)
def test_refusals_carry_their_code(served: Served, statement: str, sqlstate: str) -> None:
    with served.connect("shop") as client, pytest.raises(psycopg.Error) as refused:
        client.execute(statement.encode())
    assert refused.value.sqlstate == sqlstate


def test_probes_show_columns_and_no_rows(served: Served) -> None:
    with served.connect("shop") as client:
        for probe in ("SELECT * FROM users LIMIT 0", "SELECT * FROM users WHERE 1 = 0"):
            cursor = client.execute(probe.encode())
            assert cursor.fetchall() == []
            assert "age" in [c.name for c in cursor.description or ()]


def test_statements_around_a_query_show_the_same_release(served: Served) -> None:
    query = "SELECT status, count(*) AS n FROM orders WHERE amount > 9 GROUP BY status"
    with served.connect("shop") as client:
        rows = client.execute(query.encode()).fetchall()
        client.execute(f"CREATE TEMP TABLE kept AS {query}".encode())
        assert client.execute("SELECT * FROM kept").fetchall() == rows
        with client.transaction():
            client.execute(f"DECLARE c CURSOR FOR {query}".encode())
            assert client.execute("FETCH ALL FROM c").fetchall() == rows
        with client.cursor().copy(f"COPY ({query}) TO STDOUT WITH (FORMAT csv, NULL 'none')".encode()) as copy:
            text = b"".join(bytes(part) for part in copy).decode()
        assert text.splitlines() == [",".join("none" if v is None else str(v) for v in row) for row in rows]


def test_only_admins_see_the_dataset_account(served: Served) -> None:
    kinds = {}
    for login in ("ann", "boss"):
        with served.connect("shop", login) as client:
            kinds[login] = {str(r[0]) for r in client.execute("SELECT kind FROM hush.budget").fetchall()}
    assert kinds == {"ann": {"user", "session"}, "boss": {"dataset", "role", "user", "session"}}


def test_a_shared_session_account_spans_connections(served: Served) -> None:
    for expected in (0, 1):
        with served.connect("shop", options="-c hush.session=pool") as client:
            before = spent(client, "session")
            assert (before > 0) is bool(expected)
            client.execute(f"SELECT count(*) FROM users WHERE age > {30 + expected}".encode())


def test_fresh_noise_is_asked_and_paid_for(served: Served) -> None:
    query = "SELECT hush.low(count(*)) FROM users WHERE age < 77"
    with served.connect("shop") as client:
        client.execute("SET hush.fresh = on")
        answers = {client.execute(query).fetchone()}
        price = spent(client, "session")
        answers |= {client.execute(query).fetchone() for _ in range(9)}
        assert spent(client, "session") == pytest.approx(10 * price)
    assert price > 0
    assert len(answers) > 1  # ends are rounded to a hundredth of the noise or so: ten equal ones are one run in 10^9


def test_notices_obey_client_min_messages(served: Served) -> None:
    with served.connect("shop") as client:
        seen: list[str] = []
        client.add_notice_handler(lambda n: seen.append(str(n.message_primary)))
        client.execute("SELECT count(*) FROM users WHERE age < 71")
        assert len(seen) == 1
        assert seen[0].startswith("charged epsilon")
        client.execute("SET client_min_messages = warning")
        client.execute("SELECT count(*) FROM users WHERE age < 72")
        assert len(seen) == 1


def test_a_fewer_tables_role_does_not_see_the_others(served: Served) -> None:
    with served.connect("shop", "clerk") as client:
        client.execute("SELECT count(*) FROM orders")
        with pytest.raises(psycopg.errors.UndefinedTable):
            client.execute("SELECT count(*) FROM users")


def test_last_query_and_policy_are_shown(served: Served) -> None:
    with served.connect("shop") as client:
        client.execute("SELECT count(*), avg(amount) FROM orders WHERE amount > 31")
        last = client.execute('SELECT "column", sd FROM hush.last_query').fetchall()
        assert [row[0] for row in last] == ["count(*)", "avg(amount)"]
        assert last[0][1] is not None
        assert last[1][1] is None
        policy = client.execute(
            """SELECT "column", bounds, status FROM hush.policy WHERE "table" = 'orders'"""
        ).fetchall()
        assert {row[2] for row in policy} == {"in force"}
