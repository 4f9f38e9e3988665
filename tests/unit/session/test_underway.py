"""Who asks for what is being computed waits for it, and shares it."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

import pytest

from proxy.engines.base import Cancellation
from proxy.errors import QueryCanceled
from proxy.plan.charge import AccountKind, ReleaseKey
from proxy.session.asking.single_flight import Underway
from proxy.session.contract import Spliced
from proxy.session.session import ClientSession
from tests.unit.session.running import Slow, sessions_with

QUESTION = "select count(*) from users"
ENOUGH_S = 60


def keys(*names: str) -> tuple[ReleaseKey, ...]:
    return tuple(ReleaseKey(fingerprint=n, policy_digest="", data_version="") for n in names)


def test_statements_with_a_key_in_common_take_turns() -> None:
    underway, log = Underway(), list[str]()
    second_waits = threading.Event()

    def second() -> None:
        second_waits.set()
        with underway.alone(keys("b", "a"), Cancellation()):
            log.append("second")

    with underway.alone(keys("a"), Cancellation()), underway.alone(keys("c"), Cancellation()):
        thread = threading.Thread(target=second)
        thread.start()
        assert second_waits.wait(ENOUGH_S)
        log.append("first")
    thread.join(ENOUGH_S)
    assert log == ["first", "second"]
    with pytest.raises(ZeroDivisionError), underway.alone(keys("a"), Cancellation()):
        raise ZeroDivisionError
    with underway.alone(keys("a", "b", "c"), Cancellation()):
        pass


def test_who_waits_can_be_cancelled() -> None:
    underway, cancellation, ended = Underway(), Cancellation(), list[BaseException]()

    def waiting() -> None:
        try:
            with underway.alone(keys("a"), cancellation):
                raise AssertionError
        except QueryCanceled as error:
            ended.append(error)

    with underway.alone(keys("a"), Cancellation()):
        thread = threading.Thread(target=waiting)
        thread.start()
        cancellation.request()
        thread.join(ENOUGH_S)
        assert len(ended) == 1
    with underway.alone(keys("a"), Cancellation()):
        pass


def test_concurrent_questions_are_one_release(tmp_path: Path) -> None:
    noise = Slow()
    with sessions_with(noise, tmp_path / "state", 4) as (sessions, ledger, _workers):

        async def ask(one: ClientSession) -> str:
            (piece,) = await one.prepare(QUESTION, {})
            found = await one.release(piece, (), {})
            assert isinstance(found, Spliced)
            return found.literal_sql

        async def together() -> set[str]:
            asked = [asyncio.ensure_future(ask(one)) for one in sessions]
            await asyncio.to_thread(noise.begun.wait, ENOUGH_S)
            noise.may_go_on.set()
            return set(await asyncio.gather(*asked))

        answers = asyncio.run(together())
        assert len(answers) == 1
        assert len(noise.sizes) == 1
        assert ledger.verify().releases == 1
        assert len({total.spent for total in ledger.all_accounts()}) == 1
        assert [total.kind for total in ledger.all_accounts()].count(AccountKind.SESSION) == 4
