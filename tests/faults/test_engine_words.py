"""What is said when the private engine fails: enough for whoever runs it, and nothing of a row for anybody."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import duckdb
import psycopg
import pytest

from tests.faults.outages import AWAY, NOTHING, Outside, outside, served_from
from tests.faults.proxied import COUNT, PATIENCE_S, Client, Proxied, Site, policy_document, refusal_of, running

SECRET = "Mallory-4711"

#: Views whose statements fail with an error that quotes a row, or as the server says what it ran out of.
_SPOILED = f"""
create view spoiled as select person_id, age,
  case when person_id = 5 then '{SECRET}' else '1' end::bigint as score from people;
create function fail(code text) returns integer language plpgsql as
  $$ begin raise exception using errcode = code, message = 'row {SECRET}', detail = 'of {SECRET}'; end $$;
create view memory as select person_id, case when person_id = 5 then fail('53200') else age end as age from people;
create view disk as select person_id, case when person_id = 5 then fail('53100') else age end as age from people;
create view waits as select p.person_id, p.age from people p, (select pg_sleep(20)) as s;
grant select on spoiled, memory, disk, waits to reader;
"""
_VIEWS = ("spoiled", "memory", "disk", "waits")


@pytest.fixture(scope="module")
def there() -> Iterator[Outside]:
    with outside() as made:
        with made.owner() as owner:
            owner.execute(_SPOILED.encode())
        yield made


def views(*names: str) -> dict[str, object]:
    """The policy's tables, and views that are declared like the people."""
    tables = policy_document()["tables"]
    assert isinstance(tables, dict)
    slow, score = tables["slow"], tables["people"]["columns"]["score"]
    spoiled = {**slow, "columns": {**slow["columns"], "score": score}}
    return {"people": tables["people"], **{name: spoiled if name == "spoiled" else slow for name in names}}


@pytest.fixture
def far(template: Site, there: Outside, tmp_path: Path) -> Site:
    site = served_from(template, there, tmp_path / "far")
    source = {"engine": "postgres", "dsn": there.server.dsn("tiny", "reader"), "data_version": "1"}
    site.write_policy(source=source, tables=views(*_VIEWS), limits={"statement_timeout": "4s"})
    return site


def said_to(client: Client, sql: str) -> tuple[str | None, ...]:
    """All that a client is told of a failure."""
    error = refusal_of(lambda: client.execute(sql.encode()))
    assert isinstance(error, psycopg.Error)
    diag = error.diag
    return diag.sqlstate, diag.message_primary, diag.message_detail, diag.message_hint, diag.context


def logged(proxied: Proxied) -> list[str]:
    return [line.partition("private ")[2] for line in proxied.said().splitlines() if " failed: " in line]


def test_a_failure_is_logged_with_its_kind_and_source_and_no_value(far: Site) -> None:
    with running(far) as proxied, proxied.connect() as client:
        told = said_to(client, "select sum(score) from spoiled")
        assert told[0] == "58000"
        assert said_to(client, "select avg(age) from memory")[0] == "57014"
        assert logged(proxied) == [
            "PostgreSQL failed: other, SQLSTATE 22P02 (InvalidTextRepresentation)",
            "PostgreSQL failed: limits, SQLSTATE 53200 (OutOfMemory)",
        ]
        assert all(line.count("tiny: private") == 1 for line in proxied.said().splitlines() if " failed: " in line)
        assert SECRET not in str(told)
    assert SECRET not in proxied.said()
    assert far.spent() == 2 * far.price()


def until_all_are(client: Client, outcome: str) -> None:
    """Outcomes are notes that are written a little later than the client is told."""
    deadline = time.monotonic() + PATIENCE_S
    while {row[0] for row in client.execute("select outcome from hush.history").fetchall()} != {outcome}:
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_memory_disk_and_time_are_one_word(far: Site, there: Outside) -> None:
    """Also the server's own limit of time, which an administrator may have set."""
    with running(far) as proxied, proxied.connect() as client:
        told = [said_to(client, f"select avg(age) from {name}") for name in ("memory", "disk", "waits")]
        with there.owner() as owner:
            owner.execute("alter role reader set statement_timeout = '1s'")
            there.end_sessions()
        told.append(said_to(client, "select avg(age) + 1 from waits"))
        assert len(set(told)) == 1
        assert told[0][:3] == (
            "57014",
            "canceling statement due to statement timeout or memory limit",
            "What was reserved for it stays charged.",
        )
        until_all_are(client, "cancelled")
        assert SECRET not in proxied.said()
        with there.owner() as owner:
            owner.execute("alter role reader reset statement_timeout")
        assert far.spent() == 4 * far.price()
        said_to(client, "select avg(age) from memory")  # never for what was charged before
        assert far.spent() == 5 * far.price()


def test_not_reachable_and_changed_are_told_apart(far: Site, there: Outside) -> None:
    with running(far) as proxied, proxied.connect() as client:
        with there.owner() as owner:
            owner.execute("alter table people rename column age to years")
        changed = said_to(client, "select avg(age) from people")
        with there.owner() as owner:
            owner.execute("alter table people rename column years to age")
        there.stop()
        away = said_to(client, "select avg(age) from people")
        there.start()
        assert changed[:3] == ("58000", "the private data have changed since the policy was loaded", NOTHING)
        assert away[:3] == ("58000", AWAY, NOTHING)
        assert changed[3] != away[3]
        assert client.execute(COUNT.encode()).rowcount == 1
    assert far.spent() == far.price()


def test_memory_and_time_are_one_word_in_this_process_too(site: Site) -> None:
    with duckdb.connect(str(site.data)) as connection:
        connection.execute(
            "create view memory as select person_id, (age + len(l) * 0)::integer as age from people,"
            " (select list(r) as l from range(2000000000) as made(r))"
        )
        connection.execute(
            "create view waits as select (i % 1000)::integer as person_id, (i % 90)::integer as age"
            " from range(100000000000) as made(i)"
        )
    limits = {"statement_timeout": "20s", "engine_memory": "200MB"}
    site.write_policy(tables=views("memory", "waits"), limits=limits)
    with running(site) as proxied, proxied.connect() as client:
        told = said_to(client, "select avg(age) from memory")
        assert logged(proxied) == ["DuckDB failed: limits, SQLSTATE none (OutOfMemoryException)"]
    site.write_policy(tables=views("memory", "waits"), limits={**limits, "statement_timeout": "1s"})
    with running(site) as proxied, proxied.connect() as client:
        assert said_to(client, "select avg(age) from waits") == told
    assert site.spent() == 2 * site.price()
