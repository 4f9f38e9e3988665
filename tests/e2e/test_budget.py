"""What is charged, to whom, and what the client is told about it. One login a test: accounts live on."""

from __future__ import annotations

import re
import time
from datetime import UTC, datetime, timedelta

import psycopg
import pytest
from psycopg.rows import DictRow, dict_row

from tests.e2e.served import Client, Served

ONE_PERSON = "SELECT count(*) FROM users WHERE city = 'Nowhere'"


def notices_of(client: Client) -> list[str]:
    """Severity and message of notices, as they come, without those that depend on how the noise fell."""
    heard: list[str] = []

    def hear(notice: psycopg.errors.Diagnostic) -> None:
        if not re.search("the noise is larger than|averages are NULL", str(notice.message_primary)):
            heard.append(f"{notice.severity}: {notice.message_primary}")

    client.add_notice_handler(hear)
    return heard


def budget(client: Client) -> dict[str, DictRow]:
    with client.cursor(row_factory=dict_row) as cursor:
        return {str(row["kind"]): row for row in cursor.execute("SELECT * FROM hush.budget")}


def spent(client: Client) -> float:
    return float(budget(client)["user"]["epsilon_spent"])


def test_same_question_a_thousand_times_is_one_answer(served: Served) -> None:
    with served.connect("spend", "u1") as client:
        first = client.execute(ONE_PERSON).fetchall()
        paid = spent(client)
        answers = {tuple(client.execute(ONE_PERSON).fetchall()) for _ in range(999)}
        assert answers == {tuple(first)}
        assert spent(client) == paid > 0


def test_fresh_answers_end_with_a_spent_budget(served: Served) -> None:
    with served.connect("spend", "u2") as client:
        client.execute("SET hush.fresh = on")
        answered = 0
        with pytest.raises(psycopg.Error) as refused:
            for answered in range(1000):  # noqa: B007 - how far it got is the point
                client.execute(ONE_PERSON)
        error = refused.value.diag
        assert error.sqlstate == "DP001"
        assert error.message_detail
        assert error.message_hint
        assert answered == 13, "a session of epsilon 2 holds 13 questions of 0.5"
        assert client.execute("SELECT 1").fetchall() == [(1,)]


def test_other_spellings_of_a_question_are_the_same_release(served: Served) -> None:
    with served.connect("spend", "u3") as client:
        client.execute("SELECT plan, count(*) FROM users GROUP BY plan")
        paid = spent(client)
        for same in (
            'select U.PLAN as p, COUNT(*) n from public."users" U group by 1 order by n desc -- other words',
            "SELECT * FROM (SELECT plan, count(*) AS n FROM users GROUP BY plan) AS t WHERE n > 9 ORDER BY n LIMIT 100",
            "SELECT count(*) FROM (SELECT plan, count(*) AS n FROM users GROUP BY plan) t",
            "WITH x AS (SELECT * FROM users) SELECT plan, count(*) * 2 FROM x GROUP BY plan HAVING count(*) > 3",
            "SELECT plan, count(*), count(*) + 1 FROM users WHERE true GROUP BY plan",
        ):
            client.execute(same.encode())
        assert spent(client) == paid


def test_two_blocks_share_one_charge(served: Served) -> None:
    with served.connect("spend", "u4") as client:
        client.execute("SELECT count(*) FROM orders")
        one = spent(client)
    with served.connect("spend", "u5") as client:
        client.execute("SELECT (SELECT count(*) FROM users WHERE age > 3), (SELECT count(*) FROM users WHERE age > 6)")
        assert spent(client) == pytest.approx(one, rel=1e-6)


def test_notice_says_what_was_charged_and_is_left(served: Served) -> None:
    with served.connect("spend", "u6") as client:
        heard = notices_of(client)
        client.execute(ONE_PERSON)
        client.execute(ONE_PERSON)
        left = "left: user 2.941 of 3, session 1.918 of 2"
        free = "charged nothing: your accounts paid for this release already"
        assert heard == [f"NOTICE: charged epsilon 0.5; {left}", f"NOTICE: {free}; {left}"]
        client.execute("SET client_min_messages = warning")
        client.execute(ONE_PERSON)
        assert len(heard) == 2


def test_warning_when_an_account_runs_low(served: Served) -> None:
    with served.connect("spend", "u7") as client:
        heard = notices_of(client)
        client.execute("SET hush.epsilon = 1.85")
        client.execute(ONE_PERSON)
        assert heard[1:] == ["WARNING: 80% of the session account's budget is spent"]


def test_a_user_sees_own_accounts_and_an_admin_the_dataset(served: Served) -> None:
    with served.connect("spend", "u8") as client:
        client.execute(ONE_PERSON)
        assert budget(client).keys() == {"user", "session"}
        mine = budget(client)["user"]
        assert (mine["account"], mine["queries_left"]) == ("u8", 27)
        assert float(mine["epsilon_limit"]) == pytest.approx(3)
    with served.connect("spend", "boss") as admin:
        assert budget(admin).keys() == {"dataset", "role", "user", "session"}
        assert float(budget(admin)["dataset"]["epsilon_spent"]) > 0


def wait_for_the_month_to_end() -> None:
    """If that is less than a minute away: a budget that comes back in the middle of a test is another one."""
    while (soon := datetime.now(UTC) + timedelta(minutes=1)).day == 1 and soon.hour == soon.minute == 0:
        time.sleep(1)


def test_a_budget_that_comes_back_is_told_with_its_worst_case_everywhere(served: Served) -> None:
    wait_for_the_month_to_end()
    with served.connect("spend", "monthly") as client:
        heard = notices_of(client)
        client.execute(ONE_PERSON)
        left = "user 2.941 of 3 this month (at worst 20 over the lifetime), session 1.918 of 2"
        assert heard == [f"NOTICE: charged epsilon 0.5; left: {left}"]
        mine, session = (budget(client)[kind] for kind in ("user", "session"))
        now = datetime.now(UTC)
        assert timedelta(0) < mine["window_ends"] - now <= timedelta(days=31)
        assert mine["window_ends"].astimezone(UTC).day == 1
        assert float(mine["lifetime_epsilon"]) == pytest.approx(20)
        assert session["window_ends"] is None
        assert float(session["lifetime_epsilon"]) == pytest.approx(2)
        assert mine["everyone_epsilon"] == session["everyone_epsilon"] == pytest.approx(20)
        lines = [str(row[0]) for row in client.execute(f"EXPLAIN {ONE_PERSON}")]
        assert "Remaining, user: epsilon 2.941 of 3 this month (at worst 20 over the lifetime)" in lines
        (document,) = client.execute(f"EXPLAIN (FORMAT JSON) {ONE_PERSON}").fetchall()
        told = next(a for a in document[0][0]["accounts"] if a["account"] == "user")
        assert (told["refresh"], told["lifetime_epsilon"]) == ("month", pytest.approx(20))
    assert (
        "budget of monthly: epsilon 3 comes back every month; worst case in a calendar year" in served.log.read_text()
    )


def test_another_user_pays_for_a_stored_answer_as_if_it_were_new(served: Served) -> None:
    question = "SELECT count(*) FROM users WHERE age = 33"
    with served.connect("spend", "u9") as first, served.connect("spend", "u10") as second:
        assert first.execute(question).fetchall() == second.execute(question).fetchall()
        assert spent(first) == spent(second) > 0


def test_named_session_account_is_shared_by_connections_of_one_login(served: Served) -> None:
    def session(client: Client) -> DictRow:
        return budget(client)["session"]

    with served.connect("spend", "u11") as one, served.connect("spend", "u11") as two:
        one.execute("SET hush.session = pool")
        one.execute(ONE_PERSON)
        assert session(two)["epsilon_spent"] == 0
        two.execute("SET hush.session = 'pool'")
        assert session(two)["epsilon_spent"] == session(one)["epsilon_spent"] > 0
        assert session(two)["account"] == "pool"
    with served.connect("spend", "u12") as stranger:
        stranger.execute("SET hush.session = pool")
        assert session(stranger)["epsilon_spent"] == 0, "names are each login's own"


def test_parse_describe_explain_and_empty_results_are_free(served: Served) -> None:
    with served.connect("spend", "u13") as client:
        client.execute(f"PREPARE p AS {ONE_PERSON}")
        client.execute(f"EXPLAIN {ONE_PERSON}")
        client.execute(f"EXPLAIN (FORMAT JSON) {ONE_PERSON}")
        client.execute("SELECT * FROM users LIMIT 0")
        client.execute("SELECT * FROM users WHERE false")
        pg = client.pgconn
        assert pg.prepare(b"s", ONE_PERSON.encode()).status == psycopg.pq.ExecStatus.COMMAND_OK
        assert pg.describe_prepared(b"s").ftype(0) == 20
        with pytest.raises(psycopg.errors.UndefinedColumn):
            client.execute("SELECT count(*) FROM users WHERE nothing = 1")
        assert spent(client) == 0


def test_prepared_statement_answers_again_for_free(served: Served) -> None:
    with served.connect("spend", "u14") as client:
        answers = [client.execute("SELECT count(*) FROM users WHERE age > %s", (50,), prepare=True).fetchall()
                   for _ in range(5)]  # fmt: skip
        paid = spent(client)
        assert len({tuple(a) for a in answers}) == 1
        client.execute("SELECT count(*) FROM users WHERE age > %s", (51,), prepare=True)
        assert spent(client) > paid, "another parameter is another question"


def test_history_and_last_query(served: Served) -> None:
    with served.connect("spend", "u15") as client:
        client.execute("SELECT count(*), sum(age), avg(age) FROM users WHERE kids = 1")
        client.execute("SELECT count(*), sum(age), avg(age) FROM users WHERE kids = 1")
        with client.cursor(row_factory=dict_row) as cursor:
            history = cursor.execute("SELECT * FROM hush.history ORDER BY at").fetchall()
            last = cursor.execute("SELECT * FROM hush.last_query").fetchall()
    assert [h["outcome"] for h in history] == ["answered", "answered"]
    assert [h["reused"] for h in history] == [False, True]
    assert "sum(age)" in history[0]["query"]
    assert float(history[0]["epsilon"]) == pytest.approx(0.5, rel=1e-3)
    assert float(history[1]["epsilon"]) == 0
    assert [row["column"] for row in last] == ["count(*)", "sum(age)", "avg(age)"]
    assert all(row["reused"] for row in last)
    assert last[0]["sd"] > 0
    assert last[0]["half_width_95"] > last[0]["sd"]


def test_max_charge_refuses_before_anything_is_spent(served: Served) -> None:
    with served.connect("spend", "u16") as client:
        client.execute("SET hush.max_charge = 0.1")
        with pytest.raises(psycopg.Error) as refused:
            client.execute(ONE_PERSON)
        assert refused.value.sqlstate == "DP007"
        client.execute("SET hush.epsilon = 0.1")
        client.execute(ONE_PERSON)
        assert 0 < spent(client) <= 0.1
