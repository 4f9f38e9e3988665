"""What reads or writes books runs in threads: they may be in another machine, which all sessions would wait for."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from proxy.ledger.sqlite.ledger import SqliteLedger
from proxy.release.store import SqliteStore
from proxy.session.contract import Spliced
from tests.unit.session.running import Slow, session_with

COUNT = "select count(*) from users"
BOOKS = ("reserve", "quote", "settle", "bind", "seen", "balances", "history", "all_accounts", "note_outcome", "end")
STORE = ("put", "get", "load", "completed", "has")


def watched(calls: list[tuple[str, bool]], name: str, given: Callable[..., object]) -> Callable[..., object]:
    """The method, which says whether it was called where an event loop runs."""

    def method(*args: object, **kwargs: object) -> object:
        calls.append((name, threading.current_thread() is threading.main_thread()))
        return given(*args, **kwargs)

    return method


@pytest.mark.parametrize(
    "text", [COUNT, f"explain {COUNT}", f"explain (format json) {COUNT}", "select * from hush.budget",
             f"select * from hush.estimate('{COUNT}')", "select * from hush.history", f"{COUNT} where age > 3",
             "select * from hush.last_query"],
)  # fmt: skip
@pytest.mark.parametrize("settings", [{}, {"hush.confirm": "on"}, {"hush.fresh": "on"}])
def test_books_are_not_read_on_the_event_loop(
    text: str, settings: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    noise, calls = Slow(), list[tuple[str, bool]]()
    noise.may_go_on.set()
    with session_with(noise, tmp_path / "state") as (session, _ledger, _workers):
        for kind, names in ((SqliteLedger, BOOKS), (SqliteStore, STORE)):
            for name in names:
                monkeypatch.setattr(kind, name, watched(calls, name, getattr(kind, name)))

        async def answered() -> None:
            for _ in range(2):  # the second time it is known
                (piece,) = await session.prepare(text, settings)
                assert isinstance(await session.release(piece, (), settings), Spliced)

        asyncio.run(answered())
    assert calls or "last_query" in text
    assert [name for name, is_on_loop in calls if is_on_loop] == []
