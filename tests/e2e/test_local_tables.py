"""What does a client get from tables whose rows were randomized before they were stored?"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.e2e.local_data import PEOPLE, public, truth, write_policies, write_postgres
from tests.e2e.served import Client, Served, serving, write_users

WIDTHS = 4.0  # of a 95 % interval's half: a false alarm in 10^14 answers
EVERY = [(*truth(i), *public(i)) for i in range(PEOPLE)]


@pytest.fixture(scope="module")
def survey(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("local")
    write_users(folder / "users.yaml", {"ann": "analyst", "boss": "boss"})
    environment = {"SURVEY_DSN": write_postgres("local_survey")}
    with serving(folder, write_policies(folder), environment) as served:
        yield served


@pytest.fixture(params=["local", "elsewhere"])
def client(survey: Served, request: pytest.FixtureRequest) -> Iterator[Client]:
    with survey.connect(request.param) as connection:
        yield connection


def rows(client: Client, sql: str) -> list[tuple[object, ...]]:
    return client.execute(sql.encode()).fetchall()


def test_rows_of_a_local_table_are_counted_exactly_and_free(client: Client) -> None:
    assert rows(client, "SELECT count(*) FROM answers") == [(PEOPLE,)]
    assert rows(client, "SELECT max(epsilon_spent) FROM hush.budget") == [(0.0,)]
