"""Statements of BI tools about the census, each near what PostgreSQL computes from the same rows.

Noise is drawn as for the other cases (`tamed`), so that none of them can fail by chance.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from ruamel.yaml import YAML

from tests.e2e.served import CASES, Client, Served
from tests.e2e.test_cases_live import ask, compares, explain, reach, stated_noise
from tests.postgres_server import private_server
from tests.unit.sql.corpus import Case

_NUMBERS = frozenset(("age", "final_weight", "education_num", "capital_gain", "capital_loss", "hours_per_week"))
_FOUND = YAML(typ="safe").load(CASES / "census" / "tools.yaml")
CENSUS = [Case(place=f"census-{i}", sql=c["sql"], facts=c) for i, c in enumerate(_FOUND, start=1)]


@pytest.fixture(scope="module")
def private(served: Served) -> Iterator[Client]:
    with served.connect("adult", options="-c hush.nonnegative=off -c hush.epsilon=5") as connection:
        yield connection


@pytest.fixture(scope="module")
def exact(adult_csv: Path) -> Iterator[Client]:
    """The census as a table that anybody may read."""
    lines = adult_csv.read_text().rstrip("\n")
    columns = (f"{n} {'integer' if n in _NUMBERS else 'text'}" for n in lines.partition("\n")[0].strip().split(","))
    server = private_server()
    server.create("census", f"create table adult ({', '.join(columns)})")
    with server.owner("census") as connection:
        with psycopg.Cursor(connection).copy("COPY adult FROM STDIN (FORMAT csv, HEADER)") as copy:
            copy.write(f"{lines}\n")
        yield connection


@pytest.mark.parametrize("case", CENSUS, ids=lambda c: c.place)
def test_answer_about_the_census_is_near_the_truth(case: Case, private: Client, exact: Client) -> None:
    noise = stated_noise(explain(private, case), case)
    columns, rows = ask(private, case)
    true_columns, true_rows = ask(exact, case)
    assert columns == case.facts["columns"] == true_columns, case.sql
    within = [reach(column, noise) for column in columns]
    assert compares(str(case.facts.get("rows", "same")), rows, true_rows, within), f"{case.sql}\n{rows}\n{true_rows}"
