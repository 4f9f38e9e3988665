"""A private PostgreSQL computes what was reserved, can be stopped, and lets nothing else through."""

from __future__ import annotations

import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import date

import psycopg
import pytest

from proxy.engines.base import Cancellation, EngineStopped
from proxy.engines.postgres import PostgresEngine
from proxy.engines.postgres_open import connect
from proxy.errors import ConfigError, QueryCanceled
from proxy.plan.charge import Reserved
from proxy.policy.model import PostgresSource
from proxy.release.raw import KeptKeys, RawResult
from proxy.sql.syntax.names import spelled
from tests.postgres_server import PrivateServer, start_server
from tests.unit.engines.make import CITIES, first_stage, paying, policy, renamed, staged
from tests.unit.engines.private_postgres import DATA, DATABASE, LOGIN, SHOP_USERS, data_server, open_engine

Run = Callable[[str], RawResult]


@pytest.fixture(scope="module")
def server() -> PrivateServer:
    return data_server()


@pytest.fixture(scope="module")
def engine(server: PrivateServer) -> Iterator[PostgresEngine]:
    opened = open_engine(server)
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def pay(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Reserved]:
    return paying(tmp_path_factory.mktemp("ledger") / "state")


@pytest.fixture(scope="module")
def run(engine: PostgresEngine, pay: Callable[..., Reserved]) -> Run:
    return lambda sql: first_stage(engine, pay(sql), timeout_s=60, cancellation=Cancellation())


# --- results ----------------------------------------------------------------------------------------------


def test_sums_are_whole_numbers_and_keys_are_python_values(run: Run) -> None:
    sql = (
        "select city, sum(age) * 100000000000000000000::numeric, true, date '2024-02-29', 1.5::float8 from public.users"
        " group by city order by city"
    )
    assert run(sql).rows == (
        ("Oslo", 90 * 10**20, True, date(2024, 2, 29), 1.5),
        ("Paris", 30 * 10**20, True, date(2024, 2, 29), 1.5),
    )
    assert type(run(sql).rows[0][1]) is int
    assert run("select age, city from public.users where false") == RawResult(2, ())


def test_a_session_reads_only_and_trusts_no_name_of_the_data(run: Run) -> None:
    shown = "current_setting('TimeZone'), current_setting('transaction_read_only'), current_setting('search_path')"
    assert run(f"select {shown}, abs(-1)").rows == (("Europe/Paris", "on", "pg_catalog", 1),)
    assert run("select current_setting('transaction_isolation')").rows == (("repeatable read",),)
    for sql in ("insert into public.writable values (1)", "select * from users", "select 1; select 2"):
        with pytest.raises(EngineStopped):
            run(sql)


def test_rows_are_grouped_in_more_memory_unless_the_server_says_how_much(server: PrivateServer) -> None:
    said = {"set work_mem = '9MB'": "9MB", "set work_mem = '80MB'": "80MB", "reset work_mem": "64MB"}
    for words, used in said.items():
        with server.owner(DATABASE) as owner:
            owner.execute(f"alter role {LOGIN} {words}".encode())
        with connect(PostgresSource(server.dsn(DATABASE, LOGIN)), "UTC") as session:
            assert session.execute(b"show work_mem").fetchone() == (used,)
    chosen = PostgresSource(f"{server.dsn(DATABASE, LOGIN)} options='-c work_mem=5MB'")
    with connect(chosen, "UTC") as session:
        assert session.execute(b"show work_mem").fetchone() == ("5MB",)


def test_stages_see_one_snapshot_and_kept_keys(
    server: PrivateServer, engine: PostgresEngine, pay: Callable[..., Reserved]
) -> None:
    counted = "select count(*) from public.items"
    kept = "select k, count(*) from unnest($1::text[]) as k group by k order by k nulls last"
    with (
        server.owner(DATABASE) as owner,
        staged(engine, pay(counted, kept, counted), timeout_s=60, cancellation=Cancellation()) as stages,
    ):
        before = stages.rows(0, KeptKeys()).rows
        owner.execute("insert into items values (10)")
        assert stages.rows(1, KeptKeys((("a", None, "a"),))).rows == (("a", 2), (None, 1))
        assert stages.rows(2, KeptKeys()).rows == before
    with staged(engine, pay(counted), timeout_s=60, cancellation=Cancellation()) as stages:
        assert stages.rows(0, KeptKeys()).rows != before


def test_only_short_statements_are_compiled_and_only_where_the_server_does_that(
    server: PrivateServer, pay: Callable[..., Reserved]
) -> None:
    asked = "select current_setting('jit')"
    long = f"{asked} where '{'x' * 5000}' <> ''"
    for said, statements, is_on in (("on", (asked,), True), ("on", (asked, long), False), ("off", (asked,), False)):
        with server.owner(DATABASE) as owner:
            owner.execute(f"alter role {LOGIN} set jit = {said}".encode())
        with closing(open_engine(server)) as fresh:
            found = first_stage(fresh, pay(*statements), timeout_s=60, cancellation=Cancellation())
        assert found.rows == (("on" if is_on else "off",),)


def test_public_rows_come_as_texts_without_hidden_columns(server: PrivateServer, engine: PostgresEngine) -> None:
    assert sorted(engine.public_rows(CITIES)) == [("Oslo",), ("Paris",)]
    with pytest.raises(ValueError, match="private"):
        next(engine.public_rows(SHOP_USERS))
    with pytest.raises(ConfigError, match="public table cities cannot be read"):
        next(engine.public_rows(renamed(CITIES, relation=("nowhere",))))


# --- failures ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "sql",
    ["select secret::int from public.users", "select city::int from public.users", "select 1/0", "this is not sql"],
)
def test_the_servers_words_never_leave(run: Run, sql: str) -> None:
    with pytest.raises(EngineStopped) as failed:
        run(sql)
    chain = "".join(traceback.format_exception(failed.value)) + repr(failed.value.__cause__)
    assert "Paris" not in chain
    assert "secret" not in chain.replace(sql, "")
    assert failed.value.sqlstate == "58000"
    assert failed.value.__context__ is None
    assert run("select 1").rows == ((1,),)


def test_a_statement_stops_when_it_is_cancelled_or_its_time_is_over(
    engine: PostgresEngine, pay: Callable[..., Reserved], run: Run
) -> None:
    forever = pay("select pg_sleep(600)")
    with pytest.raises(QueryCanceled, match="timeout"):
        first_stage(engine, forever, timeout_s=0.3, cancellation=Cancellation())
    cancellation = Cancellation()
    timer = threading.Timer(0.3, cancellation.request)
    timer.start()
    with pytest.raises(QueryCanceled, match="user request"):
        first_stage(engine, forever, timeout_s=60, cancellation=cancellation)
    timer.join()
    with pytest.raises(QueryCanceled, match="user request"):
        first_stage(engine, forever, timeout_s=60, cancellation=cancellation)
    assert run("select 2").rows == ((2,),)


def test_a_server_without_room_is_a_fixed_message_and_is_used_again(
    server: PrivateServer, pay: Callable[..., Reserved]
) -> None:
    """No session is left for the login, and no room for what a statement spills."""
    with server.owner(DATABASE) as owner:
        for words in ("create role narrow login connection limit 1", "alter role narrow set temp_file_limit = 0",
                      "alter role narrow set work_mem = '64kB'"):  # fmt: skip
            owner.execute(words.encode())
    engine = open_engine(server, login="narrow")
    spilled = pay("select count(*) from (select x from generate_series(1, 100000) as t(x) order by x desc offset 0) y")
    with staged(engine, pay("select 1"), timeout_s=60, cancellation=Cancellation()) as stages:
        with pytest.raises(EngineStopped) as crowded:
            first_stage(engine, pay("select 2"), timeout_s=60, cancellation=Cancellation())
        assert stages.rows(0, KeptKeys()).rows == ((1,),)
    with pytest.raises(EngineStopped) as full:
        first_stage(engine, spilled, timeout_s=60, cancellation=Cancellation())
    for failed, words in ((crowded.value, "data cannot be reached"), (full.value, "engine came to its limits")):
        assert (failed.sqlstate, failed.message) == ("58000", f"the private {words}")
        assert failed.__context__ is None
    assert first_stage(engine, pay("select 3"), timeout_s=60, cancellation=Cancellation()).rows == ((3,),)
    engine.close()


def test_a_server_that_goes_away_is_a_fixed_message_and_is_found_again(pay: Callable[..., Reserved]) -> None:
    server = start_server()
    server.create(DATABASE, DATA)
    engine = open_engine(server)
    with (
        pytest.raises(EngineStopped, match="the private data cannot be reached"),
        staged(engine, pay("select pg_sleep(600)"), timeout_s=60, cancellation=Cancellation()) as stages,
        server.owner() as owner,
    ):
        timer = threading.Timer(0.3, _end_others, [owner])
        timer.start()
        stages.rows(0, KeptKeys())
    timer.join()
    assert first_stage(engine, pay("select 3"), timeout_s=60, cancellation=Cancellation()).rows == ((3,),)
    with server.owner() as owner:
        _end_others(owner)  # an idle session; the next statement takes another
    assert first_stage(engine, pay("select 4"), timeout_s=60, cancellation=Cancellation()).rows == ((4,),)
    server.stop()
    for _ in range(2):
        with pytest.raises(EngineStopped):
            first_stage(engine, pay("select 5"), timeout_s=60, cancellation=Cancellation())
    engine.close()
    with pytest.raises(EngineStopped):
        first_stage(engine, pay("select 6"), timeout_s=60, cancellation=Cancellation())
    with pytest.raises(ConfigError, match="cannot be used: OperationalError") as refused:
        open_engine(server)
    assert str(server.home) not in refused.value.text()


def _end_others(owner: psycopg.Connection[tuple[object, ...]]) -> None:
    owner.execute("select pg_terminate_backend(pid) from pg_stat_activity where usename = 'reader'")


@pytest.mark.parametrize("zone, words", [("Mars/Olympus", "InvalidParameterValue")])
def test_a_zone_that_the_server_does_not_know_is_refused(server: PrivateServer, zone: str, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        open_engine(server, zone=zone)


def test_a_database_in_another_encoding_is_refused(server: PrivateServer) -> None:
    with server.owner() as owner:
        owner.execute("create database latin encoding 'SQL_ASCII' template template0 locale 'C'")
    source = PostgresSource(server.dsn("latin"))
    with pytest.raises(ConfigError, match="does not keep its texts in UTF8"):
        PostgresEngine(policy(source), source)


def test_hints_quote_the_names_that_have_to_be_quoted(server: PrivateServer) -> None:
    with server.owner() as owner:
        words = owner.execute("select word, catcode in ('R', 'T') from pg_get_keywords()").fetchall()
    wrong = [word for word, is_taken in words if (spelled(word) != word) != is_taken]
    assert wrong == []
    assert [*map(spelled, ("user_id", "User", "co\"l", "a b", "ünï", "2x"))] == [
        "user_id", '"User"', '"co""l"', '"a b"', '"ünï"', '"2x"',
    ]  # fmt: skip
