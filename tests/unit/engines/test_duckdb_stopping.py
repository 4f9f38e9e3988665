"""DuckDB is stopped by time, by a client, for want of memory and at the end; what it then keeps is harmless."""

from __future__ import annotations

import gc
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from proxy.engines.base import Cancellation, Engine, EngineStopped
from proxy.engines.duckdb import DuckDBEngine
from proxy.errors import QueryCanceled
from proxy.plan.charge import Reserved
from proxy.policy.model import Limits
from proxy.release.raw import RawResult
from tests.unit.engines.make import database, first_stage, paying, policy

Pay = Callable[..., Reserved]
Run = Callable[[str], RawResult]

FOREVER = "select count(*) from range(10000000) a, range(10000000) b"


@pytest.fixture(scope="module")
def pay(tmp_path_factory: pytest.TempPathFactory) -> Pay:
    return paying(tmp_path_factory.mktemp("ledger") / "state")


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DuckDBEngine]:
    folder = tmp_path_factory.mktemp("engine")
    opened = DuckDBEngine(policy(database(folder / "shop.duckdb")), folder / "spill")
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def run(engine: Engine, pay: Pay) -> Run:
    return lambda sql: first_stage(engine, pay(sql), timeout_s=60, cancellation=Cancellation())


def test_a_timeout_stops_the_statement(engine: Engine, pay: Pay) -> None:
    start = time.monotonic()
    with pytest.raises(QueryCanceled, match="due to statement timeout"):
        first_stage(engine, pay(FOREVER), timeout_s=0.1, cancellation=Cancellation())
    assert time.monotonic() - start < 200


def test_a_cancellation_stops_the_statement_from_another_thread(engine: Engine, pay: Pay, run: Run) -> None:
    cancellation = Cancellation()
    timer = threading.Timer(0.1, cancellation.request)
    timer.start()
    with pytest.raises(QueryCanceled, match="due to user request"):
        first_stage(engine, pay(FOREVER), timeout_s=60, cancellation=cancellation)
    timer.join()
    cancellation.request()
    assert run("select 1").rows == ((1,),)


def test_a_connection_is_kept_after_success_only_and_holds_no_rows(tmp_path: Path, pay: Pay) -> None:
    """What is kept between statements is neither broken nor a place where exact rows lie about."""
    engine = DuckDBEngine(policy(database(tmp_path / "shop.duckdb")), tmp_path / "spill")

    def ask(sql: str, timeout_s: float = 60) -> RawResult:
        return first_stage(engine, pay(sql), timeout_s=timeout_s, cancellation=Cancellation())

    assert len(ask("select i, i from range(5000) t(i)").rows) == 5000
    (kept,) = engine._idle
    assert kept.fetchall() == [(0,)]
    assert ask("select 7").rows == ((7,),)
    assert engine._idle == [kept]
    for sql, timeout_s, error in (("select error('x')", 60, EngineStopped), (FOREVER, 0.2, QueryCanceled)):
        with pytest.raises(error):
            ask(sql, timeout_s=timeout_s)
        assert engine._idle == []
        assert ask("select 8").rows == ((8,),)
    engine.close()
    assert engine._idle == []
    with pytest.raises(EngineStopped):
        ask("select 9")


def test_a_cancellation_before_the_start_is_not_forgotten(engine: Engine, pay: Pay) -> None:
    cancellation = Cancellation()
    cancellation.request()
    with pytest.raises(QueryCanceled):
        first_stage(engine, pay(FOREVER), timeout_s=60, cancellation=cancellation)


def test_an_interrupt_that_comes_too_early_is_repeated(
    engine: DuckDBEngine, pay: Pay, monkeypatch: pytest.MonkeyPatch
) -> None:
    """DuckDB forgets an interrupt that arrives before the statement has begun."""
    cancellation = Cancellation()
    original = engine._watchdog.watch

    def late(interrupt: Callable[[], None], timeout_s: float, watched: Cancellation) -> object:
        skipped = iter((True,))
        return original(lambda: None if next(skipped, False) else interrupt(), timeout_s, watched)

    monkeypatch.setattr(engine._watchdog, "watch", late)
    timer = threading.Timer(0.05, cancellation.request)
    timer.start()
    with pytest.raises(QueryCanceled):
        first_stage(engine, pay(FOREVER), timeout_s=60, cancellation=cancellation)
    timer.join()


def test_memory_beyond_the_limit_fails_with_the_fixed_words(tmp_path: Path, pay: Pay) -> None:
    source = database(tmp_path / "shop.duckdb")
    small = DuckDBEngine(policy(source, limits=Limits(engine_memory="20MB", engine_threads=1)), tmp_path / "spill")
    with pytest.raises(EngineStopped) as failed:
        first_stage(
            small,
            pay("select len(list(i)) from range(30000000) t(i)"),
            timeout_s=60,
            cancellation=Cancellation(),
        )
    assert failed.value.exception_name == "OutOfMemoryException"
    assert first_stage(small, pay("select 1"), timeout_s=60, cancellation=Cancellation()).rows == ((1,),)
    small.close()


def test_what_does_not_fit_in_memory_is_spilled_privately(tmp_path: Path, pay: Pay) -> None:
    spill = tmp_path / "state" / "spill"
    spill.mkdir(parents=True)
    (spill / "left over from a crash").touch()
    source = database(tmp_path / "shop.duckdb")
    small = DuckDBEngine(policy(source, limits=Limits(engine_memory="40MB", engine_threads=1)), spill)
    assert spill.stat().st_mode & 0o777 == 0o700
    assert list(spill.iterdir()) == []
    sql = "select count(*) from (select i, hash(i) h, count(*) n from range(2000000) t(i) group by all)"
    assert first_stage(small, pay(sql), timeout_s=60, cancellation=Cancellation()).rows == ((2_000_000,),)
    assert [path.name.startswith("duckdb_temp") for path in spill.iterdir()] == [True]
    small.close()
    gc.collect()


def test_closing_interrupts_what_runs(tmp_path: Path, pay: Pay) -> None:
    engine = DuckDBEngine(policy(database(tmp_path / "shop.duckdb")), tmp_path / "spill")
    failures: list[Exception] = []
    began = threading.Event()

    def work() -> None:
        began.set()
        try:
            first_stage(engine, pay(FOREVER), timeout_s=60, cancellation=Cancellation())
        except EngineStopped as error:
            failures.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    began.wait()
    time.sleep(0.1)
    engine.close()
    thread.join(60)
    assert [type(f) for f in failures] == [EngineStopped]
    with pytest.raises(EngineStopped) as closed:
        first_stage(engine, pay("select 1"), timeout_s=1, cancellation=Cancellation())
    assert closed.value.exception_name == "Closed"


def test_a_statement_that_slips_in_while_closing_is_not_run(pay: Pay, tmp_path: Path) -> None:
    ending = DuckDBEngine(policy(database(tmp_path / "shop.duckdb")), tmp_path / "spill")
    ending._watchdog.close()
    with pytest.raises(EngineStopped) as failed:
        first_stage(ending, pay("select 1"), timeout_s=1, cancellation=Cancellation())
    assert failed.value.exception_name == "Closed"
    ending.close()
