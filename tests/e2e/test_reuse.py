"""Answers that follow from what was paid for cost nothing, and say so."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from tests.e2e.served import Client, Served
from tests.e2e.test_budget import notices_of, spent
from tests.e2e.test_price import estimated

SOURCE = "SELECT plan, newsletter, count(*), avg(steps) FROM users WHERE age > 21 GROUP BY plan, newsletter"
NOTE = "NOTICE: computed from another answer that your accounts paid for; SET hush.fresh = on asks anew"


def rows(client: Client, text: str) -> list[Sequence[Any]]:
    return list(client.execute(text.encode()).fetchall())


def by_first(client: Client, text: str) -> dict[Any, Any]:
    return dict(map(tuple, rows(client, text)))


def test_what_follows_from_an_answer_is_computed_from_it(served: Served) -> None:
    with served.connect("spend", "u45", options="-c hush.nonnegative=off -c hush.digits=all") as client:
        heard = notices_of(client)
        cells = rows(client, SOURCE)
        paid = spent(client)
        answers = {
            "SELECT newsletter, plan, avg(steps), count(*) FROM users WHERE age > 21 GROUP BY 1, 2 LIMIT 2": 2,
            "SELECT plan, avg(steps) AS a FROM users WHERE age > 21 GROUP BY plan HAVING count(*) > 0 ORDER BY a": None,
            "SELECT plan, avg(steps) FROM users WHERE 21 < age AND plan IN ('pro', 'free') GROUP BY plan": 2,
            "SELECT newsletter, avg(steps) FROM users WHERE age >= 22 AND plan = 'pro' GROUP BY newsletter": 3,
        }
        for text, count in answers.items():
            (_, charge, *_), found = rows(client, f"EXPLAIN {text}"), rows(client, text)
            assert charge == ("Charge to your accounts if run now: epsilon 0",), text
            assert count is None or len(found) == count
            assert heard[-1] == NOTE
            assert heard[-2].startswith("NOTICE: charged nothing")
            heard.clear()
        assert spent(client) == paid
        for plan, n, _ in rows(client, "SELECT plan, count(*), avg(steps) FROM users WHERE age > 21 GROUP BY plan"):
            assert n == pytest.approx(sum(c[2] for c in cells if c[0] == plan), abs=1.5), "rounded once or three times"
        told = "hush.low(count(*)), count(*), hush.high(count(*)), hush.sd(count(*)), avg(steps)"
        ((low, n, high, sd, _),) = rows(
            client, f"SELECT {told} FROM users WHERE age > 21 AND newsletter AND plan = 'pro'"
        )
        assert low < n < high
        assert client.execute("SELECT sd FROM hush.last_query").fetchone() == (sd,)


def test_averages_follow_from_sums_and_counts_that_were_asked_by_themselves(served: Served) -> None:
    with served.connect("spend", "u43", options="-c hush.nonnegative=off -c hush.digits=all") as client:
        heard = notices_of(client)
        sums = by_first(client, "SELECT newsletter, sum(steps) FROM users WHERE age > 20 GROUP BY 1")
        counts = by_first(client, "SELECT newsletter, count(*) FROM users WHERE age > 20 GROUP BY 1")
        paid = spent(client)
        heard.clear()
        averages = "SELECT newsletter, avg(steps), hush.sd(avg(steps)) FROM users WHERE age > 20 GROUP BY 1"
        plan = [line for (line,) in rows(client, f"EXPLAIN {averages}")]
        assert any("computed from 2 releases that your accounts paid for; hush.fresh" in line for line in plan)
        for newsletter, average, sd in rows(client, averages):
            rounded = 0.6 / (counts[newsletter] - 0.5)  # counts are whole, and so is a little of the sum
            assert float(average) == pytest.approx(float(sums[newsletter]) / counts[newsletter], rel=rounded)
            assert 0 < sd < float(average)
        assert heard[-1] == NOTE
        told = by_first(
            client,
            "SELECT CASE WHEN newsletter THEN 'yes' ELSE 'no' END, count(*) FROM users WHERE age > 20 GROUP BY 1",
        )
        assert told["yes"] == counts[True]
        assert spent(client) == paid


@pytest.mark.parametrize(("consistency", "age"), [("off", 23), ("on", 24)])
def test_totals_follow_from_the_grouping_sets_that_show_them(served: Served, consistency: str, age: int) -> None:
    sets = (f"SELECT grouping(plan, newsletter), plan, count(*) FROM users WHERE age > {age}"
            " GROUP BY ROLLUP (plan, newsletter)")  # fmt: skip
    with served.connect("spend", "u44", options=f"-c hush.nonnegative=off -c hush.consistency={consistency}") as client:
        cells = {(missing, plan): n for missing, plan, n in rows(client, sets)}
        paid, heard = spent(client), notices_of(client)
        found = rows(client, f"SELECT plan, count(*) FROM users WHERE age > {age} GROUP BY plan")
        assert {plan: n for plan, n, *_ in found} == {plan: n for (missing, plan), n in cells.items() if missing == 1}
        assert heard[-1] == NOTE
        assert spent(client) == paid
        (line,) = [t for (t,) in rows(client, f"EXPLAIN SELECT count(*) FROM users WHERE age > {age}") if "Reuse" in t]
        assert "computed from a release that your accounts paid for; hush.fresh" in line, "one number, none added up"
        assert rows(client, f"SELECT count(*) FROM users WHERE age > {age}") == [(cells[3, None],)]


def test_what_would_be_too_noisy_or_is_asked_anew_is_paid(served: Served) -> None:
    total = "SELECT count(*) FROM users WHERE age > 22"
    grouped = "SELECT age, count(*) FROM users WHERE age > 22 GROUP BY age"
    with served.connect("spend", "u46") as client:
        told = {(r["statement"], r["reused"]) for r in estimated(client, f"{grouped}; {total}; {grouped}")}
        assert told >= {(1, False), (2, False), (3, True)}
        rows(client, grouped)
        paid = spent(client)
        rows(client, total)
        assert spent(client) > paid, "added up from some ninety groups it would be nine times as noisy"
    with served.connect("spend", "u47") as client:
        two = "SELECT newsletter, count(*) FROM users WHERE age > 22 GROUP BY newsletter"
        told = {(r["statement"], r["reused"]) for r in estimated(client, f"{two}; {total}")}
        assert told >= {(1, False), (2, True)}
        rows(client, two)
        paid = spent(client)
        rows(client, total)
        assert spent(client) == paid
        client.execute("SET hush.epsilon = 0.7")
        rows(client, total)
        assert spent(client) > paid, "who asks for more accuracy is answered anew"
        paid = spent(client)
        client.execute("RESET hush.epsilon; SET hush.fresh = on")
        rows(client, total)
        assert spent(client) > paid


def test_answers_of_others_are_not_computed_from(served: Served) -> None:
    two = "SELECT newsletter, count(*) FROM users WHERE age > 25 GROUP BY newsletter"
    total = "SELECT count(*) FROM users WHERE age > 25"
    with served.connect("spend", "u48") as first, served.connect("spend", "u49") as second:
        rows(first, two)
        heard = notices_of(second)
        rows(second, total)
        assert heard[0].startswith("NOTICE: charged epsilon 0.5")
        assert len(heard) == 1
    with served.connect("spend", "u48") as again:
        heard = notices_of(again)
        rows(again, total)
        assert heard[0].startswith("NOTICE: charged epsilon 0.5"), "the new session pays, the login does not"
        assert heard[1] == NOTE
