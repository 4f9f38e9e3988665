"""An edited policy that is not taken, for whatever reason, is for others than admins as if nobody had edited it."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import duckdb
import psycopg
import pytest

from tests import places
from tests.attacks.hostile import Client, refusal, rows
from tests.e2e import served
from tests.e2e.served import Served

PATIENCE_S = 200.0
POLICY = """version: 1
dataset: edited
source: {{engine: duckdb, path: {path}, data_version: "1"}}
privacy: {{unit: person, delta: 1e-6, query_epsilon: 1, time_grid: 0ms}}
budgets: {{dataset: {{epsilon: 1000}}}}
tables:
  people:
    unit: pid
    {people}
    columns: {{pid: {{type: integer, key: true}}, v: {{type: integer, bounds: [0, 10]}}}}
  hidden:
    unit: pid
    max_rows_per_unit: 5
    columns: {{pid: {{type: integer, key: true}}, secret: {{type: {secret}}}}}
{more}access: {{users_file: users.yaml}}
"""
RIGHT = {"path": "edited.duckdb", "people": "max_rows_per_unit: 5", "secret": "text", "more": ""}
_DRAFT = (
    "  draft_of_next_year:\n    unit: pid\n    max_rows_per_unit: 1\n    columns: {pid: {type: integer, key: true}}\n"
)
#: What is edited, and what an admin is told of it.
REFUSED = {
    "a unit has several rows": ({"people": "unit_unique: true"}, "more than one row"),
    "a value is of another type": ({"secret": "date"}, "secret"),
    "a table is not there": ({"more": _DRAFT}, "draft_of_next_year"),
    "a file is not there": ({"path": "/srv/payroll/next.duckdb"}, "/srv/payroll"),
    "a variable is not set": ({"path": '"${NAME_OF_A_VARIABLE}"'}, "NAME_OF_A_VARIABLE"),
    "no policy": ({"people": "max_rows_of_unit: 3"}, "max_rows_of_unit"),
}
ASKED = (
    "SELECT * FROM hush.policy ORDER BY 1, 2",
    "SELECT * FROM hush.budget ORDER BY 1",
    "SELECT * FROM hush.history",
    "SELECT * FROM hush.last_query",
    "SELECT * FROM hush.estimate('SELECT count(*) FROM people; SELECT sum(v) FROM draft_of_next_year')",
    "EXPLAIN SELECT v, count(*) FROM people GROUP BY v",
    "EXPLAIN (FORMAT JSON) SELECT v, count(*) FROM people GROUP BY v",
    "SELECT objoid, classoid, objsubid, description FROM pg_description WHERE objoid >= 16384 ORDER BY 1, 2, 3",
    "SELECT name, setting FROM pg_settings ORDER BY 1",
    "SELECT relname, relnatts FROM pg_class ORDER BY oid",
    "SELECT pg_postmaster_start_time(), pg_conf_load_time()",
)
MOMENT = "SELECT DISTINCT loaded_at FROM hush.policy"
WRONG = (
    "SELECT * FROM people",
    "SELECT count(*) FROM hidden",
    "SELECT count(*) FROM draft_of_next_year",
    "SELECT count(*) FROM people GROUP BY pid",
)


@dataclass(slots=True)
class Edited:
    """A proxy whose policy is edited. taken, refused: how often it has said so."""

    served: Served
    policy: Path
    counts: dict[str, int] = field(default_factory=lambda: {"is in force": 0, "was not taken": 0})

    def edit(self, outcome: str, **changes: str) -> None:
        """Write the policy, ask for a reload, and wait until the log tells how it ended."""
        self.policy.write_text(POLICY.format(**{**RIGHT, **changes}))
        self.counts[outcome] += 1
        self.served.process.send_signal(signal.SIGHUP)
        deadline = time.monotonic() + PATIENCE_S
        while {said: self.served.log.read_text().count(said) for said in self.counts} != self.counts:
            assert time.monotonic() < deadline, self.served.log.read_text()
            time.sleep(0.01)

    def connect(self, login: str) -> Client:
        return self.served.connect("edited", login)


@pytest.fixture(scope="module")
def edited(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Edited]:
    folder = tmp_path_factory.mktemp("edited")
    with duckdb.connect(str(folder / "edited.duckdb")) as data:
        data.execute(
            "create table people as select (r % 50)::integer as pid, (r % 7)::integer as v from range(100) t(r)"
        )
        data.execute("create table hidden as select r::integer as pid, 'no date' as secret from range(100) t(r)")
    served.write_users(folder / "users.yaml", {"clerk": "clerk", "boss": "boss"}, "tables: [people]")
    policy = folder / "edited.yaml"
    policy.write_text(POLICY.format(**RIGHT))
    with served.serving(folder, [policy], places.UNCOUNTED) as running:
        yield Edited(running, policy)


def shown(client: Client) -> list[object]:
    """All that a login is told, notices and refusals included."""
    notices: list[str] = []

    def keep(said: psycopg.errors.Diagnostic) -> None:
        notices.append(f"{said.message_primary} {said.message_detail} {said.message_hint}")

    client.add_notice_handler(keep)
    found: list[object] = [rows(client, sql) for sql in ASKED]
    found += [refusal(client, sql) for sql in WRONG]
    client.remove_notice_handler(keep)
    return [*found, notices]


@pytest.mark.parametrize("why", REFUSED)
def test_an_edit_that_was_not_taken_looks_like_no_edit(why: str, edited: Edited) -> None:
    changes, told = REFUSED[why]
    with edited.connect("clerk") as old, edited.connect("boss") as boss:
        before = shown(old)
        edited.edit("was not taken", **changes)
        assert shown(old) == before
        with edited.connect("clerk") as new:
            assert shown(new) == before
        ((status,),) = rows(boss, "SELECT DISTINCT status FROM hush.policy")
        assert told in str(status)
    assert rows_of_words(before) >= 20  # there was something to compare


def rows_of_words(found: list[object]) -> int:
    return sum(len(part) for part in found if isinstance(part, (list, tuple)))


def test_a_policy_that_is_loaded_again_as_it_is_looks_like_no_reload(edited: Edited) -> None:
    """Else a reload in a fixed rhythm would tell, by not happening, that the data keep the policy no more."""
    with edited.connect("clerk") as client, edited.connect("boss") as boss:
        before, first = shown(client), rows(boss, MOMENT)
        edited.edit("is in force")
        assert shown(client) == before
        assert rows(boss, MOMENT) != first
        seen = rows(client, MOMENT)
        edited.edit("is in force", people="max_rows_per_unit: 4")
        assert rows(client, MOMENT) != seen
        edited.edit("is in force")
