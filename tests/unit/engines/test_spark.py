"""What does the engine of Spark's protocol do: look, run, stop, fail, and give nothing away?"""

from __future__ import annotations

import builtins
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from datetime import date, datetime
from pathlib import Path
from typing import Any

import duckdb
import pytest

from proxy.engines import spark, spark_client, spark_facts, spark_probes
from proxy.engines.base import Cancellation, EngineStopped
from proxy.engines.spark import SparkEngine
from proxy.engines.spark_client import SparkAddress, SparkConnection
from proxy.errors import ConfigError, Failure, QueryCanceled, TooMuch
from proxy.plan.charge import Reserved
from proxy.policy.model import JoinKey, SparkSource, Table
from proxy.release.raw import KeptKeys
from proxy.sql.render.spark.dialect import SPARK
from proxy.sqltypes import SqlType
from tests.sail_server import SailServer, sail
from tests.unit.engines.make import CITIES, DATA, ITEMS, ORDERS, USERS, first_stage, paying, policy, renamed, staged

_WHOLE_S = 60.0
_FOREVER = "SELECT sum(id % 7) AS n FROM range(0, 10000000000000)"  # of joins Sail hears nothing else meanwhile
_MOST = 1 << 20


@pytest.fixture(scope="module")
def pay(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Reserved]:
    return paying(tmp_path_factory.mktemp("ledger") / "state")


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> tuple[Table, ...]:
    """The tables of `make` in Parquet."""
    folder = tmp_path_factory.mktemp("lake")
    with duckdb.connect() as connection:
        connection.execute(DATA)
        found = []
        for table in (CITIES, USERS, ORDERS, ITEMS):
            path = folder / f"{table.name}.parquet"
            connection.execute(f"copy {'.'.join(table.relation)} to '{path}' (format parquet)")
            found.append(renamed(table, relation=("parquet", str(path))))
    return tuple(found)


@pytest.fixture(scope="module")
def engine() -> Iterator[SparkEngine]:
    with closing(SparkEngine(SparkSource(sail().url, may_write=True))) as opened:
        yield opened


def _count(table: Table) -> str:
    return f"SELECT count(*) AS n FROM parquet.`{table.relation[1]}`"


def _run(engine: SparkEngine, reserved: Reserved, *, timeout_s: float = _WHOLE_S) -> tuple[tuple[object, ...], ...]:
    return first_stage(engine, reserved, timeout_s=timeout_s, cancellation=Cancellation()).rows


def _look(engine: SparkEngine, *statements: str) -> Failure | None:
    try:
        with engine.session(statements, timeout_s=_WHOLE_S, cancellation=Cancellation()):
            return None
    except EngineStopped as error:
        return error.failure


# --- running ------------------------------------------------------------------------------------------------------


def test_a_name_may_hold_anything(engine: SparkEngine, pay: Callable[..., Reserved]) -> None:
    name = SPARK.quote("a\"b; DROP -- ' `\\")
    assert _run(engine, pay(f"SELECT n.{name} AS m FROM (SELECT 5 AS {name}) AS n")) == ((5,),)


def test_values_come_as_python_has_them(engine: SparkEngine, pay: Callable[..., Reserved]) -> None:
    sql = (
        "SELECT CAST(123456789012345678901 AS DECIMAL(38,0)) AS a, DATE '2024-02-29' AS b, 'x' AS c, TRUE AS d,"
        " 0.5e0 AS e, TIMESTAMP_NTZ '2024-02-29 01:02:03.000004' AS f, CAST(NULL AS STRING) AS g,"
        " CAST(1.5 AS DECIMAL(3,1)) AS h"
    )
    (row,) = _run(engine, pay(sql))
    assert row[:7] == (
        123456789012345678901,
        date(2024, 2, 29),
        "x",
        True,
        0.5,
        datetime(2024, 2, 29, 1, 2, 3, 4),
        None,
    )
    assert float(str(row[7])) == 1.5


def test_no_rows_have_columns_too(engine: SparkEngine, pay: Callable[..., Reserved], tables: tuple[Table, ...]) -> None:
    sql = f"SELECT city, user_id FROM parquet.`{tables[1].relation[1]}` WHERE user_id > 99"
    found = first_stage(engine, pay(sql), timeout_s=_WHOLE_S, cancellation=Cancellation())
    assert (found.columns, found.rows) == (2, ())


@pytest.mark.parametrize(
    "values", [(True, None), (1, 2**62), (1.5,), (date(1, 1, 1), None), (datetime(9999, 12, 31, 23, 59, 59, 999_999),),
               ("'\\`\n", None), (None,), ()],
)  # fmt: skip
def test_kept_keys_go_with_the_statement(
    engine: SparkEngine, pay: Callable[..., Reserved], values: tuple[Any, ...]
) -> None:
    second = "SELECT kept.p1 AS p FROM kept_keys AS kept ORDER BY 1 NULLS LAST"
    reserved = pay("SELECT 1 AS one", second)
    with staged(engine, reserved, timeout_s=_WHOLE_S, cancellation=Cancellation()) as stages:
        stages.rows(0, KeptKeys())
        assert stages.rows(1, KeptKeys((values,))).rows == tuple((v,) for v in values)


def test_a_statement_that_is_cancelled_or_too_long_is_stopped(
    engine: SparkEngine, pay: Callable[..., Reserved]
) -> None:
    with pytest.raises(TooMuch), ThreadPoolExecutor(1) as elsewhere:  # in a session that another thread has opened
        elsewhere.submit(_run, engine, pay(_FOREVER), timeout_s=1.0).result(_WHOLE_S)
    cancellation = Cancellation()
    threading.Timer(0.5, cancellation.request).start()
    with pytest.raises(QueryCanceled):
        first_stage(engine, pay(_FOREVER), timeout_s=_WHOLE_S, cancellation=cancellation)
    assert _run(engine, pay("SELECT 3 AS n")) == ((3,),)


def test_a_cancelled_look_ends_its_session(engine: SparkEngine) -> None:
    cancellation = Cancellation()
    cancellation.request()
    with pytest.raises(QueryCanceled), engine.session(
        ("SELECT 1 AS n",), timeout_s=_WHOLE_S, cancellation=cancellation
    ):  # fmt: skip
        pass


def test_results_that_are_too_large_end_by_limits(
    engine: SparkEngine, pay: Callable[..., Reserved], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spark, "MOST_BYTES", 1000)
    with pytest.raises(EngineStopped) as stopped:
        _run(engine, pay("SELECT id FROM range(0, 1000)"))
    assert stopped.value.failure is Failure.LIMITS


@pytest.mark.parametrize(
    "sql",
    [
        "CREATE TABLE x (a INT)",
        "SELECT 1; SELECT 2",
        "INSERT INTO x VALUES (1)",
        "SELECT '\\' ; DROP TABLE x --'",
        "WITH a AS (SELECT 1) INSERT INTO x SELECT * FROM a",
        "SET spark.sql.ansi.enabled = false",
        "",
    ],
)
def test_only_one_select_is_sent(engine: SparkEngine, pay: Callable[..., Reserved], sql: str) -> None:
    assert _look(engine, sql) is Failure.OTHER


# --- what is said of failures -------------------------------------------------------------------------------------


def test_the_words_of_the_server_are_dropped(
    engine: SparkEngine, pay: Callable[..., Reserved], capfd: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(EngineStopped) as stopped:
        _run(engine, pay("SELECT CAST(concat('secret-of-', 'ann') AS INT) AS n"))
    error: BaseException | None = stopped.value
    assert stopped.value.failure is Failure.OTHER
    while error is not None:
        assert "secret" not in str(error)
        assert "secret" not in repr(error.args)
        error = error.__cause__ or error.__context__
    assert "secret" not in "".join(capfd.readouterr())


def test_names_that_are_gone_are_seen_before_a_charge(engine: SparkEngine, tables: tuple[Table, ...]) -> None:
    assert _look(engine, _count(tables[1])) is None
    assert _look(engine, f"SELECT s0.`gone` AS g FROM parquet.`{tables[1].relation[1]}` AS s0") is Failure.CHANGED
    assert _look(engine, "SELECT s0.`age` AS g FROM parquet.`/nowhere/at/all` AS s0") is Failure.CHANGED


def test_a_failure_of_names_while_it_runs_is_not_told_apart(engine: SparkEngine, pay: Callable[..., Reserved]) -> None:
    """Some servers call an error of a value so: which it is would tell of rows."""
    with engine.session((), timeout_s=_WHOLE_S, cancellation=Cancellation()) as session:  # noqa: SIM117
        with session.stages(pay("SELECT s0.`age` AS g FROM parquet.`/nowhere` AS s0")) as stages:
            with pytest.raises(EngineStopped) as stopped:
                stages.rows(0, KeptKeys())
    assert stopped.value.failure is Failure.OTHER


def test_a_server_that_is_lost_is_found_again(pay: Callable[..., Reserved]) -> None:
    with closing(SailServer()) as server, closing(SparkEngine(SparkSource(server.url, may_write=True))) as engine:
        with engine.session(("SELECT 1 AS n",), timeout_s=_WHOLE_S, cancellation=Cancellation()) as session:
            server.kill()
            with session.stages(pay("SELECT 41 AS n")) as stages, pytest.raises(EngineStopped) as lost:
                stages.rows(0, KeptKeys())
        assert lost.value.failure is Failure.LOST
        assert _look(engine, "SELECT 1 AS n") is Failure.UNREACHABLE
        server.again()
        assert _run(engine, pay("SELECT 42 AS n")) == ((42,),)


def test_a_session_of_a_server_that_was_started_anew_is_replaced(pay: Callable[..., Reserved]) -> None:
    with closing(SailServer()) as server, closing(SparkEngine(SparkSource(server.url, may_write=True))) as engine:
        server.kill()
        server.again()
        assert _run(engine, pay("SELECT 43 AS n")) == ((43,),)


def test_facts_are_not_found_in_a_session_with_other_settings(tables: tuple[Table, ...]) -> None:
    """As after a start of the server anew, which knows nothing of them."""
    with closing(SparkEngine(SparkSource(sail().url, may_write=True))) as engine:
        (lost,) = engine._idle
        lost._settings.set("spark.sql.session.timeZone", "Europe/Zurich")
        assert engine.check_facts(policy(SparkSource("sc://x"), *tables)).columns
        assert lost not in engine._idle


def test_a_closed_engine_answers_nothing() -> None:
    engine = SparkEngine(SparkSource(sail().url, may_write=True))
    with engine.session((), timeout_s=_WHOLE_S, cancellation=Cancellation()):
        engine_closing = threading.Thread(target=engine.close)
        engine_closing.start()
    engine_closing.join()
    assert _look(engine, "SELECT 1 AS n") is Failure.UNREACHABLE


# --- the start ----------------------------------------------------------------------------------------------------


def test_a_server_that_is_not_there_is_refused() -> None:
    with pytest.raises(ConfigError, match="cannot be reached: unavailable"):
        SparkEngine(SparkSource("sc://127.0.0.1:1"))


def test_an_address_that_is_none_is_refused_without_its_words() -> None:
    with pytest.raises(ConfigError, match="is no address") as refused:
        SparkConnection(SparkAddress("sc://host:port:hunter2/;=x"))
    assert "hunter2" not in refused.value.text()
    assert "hunter2" not in str(refused.value.__cause__)


@pytest.mark.parametrize("subject", spark_probes.PROBES)
def test_a_server_that_computes_otherwise_is_refused(subject: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each answer is asked for: one other than the known one, and the dataset is not served."""
    known = spark_probes.PROBES[subject]
    wrong = {**spark_probes.PROBES, subject: (*known[:-1], (known[-1][0], "other"))}
    monkeypatch.setattr(spark_probes, "PROBES", wrong)
    with pytest.raises(ConfigError, match=f"does not compute as private statements need it: Probe: {subject}"):
        SparkEngine(SparkSource(sail().url, may_write=True))


def test_a_session_with_other_settings_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    with closing(SparkConnection(SparkAddress(sail().url))) as connection:
        connection.check_settings()
        monkeypatch.setattr(spark_client, "_SETTINGS", (("spark.sql.session.timeZone", "Europe/Zurich"),))
        with pytest.raises(EngineStopped):
            connection.check_settings()


def test_a_token_is_in_no_text() -> None:
    address = SparkAddress("sc://host:443/;use_ssl=true", "hunter2")
    assert address.whole == "sc://host:443/;use_ssl=true;token=hunter2"
    assert SparkAddress("sc://host:443", "hunter2").whole == "sc://host:443/;token=hunter2"
    assert SparkAddress("sc://host", "a=;#/").whole == "sc://host/;token=a%3D%3B%23%2F"  # as the library reads it
    assert "hunter2" not in repr(address) + repr(SparkSource("sc://host", "hunter2"))


def test_without_the_extra_it_is_said_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without(
        name: str,
        globals_: Mapping[str, object] | None = None,
        locals_: Mapping[str, object] | None = None,
        fromlist: Sequence[str] = (),
        level: int = 0,
    ) -> Any:
        if name == "grpc":
            raise ImportError(name=name)
        return real(name, globals_, locals_, fromlist, level)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(ConfigError) as refused:
        spark_client.library()
    assert "grpc is missing" in refused.value.text()
    assert "hushql[spark]" in refused.value.text()


# --- facts --------------------------------------------------------------------------------------------------------


def _problems(engine: SparkEngine, *tables: Table, zone: str = "UTC") -> str:
    with pytest.raises(ConfigError) as refused:
        engine.check_facts(policy(SparkSource("sc://x"), *tables, time_zone=zone))
    return refused.value.message


def test_facts_that_hold_are_found(engine: SparkEngine, tables: tuple[Table, ...]) -> None:
    unique_users = renamed(tables[1], joins=())
    orders = renamed(tables[2], joins=())
    cities = tables[0]
    found = engine.check_facts(policy(SparkSource("sc://x"), cities, unique_users, orders, tables[3]))
    assert {(c.table, c.column): c.engine_type for c in found.columns}["orders", "amount"] == "decimal(12,2)"
    assert engine.check_facts(policy(SparkSource("sc://x"), *tables)).joins[0].is_unique


def test_declared_facts_are_enforced_on_spark(engine: SparkEngine, tables: tuple[Table, ...], tmp_path: Path) -> None:
    cities, users, orders, items = tables
    with duckdb.connect() as connection:
        for name, sql in (
            ("twice", "select 1 as user_id, 30 as age, 'Paris' as city from range(2)"),
            ("wide", "select 1::bigint as order_id, 1 as user_id, 1::decimal(38,9) as amount from range(2)"),
        ):
            connection.execute(f"copy ({sql}) to '{tmp_path / name}.parquet' (format parquet)")

    def at(table: Table, name: str) -> Table:
        return renamed(table, relation=("parquet", str(tmp_path / f"{name}.parquet")))

    assert "unit_unique" in _problems(engine, cities, at(users, "twice"))
    assert "no relation" in _problems(engine, renamed(cities, relation=("parquet", "/nowhere/at/all")))
    wide = replace(orders.columns[2], type=SqlType.FLOAT8)
    words = _problems(engine, at(renamed(orders, columns=(*orders.columns[:2], wide), joins=()), "wide"))
    assert "orders.amount: is decimal(38,9) in the data, double precision in the policy" in words
    assert "is decimal(38,9)" in _problems(engine, at(renamed(orders, joins=()), "wide"))
    missing = replace(cities.columns[0], name="City")
    assert "no column that is spelled so" in _problems(engine, renamed(cities, columns=(missing,)))
    numeric = replace(orders.columns[0], type=SqlType.NUMERIC)
    twice = at(renamed(orders, columns=(numeric, *orders.columns[1:2]), joins=()), "wide")
    assert "orders.order_id: rows find their unit" in _problems(engine, twice, items)
    join = JoinKey("city", "cities", "city")
    with duckdb.connect() as connection:
        connection.execute(f"copy (select 1 as user_id, 30 as age, 'Rome' as city) to '{tmp_path / 'rome.parquet'}'")
    rome = renamed(at(users, "rome"), complete_joins=(join,))
    assert "a row meets none of cities" in _problems(engine, cities, rome)


def test_what_cannot_be_asked_is_no_fact(
    engine: SparkEngine, tables: tuple[Table, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spark_facts, "_MOST_BYTES", -1)
    unit = replace(tables[1].columns[0], type=SqlType.INT8)
    by_zone = renamed(tables[1], columns=(unit, *tables[1].columns[1:]), unit_unique=False)
    monkeypatch.setattr(spark_facts, "_compared", lambda *_: "city")
    assert "could not be found out: ResultTooLarge" in _problems(engine, renamed(by_zone, unit_unique=True), tables[0])


def test_values_are_compared_as_private_statements_compare_them(tables: tuple[Table, ...]) -> None:
    def compared(kind: SqlType, zone: str = "UTC") -> str:
        return spark_facts._compared(renamed(CITIES, columns=(replace(CITIES.columns[0], type=kind),)), "city", zone)

    assert compared(SqlType.NUMERIC) == "(`city`)::DOUBLE"
    assert compared(SqlType.BPCHAR) == "rtrim(`city`)"
    assert compared(SqlType.TIMESTAMPTZ) == "try_cast(`city` AS TIMESTAMP_NTZ)"
    assert SPARK.text_literal("Europe/Zurich") in compared(SqlType.TIMESTAMPTZ, "Europe/Zurich")
    assert compared(SqlType.TEXT) == "`city`"


def test_public_rows_are_read_and_private_ones_are_not(engine: SparkEngine, tables: tuple[Table, ...]) -> None:
    assert sorted(engine.public_rows(tables[0])) == [("Oslo",), ("Paris",)]
    with pytest.raises(ValueError, match="is private"):
        list(engine.public_rows(tables[1]))
    with pytest.raises(ConfigError, match="cannot be read"):
        list(engine.public_rows(renamed(tables[0], relation=("parquet", "/nowhere/at/all"))))
    zoned = replace(CITIES.columns[0], type=SqlType.TIMESTAMPTZ)
    assert spark._fetched(zoned) == "CAST(`city` AS STRING) || '+00'"


def test_a_session_that_was_interrupted_serves_nobody_else(engine: SparkEngine) -> None:
    with engine.session((), timeout_s=_WHOLE_S, cancellation=Cancellation()) as session:
        session.connection.interrupt()  # heard too late to stop anything
    assert session.connection not in engine._idle


def test_facts_and_rows_of_a_server_that_is_away_are_no_facts(tables: tuple[Table, ...]) -> None:
    engine = SparkEngine(SparkSource(sail().url, may_write=True))
    engine.close()
    with pytest.raises(ConfigError, match="cannot be reached"):
        engine.check_facts(policy(SparkSource("sc://x"), *tables))
    with pytest.raises(ConfigError, match="cannot be read"):
        list(engine.public_rows(tables[0]))


def test_a_server_that_does_not_hear_an_interrupt_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spark_client, "_PATIENCE_S", -1.0)
    connection = SparkConnection(SparkAddress(sail().url))
    connection.interrupt()
    with pytest.raises(EngineStopped):
        connection.rows("SELECT 1 AS n", max_bytes=_MOST)
    connection.close()
