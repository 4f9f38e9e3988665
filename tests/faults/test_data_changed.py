"""The data file is replaced, overwritten or removed while the proxy runs."""

from __future__ import annotations

import os
import signal
from functools import partial
from pathlib import Path

from tests.faults.proxied import (
    COUNT,
    Client,
    Proxied,
    Site,
    distinct_count,
    refusal_of,
    running,
    wait_until,
    write_data,
)

ENGINE_FAILED = "58000"
CHANGED = "the private data have changed since the policy was loaded"
# noise below 1, so that answers tell which data they are of
GENEROUS = {"unit": "person", "delta": 1e-6, "query_epsilon": 100, "max_query_epsilon": 100, "time_grid": "0ms"}


def people(client: Client, number: int) -> int:
    row = client.execute(f"{COUNT} where score >= {-number}".encode()).fetchone()
    assert row is not None
    assert isinstance(row[0], int)
    return row[0]


def check_refused_free(proxied: Proxied, client: Client) -> None:
    """Before anything is reserved, as often as it is asked; a whole file in its place is taken by a reload."""
    for number in range(20):
        refused = refusal_of(partial(client.execute, distinct_count(number % 5).encode()))
        assert refused is not None
        assert (refused.sqlstate, refused.diag.message_primary) == (ENGINE_FAILED, CHANGED)
        assert refused.diag.message_detail == "Nothing was charged."
    assert proxied.site.spent() == 0
    assert client.execute("select 1").fetchone() == (1,)
    replace_data(proxied.site.data, 60)
    proxied.signal(signal.SIGHUP)
    wait_until(lambda: "is in force" in proxied.said())
    assert client.execute(distinct_count(1).encode()).rowcount == 1
    assert proxied.said().count("private DuckDB failed: changed, SQLSTATE none (FileChanged)") == 20
    assert "Traceback" not in proxied.said()


def replace_data(path: Path, people: int) -> None:
    """As a careful job does: write beside, then rename."""
    fresh = path.with_name("fresh.duckdb")
    write_data(fresh, people)
    fresh.replace(path)


def test_replaced_data_are_served_after_a_reload_and_not_before(site: Site) -> None:
    site.write_policy(privacy=GENEROUS)
    with running(site) as proxied, proxied.connect() as client:
        assert abs(people(client, 1) - 60) < 15
        replace_data(site.data, 1000)
        assert abs(people(client, 2) - 60) < 15
        source = {"engine": "duckdb", "path": "tiny.duckdb", "data_version": "2"}
        site.write_policy(privacy=GENEROUS, source=source)
        proxied.signal(signal.SIGHUP)
        wait_until(lambda: "is in force" in proxied.said())
        spent = site.spent()
        assert abs(people(client, 1) - 1000) < 15
        assert site.spent() > spent  # the old release is of other data
    assert not list(site.state.glob("spill-*"))  # the replaced engine is gone, too


def test_removed_data_go_on_being_served_and_a_reload_keeps_the_old_version(site: Site) -> None:
    with running(site) as proxied, proxied.connect() as client:
        site.data.unlink()
        assert client.execute(distinct_count(1).encode()).rowcount == 1
        proxied.signal(signal.SIGHUP)
        wait_until(lambda: "was not taken" in proxied.said())
        assert "does not exist" in proxied.said()
        assert client.execute(distinct_count(2).encode()).rowcount == 1
        wait_until(lambda: len(list(site.state.glob("spill-*"))) == 1)  # that of the engine in use


def test_data_overwritten_in_place_are_noticed_before_anything_is_charged(site: Site) -> None:
    with running(site) as proxied, proxied.connect() as client:
        site.data.write_bytes(b"\xff" * site.data.stat().st_size)
        check_refused_free(proxied, client)


def test_data_cut_short_in_place_are_noticed_before_anything_is_charged(site: Site) -> None:
    with running(site) as proxied, proxied.connect() as client:
        os.truncate(site.data, 0)
        check_refused_free(proxied, client)
