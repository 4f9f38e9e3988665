"""When private work has ended is not seen before the next step of the time grid, by whatever way one looks."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import duckdb
import psycopg
import pytest

from tests import places
from tests.attacks.hostile import Client, rows
from tests.e2e import served
from tests.e2e.served import PASSWORD, Served
from tests.wire.raw import RawClient, statement

STEP_S = 1.5
PATIENCE_S = 200.0
POLICY = """version: 1
dataset: slow
source: {engine: duckdb, path: slow.duckdb, data_version: "1"}
privacy: {unit: person, delta: 1e-6, query_epsilon: 1, max_query_epsilon: 100, time_grid: 1500ms}
budgets: {dataset: {epsilon: 1000000}}
limits: {statement_timeout: 20s}
tables:
  people:
    unit: pid
    unit_unique: true
    columns:
      pid: {type: integer, key: true}
      name: {type: text}
      place: {type: integer, bounds: [1, 60000], nullable: false}
      v: {type: double precision, bounds: [0, 10]}
  endless: {unit: pid, max_rows_per_unit: 3, columns: {pid: {type: integer, key: true}, v: {type: integer}}}
access: {users_file: users.yaml}
"""
DATA = """
create table people as select r::integer as pid, 'name ' || r % 5 as name, 1 + r % 9 as place, r % 7 * 1.0::double as v
  from range(3000) t(r);
alter table people alter place type integer;
create view endless as select (r % 100)::integer as pid, (r % 9)::integer as v from range(100000000000) t(r);
"""
ENDLESS = "SELECT count(*) FROM endless WHERE v < {}"
#: Of private statements, each of a release of its own: how they end, and with what.
ENDS = {
    "an answer": ("SELECT count(*) FROM people WHERE v < 1.1", ""),
    "an answer in groups": ("SELECT name, count(*), avg(v) FROM people GROUP BY name", ""),
    "too many groups": ("SELECT name, place, count(*) FROM people GROUP BY name, place", "DP005"),
    "an error that depends on noise": ("SELECT 1 / (count(*) - count(*)) FROM people WHERE v < 1.2", "22012"),
    "an error of a cast": ("SELECT ('x' || count(*))::int FROM people WHERE v < 1.3", "22P02"),
    "an error of a later stage": (
        "SELECT count(*) FROM people WHERE v > (SELECT 1 / (count(*) - count(*)) FROM people WHERE v < 1.4)", "22012",
    ),
    "two stages": ("SELECT count(*) FROM people WHERE v > (SELECT avg(v) FROM people WHERE v < 1.5)", ""),
    "COPY": ("COPY (SELECT count(*) FROM people WHERE v < 1.6) TO STDOUT", ""),
    "a cursor": ("BEGIN; DECLARE c CURSOR FOR SELECT count(*) FROM people WHERE v < 1.7; FETCH c; COMMIT", ""),
    "a new table": ("CREATE TEMP TABLE kept AS SELECT count(*) FROM people WHERE v < 1.8", ""),
    "the second of a string": ("SELECT 1; SELECT count(*) FROM people WHERE v < 1.9", ""),
    "a time limit of the client": (f"SET statement_timeout = 300; {ENDLESS.format(1)}", "57014"),
}  # fmt: skip


@pytest.fixture(scope="module")
def gridded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder: Path = tmp_path_factory.mktemp("gridded")
    with duckdb.connect(str(folder / "slow.duckdb")) as data:
        data.execute(DATA)
    served.write_users(folder / "users.yaml", {"eve": "analyst", "bob": "analyst"})
    (folder / "slow.yaml").write_text(POLICY)
    with served.serving(folder, [folder / "slow.yaml"], places.UNCOUNTED) as running:
        yield running


def raw(gridded: Served) -> RawClient:
    client = RawClient(gridded.port)
    client.log_in("eve", PASSWORD, "slow")
    return client


def ended(gridded: Served, sql: str, *, extended: bool) -> tuple[str, float]:
    """The SQLSTATE that a statement ends with, and how long after it was sent."""
    with raw(gridded) as client:
        if extended and sql.startswith("SET"):
            first, _, sql = sql.partition("; ")
            client.query(first)
        started = time.monotonic()
        replies = client.sync(statement(sql)) if extended else client.query(sql)
        seconds = time.monotonic() - started
    return next((r.sqlstate for r in replies if r.kind == "E"), ""), seconds


@pytest.mark.parametrize("extended", [False, True], ids=["simple", "extended"])
def test_whatever_ends_after_a_charge_waits_for_the_grid(extended: bool, gridded: Served) -> None:
    """All at once, since each takes a step."""
    wanted = {
        name: (sql.replace("v < 1.", "v < 2.") if extended else sql, state)
        for name, (sql, state) in ENDS.items()
        if not extended or sql.startswith("SET") or "; " not in sql
    }
    with ThreadPoolExecutor(len(wanted)) as pool:
        asked = {name: pool.submit(ended, gridded, sql, extended=extended) for name, (sql, _) in wanted.items()}
        found = {name: one.result() for name, one in asked.items()}
    assert {name: state for name, (state, _) in found.items()} == {name: state for name, (_, state) in wanted.items()}
    assert {name: seconds for name, (_, seconds) in found.items() if seconds < STEP_S} == {}


def test_what_was_paid_for_and_stored_does_not_wait(gridded: Served) -> None:
    with gridded.connect("slow", "eve") as client:
        sql = "SELECT count(*) FROM people WHERE v < 3.1"
        rows(client, sql)
        started = time.monotonic()
        for _ in range(20):
            rows(client, sql)
        assert time.monotonic() - started < 20 * STEP_S / 2


def test_a_cancellation_waits_for_the_grid(gridded: Served) -> None:
    """When to cancel is the client's own choice: whether the end came first would tell it as finely as one likes."""
    with gridded.connect("slow", "eve") as client:
        begun = threading.Timer(0.3, client.cancel)
        started = time.monotonic()
        begun.start()
        with pytest.raises(psycopg.errors.QueryCanceled):
            client.execute(ENDLESS.format(2).encode())
        assert time.monotonic() - started >= STEP_S
        begun.join()


def test_an_answer_that_waits_for_the_grid_is_not_cancelled_any_more(gridded: Served) -> None:
    with gridded.connect("slow", "eve") as client:
        late = threading.Timer(1.2, client.cancel)
        late.start()
        assert len(rows(client, "SELECT count(*) FROM people WHERE v < 3.2")) == 1
        late.join()
        (outcome,) = rows(client, "SELECT outcome FROM hush.history ORDER BY at DESC LIMIT 1")
        assert outcome == ("answered",)


LOOKS: dict[str, Callable[[Client, str], bool]] = {
    "history": lambda c, q: rows(c, f"SELECT outcome FROM hush.history WHERE query = $${q}$$") == [("answered",)],
    "explain": lambda c, q: "come back free" in str(rows(c, f"EXPLAIN {q}")),
    "estimate": lambda c, q: (True,) in rows(c, f"SELECT reused FROM hush.estimate($${q}$$) WHERE account = 'user'"),
}


@pytest.mark.parametrize("look", LOOKS)
def test_another_session_does_not_see_the_end_before_the_grid(look: str, gridded: Served) -> None:
    sql = f"SELECT count(*) FROM people WHERE v < 3.{3 + list(LOOKS).index(look)}"
    with (
        gridded.connect("slow", "eve") as client,
        gridded.connect("slow", "eve") as other,
        ThreadPoolExecutor(1) as pool,
    ):
        for one in (client, other):
            one.execute("SET hush.session = 'together'")
        started = time.monotonic()
        asked = pool.submit(rows, client, sql)
        while not LOOKS[look](other, sql):
            assert time.monotonic() - started < PATIENCE_S
            time.sleep(0.01)
        print(look, rows(other, f"SELECT * FROM hush.estimate($${sql}$$)"))
        assert time.monotonic() - started >= STEP_S
        asked.result()


@pytest.mark.parametrize("login", ["eve", "bob"])
def test_who_asks_for_the_same_later_does_not_see_the_end_before_the_grid(login: str, gridded: Served) -> None:
    """With many who begin at different times the grid of each would measure one end between them."""
    sql = f"SELECT count(*) FROM people WHERE v < 3.{'78'[login == 'bob']}"
    with (
        gridded.connect("slow", "eve") as client,
        gridded.connect("slow", login) as other,
        ThreadPoolExecutor(1) as pool,
    ):
        if login == "eve":
            for one in (client, other):
                one.execute("SET hush.session = 'together'")  # the same accounts: it is free
        started = time.monotonic()
        asked = pool.submit(rows, client, sql)
        time.sleep(0.3)
        assert len(rows(other, sql)) == 1
        assert time.monotonic() - started >= STEP_S
        asked.result()


def test_a_hangup_acts_on_the_grid(gridded: Served) -> None:
    """What becomes of the statement is in the history: as finely as a client can choose when to hang up."""
    sql = ENDLESS.format(3)
    with gridded.connect("slow", "eve") as other:
        started = time.monotonic()
        client = raw(gridded)
        client.send(statement(sql))
        time.sleep(0.4)
        client.socket.close()
        outcome: list[tuple[object, ...]] = []
        while outcome != [("cancelled",)]:
            assert time.monotonic() - started < PATIENCE_S
            outcome = rows(other, f"SELECT outcome FROM hush.history WHERE query = $${sql}$$")
        assert time.monotonic() - started >= STEP_S
