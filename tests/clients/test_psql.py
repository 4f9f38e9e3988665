"""Does an analyst with psql get what psql gives on PostgreSQL, and nothing private?"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.clients.conftest import Server, near, run

pytestmark = pytest.mark.clients
FLAGS = ["psql", "--no-psqlrc", "--quiet", "--no-align", "--tuples-only", "--field-separator=|"]


@pytest.fixture
def psql(server: Server, tmp_path: Path) -> Psql:
    return Psql(server, tmp_path)


class Psql:
    """Runs scripts in a fresh psql."""

    def __init__(self, server: Server, directory: Path) -> None:
        self._environment = server.libpq_environment
        self._directory = directory

    def __call__(self, script: str, *flags: str) -> list[str]:
        """Lines of standard output, notices hidden."""
        script = f"SET client_min_messages = warning;\n{script}\n"
        return run([*FLAGS, *flags], self._environment, cwd=self._directory, stdin=script).splitlines()


def test_a_count_is_near_the_truth(psql: Psql) -> None:
    (count,) = psql("SELECT count(*) FROM adult WHERE age >= 40;")
    assert near(count, 14237)


def test_groups_come_sorted_and_complete(psql: Psql) -> None:
    rows = [line.split("|") for line in psql("SELECT sex, count(*) FROM adult GROUP BY 1 ORDER BY 1;")]
    assert [row[0] for row in rows] == ["Female", "Male"]
    assert near(rows[0][1], 10771)
    assert near(rows[1][1], 21790)


def test_describe_shows_the_policy_columns(psql: Psql) -> None:
    lines = psql("\\d adult")
    assert any(line.startswith("age|integer") for line in lines)
    assert any(line.startswith("class|text") for line in lines)


def test_backslash_commands_list_the_table_and_the_database(psql: Psql) -> None:
    assert any("|adult|" in line for line in psql("\\dt"))
    assert psql("SELECT current_database();") == ["adult"]


def test_gdesc_tells_types_without_running(psql: Psql) -> None:
    assert psql("SELECT count(*) AS n, avg(age) AS a FROM adult \\gdesc") == ["n|bigint", "a|numeric"]


def test_a_variable_is_interpolated_as_on_postgresql(psql: Psql) -> None:
    (count,) = psql("SELECT count(*) AS n FROM adult WHERE sex = 'Male' \\gset\n\\echo :n")
    assert near(count, 21790)


def test_fetch_count_reads_through_a_cursor(psql: Psql) -> None:
    lines = psql("\\set FETCH_COUNT 5\nSELECT education, count(*) FROM adult GROUP BY 1;")
    assert len(lines) == 16


def test_copy_to_standard_output_carries_the_release(psql: Psql) -> None:
    header, *rows = psql("\\copy (SELECT sex, count(*) AS n FROM adult GROUP BY sex ORDER BY sex) TO stdout CSV HEADER")
    assert header == "sex,n"
    assert [row.split(",")[0] for row in rows] == ["Female", "Male"]
    assert near(rows[0].split(",")[1], 10771)


def test_a_cursor_in_a_transaction_can_be_fetched(psql: Psql) -> None:
    script = "BEGIN;\nDECLARE c CURSOR FOR SELECT education, count(*) FROM adult GROUP BY 1;\nFETCH 4 FROM c;\nCOMMIT;"
    assert len(psql(script)) == 4


@pytest.mark.parametrize(
    ("statement", "sqlstate"),
    [
        ("SELECT * FROM adult;", "DP004"),
        ("SELECT age FROM adult WHERE age > 80;", "DP004"),
        ("COPY adult TO stdout;", "DP006"),
        ("SELECT count(*) FROM no_such_table;", "42P01"),
        ("SELECT count(no_such_column) FROM adult;", "42703"),
        ("SELEC 1;", "42601"),
        ("PREPARE p AS SELECT * FROM adult; EXECUTE p;", "DP004"),
    ],
)
def test_a_refusal_has_its_sqlstate_and_the_session_goes_on(psql: Psql, statement: str, sqlstate: str) -> None:
    assert psql(f"{statement}\n\\echo :LAST_ERROR_SQLSTATE\nSELECT 7;") == [sqlstate, "7"]


def test_a_statement_prepared_in_sql_is_answered(psql: Psql) -> None:
    (count,) = psql("PREPARE p(int) AS SELECT count(*) FROM adult WHERE age >= $1;\nEXECUTE p(40);")
    assert near(count, 14237)


def test_explain_shows_the_plan_and_charges_nothing(psql: Psql) -> None:
    spent = "SELECT epsilon_spent FROM hush.budget ORDER BY account;\n"
    lines = psql(f"{spent}\\echo --\nEXPLAIN SELECT count(*) FROM adult;\n\\echo --\n{spent}")
    before, plan, after = "\n".join(lines).split("\n--\n")
    assert plan
    assert before == after


def test_the_budget_falls_with_a_private_statement(psql: Psql) -> None:
    left = "SELECT min(epsilon_remaining) FROM hush.budget;\n"
    before, _, after = psql(f"SET hush.fresh = on;\n{left}SELECT count(*) FROM adult WHERE age < 30;\n{left}")
    assert float(after) < float(before)
