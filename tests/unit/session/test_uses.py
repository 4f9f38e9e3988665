"""An engine that was replaced is closed when nobody uses it any more: not before, and not later."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest

from proxy.session.dataset import Dataset
from proxy.session.session import ClientSession
from proxy.session.uses import Uses
from tests.unit.session.make import version
from tests.unit.session.running import NoRows, Slow, session_with

QUERY = "select count(*) from users"


def test_what_nobody_uses_is_let_go_at_once() -> None:
    told, uses = list[str](), Uses()
    with uses.of(NoRows()):
        uses.retire(NoRows(), lambda: told.append("other"))
    assert told == ["other"]


def test_what_is_used_is_let_go_once_by_the_last_who_does() -> None:
    told, uses, engine = list[str](), Uses(), NoRows()
    with ExitStack() as first:
        first.enter_context(uses.of(engine))
        with uses.of(engine):
            uses.retire(engine, lambda: told.append("unused"))
        assert not told
    assert told == ["unused"]
    with uses.of(engine):  # who comes too late finds it closed, and that is all
        pass
    assert told == ["unused"]


def replaced(served: Dataset, told: list[str]) -> None:
    """Serve another engine from now on."""
    old = served.swap(replace(version(), engine=NoRows()))
    served.uses.retire(old.engine, lambda: told.append("unused"))


async def _let_go_on(answering: asyncio.Future[object], noise: Slow) -> None:
    noise.may_go_on.set()
    await answering


async def _cancel(answering: asyncio.Future[object], _noise: Slow) -> None:
    answering.cancel()
    with pytest.raises(asyncio.CancelledError):
        await answering


@pytest.mark.parametrize("ends", [_let_go_on, _cancel])
def test_a_statement_keeps_the_engine_that_it_began_with_until_it_has_ended(
    tmp_path: Path, ends: Callable[[asyncio.Future[object], Slow], object]
) -> None:
    """Also one that was cancelled, as long as its thread is at it."""
    noise, told = Slow(), list[str]()
    with session_with(noise, tmp_path / "state") as (session, _, workers):
        served = session._dataset

        async def asked() -> None:
            answering = asyncio.ensure_future(_ask(session))
            await asyncio.to_thread(noise.begun.wait, 20)
            replaced(served, told)
            assert not told
            await ends(answering, noise)  # type: ignore[misc]
            if ends is _cancel:
                assert not told
            noise.may_go_on.set()
            await session.close()

        asyncio.run(asked())
        workers.private.executor.submit(int).result(60)
        assert told == ["unused"]
        replaced(served, told)  # an idle session holds nothing
        assert told == ["unused"] * 2


async def _ask(session: ClientSession) -> object:
    (piece,) = await session.prepare(QUERY, {})
    return await session.release(piece, (), {})
