"""What is expected to say nothing is refused once, if the client or the policy wants that, and nothing is charged."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from proxy.errors import NotConfirmed
from proxy.pipeline.plans import Planned
from proxy.pipeline.settings import read_settings
from proxy.policy.model import Privacy
from proxy.session.contract import Asking, Spliced
from proxy.session.pricing.confirm import Confirmations
from proxy.session.session import ClientSession
from tests.unit.plan.shop import plan
from tests.unit.plan.test_kept import KNOWN
from tests.unit.plan.test_profile import PROFILE
from tests.unit.session.running import Slow, session_with
from tests.unit.session.staged import begin, serving
from tests.unit.session.test_estimate import asked

LOST = "SELECT count(*) FROM orders WHERE amount BETWEEN 999.9 AND 999.917"
FEW = replace(PROFILE, rows=replace(PROFILE.rows, counts=tuple(c / 40 for c in PROFILE.rows.counts), sd=0.5))
CAUTIOUS = {"hush.confirm": "on", "hush.epsilon": "0.0001"}


@contextmanager
def profiled(tmp_path: Path) -> Iterator[tuple[ClientSession, object]]:
    noise = Slow()
    noise.may_go_on.set()
    with session_with(noise, tmp_path / "state", (FEW,)) as (session, ledger, _workers):
        yield session, ledger


def test_it_is_refused_once_and_nothing_is_charged(tmp_path: Path) -> None:
    with profiled(tmp_path) as (session, ledger):
        with pytest.raises(NotConfirmed, match="expected to be all noise") as refused:
            asked(session, LOST, CAUTIOUS)
        assert refused.value.sqlstate == "DP008"
        assert refused.value.detail.startswith("Nothing was charged.")
        assert "SET hush.confirm = off" in refused.value.hint
        assert ledger.all_accounts() == ()  # type: ignore[attr-defined]
        assert any("charged epsilon" in n.message for n in asked(session, LOST, CAUTIOUS).notices)
        assert any("charged nothing" in n.message for n in asked(session, LOST, CAUTIOUS).notices), "free, so not asked"


@pytest.mark.parametrize("settings", [{"hush.epsilon": "0.0001"}, {**CAUTIOUS, "hush.target_error": "1000"}])
def test_nobody_is_asked_who_does_not_want_to_be(tmp_path: Path, settings: dict[str, str]) -> None:
    with profiled(tmp_path) as (session, _):
        asked(session, LOST, settings)


def test_other_statements_and_prices_are_asked_for_anew(tmp_path: Path) -> None:
    with profiled(tmp_path) as (session, _):
        for text, settings in ((LOST, CAUTIOUS), (LOST.replace("917", "918"), CAUTIOUS),
                               (LOST, {**CAUTIOUS, "hush.epsilon": "0.0002"})):  # fmt: skip
            with pytest.raises(NotConfirmed):
                asked(session, text, settings)


def test_a_later_stage_that_is_charged_already_is_answered(tmp_path: Path) -> None:
    """Nobody is asked first about what was paid for with the first stage: to ask again would cost again."""
    sql = "select count(*) from orders where amount between (select avg(age) from users) and 42"
    values, told = {**CAUTIOUS}, (("true", "numeric", "41.5"),)
    with serving(tmp_path / "state") as world:
        world.dataset.current = replace(world.dataset.current, profiles=(FEW,))

        def begun(session: ClientSession) -> Asking:
            found = begin(session, sql, 0.0001, confirm="on")
            assert isinstance(found, Asking)
            return found

        def answered(session: ClientSession, asking: Asking) -> Asking | Spliced:
            return asyncio.run(session.release(replace(asking.piece, told=told), (), values))

        session = world.session()
        asking = begun(session)
        whole = world.spent("ann")
        assert isinstance(answered(session, asking), Spliced)
        assert world.spent("ann") == whole
        other = world.session("ann", "2")
        asking, told = begun(other), (("true", "numeric", "41.4"),)
        with pytest.raises(NotConfirmed, match="expected to be all noise"):
            answered(other, asking)
        assert world.spent("ann") == whole, "of a last stage that was not paid for people are asked first"


def test_a_confirmation_lasts_a_minute_and_serves_once() -> None:
    clock = [0.0]
    found = Confirmations(lambda: clock[0])
    lost = plan("select count(*) from orders where amount > 999.9 and status = 'refunded'", replace(KNOWN, pico=1))
    planned = Planned(blocks=(), plans=(lost,), outputs=(), types=frozenset())
    for now, is_refused in ((0.0, True), (59.0, False), (60.0, True), (121.0, True), (122.0, False), (123.0, True)):
        clock[0] = now
        if is_refused:
            with pytest.raises(NotConfirmed):
                found.check(planned, KNOWN.privacy, is_first=now < 100)
        else:
            found.check(planned, KNOWN.privacy, is_first=now < 100)


def test_a_policy_may_ask_for_everybody() -> None:
    asks = replace(Privacy(unit="customer"), confirm=True)
    assert read_settings({}, asks).must_confirm
    assert not read_settings({"hush.confirm": "off"}, asks).must_confirm
    assert not read_settings({}, replace(asks, confirm=False)).must_confirm
