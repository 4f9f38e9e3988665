"""Before anything is reserved an engine is looked at: is it there, and is it what it was? No row is read for that."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import psycopg
import pytest

from proxy.engines import postgres_open
from proxy.engines.base import Cancellation, Engine, EngineStopped
from proxy.engines.duckdb import DuckDBEngine
from proxy.engines.duckdb_unchanged import NoFile, OpenedFile, opened_file
from proxy.engines.postgres import PostgresEngine
from proxy.engines.postgres_facts import ReliedOn
from proxy.engines.postgres_failures import stopped
from proxy.errors import ConfigError, Failure, QueryCanceled
from proxy.plan.charge import Reserved
from proxy.policy.model import DataFiles, DuckDBFile
from proxy.release.raw import KeptKeys
from tests.postgres_server import PrivateServer, start_server
from tests.unit.engines.make import ORDERS, database, first_stage, paying, policy, renamed
from tests.unit.engines.private_postgres import DATA, DATABASE, LOGIN, open_engine, policy_of

COUNT = 'select count(*) from "sales"."orders" where "amount" > 0'
WHOLE_S = 60.0


@pytest.fixture(scope="module")
def pay(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Reserved]:
    return paying(tmp_path_factory.mktemp("ledger") / "state")


def look(engine: Engine, *statements: str, timeout_s: float = WHOLE_S) -> Failure | None:
    """How a look ends."""
    try:
        with engine.session(statements, timeout_s=timeout_s, cancellation=Cancellation()):
            return None
    except EngineStopped as error:
        return error.failure


# --- a file -----------------------------------------------------------------------------------------------


@pytest.fixture
def file(tmp_path: Path) -> DuckDBFile:
    return database(tmp_path / "shop.duckdb")


@pytest.fixture
def over_file(file: DuckDBFile, tmp_path: Path) -> Iterator[DuckDBEngine]:
    with closing(DuckDBEngine(policy(file), tmp_path / "spill")) as engine:
        yield engine


@pytest.mark.parametrize("keep", [0, 4096, 100_000])
def test_a_file_that_was_cut_short_has_changed(file: DuckDBFile, over_file: DuckDBEngine, keep: int) -> None:
    assert look(over_file) is None
    os.truncate(file.path, keep)
    assert look(over_file) is Failure.CHANGED


def test_a_file_that_was_written_in_its_place_has_changed(file: DuckDBFile, over_file: DuckDBEngine) -> None:
    size = os.stat(file.path).st_size
    with open(file.path, "r+b") as written:
        written.write(b"\xff" * size)
    assert os.stat(file.path).st_size == size
    assert look(over_file) is Failure.CHANGED


def test_a_file_that_was_removed_replaced_or_touched_is_there(file: DuckDBFile, over_file: DuckDBEngine) -> None:
    """DuckDB goes on reading the one that it has opened."""
    os.utime(file.path)
    assert look(over_file) is None
    os.rename(file.path, f"{file.path}.old")
    Path(file.path).write_bytes(b"")
    assert look(over_file) is None


def test_a_file_that_cannot_be_read_any_more_is_not_reached(
    file: DuckDBFile, over_file: DuckDBEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(*_arguments: object) -> bytes:
        raise OSError(5, "input/output error")

    with monkeypatch.context() as patch:
        patch.setattr(os, "pread", failing)
        assert look(over_file) is Failure.UNREACHABLE
        with pytest.raises(ConfigError, match="cannot be read"):
            opened_file(file)
    assert look(over_file) is None


def test_an_exception_over_a_file_that_was_touched_means_that_it_has_changed(file: DuckDBFile) -> None:
    opened = opened_file(file)
    assert isinstance(opened, OpenedFile)
    names = "IOException", "OutOfMemoryException", "FatalException", "ConversionException"
    known = [Failure.LIMITS, Failure.LIMITS, Failure.OTHER, Failure.OTHER]
    assert [opened.failure(n) for n in names] == known == [NoFile().failure(n) for n in names]
    os.utime(file.path, (1, 1))
    assert [opened.failure(n) for n in names] == [Failure.CHANGED, Failure.LIMITS, Failure.CHANGED, Failure.OTHER]
    opened.close()
    assert opened.failure("IOException") is Failure.CHANGED


def test_rows_in_memory_cannot_change(tmp_path: Path) -> None:
    table = renamed(ORDERS, name="orders", relation=("orders",))
    (tmp_path / "orders.csv").write_text("order_id,user_id,amount\n1,2,3\n")
    source = DataFiles((("orders", str(tmp_path / "orders.csv")),))
    with closing(DuckDBEngine(policy(source, renamed(table, joins=())), tmp_path / "spill")) as engine:
        (tmp_path / "orders.csv").unlink()
        assert look(engine) is None


def test_a_database_that_met_an_error_of_its_own_is_asked_whether_it_still_answers(
    file: DuckDBFile, tmp_path: Path, pay: Callable[..., Reserved]
) -> None:
    engine = DuckDBEngine(policy(file), tmp_path / "own")
    assert engine._stopped("FatalException").failure is Failure.OTHER
    assert first_stage(engine, pay("select 1"), timeout_s=WHOLE_S, cancellation=Cancellation()).rows == ((1,),)
    assert not engine._is_suspect
    engine._stopped("FatalException")
    engine._connection.close()
    assert look(engine) is Failure.UNREACHABLE
    engine.close()
    assert look(engine) is Failure.UNREACHABLE
    assert engine._stopped("IOException").failure is Failure.OTHER


# --- a server ---------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def server() -> Iterator[PrivateServer]:
    started = start_server()
    started.create(DATABASE, DATA)
    yield started
    started.stop()


@pytest.fixture
def engine(server: PrivateServer) -> Iterator[PostgresEngine]:
    with closing(open_engine(server)) as opened:
        opened.check_facts(policy_of())
        yield opened


@pytest.fixture
def owner(server: PrivateServer) -> Iterator[psycopg.Connection[tuple[object, ...]]]:
    with server.owner(DATABASE) as connection:
        yield connection


@pytest.mark.parametrize(
    ("change", "back"),
    [
        ("alter table sales.orders rename to elsewhere", "alter table sales.elsewhere rename to orders"),
        ("alter table sales.orders rename amount to sum", "alter table sales.orders rename sum to amount"),
        ("alter schema sales rename to buying", "alter schema buying rename to sales"),
        ("revoke select on sales.orders from reader", "grant select on sales.orders to reader"),
        ("revoke usage on schema sales from reader", "grant usage on schema sales to reader"),
    ],
)
def test_names_and_rights_that_are_gone_have_changed_before_anything_is_reserved(
    engine: PostgresEngine, owner: psycopg.Connection[tuple[object, ...]], change: str, back: str
) -> None:
    engine._relied_on = replace(engine._relied_on, types="[]")  # else any statement relies on those of amounts
    assert look(engine, COUNT) is None
    owner.execute(change.encode())
    try:
        assert look(engine, COUNT) is Failure.CHANGED
        assert look(engine, 'select count(*) from "public"."users"') is None  # names nothing of it
    finally:
        owner.execute(back.encode())
    assert look(engine, COUNT) is None


def test_a_type_that_is_not_what_it_was_has_changed_before_anything_is_reserved(
    engine: PostgresEngine, owner: psycopg.Connection[tuple[object, ...]]
) -> None:
    """Of amounts it is relied on that each has a double."""
    assert look(engine, COUNT) is None
    owner.execute("alter table sales.orders alter amount type numeric(14, 2)")
    assert look(engine, COUNT) is Failure.CHANGED
    owner.execute("alter table sales.orders alter amount type numeric(12, 2)")
    assert look(engine, COUNT) is None


def test_whether_an_index_is_there_is_not_asked_before(
    engine: PostgresEngine, owner: psycopg.Connection[tuple[object, ...]], pay: Callable[..., Reserved]
) -> None:
    """Rows may have kept it from being built."""
    users = 'select count(*) from "public"."users"'
    owner.execute("alter table users drop constraint users_user_id_key")
    try:
        assert look(engine, users) is None
        with pytest.raises(EngineStopped) as failed:
            first_stage(engine, pay(users), timeout_s=WHOLE_S, cancellation=Cancellation())
        assert failed.value.failure is Failure.CHANGED
    finally:
        owner.execute("alter table users add unique (user_id)")
    assert first_stage(engine, pay(users), timeout_s=WHOLE_S, cancellation=Cancellation()).rows == ((3,),)


def test_a_look_reads_no_row(engine: PostgresEngine, owner: psycopg.Connection[tuple[object, ...]]) -> None:
    """A view that fails on any row."""
    owner.execute("create or replace view failing as select order_id, user_id, amount / 0 as amount from sales.orders")
    owner.execute("grant select on failing to reader")
    engine._relied_on = ReliedOn(names=(('"public"."failing"', ('"order_id"', '"amount"')),))
    assert look(engine, 'select sum("amount"), max("order_id") from "public"."failing"') is None


def test_a_look_waits_for_whoever_changes_a_table_and_can_be_stopped(
    engine: PostgresEngine, owner: psycopg.Connection[tuple[object, ...]]
) -> None:
    with owner.transaction():
        owner.execute("lock table sales.orders in access exclusive mode")
        assert look(engine, COUNT, timeout_s=0.3) is Failure.LIMITS
        cancellation = Cancellation()
        timer = threading.Timer(0.2, cancellation.request)
        timer.start()
        with (
            pytest.raises(QueryCanceled, match="user request"),
            engine.session((COUNT,), timeout_s=WHOLE_S, cancellation=cancellation),
        ):
            raise AssertionError
        timer.join()
    assert look(engine, COUNT) is None


def test_a_server_that_stops_starts_or_takes_nobody_is_not_reached(
    pay: Callable[..., Reserved], monkeypatch: pytest.MonkeyPatch
) -> None:
    server = start_server()
    server.create(DATABASE, DATA)
    engine = open_engine(server)
    engine.check_facts(policy_of())
    assert look(engine, COUNT) is None
    with server.owner(DATABASE) as owner:
        owner.execute(f"alter role {LOGIN} nologin".encode())
        owner.execute("select pg_terminate_backend(pid) from pg_stat_activity where usename = 'reader'")
        assert look(engine, COUNT) is Failure.UNREACHABLE
        owner.execute(f"alter role {LOGIN} login".encode())
    assert look(engine, COUNT) is None
    with monkeypatch.context() as patch:
        patch.setattr(postgres_open, "OLDEST", 99)
        assert look(engine, COUNT) is None  # the session is open
        for connection in engine._idle:
            connection.close()
        assert look(engine, COUNT) is Failure.CHANGED
    server.process.send_signal(signal.SIGQUIT)
    server.process.wait()
    assert [look(engine, COUNT) for _ in range(3)] == [Failure.UNREACHABLE] * 3
    engine.close()
    assert look(engine, COUNT) is Failure.UNREACHABLE
    server.stop()


def test_all_charges_of_a_statement_are_computed_over_one_snapshot(
    engine: PostgresEngine, owner: psycopg.Connection[tuple[object, ...]], pay: Callable[..., Reserved]
) -> None:
    counted = "select count(*) from public.items"
    with engine.session((counted,), timeout_s=WHOLE_S, cancellation=Cancellation()) as session:
        found = []
        for number in range(2):
            with session.stages(pay(counted + " " * number)) as stages:
                found.append(stages.rows(0, KeptKeys()).rows)
            owner.execute("insert into items values (10)")
    assert found[0] == found[1]


# --- which kind -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("08001", Failure.UNREACHABLE),
        ("57P01", Failure.UNREACHABLE),
        ("57P03", Failure.UNREACHABLE),
        ("08006", Failure.LOST),
        ("57P02", Failure.LOST),
        ("42P01", Failure.CHANGED),
        ("42703", Failure.CHANGED),
        ("42501", Failure.CHANGED),
        ("53200", Failure.LIMITS),
        ("53100", Failure.LIMITS),
        ("57014", Failure.LIMITS),
        ("22012", Failure.OTHER),
        ("22003", Failure.OTHER),
        ("40001", Failure.OTHER),
        ("40P01", Failure.OTHER),
        ("55P03", Failure.OTHER),
        ("57P04", Failure.OTHER),
        ("25P03", Failure.OTHER),
        ("XX000", Failure.OTHER),
        ("42601", Failure.OTHER),
    ],
)
def test_a_sqlstate_says_which_kind_it_is(
    engine: PostgresEngine, owner: psycopg.Connection[tuple[object, ...]], code: str, kind: Failure
) -> None:
    with pytest.raises(psycopg.Error) as failed:
        owner.execute(f"do $$ begin raise exception 'a row' using errcode = '{code}'; end $$".encode())
    assert failed.value.sqlstate == code
    found = stopped(failed.value, owner)
    assert (found.failure, found.code) == (kind, code)
    assert "a row" not in found.text()


def test_what_has_no_sqlstate_is_a_lost_way_only_if_the_way_is_lost(
    owner: psycopg.Connection[tuple[object, ...]],
) -> None:
    error = psycopg.OperationalError("words of libpq")
    assert stopped(error, owner).failure is Failure.OTHER
    owner.close()
    assert (stopped(error, owner).failure, stopped(error, owner).code) == (Failure.LOST, "08006")


def test_a_look_is_one_message_with_that_which_begins_the_transaction(
    engine: PostgresEngine, pay: Callable[..., Reserved], monkeypatch: pytest.MonkeyPatch
) -> None:
    """So a statement is the same number of messages as without a look: begin, ask, look at the facts, end."""
    sent = list[object]()
    original = psycopg.Connection.execute

    def counting(self: psycopg.Connection[tuple[object, ...]], query: bytes, *rest: object, **more: object) -> object:
        sent.append(query)
        return original(self, query, *rest, **more)  # type: ignore[call-overload]

    monkeypatch.setattr(psycopg.Connection, "execute", counting)
    assert first_stage(engine, pay(COUNT), timeout_s=WHOLE_S, cancellation=Cancellation()).rows == ((3,),)
    assert len(sent) == 4
    assert b'; select "amount" from "sales"."orders" where false' in bytes(str(sent[0]), "ascii")
