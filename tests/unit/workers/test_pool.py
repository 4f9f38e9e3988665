"""Works are done in processes that hold nothing, each in its time, and whatever becomes of these."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from dataclasses import replace
from datetime import date, datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
import uvloop

from proxy.errors import ShuttingDown, ThinkerLost, UndefinedName, Unsupported
from proxy.pipeline.ahead import Foreseen, foresee
from proxy.pipeline.outline import Outline
from proxy.pipeline.plans import Task, plan_statement
from proxy.pipeline.premises import Premises, Terms
from proxy.pipeline.statements import QueryString, Understood
from proxy.sql.algebra.constants import Constants, InputText, Unread
from proxy.sql.algebra.nodes import Literal
from proxy.sqltypes import SqlType
from proxy.wire.exchange import Refusal
from proxy.workers.pool import Level, Pool, Post
from proxy.workers.thinking import Turn
from tests.unit.sql.corpus import CASES, policy, premises_of

ROOT = CASES.parents[1]
NOW = datetime(2026, 11, 21, 12, 0, tzinfo=ZoneInfo("UTC"))
TERMS = Terms(epsilon=1.0, limits=(10**12,))
PREMISES = premises_of(policy())
SHORT = "SELECT count(*) FROM users WHERE age > 40"
# seconds to be read and planned, whatever machine it is
LONG = f"SELECT count(*) FROM users WHERE {' AND '.join(f'(age + {n}) * 2 > {n}' for n in range(30_000))}"
EVER = (Level(float("inf"), 600.0),)
ONE = (Post((0,)),)


@contextlib.asynccontextmanager
async def pool(levels: tuple[Level, ...] = EVER, posts: tuple[Post, ...] = ONE) -> AsyncIterator[Pool]:
    found = Pool(levels, posts)
    try:
        yield found
    finally:
        await found.stop()


async def asked(of: Pool, sql: str, login: str = "ann", premises: Premises = PREMISES) -> Foreseen:
    question = QueryString(premises=premises, text=sql, has_intervals=False, told=((),))
    return await of.run(Turn(login, len(sql), premises), foresee, question, TERMS, Constants({}, NOW))


def pids(of: Pool) -> list[int]:
    return [thinker.pid for member in of._members for thinker in member.thinkers]


def is_running(pid: int) -> bool:
    """Whether there is such a process that is no zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


async def until(is_so: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while not is_so():  # noqa: ASYNC110 - nothing tells how another process is
            await asyncio.sleep(0.01)


async def busy(of: Pool, sql: str = LONG) -> tuple[asyncio.Task[Foreseen], int]:
    """A work that is under way, and who does it."""
    task = asyncio.create_task(asked(of, sql))
    await until(lambda: bool(pids(of)))
    (pid,) = pids(of)
    before = _cpu(pid)
    await until(lambda: _cpu(pid) > before + 10)
    return task, pid


def _lines(path: str) -> list[str]:
    return Path(path).read_text().splitlines()


def _cpu(pid: int) -> int:
    """Hundredths of a second."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return int(fields[11]) + int(fields[12])


Test = Callable[[], Coroutine[None, None, None]]


def run(test: Test) -> None:
    """On the loop that a proxy runs on."""
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(test())


def test_what_is_found_elsewhere_is_of_the_premises_that_were_asked_about() -> None:
    async def test() -> None:
        async with pool() as found:
            answer = await asked(found, SHORT)
            (piece,), (planned,) = answer.pieces, answer.planned
            assert isinstance(piece.handle, Understood)
            assert piece.handle.premises is PREMISES
            assert "age" in planned.plans[0].stages[0]

    run(test)


def test_errors_come_back_as_they_were_raised() -> None:
    async def test() -> None:
        async with pool() as found:
            answer = await asked(found, "SELECT city FROM users")
            assert isinstance(answer.pieces[0].refusal, Refusal)
            (piece,) = (await asked(found, "SELECT count(*) FROM users WHERE agee = 1")).pieces
            assert isinstance(piece.handle, Understood)
            assert isinstance(piece.handle.query, Outline)
            task = Task(query=piece.handle.query, premises=PREMISES, terms=TERMS, constants=Constants({}, NOW))
            with pytest.raises(UndefinedName, match="agee") as refused:
                await found.run(Turn("ann", 1, PREMISES), plan_statement, task)
            assert refused.value.position == 34
            assert "users.age" in refused.value.hint

    run(test)


def test_texts_that_postgresql_is_to_read_are_said_as_they_are() -> None:
    """What was read comes along when the work is done again, and is what is planned with."""

    async def test() -> None:
        wanted = (InputText("0x1p5", 701), InputText("1 Jan 2024", 1082))
        async with pool() as found:
            answer = await asked(found, "SELECT count(*) FROM users WHERE score > '0x1p5' AND joined = '1 Jan 2024'")
            assert answer.planned == ()
            assert isinstance(answer.pieces[0].handle, Understood)
            assert isinstance(answer.pieces[0].handle.query, Outline)
            query = answer.pieces[0].handle.query
            task = Task(query=query, premises=PREMISES, terms=TERMS, constants=Constants({}, NOW))
            with pytest.raises(Unread) as unread:
                await found.run(Turn("ann", 1, PREMISES), plan_statement, task)
            assert unread.value.texts == wanted
            values = Literal(32.0, SqlType.FLOAT8), Literal(date(2024, 1, 1), SqlType.DATE)
            known = dict(zip(wanted, values, strict=True))
            told = replace(task, constants=Constants({}, NOW, known))
            planned = await found.run(Turn("ann", 1, PREMISES), plan_statement, told)
            assert "2024-01-01" in planned.plans[0].stages[0]

    run(test)


def test_a_work_that_takes_too_long_is_refused_with_the_limit() -> None:
    async def test() -> None:
        async with pool((Level(float("inf"), 0.05), Level(float("inf"), 0.1)), (Post((0, 1)),)) as found:
            with pytest.raises(Unsupported, match=r"takes more than 0\.1 seconds") as refused:
                await asked(found, LONG)
            assert refused.value.sqlstate == "DP006"
            (pid,) = pids(found)
            await asked(found, SHORT)
            assert pids(found) == [pid], "it has noticed by itself"

    run(test)


def test_a_process_that_does_not_notice_the_end_of_its_time_is_ended() -> None:
    async def test() -> None:
        async with pool((Level(float("inf"), 7.0),)) as found:
            task, pid = await busy(found)
            os.kill(pid, signal.SIGXCPU)  # as the system does when the limit on its processor is reached
            with pytest.raises(Unsupported, match="takes more than 7 seconds"):
                await task
            await asked(found, SHORT)

    run(test)


def test_a_long_work_is_begun_again_where_it_does_not_hold_others_up() -> None:
    async def test() -> None:
        levels = (Level(100, 0.05), Level(float("inf"), 600.0))
        posts = (Post((0,)), Post((1,), niceness=5))
        async with pool(levels, posts) as found:
            long = asyncio.create_task(asked(found, f"{SHORT} AND {' AND '.join(['age > 1'] * 9)}"))
            slow = asyncio.create_task(asked(found, LONG))
            for _ in range(20):
                await asked(found, SHORT)
            assert not slow.done()
            assert (await long).planned
            assert (await slow).pieces
            ours = os.getpriority(os.PRIO_PROCESS, 0)
            assert [os.getpriority(os.PRIO_PROCESS, pid) - ours for pid in pids(found)] == [0, min(5, 19 - ours)]

    run(test)


def test_each_login_has_its_turn() -> None:
    async def test() -> None:
        async with pool() as found:
            order: list[str] = []

            async def one(login: str) -> None:
                await asked(found, SHORT, login)
                order.append(login)

            first, _ = await busy(found)
            await asyncio.gather(*(one("ann") for _ in range(8)), one("bob"))
            assert order.index("bob") <= 1
            await first

    run(test)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSEGV])
def test_a_process_that_ends_is_one_clear_error_and_is_replaced(
    number: signal.Signals, caplog: pytest.LogCaptureFixture
) -> None:
    async def test() -> None:
        async with pool() as found:
            task, pid = await busy(found)
            os.kill(pid, number)
            with pytest.raises(ThinkerLost, match="has ended") as lost:
                await task
            assert lost.value.sqlstate == "58000"
            assert lost.value.hint
            assert (await asked(found, SHORT)).planned
            assert pids(found) != [pid]

    with caplog.at_level(logging.ERROR, "hushql"):
        run(test)
    assert f"a process that plans has ended: by {number.name}" in caplog.text


def test_a_process_that_ended_while_it_was_idle_is_replaced_without_a_word() -> None:
    async def test() -> None:
        async with pool() as found:
            await asked(found, SHORT)
            (pid,) = pids(found)
            os.kill(pid, signal.SIGKILL)
            await until(lambda: not found._members[0].thinkers[0].is_alive)
            assert (await asked(found, SHORT)).planned

    run(test)


def test_too_much_memory_is_refused_and_the_process_replaced() -> None:
    async def test() -> None:
        async with pool() as found:
            await asked(found, SHORT)
            usual = next(int(line.split()[1]) for line in _lines(f"/proc/{pids(found)[0]}/status") if "VmSize" in line)
        async with pool(EVER, (Post((0,), most_bytes=(usual + 50_000) * 1024),)) as found:
            with pytest.raises(Unsupported, match="too much memory"):
                await asked(found, LONG)
            await asked(found, SHORT)

    run(test)


def test_what_nobody_waits_for_is_given_up() -> None:
    async def test() -> None:
        async with pool() as found:
            task, pid = await busy(found)
            waiting = asyncio.create_task(asked(found, LONG))
            await asyncio.sleep(0)
            waiting.cancel()
            task.cancel()
            started = time.monotonic()
            assert (await asked(found, SHORT)).planned
            assert pids(found) == [pid]
            assert time.monotonic() - started < 30
            assert not len(found._turns)

    run(test)


def test_a_process_that_does_not_notice_that_it_is_dropped_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("proxy.workers.pool._DROP_WITHIN_S", 0.2)

    async def test() -> None:
        async with pool() as found:
            task, pid = await busy(found)
            os.kill(pid, signal.SIGSTOP)
            task.cancel()
            await until(lambda: not is_running(pid))
            assert (await asked(found, SHORT)).planned

    run(test)


def test_when_the_pool_stops_no_process_is_left_and_what_waits_is_told() -> None:
    async def test() -> None:
        found = Pool(EVER, ONE)
        task, pid = await busy(found)
        nursery = found._nursery._running[0].process.pid
        waiting = asyncio.create_task(asked(found, SHORT))
        await asyncio.sleep(0)
        await found.stop()
        assert not is_running(pid)
        assert not is_running(nursery)
        for one in (task, waiting):
            with pytest.raises((asyncio.CancelledError, ShuttingDown)):
                await one
        with pytest.raises(ShuttingDown):
            await asked(found, SHORT)

    run(test)


def test_a_nursery_that_ended_is_replaced() -> None:
    async def test() -> None:
        async with pool() as found:
            await asked(found, SHORT)
            first = found._nursery._running[0]
            os.kill(first.process.pid, signal.SIGKILL)
            os.kill(pids(found)[0], signal.SIGKILL)
            await until(lambda: first.control.has_ended and not found._members[0].thinkers[0].is_alive)
            assert (await asked(found, SHORT)).planned

    run(test)


def test_a_process_has_one_socket_and_no_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    """Claim: a process that plans holds nothing of the proxy's but one socket: no file, no key, no engine's library."""
    monkeypatch.setenv("SHOP_PASSWORD", "very secret")

    seen = list[tuple[list[str], bytes, str]]()

    async def test() -> None:
        async with pool() as found:
            await asked(found, SHORT)
            seen.append(_held(pids(found)[0]))

    with Path(__file__).open():  # of the proxy's
        run(test)
    ((opened, environment, libraries),) = seen
    assert opened[0] == "/dev/null"
    assert [name for name in opened[3:] if ".coverage" not in name] == [o for o in opened if o.startswith("socket:")][
        -1:
    ]
    assert b"very secret" not in environment
    is_measured = "/coverage/" in libraries  # by what keeps its figures in SQLite
    engines = ("duckdb", "opendp", "libpq", "_ssl", "uvloop", *(() if is_measured else ("_sqlite3",)))
    assert not any(name in libraries for name in engines)


def _held(pid: int) -> tuple[list[str], bytes, str]:
    """What a process has open, in order, its environment, and what it has mapped."""
    process = Path(f"/proc/{pid}")
    opened = sorted((process / "fd").iterdir(), key=lambda p: int(p.name))
    return [os.readlink(p) for p in opened], (process / "environ").read_bytes(), (process / "maps").read_text()


def test_premises_are_told_once_and_replaced_when_they_change(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("proxy.workers.pool._MOST_PREMISES", 3)

    async def test() -> None:
        async with pool() as found:
            (member,) = found._members
            for number in range(1, 9):
                premises = premises_of(policy())
                for _ in range(2):
                    (piece,) = (await asked(found, SHORT, premises=premises)).pieces
                    assert isinstance(piece.handle, Understood)
                    assert piece.handle.premises is premises
                assert max(member.knows) == number
            assert len(member.knows) == len(found._numbers) == 3

    run(test)


_SCRIPT = """\
import asyncio
from tests.unit.workers.test_pool import LONG, ONE, EVER, busy
from proxy.workers.pool import Pool

async def main():
    found = Pool(EVER, ONE)
    task, pid = await busy(found)
    print(pid, found._nursery._running[0].process.pid, flush=True)
    await task

asyncio.run(main())
"""


def test_all_processes_end_when_the_proxy_is_killed() -> None:
    proxy = subprocess.Popen([sys.executable, "-c", _SCRIPT], cwd=ROOT, stdout=subprocess.PIPE)
    assert proxy.stdout is not None
    found = [int(pid) for pid in proxy.stdout.readline().split()]
    assert len(found) == 2
    proxy.kill()
    proxy.wait()
    proxy.stdout.close()
    asyncio.run(until(lambda: not any(map(is_running, found))))
