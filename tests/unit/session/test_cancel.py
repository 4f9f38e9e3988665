"""A private statement that is cancelled while its noise is drawn ends with the batch under way and stays charged."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from proxy.engines.base import Cancellation
from proxy.errors import QueryCanceled
from proxy.ledger.base import Outcome
from tests.unit.session.running import Slow, session_with

#: 3 * 111 keys and NULLs times ten numbers of kids: several batches of noise
QUERY = "select age, plan, kids, count(*), avg(steps) from users group by 1, 2, 3"


def test_a_cancelled_statement_takes_no_more_noise_and_stays_charged(tmp_path: Path) -> None:
    noise = Slow()
    with session_with(noise, tmp_path / "state") as (session, ledger, workers):

        async def cancelled() -> None:
            (piece,) = await session.prepare(QUERY, {})
            answering = asyncio.ensure_future(session.release(piece, (), {}))
            await asyncio.to_thread(noise.begun.wait, 20)
            answering.cancel()
            with pytest.raises(asyncio.CancelledError):
                await answering

        asyncio.run(cancelled())
        noise.may_go_on.set()
        workers.private.executor.submit(int).result(60)  # the only thread is free again
        assert noise.sizes == [4096]
        assert all(t.spent.pico > 0 for t in ledger.all_accounts())
        (asked,) = ledger.history("shop/ann", 10)
        assert (asked.outcome, asked.cost.pico > 0) == (Outcome.CANCELLED, True)


def test_a_statement_that_goes_on_takes_a_value_for_each_moment_of_each_key(tmp_path: Path) -> None:
    noise = Slow()
    noise.may_go_on.set()
    with session_with(noise, tmp_path / "state") as (session, _ledger, _workers):

        async def answered() -> None:
            (piece,) = await session.prepare(QUERY, {})
            await session.release(piece, (), {})

        asyncio.run(answered())
    assert sum(noise.sizes) == 112 * 4 * 10 * 2
    assert set(noise.sizes[:-1]) == {4096}


def test_a_request_to_stop_is_a_cancelled_statement() -> None:
    cancellation = Cancellation()
    cancellation.check()
    cancellation.request()
    with pytest.raises(QueryCanceled, match="user request"):
        cancellation.check()
