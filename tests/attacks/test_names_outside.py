"""A role that may name the end of a path alone reads no name of the tables and columns on its way to the unit."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

from tests import places
from tests.attacks.hostile import Client, refusal, rows
from tests.e2e import served
from tests.e2e.served import Served

#: What stands for tables and columns that the role must not hear of, each once: none of them is a word of its own.
SECRET = ("zz_patients", "zz_ward_key", "zz_stays", "zz_stay_key", "zz_person", "zz_price", "zz_store", "zz_hidden",
          "zz_schema", "zz_city_of_patient")  # fmt: skip
POLICY = """version: 1
dataset: paths
source: {engine: duckdb, path: paths.duckdb, data_version: "1"}
privacy: {unit: person, delta: 1e-6, query_epsilon: 1, max_query_epsilon: 100, time_grid: 0ms, time_zone: UTC}
budgets: {dataset: {epsilon: 1000000}}
tables:
  zz_patients:
    unit: zz_person
    unit_unique: true
    relation: zz_schema.zz_store
    joins: {zz_city_of_patient: cities.city}
    columns: {zz_person: {type: integer, key: true}, zz_ward_key: {type: integer, key: true},
              zz_city_of_patient: {type: integer}}
  zz_stays:
    unit: {via: zz_patients, on: zz_ward_key}
    joins: {zz_ward_key: zz_patients.zz_ward_key}
    max_rows_per_unit: 9
    columns: {zz_ward_key: {type: integer, key: true}, zz_stay_key: {type: integer, key: true}}
  meals:
    unit: {via: zz_stays, on: zz_hidden}
    joins: {zz_hidden: zz_stays.zz_stay_key}
    max_rows_per_unit: 30
    columns: {zz_hidden: {type: integer, key: true, hidden: true}, dish: {type: text}, city: {type: integer},
              grams: {type: integer, bounds: [0, 900]}, day: {type: date, bounds: [2024-01-01, 2024-12-31]}}
  visits:
    unit: zz_price
    max_rows_per_unit: 5
    columns: {zz_price: {type: integer, key: true, hidden: true}, minutes: {type: integer, bounds: [0, 90]}}
  cities:
    public: true
    columns: {city: {type: integer}, name: {type: text}}
access: {users_file: users.yaml}
"""
DATA = """
create schema zz_schema;
create table zz_schema.zz_store as select r::integer as zz_person, r::integer as zz_ward_key,
  (r % 3)::integer as zz_city_of_patient from range(200) t(r);
create table zz_stays as select (r % 200)::integer as zz_ward_key, r::integer as zz_stay_key from range(400) t(r);
create table meals as select (r % 400)::integer as zz_hidden, 'dish ' || r % 4 as dish, (r % 3)::integer as city,
  (r % 900)::integer as grams, date '2024-01-01' + (r % 300)::integer as day from range(4000) t(r);
create table visits as select (r % 99)::integer as zz_price, (r % 90)::integer as minutes from range(300) t(r);
create table cities as select r::integer as city, 'city ' || r as name from range(3) t(r);
"""
ASKED = (
    "SELECT count(*) FROM meals",
    "SELECT dish, count(*), avg(grams) FROM meals GROUP BY dish",
    "SELECT count(DISTINCT dish), percentile_cont(0.5) WITHIN GROUP (ORDER BY grams) FROM meals",
    "SELECT date_trunc('month', day), sum(grams) FROM meals WHERE dish <> 'zz' GROUP BY ROLLUP (1)",
    "SELECT count(*) FROM visits WHERE minutes > 3",
    "SELECT minutes / 10, count(*), max(minutes) FROM visits GROUP BY 1",
    "SELECT (SELECT count(*) FROM meals), (SELECT avg(minutes) FROM visits)",
    "SELECT count(*) FROM meals WHERE grams > (SELECT avg(grams) FROM meals)",
    'SELECT count(*) FROM meals WHERE dish = \'"zz_patients" AS s9, s1."zz_person"\'',
)
REFUSED = (
    "SELECT * FROM meals",
    "SELECT count(*) FROM zz_patients",
    "SELECT count(*) FROM meals JOIN cities ON cities.name = meals.dish",
    "SELECT count(*) FROM meals, cities",
    "SELECT count(*) FROM meals LEFT JOIN cities ON cities.name = dish",
    "SELECT count(*) FROM meals a JOIN meals b ON a.dish = b.dish",
    "SELECT count(*) FROM meals JOIN visits ON minutes = grams",
    "SELECT count(*) FROM meals LEFT JOIN visits ON minutes = grams",
    "SELECT count(*) FROM meals WHERE EXISTS (SELECT 1 FROM visits WHERE minutes = grams)",
    "SELECT city, count(*) FROM meals WHERE city IN (SELECT city FROM visits) GROUP BY city",
    "SELECT zz_hidden FROM meals",
    "SELECT sum(city) FROM meals",
    "SELECT max(dish) FROM (SELECT dish, count(*) AS n FROM meals GROUP BY dish) d JOIN visits ON n = minutes",
    "SELECT row_number() OVER (ORDER BY grams) FROM meals",
    "SELECT max(dish) FROM meals",
    "WITH m AS (SELECT * FROM meals) SELECT count(*) FROM m JOIN cities c ON c.city = m.grams",
)
CATALOGUE = (
    "SELECT * FROM hush.policy",
    "SELECT description FROM pg_description",
    "SELECT relname FROM pg_class",
    "SELECT attname FROM pg_attribute",
    "SELECT conname, pg_get_constraintdef(oid) FROM pg_constraint",
    "SELECT indexname, indexdef FROM pg_indexes",
    "SELECT table_schema, table_name, column_name FROM information_schema.columns",
    "SELECT nspname FROM pg_namespace",
)


@pytest.fixture(scope="module")
def paths(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder: Path = tmp_path_factory.mktemp("paths")
    with duckdb.connect(str(folder / "paths.duckdb")) as data:
        data.execute(DATA)
    served.write_users(folder / "users.yaml", {"clerk": "clerk", "eve": "analyst"}, "tables: [meals, visits, cities]")
    (folder / "paths.yaml").write_text(POLICY)
    with served.serving(folder, [folder / "paths.yaml"], places.UNCOUNTED) as running:
        yield running


@pytest.fixture
def clerk(paths: Served) -> Iterator[Client]:
    with paths.connect("paths", "clerk") as client:
        yield client


def named_in(found: object, sql: str) -> list[str]:
    """The names that are said and do not stand in the statement."""
    return [name for name in SECRET if name in str(found) and name not in sql]


@pytest.mark.parametrize("sql", ASKED)
@pytest.mark.parametrize("words", ["EXPLAIN", "EXPLAIN (FORMAT JSON)"])
def test_a_plan_names_nothing_outside_the_role(words: str, sql: str, clerk: Client) -> None:
    (plan, again) = (rows(clerk, f"{words} {sql}") for _ in range(2))
    assert "SELECT" in str(plan)
    assert named_in(plan, sql) == []
    assert plan == again
    rows(clerk, sql)  # it is a plan of what runs


def test_names_that_are_left_out_are_told_apart(clerk: Client) -> None:
    ((document,),) = rows(clerk, "EXPLAIN (FORMAT JSON) SELECT count(*) FROM meals")
    sql = json.loads(json.dumps(document))[0]["releases"][0]["private_sql"]
    assert '"meals" AS s0' in sql
    assert "<table 1> AS" in sql
    assert "<table 2> AS" in sql
    assert "<column 1>" in sql


def test_who_may_see_all_tables_reads_their_names(paths: Served) -> None:
    with paths.connect("paths", "eve") as eve:
        plan = str(rows(eve, "EXPLAIN SELECT count(*) FROM meals"))
        assert "zz_stays" in plan
        assert "<table" not in plan
        assert "zz_hidden" not in plan  # a hidden column does not exist for clients
        found = rows(eve, "SELECT DISTINCT unit FROM hush.policy WHERE \"table\" = 'zz_stays'")
        assert found == [("through zz_patients on zz_ward_key",)]


@pytest.mark.parametrize("sql", REFUSED)
def test_a_refusal_names_nothing_outside_the_role(sql: str, clerk: Client) -> None:
    said = refusal(clerk, sql)
    assert named_in(said, sql) == []
    assert named_in(refusal(clerk, f"EXPLAIN {sql}"), sql) == []
    assert named_in(rows(clerk, f"SELECT * FROM hush.estimate($${sql}$$)"), sql) == []


@pytest.mark.parametrize("sql", CATALOGUE)
def test_the_policy_and_the_catalogue_name_nothing_outside_the_role(sql: str, clerk: Client) -> None:
    found = rows(clerk, sql)
    assert found
    assert named_in(found, sql) == []
