"""The hush.* settings: what each does, and that a bad value fails where it is set."""

from __future__ import annotations

import math
from datetime import UTC

import psycopg
import pytest

from tests.e2e.served import Client, Served

COUNT = "SELECT count(*) FROM users"


@pytest.mark.parametrize(
    "setting",
    [
        "hush.epsilon = 0", "hush.epsilon = 101", "hush.epsilon = 'NaN'", "hush.epsilon = 'infinity'",
        "hush.epsilon = lots", "hush.epsilon = -1", "hush.epsilon TO '1e999'", "hush.max_rows_per_group = 0",
        "hush.max_rows_per_group = 1.5", "hush.max_groups = -3", "hush.intervals = maybe", "hush.fresh = 2",
        "hush.nonnegative = ''''", "hush.session = 'a/b'", "hush.max_charge = 1000", "hush.target_error = 0",
        "hush.weights = 'x'",
        "hush.digits = 2", "hush.confirm = maybe", "hush.notes = 2",
        "hush.nothing = 1", "HUSH.Epsilon = 0", '"hush".epsilon = 0', 'hush."epsilon" = 0',
    ],
)  # fmt: skip
@pytest.mark.parametrize("how", ["SET {}", "SET SESSION {}", "SET LOCAL {}", "set /* x */ {};"])
def test_bad_value_fails_at_set(served: Served, setting: str, how: str) -> None:
    with served.connect("shop") as client, pytest.raises(psycopg.Error) as refused:
        client.execute("BEGIN")
        client.execute(how.format(setting).encode())
    assert refused.value.sqlstate == "22023", setting


@pytest.mark.parametrize("setting", ["hush.epsilon = 0.1", "hush.epsilon TO '2'", "hush.epsilon = DEFAULT",
                                     "hush.max_groups = 3", "hush.intervals = ON", "hush.session = 'my-pool_1'",
                                     "hush.session = ''", "hush.target_error = 20", "hush.weights = 3",
                                     "hush.digits = 'ALL'", "hush.confirm = on",
                                     "hush.notes = yes", "hush.digits = noise"])  # fmt: skip
def test_good_value_is_taken(served: Served, setting: str) -> None:
    with served.connect("shop") as client:
        client.execute(f"SET {setting}".encode())
        client.execute(COUNT)


@pytest.mark.parametrize("way", ["set_config", "options", "update"])
def test_bad_value_that_came_in_another_way_never_takes_effect(served: Served, way: str) -> None:
    options = {"options": "-c hush.epsilon=0"} if way == "options" else {}
    with pytest.raises(psycopg.Error) as refused, served.connect("shop", **options) as client:
        if way == "set_config":
            client.execute("SELECT set_config('hush.epsilon', '0', false)")
        elif way == "update":
            client.execute("UPDATE pg_settings SET setting = '0' WHERE name = 'hush.epsilon'")
        client.execute(COUNT)
    assert refused.value.sqlstate in ("22023", "42704", "DP007")


def test_epsilon_sets_the_noise(served: Served) -> None:
    with served.connect("shop") as client:
        sds = []
        for epsilon in ("0.1", "10"):
            client.execute(f"SET hush.epsilon = {epsilon}".encode())
            client.execute(COUNT)
            sds.append(client.execute("SELECT sd FROM hush.last_query").fetchall()[0][0])
        assert sds[0] > 20 * sds[1]
        assert client.execute("SHOW hush.epsilon").fetchall() == [("10",)]


def test_digits_end_where_the_noise_begins(served: Served) -> None:
    """The same numbers, free: with the digits that their noise leaves, and with all."""
    query = "SELECT plan, sum(height)::float8 AS s, hush.low(sum(height)) AS low FROM users GROUP BY plan ORDER BY 1"
    with served.connect("shop") as client:
        client.execute("SET hush.epsilon = 0.2")
        few = client.execute(query).fetchall()
        ((sd,),) = client.execute("SELECT sd FROM hush.last_query LIMIT 1").fetchall()
        client.execute("SET hush.digits = 'all'")
        all_digits = client.execute(query).fetchall()
        assert client.execute("SELECT bool_and(reused) FROM hush.last_query").fetchall() == [(True,)]
    step = 10.0 ** (math.floor(math.log10(sd)) - 1)
    assert few != all_digits
    for (_, value, low), (_, exact, _) in zip(few, all_digits, strict=True):
        assert value == pytest.approx(round(value / step) * step, rel=1e-9)
        assert low == pytest.approx(round(low / step) * step, rel=1e-9)
        assert abs(value - exact) <= step / 2


def test_notices_come_in_a_column_where_they_are_wanted(served: Served) -> None:
    query = "SELECT plan, count(*) AS n FROM users WHERE age > 31 GROUP BY plan ORDER BY 2 DESC LIMIT 2"
    with served.connect("shop", options="-c hush.notes=on") as client:
        for prepare, begins in ((False, "charged epsilon "), (True, "charged nothing"), (True, "charged nothing")):
            cursor = client.execute(query, prepare=prepare)
            assert [c.name for c in cursor.description or ()] == ["plan", "n", "_note"]
            found = cursor.fetchall()
            assert len(found) == 2
            assert all(str(row[2]).startswith(begins) for row in found)
        for outside in ("SELECT 1", "SELECT max(n) FROM (SELECT plan, count(*) AS n FROM users GROUP BY plan) z",
                        "SELECT count(*) FROM users UNION ALL SELECT count(*) FROM orders"):  # fmt: skip
            assert len(client.execute(outside.encode()).description or ()) == 1
        client.execute("SET client_min_messages = error")
        assert {row[2] for row in client.execute(query).fetchall()} == {None}
        client.execute("SET hush.notes = off")
        assert len(client.execute(f"{query} ").description or ()) == 2


def test_a_note_stands_behind_intervals_and_quotes_what_it_says(served: Served) -> None:
    query = """SELECT count(*) AS "it's", 'hush note' AS t FROM users WHERE city = ''''"""
    with served.connect("shop", options="-c hush.notes=on -c hush.intervals=on") as client:
        cursor = client.execute(query.encode())
        assert [c.name for c in cursor.description or ()] == ["it's", "t", "it's_low", "it's_high", "_note"]
        ((*_, note),) = cursor.fetchall()
        assert "larger than the number" in str(note)


def test_set_local_ends_with_the_transaction(served: Served) -> None:
    with served.connect("shop") as client:
        client.execute("BEGIN")
        client.execute("SET LOCAL hush.epsilon = 0.5")
        client.execute(COUNT)
        low = client.execute("SELECT epsilon FROM hush.last_query").fetchall()
        client.execute("COMMIT")
        client.execute(COUNT)
        assert client.execute("SELECT epsilon FROM hush.last_query").fetchall() != low


def test_setting_in_the_same_query_string_counts(served: Served) -> None:
    with served.connect("shop") as client:
        client.execute(b"SET hush.epsilon = 0.25; SELECT count(*) FROM users WHERE age = 44")
        ((epsilon,),) = client.execute("SELECT epsilon FROM hush.last_query").fetchall()
        assert epsilon == pytest.approx(0.25, rel=1e-3)


@pytest.mark.parametrize("extended", [False, True])
def test_intervals_stand_beside_their_aggregates(served: Served, extended: bool) -> None:
    with served.connect("shop") as client:
        # numbers as they are drawn: one that is moved for the sake of the others' signs may leave its interval
        client.execute("SET hush.intervals = on; SET hush.nonnegative = off")
        cursor = client.execute(
            "SELECT plan, count(*) AS n, round(avg(age)), sum(age) FILTER (WHERE kids = 1), -2 * avg(age)"
            " AS twice FROM users"
            " WHERE plan IS NOT DISTINCT FROM 'pro' GROUP BY plan",
            binary=extended,
        )
        assert [c.name for c in cursor.description or ()] == [
            "plan", "n", "round", "sum", "twice", "n_low", "n_high", "sum_low", "sum_high", "twice_low", "twice_high"
        ]  # fmt: skip
        (row,) = [r for r in cursor.fetchall() if r[0] == "pro"]
        assert row[5] - 1 <= row[1] <= row[6] + 1, "the count is rounded, its interval is not"
        assert row[7] < row[3] < row[8]
        assert row[9] < row[4] < row[10] < 0
        client.execute("SET hush.intervals = off")
        assert len(client.execute(COUNT, binary=extended).description or ()) == 1


def test_intervals_work_with_a_prepared_statement_made_before(served: Served) -> None:
    with served.connect("shop") as client:
        client.execute("SET hush.intervals = on")
        for _ in range(3):
            cursor = client.execute("SELECT count(*) FROM users WHERE age > %s", (30,), prepare=True)
            assert [c.name for c in cursor.description or ()] == ["count", "count_low", "count_high"]
        client.execute("SET hush.intervals = off")
        cursor = client.execute("SELECT count(*) FROM users WHERE age > %s", (30,), prepare=True)
        assert (cursor.fetchall() or [()])[0][0] > 500


def test_nonnegative_counts_and_their_sum(served: Served) -> None:
    question = "SELECT age, count(*) FROM users GROUP BY age"
    with served.connect("shop") as client:
        client.execute("SET hush.epsilon = 0.05")
        assert min(n for _, n in client.execute(question).fetchall()) >= 0
        client.execute("SET hush.nonnegative = off")
        raw = [n for _, n in client.execute(question).fetchall()]
        assert min(raw) < 0
        client.execute("SET hush.nonnegative = on")
        named = question.replace("count(*)", "count(*) AS n")
        ((total,),) = client.execute(f"SELECT sum(n) FROM ({named}) t").fetchall()
        assert total == sum(raw), "counts that are added up stay unbiased"


def test_bounds_can_only_be_lowered(served: Served) -> None:
    def plan(client: Client) -> str:
        rows = client.execute("EXPLAIN SELECT status, count(*) FROM orders GROUP BY status").fetchall()
        return next(str(line) for (line,) in rows if "Bounds" in str(line))

    with served.connect("shop") as client:
        assert "3 rows per unit, 3 per group, 3 groups" in plan(client)
        client.execute("SET hush.max_rows_per_group = 2")
        client.execute("SET hush.max_groups = 1")
        assert '2 per group, 1 group (policy, table "orders", lowered' in plan(client)
        client.execute("SET hush.max_rows_per_group = 200")
        client.execute("SET hush.max_groups = 900")
        assert "3 per group, 3 groups" in plan(client)


def test_fresh_asks_again(served: Served) -> None:
    with served.connect("shop") as client:
        client.execute("SET hush.epsilon = 0.1")
        same = {client.execute(COUNT).fetchall()[0] for _ in range(5)}
        client.execute("SET hush.fresh = on")
        fresh = {client.execute(COUNT).fetchall()[0] for _ in range(8)}
        assert len(same) == 1
        assert len(fresh) > 1  # noise of sd 41: 8 equal answers are one run in 10^14


def test_times_are_those_of_the_policys_zone_and_that_is_told(served: Served) -> None:
    condition = "seen < '2024-03-01 00:00+00'"
    question = f"SELECT date_trunc('month', seen), count(*) FROM users WHERE {condition} GROUP BY 1 ORDER BY 1"
    with served.connect("shop") as client, served.connect("truth") as exact:
        heard: list[str] = []
        client.add_notice_handler(lambda n: heard.append(str(n.message_primary)))
        client.execute("SET TimeZone = 'America/New_York'")
        client.execute("SET DateStyle = 'SQL, DMY'")
        rows = [(at.astimezone(UTC), n) for at, n in client.execute(question, binary=True).fetchall() if n]
        exact.execute("SET TimeZone = 'UTC'")
        true = [(at.astimezone(UTC), n) for at, n in exact.execute(question, binary=True).fetchall()]
        assert [at for at, _ in rows] == [at for at, _ in true]
        assert all(abs(n - m) < 5 for (_, n), (_, m) in zip(rows, true, strict=True))
        assert any("time zone UTC, constants are read in America/New_York" in text for text in heard)
        heard.clear()
        client.execute("SELECT date_trunc('month', at), count(*) FROM orders GROUP BY 1")
        assert not any("time zone" in text for text in heard)


@pytest.mark.parametrize("prepare", [None, True], ids=["query", "prepared"])
@pytest.mark.parametrize(
    "change",
    [
        "SET hush.epsilon = 3", "SELECT set_config('hush.epsilon', '3', false)",
        "SELECT count(*), set_config('hush.epsilon', '3', false) FROM users",
        "SELECT count(*) FROM users ORDER BY set_config('hush.epsilon', '3', false)",
        "BEGIN; SET LOCAL hush.epsilon = 3", "BEGIN; SET hush.epsilon = 3; COMMIT",
    ],
)  # fmt: skip
def test_a_change_between_repeats_counts_at_once(served: Served, change: str, prepare: bool | None) -> None:
    with served.connect("shop") as client:
        client.execute("SET hush.fresh = on; SET hush.epsilon = 1")

        def charged() -> float:
            client.execute(COUNT, prepare=prepare)
            return float(client.execute("SELECT epsilon FROM hush.last_query").fetchall()[0][0])

        before = charged()
        for _ in range(3):
            client.execute(COUNT, prepare=prepare)
        client.execute(change.encode())
        assert charged() > 2 * before
        client.execute("ROLLBACK")
        client.execute("RESET hush.epsilon; SET hush.epsilon = 1")
        client.execute(COUNT, prepare=prepare)
        assert charged() == before
