"""One person with a value of its own in every row, or who is the value: distinct counts move within the bounds."""

from __future__ import annotations

import pytest

from tests.attacks.hostile import PEOPLE, Attacked, Client, refusal, rows, spent, value

HOURS = 'SELECT extract(hour FROM "at") AS hour, count(DISTINCT "at") FROM events GROUP BY 1 ORDER BY 1'


def both(attacked: Attacked, sql: str) -> tuple[list[tuple[object, ...]], list[tuple[object, ...]]]:
    """The rows with the target and without, nearly without noise."""
    found = []
    for dataset in ("hostile", "without"):
        with attacked.connect(dataset, epsilon=100) as client:
            client.execute("SET hush.nonnegative = off")
            found.append(rows(client, sql))
    return found[0], found[1]


def test_a_value_of_its_own_in_every_row_counts_as_often_as_the_bounds_allow(attacked: Attacked) -> None:
    for sql in (
        'SELECT count(DISTINCT "at") FROM events',
        'SELECT count(DISTINCT extract(epoch FROM "at") * 1000 + n) FROM events',
        'SELECT count(DISTINCT e."at") FROM events e JOIN people p ON p.pid = e.pid',
    ):
        ((ours,),), ((theirs,),) = both(attacked, sql)
        assert isinstance(ours, int)
        assert isinstance(theirs, int)
        assert 5 * PEOPLE - 60 < theirs < 5 * PEOPLE + 60
        # 20 rows of one person, and 40 for noise of sd below 2.6 on both sides: false alarms below 1e-9
        assert abs(ours - theirs) <= 20 + 40


def test_the_same_in_groups(attacked: Attacked) -> None:
    ours, theirs = both(attacked, HOURS)
    moved = [int(str(a)) - int(str(b)) for (_, a), (_, b) in zip(ours, theirs, strict=True)]
    assert len(moved) == 25
    # at most 5 values in each of 4 groups; 25 differences of sd below 2 add up to less than 60 but for 1e-9
    assert abs(sum(moved)) <= 20 + 60
    assert max(map(abs, moved)) <= 5 + 15


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT count(DISTINCT pid + 0) FROM people",
        "SELECT count(DISTINCT -pid) FROM people",
        "SELECT count(DISTINCT pid::text) FROM people",
        "SELECT count(DISTINCT coalesce(pid, 0)) FROM events",
        "SELECT count(DISTINCT CASE WHEN pid = 777 THEN v END) FROM people",
        "SELECT count(DISTINCT p.name || e.pid::text) FROM people p JOIN events e ON p.pid = e.pid",
        "SELECT count(DISTINCT p) FROM (SELECT pid * 2 AS p FROM people) t",
        "SELECT count(DISTINCT name) FILTER (WHERE pid = 777) FROM people",
    ],
)
def test_the_unit_in_an_expression_is_no_value_to_count(sql: str, eve: Client) -> None:
    assert refusal(eve, sql)[0] == "DP007"


def test_one_name_more_is_not_seen(attacked: Attacked) -> None:
    """At a usual epsilon the noise of a single value is larger than one person."""
    with attacked.connect(epsilon=0.5) as client:
        assert value(client, "SELECT hush.sd(count(DISTINCT name)) FROM people") > 5
        assert value(client, "SELECT hush.sd(count(DISTINCT name) FILTER (WHERE v > 9)) FROM people") > 5


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT count(DISTINCT name), count(*) FROM people",
        "SELECT name, count(DISTINCT kind) FROM people GROUP BY name ORDER BY 1",
        HOURS,
    ],
)
def test_asked_again_it_is_the_stored_answer_and_free(sql: str, attacked: Attacked) -> None:
    with attacked.connect(epsilon=5) as client:
        first, paid = rows(client, sql), spent(client)
        assert first
        assert [rows(client, sql) for _ in range(5)] == [first] * 5
        assert spent(client) == paid
        client.execute("SET hush.fresh = on")
        # a fresh answer is the first again with a chance below 0.04 (two counts of sd 1.5): 20 of them below 1e-27
        assert any(rows(client, sql) != first for _ in range(20))
        assert spent(client) > paid
