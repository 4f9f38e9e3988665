"""What the screen refuses; the statements as a client sends them are in tests/wire/test_limits.py."""

from __future__ import annotations

import pytest

from proxy.wire.exchange import NoRefusal, Refusal
from proxy.wire.screen import screen
from proxy.wire.settings import duration_s, may_set, may_set_to

KIND = "restrict_nonsystem_relation_kind"
OF_PG_DUMP = f"SELECT set_config(name, 'view, foreign-table', false) FROM pg_settings WHERE name = '{KIND}'"
RAISING = "select 'raise'"


def message(text: str) -> str:
    refusal = screen(text, RAISING).refusal
    return refusal.error.message if isinstance(refusal, Refusal) else ""


@pytest.mark.parametrize(
    "text",
    [
        "",
        "select 1",
        "update t set work_mem = 1",
        "set",
        "set session",
        "set local",
        "set names",
        "set names 'latin1'",
        "set time zone 'UTC'",
        "set xml option document",
        "set transaction isolation level serializable",
        "set session authorization bob",
        "set hush.epsilon = 1",
        "set session.x = 1",
        "set role none",
        "set search_path to public, pg_temp",
        "set timezone to 'UTC'",
        "set client_encoding to default",
        "set standard_conforming_strings to 'on'",
        'select U&"a\\0062" from t -- set',
        "select set_config('hush.x', $1, false)",
        "select set_config from t",
        "select pg_notify from t",
        "alter table t add column a int",
        "create rulebook",
        "create temp table rule (a int)",
        "drop table owned",
        "select 'notify'",
        OF_PG_DUMP,
    ],
)
def test_passes(text: str) -> None:
    assert screen(text, RAISING).text == text
    assert screen(text, RAISING).refusal == NoRefusal()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("set transaction = 1", 'the setting "transaction" cannot be changed here'),
        ("set xml = 1", 'the setting "xml" cannot be changed here'),
        ("set role = bob, alice", ""),
        ("set names 'mule_internal'", 'the setting "client_encoding" cannot be given this value'),
        (
            "set standard_conforming_strings = E'off'",
            'the setting "standard_conforming_strings" cannot be given this value',
        ),
        ("set standard_conforming_strings", 'the setting "standard_conforming_strings" cannot be given this value'),
        ('set U&"work\\005fmem" = 1', 'the setting "U&"work\\005fmem"" cannot be changed here'),
        (
            OF_PG_DUMP.replace("view, foreign-table", "8GB"),
            "the first argument of set_config must be a plain string literal",
        ),
        (
            OF_PG_DUMP.replace("'view, foreign-table'", '"view, foreign-table"'),
            "the first argument of set_config must be a plain string literal",
        ),
        ("select set_config(", "the first argument of set_config must be a plain string literal"),
        ("select set_config('a'", "the first argument of set_config must be a plain string literal"),
        ("select set_config(E'a', 'b', true)", "the first argument of set_config must be a plain string literal"),
        (
            "select set_config('client_encoding', 'x' || 'y', true)",
            'the setting "client_encoding" cannot be given this value',
        ),
        ("select set_config('client_encoding',", 'the setting "client_encoding" cannot be given this value'),
        ("select set_config('client_encoding', 'utf8', true)", ""),
        ("with a as (update pg_catalog.pg_settings set setting = 1) select 1", "pg_settings cannot be updated"),
        ("select pg_notify('a', 'b')", "NOTIFY is not available"),
        ("alter role x", "logins cannot be changed through SQL"),
        ("create or replace rule x as on insert to y do nothing", "rules cannot be created"),
        ("drop owned by x", "DROP OWNED is not available"),
        ("analyze t", "ANALYZE is not available"),
        ("analyse t", "ANALYSE is not available"),
        ("vacuum t", "VACUUM is not available"),
        ("cluster t", "CLUSTER is not available"),
        ("reindex t", "REINDEX is not available"),
    ],
)
def test_messages(text: str, expected: str) -> None:
    assert message(text) == expected


def test_the_first_refused_statement_is_replaced_in_its_place() -> None:
    screened = screen("select 1; notify a; listen b", RAISING)
    assert screened.text == "select 1; select 'raise'; listen b"
    assert screened.start == 10


def test_settings() -> None:
    assert may_set("TimeZone")
    assert not may_set("work_mem")
    assert may_set_to("client_encoding", "auto")
    assert not may_set_to("work_mem", "1")


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("0", 0),
        ("", 0),
        ("250ms", 0.25),
        ("250", 0.25),
        ("3s", 3),
        ("2min", 120),
        ("1h", 3600),
        ("1d", 86400),
        ("x", 0),
        ("5 fortnights", 0),
        ("-1", 0),
    ],
)
def test_durations(text: str, seconds: float) -> None:
    assert duration_s(text) == seconds


@pytest.mark.parametrize(
    "text",
    [
        'update "pg_settings" set setting = 1', 'update pg_catalog."pg_settings" set setting = 1',
        "UPDATE PG_SETTINGS SET setting = 1", "with a as (select 1) update pg_settings set setting = 1",
    ],
)  # fmt: skip
def test_the_view_of_settings_is_not_updated_however_it_is_spelled(text: str) -> None:
    assert message(text) == "pg_settings cannot be updated"


@pytest.mark.parametrize(
    "text",
    [
        r"""select U&"pg\005fnotify"('a', 'b')""", r"""select U&"pg!005fnotify" uescape '!' ('a', 'b')""",
        r"""select U&"set!005fconfig" UESCAPE '!' ('work_mem', '1', false)""",
    ],
)  # fmt: skip
def test_a_call_by_an_escaped_name_is_refused_however_it_is_escaped(text: str) -> None:
    assert "Unicode escapes" in message(text)


#: What PostgreSQL has for memory, disk, processes, locks and replication.
COSTLY = (
    "work_mem", "maintenance_work_mem", "logical_decoding_work_mem", "autovacuum_work_mem", "hash_mem_multiplier",
    "temp_buffers", "temp_file_limit", "max_stack_depth", "shared_buffers", "vacuum_buffer_usage_limit",
    "max_parallel_workers", "max_parallel_workers_per_gather", "max_parallel_maintenance_workers",
    "effective_io_concurrency", "maintenance_io_concurrency", "max_locks_per_transaction", "gin_pending_list_limit",
    "gin_fuzzy_search_limit", "commit_delay", "wal_compression", "session_replication_role", "zero_damaged_pages",
    "track_functions", "log_statement", "jit_above_cost", "geqo_pool_size", "geqo_effort", "backend_flush_after",
    "restrict_nonsystem_relation_kind", "dynamic_library_path", "local_preload_libraries", "default_with_oids",
)  # fmt: skip


@pytest.mark.parametrize("name", COSTLY)
def test_settings_that_take_what_others_share_cannot_be_changed(name: str) -> None:
    assert not may_set(name)
    assert message(f"set {name} = 1")
    assert message(f"select set_config('{name}', '1', false)")
