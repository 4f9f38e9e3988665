"""A private PostgreSQL without memory, whose processes are killed or stand still: fixed words, and it is used again."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator

import pytest

from proxy.engines import postgres
from proxy.engines.base import Cancellation, EngineStopped
from proxy.engines.postgres import PostgresEngine
from proxy.errors import Failure, TooMuch
from proxy.plan.charge import Reserved
from proxy.policy.model import PostgresSource
from proxy.release.raw import KeptKeys
from tests.postgres_server import PrivateServer, start_server
from tests.unit.engines.make import first_stage, paying, policy, staged

_LONG = "select length(repeat('x', 600000000))"
_AWAY = ("58000", "the private data cannot be reached", None)
_DEADLINE_S = 60
_ENOUGH = 400_000  # kilobytes, half of which all processes share; less than _LONG takes


@pytest.fixture(scope="module")
def server() -> Iterator[PrivateServer]:
    started = start_server(most_kilobytes=_ENOUGH)
    yield started
    started.stop()


@pytest.fixture(scope="module")
def engine(server: PrivateServer) -> Iterator[PostgresEngine]:
    source = PostgresSource(server.dsn("postgres"))
    opened = PostgresEngine(policy(source, time_zone="UTC"), source)
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def pay(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Reserved]:
    return paying(tmp_path_factory.mktemp("ledger") / "state")


def _number(engine: PostgresEngine, reserved: Reserved, timeout_s: float = 60) -> int:
    (row,) = first_stage(engine, reserved, timeout_s=timeout_s, cancellation=Cancellation()).rows
    assert isinstance(row[0], int)
    return row[0]


def _words(failed: EngineStopped) -> tuple[str, str, BaseException | None]:
    return failed.sqlstate, failed.message, failed.__context__


def test_a_process_without_memory_is_a_fixed_message_and_it_is_used_again(
    engine: PostgresEngine, pay: Callable[..., Reserved]
) -> None:
    with pytest.raises(EngineStopped) as failed:
        _number(engine, pay(_LONG))
    assert _words(failed.value) == ("58000", "the private engine came to its limits", None)
    assert (failed.value.exception_name, failed.value.failure, failed.value.code) == (
        "OutOfMemory", Failure.LIMITS, "53200",
    )  # fmt: skip
    assert _number(engine, pay("select 3")) == 3


def _kill_the_waiting(server: PrivateServer) -> None:
    with contextlib.closing(server.owner()) as owner:
        while True:
            asked = "select pid from pg_stat_activity where wait_event = 'PgSleep'"
            if (row := owner.execute(asked.encode()).fetchone()) is not None:
                os.kill(row[0], signal.SIGKILL)
                return
            time.sleep(0.01)


def test_a_process_that_is_killed_takes_all_sessions_with_it_and_the_server_is_found_again(
    server: PrivateServer, engine: PostgresEngine, pay: Callable[..., Reserved]
) -> None:
    killing = threading.Thread(target=_kill_the_waiting, args=[server])
    killing.start()
    with pytest.raises(EngineStopped) as failed:
        _number(engine, pay("select pg_sleep(600)"))
    killing.join()
    assert _words(failed.value) == _AWAY
    assert (failed.value.exception_name, failed.value.failure, failed.value.code) == (
        "OperationalError", Failure.LOST, "08006",
    )  # fmt: skip
    deadline = time.monotonic() + _DEADLINE_S
    while True:  # the server starts anew
        try:
            assert _number(engine, pay("select 5")) == 5
        except EngineStopped:
            assert time.monotonic() < deadline
        else:
            break


@pytest.fixture
def stopped() -> Iterator[list[int]]:
    """Processes that stand still; they go on in the end, so that their server can stop."""
    pids: list[int] = []
    yield pids
    for pid in pids:
        os.kill(pid, signal.SIGCONT)


def test_a_process_that_stands_still_is_let_go(
    engine: PostgresEngine, pay: Callable[..., Reserved], monkeypatch: pytest.MonkeyPatch, stopped: list[int]
) -> None:
    """Neither asking it to stop nor its own time limit helps then. Whoever waits for an answer is told of the time-out,
    and who only looked whether it is there, that it is not.
    """
    monkeypatch.setattr(postgres, "_PATIENCE_S", 0.3)
    statements = pay("select pg_backend_pid()", "select 1")
    with (
        pytest.raises(TooMuch),
        staged(engine, statements, timeout_s=0.5, cancellation=Cancellation()) as stages,
    ):
        _stop(int(str(stages.rows(0, KeptKeys()).rows[0][0])), stopped)
        stages.rows(1, KeptKeys())
    _stop(_number(engine, pay("select pg_backend_pid()")), stopped)
    with pytest.raises(EngineStopped) as failed:
        _number(engine, pay("select 1"), timeout_s=0.2)
    assert _words(failed.value) == _AWAY
    assert failed.value.failure is Failure.UNREACHABLE
    assert _number(engine, pay("select 7")) == 7


def _stop(pid: int, stopped: list[int]) -> None:
    os.kill(pid, signal.SIGSTOP)
    stopped.append(pid)
