"""What does a client get from tables whose rows were randomized before they were stored, whatever engine has them?"""

from __future__ import annotations

from collections.abc import Iterator
from statistics import variance

import psycopg
import pytest

from tests.e2e.local_data import (
    PARTIES,
    PEOPLE,
    TOWN_ROWS,
    TOWNS,
    public,
    stored,
    truth,
    write_policies,
    write_postgres,
)
from tests.e2e.served import Client, Served, serving, write_users

WIDTHS = 4.0  # of a 95 % interval's half: a false alarm in 10^14 answers
EVERY = [(*truth(i), *public(i)) for i in range(PEOPLE)]
_JOINED = """SELECT * FROM (SELECT region, count(*) AS n FROM answers GROUP BY region) AS a
JOIN (SELECT region, count(*) AS m FROM people GROUP BY region) AS b USING (region)"""
PROTECTED = "protected when collected: epsilon 8.401 for each row"


@pytest.fixture(scope="module")
def survey(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("local")
    write_users(folder / "users.yaml", {"ann": "analyst", "clerk": "clerk"}, "tables: [towns]")
    environment = {"SURVEY_DSN": write_postgres("local_survey")}
    with serving(folder, write_policies(folder, raw_select="allow"), environment) as served:
        yield served


@pytest.fixture(params=["local", "elsewhere"])
def client(survey: Served, request: pytest.FixtureRequest) -> Iterator[Client]:
    with survey.connect(request.param) as connection:
        yield connection


def rows(client: Client, sql: str) -> list[tuple[object, ...]]:
    return client.execute(sql.encode()).fetchall()


def spent(client: Client) -> float:
    ((rho,),) = rows(client, "SELECT rho_spent FROM hush.budget WHERE kind = 'user'")
    return float(str(rho))


def test_public_columns_are_answered_exactly_and_free(client: Client) -> None:
    before = spent(client)
    ages = [age for *_, age in EVERY]
    ((number, total, middle),) = rows(client, "SELECT count(*), sum(age), avg(age) FROM answers")
    assert (number, total) == (PEOPLE, sum(ages))
    assert float(str(middle)) == pytest.approx(sum(ages) / PEOPLE, rel=1e-6)
    found = rows(client, "SELECT town, count(*) FROM answers WHERE age < 30 GROUP BY town ORDER BY town")
    assert found == [(t, sum(town == t and age < 30 for *_, town, age in EVERY)) for t in TOWNS[:3]]
    counties = {name: county for name, county, _ in TOWN_ROWS}
    joined = rows(client, "SELECT county, count(*) FROM answers JOIN towns ON name = town GROUP BY county")
    assert {str(c): n for c, n in joined} == {
        c: sum(counties[town] == c for *_, town, _ in EVERY) for c in ("AG", "BE", "GR")
    }
    kept = rows(client, "SELECT name, count(person) FROM towns LEFT JOIN answers ON name = town GROUP BY name")
    assert ("Davos", 0) in kept
    assert spent(client) == before
    assert rows(client, "SELECT count(*) FROM hush.history WHERE query LIKE '%answers%' AND epsilon > 0") == [(0,)]


@pytest.mark.parametrize(
    ("aggregate", "where", "exact"),
    [
        ("count(*)", "smokes", sum(s for s, *_ in EVERY)),
        ("count(*)", "not smokes and party = 'red'", sum(not s and p == "red" for s, p, *_ in EVERY)),
        ("count(*) filter (where party <> 'green')", "region = 'north'",
         sum(p != "green" and r == "north" for _, p, _, r, *_ in EVERY)),
        ("avg(smokes::int)", "true", sum(s for s, *_ in EVERY) / PEOPLE),
        ("avg(income)", "true", sum(i for _, _, i, *_ in EVERY) / PEOPLE),
        ("sum(income)", "smokes", sum(i for s, _, i, *_ in EVERY if s)),
        ("sum(age)", "smokes", sum(a for s, *_, a in EVERY if s)),
        ("var_samp(income)", "true", variance(income for _, _, income, *_ in EVERY)),
        ("stddev(income)", "party = 'red'", variance(i for _, p, i, *_ in EVERY if p == "red") ** 0.5),
        ("var_pop(smokes::int)", "true", 0.2 * 0.8),
    ],
)  # fmt: skip
def test_estimates_are_near_the_truth_and_free(client: Client, aggregate: str, where: str, exact: float) -> None:
    """Within four half-widths of the stated interval."""
    before = spent(client)
    ((value, low, high),) = rows(
        client, f"SELECT {aggregate}, hush.low({aggregate}), hush.high({aggregate}) FROM answers WHERE {where}"
    )
    half = (float(str(high)) - float(str(low))) / 2
    assert half > 0
    assert abs(float(str(value)) - exact) < WIDTHS * half
    assert spent(client) == before


def test_groups_of_true_values_are_near_the_truth(client: Client) -> None:
    found = rows(
        client, "SELECT party, count(*), hush.sd(count(*)), avg(income) FROM answers GROUP BY party ORDER BY 1"
    )
    assert [p for p, *_ in found] == sorted(PARTIES)
    for party, number, sd, _ in found:
        assert abs(float(str(number)) - sum(p == party for _, p, *_ in EVERY)) < 8 * float(str(sd))


def test_the_answer_is_the_same_whenever_it_is_asked(survey: Served) -> None:
    """Also for others, with other settings, and whatever engine has the rows."""
    sql = "SELECT town, count(*) FILTER (WHERE smokes), sum(age) FROM answers GROUP BY town ORDER BY town"
    found = []
    for dataset in ("local", "elsewhere"):
        for setting in ("-c hush.fresh=on", "-c hush.epsilon=7", "-c hush.max_charge=0.0001"):
            with survey.connect(dataset, options=setting) as client:
                found.append(rows(client, sql))
    assert all(f == found[0] for f in found)


def test_it_is_said_what_protects_the_rows(client: Client) -> None:
    said = list[str]()
    client.add_notice_handler(lambda notice: said.append(notice.message_primary or ""))
    rows(client, "SELECT count(*) FROM answers WHERE smokes")
    assert said == [f"nothing is charged for answers: {PROTECTED.replace(': epsilon', ', epsilon')}"]
    budget = "SELECT account, epsilon_spent, outside_promise FROM hush.budget WHERE kind = 'local'"
    assert rows(client, budget) == [("answers", None, PROTECTED)]
    plan = "\n".join(str(r[0]) for r in rows(client, "EXPLAIN SELECT count(*) FROM answers WHERE smokes"))
    assert "P" + PROTECTED[1:] in plan
    assert "randomization before storing sd at most" in plan
    assert "Reuse" not in plan
    assert rows(client, "SELECT mechanism, reused FROM hush.last_query") == [("none: protected when collected", False)]
    ((error,),) = rows(client, "SELECT half_width_95 FROM hush.estimate('SELECT count(*) FROM answers') LIMIT 1")
    assert "randomization" in str(error)


def test_who_may_not_see_the_table_is_told_nothing_of_it(survey: Served) -> None:
    with survey.connect("local", "clerk") as clerk:
        assert rows(clerk, "SELECT count(*) FROM hush.budget WHERE kind = 'local'") == [(0,)]
        for sql in ("SELECT count(*) FROM answers", "SELECT * FROM answers"):
            with pytest.raises(psycopg.Error) as refused:
                clerk.execute(sql.encode())
            assert refused.value.sqlstate == "42P01"


def test_rows_are_shown_as_they_are_stored(client: Client) -> None:
    sql = "SELECT person, smokes, party, income, region, town, age FROM answers ORDER BY person"
    assert rows(client, sql) == [r for r in stored()]  # noqa: C416  # of one type
    found = rows(client, "SELECT person, county FROM answers JOIN towns ON name = town WHERE smokes ORDER BY 1 LIMIT 3")
    assert len(found) == 3
    with client.cursor().copy("COPY (SELECT person FROM answers) TO STDOUT") as copy:
        assert len(list(copy)) == PEOPLE


def test_blocks_of_a_statement_are_charged_if_they_are_promised(client: Client) -> None:
    before = spent(client)
    rows(client, "SELECT count(*) FROM people WHERE ill")
    alone = spent(client) - before
    assert alone > 0
    for sql in (
        "SELECT (SELECT count(*) FROM answers WHERE smokes), (SELECT count(*) FROM people WHERE NOT ill)",
        "SELECT count(*) FROM people WHERE ill AND 46 < (SELECT avg(age) FROM answers) AND region = 'north'",
        "SELECT count(*) FROM answers WHERE age > (SELECT least(count(*), 50) FROM people WHERE region = 'south')",
        _JOINED,
    ):
        at = spent(client)
        rows(client, sql)
        assert spent(client) - at == pytest.approx(alone), sql
    at = spent(client)
    rows(client, "SELECT count(*) FROM answers WHERE age > (SELECT avg(age) FROM answers WHERE smokes)")
    assert spent(client) == at


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT count(DISTINCT town) FROM answers",
        "SELECT max(age) FROM answers",
        "SELECT region, count(*) FROM answers GROUP BY ROLLUP (region)",
        "SELECT count(*) FROM answers a JOIN answers b USING (person)",
        "SELECT count(*) FROM answers WHERE income > 30",
        "SELECT smokes, count(*) FROM answers WHERE smokes GROUP BY smokes",
    ],
)
def test_what_has_no_answer_is_refused_with_a_hint(client: Client, sql: str) -> None:
    with pytest.raises(psycopg.Error) as refused:
        rows(client, sql)
    assert refused.value.sqlstate in ("DP003", "DP006")
    assert refused.value.diag.message_hint
