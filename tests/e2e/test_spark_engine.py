"""Does everything work together when the private rows are Parquet files that a Spark server reads?"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import duckdb
import psycopg
import pytest

from tests.e2e.lake import lake_policy, write_lake
from tests.e2e.served import Client, Served, hushql, serving, write_yaml
from tests.e2e.test_cases_live import ask, compares, explain, reach, stated_noise
from tests.sail_server import SailServer
from tests.unit.sql.corpus import Case

_QUESTIONS = (
    "SELECT count(*) FROM users WHERE age BETWEEN 30 AND 50 AND newsletter",
    "SELECT plan, count(*) FROM users WHERE plan IS NOT NULL GROUP BY plan ORDER BY plan",
    "SELECT status, sum(amount) FROM orders WHERE status IS NOT NULL GROUP BY status ORDER BY status",
    "SELECT count(*) FROM items JOIN orders USING (order_id) JOIN stores USING (store_id) WHERE region = 'north'",
    "SELECT extract(year FROM joined), count(*) FROM users WHERE joined >= '2020-01-01' GROUP BY 1 ORDER BY 1 LIMIT 4",
    "SELECT count(*) FROM \"Odd \"\"Table\" WHERE \"Mixed Case\" = 'A b'",
)  # fmt: skip
_AWAY = "the private data cannot be reached"
_NOTHING = "Nothing was charged."


@pytest.fixture(scope="module")
def server() -> Iterator[SailServer]:
    with closing(SailServer()) as started:
        yield started


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory, server: SailServer) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("lake")
    url = server.url.replace("127.0.0.1", "localhost")  # elsewhere a token goes over TLS alone
    policies = [*write_lake(folder, url, token="${LAKE_TOKEN}"), _deep(folder, url)]
    with serving(folder, policies, {"LAKE_TOKEN": "not-to-be-shown"}, ("-m", "tests.e2e.tamed")) as running:
        yield running


def _deep(folder: Path, url: str) -> Path:
    """The dataset deep, whose orders are there 800 times, so that statements over them take a while."""
    with duckdb.connect() as connection:
        orders = f"'{folder / 'orders.parquet'}' o, range(800)"
        every = f"select o.* replace (order_id + 100000 * range as order_id) from {orders}"
        connection.execute(f"copy ({every}) to '{folder / 'deep.parquet'}' (format parquet)")
    policy = lake_policy(folder, url)
    source = policy["source"]
    assert isinstance(source, dict)
    files = {**source["files"], "orders": str(folder / "deep.parquet")}
    deep = {"dataset": "deep", "source": {**source, "files": files}, "limits": {"statement_timeout": "5min"}}
    return write_yaml(folder / "deep.yaml", {**policy, **deep})


@pytest.fixture
def lake(served: Served) -> Iterator[Client]:
    with served.connect("lake", "ann") as connection:
        yield connection


def _rho(client: Client) -> float:
    row = client.execute("SELECT rho_spent FROM hush.budget WHERE kind = 'user'").fetchone()
    assert row is not None
    return float(str(row[0]))


def test_answers_are_near_the_exact_ones(served: Served, lake: Client) -> None:
    """Within six standard deviations of the noise that EXPLAIN states: a false alarm in 500 million numbers."""
    with served.connect("truth") as truth:
        for case in (Case(place="", sql=sql, facts={}) for sql in _QUESTIONS):
            (columns, found), (_, exact) = ask(lake, case), ask(truth, case)
            noise = stated_noise(explain(lake, case), case)
            within = [reach(column, noise) for column in columns]
            assert compares("same", found, exact, within), f"{case.sql}: {found} {exact} {within}"
        public = "SELECT * FROM stores ORDER BY store_id"
        assert lake.execute(public).fetchall() == truth.execute(public).fetchall()


def test_groups_that_nobody_listed_are_found_and_their_values_asked_in_a_second_stage(lake: Client) -> None:
    rows = lake.execute("SELECT city, count(*), max(age) FROM users GROUP BY city ORDER BY 2 DESC").fetchall()
    assert {row[0] for row in rows} >= {"Basel", "O'Fallon", "Zürich"}
    assert all(60 <= int(str(row[2])) <= 110 for row in rows if row[0] == "Basel")


def test_a_release_is_explained_and_paid_once(lake: Client) -> None:
    sql = "SELECT sum(quantity) FROM items WHERE line = 1"
    plan = "\n".join(str(row[0]) for row in lake.execute(f"EXPLAIN {sql}".encode()).fetchall())
    assert "`parquet`.`" in plan
    before = _rho(lake)
    first = lake.execute(sql.encode()).fetchall()
    paid = _rho(lake)
    assert paid > before
    assert lake.execute(sql.encode()).fetchall() == first
    assert _rho(lake) == paid


def test_what_spark_does_not_compute_is_refused_free(lake: Client) -> None:
    before = _rho(lake)
    with pytest.raises(psycopg.Error) as refused:
        lake.execute("SELECT count(*) FROM users WHERE upper(city) = 'BASEL'")
    assert refused.value.sqlstate == "DP006"
    assert "upper is not supported over private rows with engine spark" in str(refused.value)
    assert refused.value.diag.message_hint
    assert _rho(lake) == before


def test_hostile_texts_stay_texts(lake: Client) -> None:
    """Spark reads backslashes, Sail two quotes as none: what could end a text is in none."""
    for hostile in ("' OR TRUE --", "\\", "\\' OR TRUE --", "a''b", '" OR TRUE', "`", "${x}", "🂡\n\0x"[:2]):
        shown = psycopg.sql.Literal(hostile)
        row = lake.execute(psycopg.sql.SQL("SELECT count(*) FROM users WHERE city = {}").format(shown)).fetchone()
        assert row is not None
        assert abs(int(str(row[0]))) < 50


def test_a_statement_that_takes_too_long_ends_and_the_next_one_works(lake: Client) -> None:
    lake.execute("SET statement_timeout = '1ms'")
    with pytest.raises(psycopg.errors.QueryCanceled):
        lake.execute("SELECT store_id, avg(amount), count(DISTINCT at) FROM orders GROUP BY store_id")
    lake.execute("SET statement_timeout = 0")
    assert lake.execute("SELECT count(*) FROM orders WHERE store_id = 3").fetchone()


def test_a_server_that_is_lost_costs_nothing_and_is_found_again(
    served: Served, server: SailServer, lake: Client
) -> None:
    lake.execute("SELECT count(*) FROM orders")
    before = _rho(lake)
    server.kill()
    try:
        for number in range(3):
            with pytest.raises(psycopg.Error) as failed:
                lake.execute(f"SELECT count(*) FROM orders WHERE amount > {number}".encode())
            diag = failed.value.diag
            assert (diag.sqlstate, diag.message_primary, diag.message_detail) == ("58000", _AWAY, _NOTHING)
        assert _rho(lake) == before
    finally:
        server.again()
    lake.execute("SELECT count(*) FROM orders WHERE amount > 1")
    assert _rho(lake) > before
    assert "not-to-be-shown" not in served.log.read_text()


def test_a_server_that_is_killed_in_the_middle_is_paid_once_and_answers_nothing(
    served: Served, server: SailServer
) -> None:
    sql = b"SELECT store_id, note, avg(amount), variance(amount), count(DISTINCT at) FROM orders GROUP BY 1, 2"
    failures: list[psycopg.Error] = []

    def ask() -> None:
        with served.connect("deep") as client, pytest.raises(psycopg.Error) as failed:
            client.execute(sql)
        failures.append(failed.value)

    with served.connect("deep") as other:
        asking = threading.Thread(target=ask)
        asking.start()
        while _rho(other) == 0:
            assert asking.is_alive()
        paid = _rho(other)
        server.kill()
        asking.join()
        try:
            (failed,) = failures
            assert failed.sqlstate == "58000"
            assert failed.diag.message_primary == _AWAY
            assert str(failed.diag.message_detail).startswith("What was reserved for it stays charged")
            assert _rho(other) == paid
        finally:
            server.again()
        assert other.execute(sql).fetchall()
        assert _rho(other) == paid  # the same statement asked again
        other.execute("SELECT count(*) FROM users")
        assert _rho(other) > paid


def test_a_server_in_which_tables_can_be_made_is_refused(served: Served, server: SailServer) -> None:
    policy = served.folder / "writable.yaml"
    text = (served.folder / "lake.yaml").read_text()
    policy.write_text(text.replace("may_write: true", "may_write: false"))
    done = hushql("policy", "check", "--data", str(policy), environment={"LAKE_TOKEN": "not-to-be-shown"})
    assert done.returncode != 0
    assert "lets tables be created" in done.stderr
    assert "not-to-be-shown" not in done.stdout + done.stderr


def test_files_that_are_not_there_are_refused_at_the_start(served: Served, server: SailServer) -> None:
    """Some servers read them as tables without rows."""
    text = (served.folder / "lake.yaml").read_text().replace("/orders.parquet", "/nowhere.parquet")
    policy = served.folder / "missing.yaml"
    policy.write_text(text)
    done = hushql("policy", "check", "--data", str(policy), environment={"LAKE_TOKEN": "x"})
    assert done.returncode != 0
    assert "table orders: the server has no relation" in done.stderr
