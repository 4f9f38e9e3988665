"""Are answers over randomized columns near the truth for a client, in either accounting and on either engine?"""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from statistics import mean, pstdev, stdev, variance

import duckdb
import psycopg
import pytest

from tests.e2e.served import Client, Document, Served, serving, write_users, write_yaml
from tests.postgres_server import private_server

PEOPLE, VISITS, NOISE = 4_000, 2, 15
VOTES = ("red", "green", "blue")
WIDTHS = 4.0  # of a 95 % interval's half: a false alarm in 10^14 answers


def truth(i: int) -> tuple[bool, str, int]:
    return i % 5 == 0, VOTES[0 if i % 2 else 1 + i % 4 // 2], 20 + i % 50


def pay(i: int) -> int:
    return i % 81


_MADE = """
create table people (id integer not null unique, ill boolean not null, vote varchar not null,
                     pay double precision not null, age integer, city varchar);
create table visits (id integer, paid boolean not null);
"""


def survey_rows() -> Iterator[str]:
    """Rows that were randomized by two coins, by keeping one value in 0.75 and by noise, as SQL."""
    drawn, people, visits = random.Random(5), list[str](), list[str]()
    for i in range(PEOPLE):
        ill, vote, age = truth(i)
        told = ill if drawn.random() < 0.5 else drawn.random() < 0.5
        kept = vote if drawn.random() < 0.75 else drawn.choice(VOTES)
        people.append(str((i, told, kept, pay(i) + drawn.gauss(0.0, NOISE), age, f"c{i % 3}")))
        paid = [ill if drawn.random() < 0.6 else drawn.choice((True, False)) for _ in range(VISITS)]
        visits += [str((i, p)) for p in paid]
    yield _MADE
    yield f"insert into people values {', '.join(people)}"
    yield f"insert into visits values {', '.join(visits)}"


def write_survey(path: Path) -> None:
    with duckdb.connect(str(path)) as connection:
        for statement in survey_rows():
            connection.execute(statement)


def write_postgres(database: str) -> str:
    """The same in the tests' own PostgreSQL: the connection string of a login that only reads."""
    server, reader = private_server(), f"{database}_reader"
    granted = f"create role {reader} login; grant select on all tables in schema public to {reader}"
    server.create(database, ";".join((*survey_rows(), granted)))
    return server.dsn(database, reader)


def policy(folder: Path, accounting: str, source: Document, dataset: str) -> Path:
    privacy: dict[str, object] = {"unit": "person", "query_epsilon": 20, "time_grid": "0ms", "accounting": accounting}
    if accounting == "zcdp":
        privacy["delta"] = 1e-6
    tables = {
        "people": {
            "unit": "id", "unit_unique": True,
            "columns": {
                "id": {"type": "integer", "key": True},
                "ill": {"type": "boolean", "randomized": {"truth": 0.5, "yes": 0.5}},
                "vote": {"type": "text", "values": list(VOTES), "randomized": {"keep": 0.75}},
                "pay": {"type": "double precision", "bounds": [0, 80], "randomized": {"gaussian": NOISE}},
                "age": {"type": "integer", "bounds": [0, 100]},
                "city": {"type": "text"},
            },
        },
        "visits": {
            "unit": "id", "max_rows_per_unit": VISITS, "joins": {"id": "people.id"},
            "columns": {
                "id": {"type": "integer", "key": True},
                "paid": {"type": "boolean", "randomized": {"keep": 0.6}},
            },
        },
    }  # fmt: skip
    return write_yaml(
        folder / f"{dataset}.yaml",
        {
            "version": 1, "dataset": dataset, "privacy": privacy, "tables": tables,
            "source": {**source, "data_version": "1"},
            "budgets": {"dataset": {"epsilon": 100_000}},
        },
    )  # fmt: skip


@pytest.fixture(scope="module")
def survey(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("survey")
    write_survey(folder / "survey.duckdb")
    write_users(folder / "users.yaml", {"ann": "analyst"})
    sources: dict[str, Document] = {
        "": {"engine": "duckdb", "path": "survey.duckdb"},
        "_elsewhere": {"engine": "postgres", "dsn": "${SURVEY_DSN}"},
    }
    policies = [policy(folder, a, s, a + where) for a in ("zcdp", "pure") for where, s in sources.items()]
    with serving(folder, policies, {"SURVEY_DSN": write_postgres("randomized_survey")}) as served:
        yield served


@pytest.fixture(params=["zcdp", "pure", "zcdp_elsewhere", "pure_elsewhere"])
def client(survey: Served, request: pytest.FixtureRequest) -> Iterator[Client]:
    with survey.connect(request.param) as connection:
        yield connection


def rows(client: Client, sql: str) -> list[tuple[object, ...]]:
    return client.execute(sql.encode()).fetchall()


EVERY = [truth(i) for i in range(PEOPLE)]
ILL = sum(ill for ill, _, _ in EVERY)
RED_ILL = sum(ill and vote == "red" for ill, vote, _ in EVERY)
AGE_OF_ILL = sum(age for ill, _, age in EVERY if ill) / ILL


@pytest.mark.parametrize(
    ("aggregate", "where", "exact"),
    [
        ("count(*)", "ill", ILL),
        ("count(*)", "not ill", PEOPLE - ILL),
        ("count(*)", "ill and vote = 'red'", RED_ILL),
        ("count(*) filter (where vote <> 'green' and ill)", "true", sum(i and v != VOTES[1] for i, v, _ in EVERY)),
        ("avg(ill::int)", "true", ILL / PEOPLE),
        ("sum(case when ill then 1 else 0 end)", "age < 45", sum(i and a < 45 for i, _, a in EVERY)),
        ("avg(age)", "ill", AGE_OF_ILL),
        ("sum(age) filter (where ill)", "true", AGE_OF_ILL * ILL),
        ("avg(pay)", "true", mean(pay(i) for i in range(PEOPLE))),
        ("var_samp(pay)", "true", variance(pay(i) for i in range(PEOPLE))),
        ("stddev(2 * pay)", "vote = 'red'", 2 * stdev(pay(i) for i in range(PEOPLE) if truth(i)[1] == "red")),
        ("var_pop(ill::int)", "true", ILL / PEOPLE * (1 - ILL / PEOPLE)),
        ("stddev_pop(age)", "ill", pstdev(age for ill, _, age in EVERY if ill)),
    ],
)  # fmt: skip
def test_estimates_are_near_the_truth(client: Client, aggregate: str, where: str, exact: float) -> None:
    """Within four half-widths of the stated interval, which the stored rows are not."""
    ((value, low, high),) = rows(
        client, f"SELECT {aggregate}, hush.low({aggregate}), hush.high({aggregate}) FROM people WHERE {where}"
    )
    half = (float(str(high)) - float(str(low))) / 2
    assert half > 0
    assert abs(float(str(value)) - exact) < WIDTHS * half


def test_groups_of_true_values_are_near_the_truth(client: Client) -> None:
    found = rows(client, "SELECT vote, count(*), hush.sd(count(*)) FROM people GROUP BY vote ORDER BY vote")
    assert [v for v, _, _ in found] == sorted(VOTES)
    for vote, number, sd in found:
        assert abs(float(str(number)) - sum(v == vote for _, v, _ in EVERY)) < 8 * float(str(sd))


def test_private_groups_and_joins_have_estimates(client: Client) -> None:
    if client.info.dbname.startswith("zcdp"):
        found = rows(client, "SELECT city, count(*), hush.sd(count(*)) FROM people WHERE ill GROUP BY city ORDER BY 1")
        assert [c for c, _, _ in found] == ["c0", "c1", "c2"]
        assert all(abs(float(str(n)) - ILL / 3) < 8 * float(str(sd)) for _, n, sd in found)
    ((number, sd),) = rows(
        client, "SELECT count(*), hush.sd(count(*)) FROM people JOIN visits USING (id) WHERE paid AND vote = 'red'"
    )
    assert abs(float(str(number)) - VISITS * RED_ILL) < 8 * float(str(sd))


def test_counts_of_units_have_estimates(client: Client) -> None:
    """What a sub-select counts for each person under a condition on a randomized column, averaged or added up."""
    counted = "(SELECT id, count(*) FILTER (WHERE paid) AS c FROM visits GROUP BY id) AS t"
    ((average, of_average, total, of_total),) = rows(
        client, f"SELECT avg(c), hush.sd(avg(c)), sum(c), hush.sd(sum(c)) FROM {counted}"
    )
    assert abs(float(str(average)) - VISITS * ILL / PEOPLE) < 8 * float(str(of_average)) < 1.0
    assert abs(float(str(total)) - VISITS * ILL) < 8 * float(str(of_total)) < 0.5 * PEOPLE


def test_the_most_frequent_true_value_is_given(client: Client) -> None:
    """Of stored ones, which lead by hundreds of rows: by k-ary response, and by fair coins."""
    for column, best in (("vote", "red"), ("ill", False)):
        mode = f"mode() WITHIN GROUP (ORDER BY {column})"
        assert rows(client, f"SELECT {mode} FROM people") == [(best,)]
        plan = " ".join(str(row[0]) for row in rows(client, f"EXPLAIN SELECT {mode} FROM people"))
        assert "rows are counted as they are stored" in " ".join(plan.split())


def test_either_engine_is_asked_for_the_same_at_the_same_price(survey: Served) -> None:
    """Which plan and which errors are stated does not tell where the rows are."""
    for accounting in ("zcdp", "pure"):
        for sql in (
            "SELECT avg(pay), count(*) FROM people WHERE ill", "SELECT vote, stddev(pay) FROM people GROUP BY vote",
            "SELECT count(*) FROM people JOIN visits USING (id) WHERE paid AND vote = 'red'",
        ):  # fmt: skip
            told = []
            for where in ("", "_elsewhere"):
                with survey.connect(accounting + where) as client:
                    told.append("\n".join(str(line) for (line,) in rows(client, f"EXPLAIN {sql}")))
            plans = [t.split("SELECT", 1)[0] for t in told]  # what comes then is in the engine's own words
            assert "Errors" in plans[0]
            assert plans[0] == plans[1]


def test_explain_tells_both_sources_of_error(client: Client) -> None:
    plan = "\n".join(str(row[0]) for row in rows(client, "EXPLAIN SELECT count(*) FROM people WHERE ill"))
    assert "Errors of count(*)" in plan
    assert "the randomization dominates from" in " ".join(plan.split())


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT count(DISTINCT id) FROM people WHERE ill",
        "SELECT max(age) FROM people WHERE ill",
        "SELECT count(*) FROM people WHERE EXISTS (SELECT FROM visits v WHERE v.id = people.id AND paid)",
        "SELECT vote, count(*) FROM people WHERE vote = 'red' GROUP BY vote",
        "SELECT count(*) FROM (SELECT id, count(*) FILTER (WHERE paid) AS c FROM visits GROUP BY id) AS t WHERE c > 1",
    ],
)
def test_what_has_no_estimate_is_refused_with_a_hint(client: Client, sql: str) -> None:
    with pytest.raises(psycopg.Error) as refused:
        rows(client, sql)
    assert refused.value.sqlstate == "DP006"
    assert refused.value.diag.message_hint
