"""What a local table, whose answers are free and whose rows are shown, says about private tables: nothing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from tests.attacks.hostile import refusal, rows, spent
from tests.e2e.local_data import survey_policy, write_duckdb, write_policies, write_postgres
from tests.e2e.served import PASSWORD, Client, Served, serving, write_users, write_yaml
from tests.wire.raw import RawClient

_JOINED = (
    "answers JOIN people ON people.id = answers.person", "people JOIN answers ON people.id = answers.person",
    "answers LEFT JOIN people ON people.id = answers.person", "people LEFT JOIN answers ON people.id = answers.person",
    "answers FULL JOIN people ON people.id = answers.person", "answers CROSS JOIN people",
    "answers, people WHERE people.region = answers.region",
    "answers WHERE person IN (SELECT id FROM people)", "people WHERE id IN (SELECT person FROM answers)",
    "answers WHERE person NOT IN (SELECT id FROM people WHERE ill)",
    "answers a WHERE EXISTS (SELECT 1 FROM people p WHERE p.id = a.person AND p.ill)",
    "people p WHERE EXISTS (SELECT 1 FROM answers a WHERE p.id = a.person)",
    "answers a WHERE (SELECT count(*) FROM people p WHERE p.id = a.person) > 0",
    "answers a, LATERAL (SELECT count(*) AS n FROM people p WHERE p.id = a.person) x WHERE n > 0",
    "(SELECT person FROM answers UNION ALL SELECT id FROM people) t",
    "(SELECT person FROM answers INTERSECT SELECT id FROM people) t",
    "(SELECT person FROM answers EXCEPT SELECT id FROM people) t",
    "(SELECT a.person, p.ill FROM answers a JOIN people p ON p.id = a.person) t",
    "(SELECT id, row_number() OVER (PARTITION BY id) AS n FROM people) p JOIN answers a ON a.person = p.id",
)  # fmt: skip
_FREE = (
    "SELECT count(*), sum(age), avg(income) FROM answers WHERE smokes",
    "SELECT * FROM answers ORDER BY person LIMIT 50", "SELECT town, count(*) FROM answers GROUP BY 1",
    "SELECT party, count(*), hush.low(count(*)) FROM answers GROUP BY party",
    "EXPLAIN SELECT region, count(*) FROM answers JOIN towns ON name = town WHERE smokes GROUP BY region",
    "SELECT count(*) FROM answers WHERE age > (SELECT avg(age) FROM answers)",
    "COPY (SELECT * FROM answers LIMIT 9) TO STDOUT",
    "SELECT max(age) FROM answers", "SELECT sum(1 / (age - 30)) FROM answers", "SELECT count(*) FROM answers, people",
    "SELECT * FROM hush.budget WHERE kind = 'local'", "SELECT * FROM hush.last_query",
)  # fmt: skip


@pytest.fixture(scope="module")
def survey(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("local")
    write_users(folder / "users.yaml", {"ann": "analyst"})
    environment = {"SURVEY_DSN": write_postgres("attacked_survey")}
    with serving(folder, write_policies(folder, raw_select="allow"), environment) as served:
        yield served


@pytest.fixture(params=["local", "elsewhere"])
def client(survey: Served, request: pytest.FixtureRequest) -> Iterator[Client]:
    with survey.connect(request.param) as connection:
        yield connection


def test_no_way_leads_from_a_local_table_to_a_private_one(client: Client) -> None:
    """As aggregates or as rows; in a CTE, a view, a prepared statement, EXPLAIN or COPY; free or not."""
    before = spent(client)
    for number, joined in enumerate(_JOINED):
        rows_too = (f"SELECT 1 AS one FROM {joined}", f"SELECT * FROM {joined}")
        for place, sql in enumerate((f"SELECT count(*) FROM {joined}", *rows_too)):
            name = f"n{number}_{place}"
            client.execute(f"PREPARE {name} AS {sql}".encode())
            kept = [f"EXECUTE {name}"]
            if sql != rows_too[1]:  # some have two columns of one name
                client.execute(f"CREATE TEMP VIEW {name} AS {sql}".encode())
                kept.append(f"SELECT * FROM {name}")
            for asked in (
                sql, f"WITH c AS ({sql}) SELECT * FROM c", f"SELECT t.* FROM ({sql}) AS t", f"EXPLAIN {sql}",
                f"COPY ({sql}) TO STDOUT", f"CREATE TEMP TABLE kept AS {sql}",
                f"SELECT count(*) FROM answers WHERE age > (SELECT count(*) FROM ({sql}) AS t)", *kept,
            ):  # fmt: skip
                assert refusal(client, asked)[0].startswith("DP"), asked
    assert spent(client) == before


def test_the_value_of_a_private_aggregate_is_paid_in_a_statement_over_a_local_table(client: Client) -> None:
    """As a condition on local rows, or beside them: it costs what it costs alone, and no more is known by it."""
    for number, sql in enumerate((
        "SELECT count(*) FROM answers WHERE person < (SELECT count(*) FROM people WHERE ill{})",
        "SELECT count(*), (SELECT count(*) FROM people WHERE ill{}) FROM answers",
        "WITH p AS (SELECT count(*) AS n FROM people WHERE ill{}) SELECT count(*) FROM answers, p WHERE person < n",
    )):  # fmt: skip
        before = spent(client)
        first = rows(client, sql.format(f" AND region = 'north' AND {number} = {number}"))
        paid = spent(client)
        assert paid >= before
        assert rows(client, sql.format(f" AND region = 'north' AND {number} = {number}")) == first
        assert spent(client) == paid
    assert spent(client) > 0


def test_local_tables_are_answered_when_nothing_is_left(client: Client) -> None:
    client.execute("SET hush.epsilon = 90")
    assert refusal(client, "SELECT count(*) FROM people WHERE NOT ill AND region = 'south'")[0] == "DP001"
    assert len(rows(client, "SELECT count(*) FROM answers WHERE smokes")) == 1
    sql = "SELECT count(*) FROM answers WHERE person < (SELECT count(*) FROM people WHERE NOT ill AND region = 'south')"
    assert refusal(client, sql)[0] == "DP001"


@pytest.fixture(scope="module")
def neighbours(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Served, ...]]:
    """One policy over the survey, without a private person, and without all of them."""
    with ExitStack() as running:
        found = []
        for name, gone in (("whole", "false"), ("without", "id = 7"), ("empty", "true")):
            folder = tmp_path_factory.mktemp(name)
            write_duckdb(folder / "survey.duckdb", gone)
            write_users(folder / "users.yaml", {"ann": "analyst"})
            source: dict[str, object] = {"engine": "duckdb", "path": "survey.duckdb"}
            policy = write_yaml(folder / "local.yaml", survey_policy("local", source, raw_select="allow"))
            found.append(running.enter_context(serving(folder, [policy])))
        yield tuple(found)


def said(served: Served) -> list[tuple[str, bytes]]:
    """Every message of every answer."""
    with RawClient(served.port) as client:
        client.log_in("ann", PASSWORD, "local")
        return [(reply.kind, reply.body) for sql in _FREE for reply in client.query(sql)]


def test_answers_about_local_tables_are_the_same_bytes_on_neighbouring_databases(
    neighbours: tuple[Served, ...],
) -> None:
    whole, without, empty = map(said, neighbours)
    assert len([kind for kind, _ in whole if kind == "D"]) > 60
    assert whole == without == empty
