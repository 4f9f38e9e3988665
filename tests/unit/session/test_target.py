"""The smallest epsilon that is accurate enough."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from proxy.errors import PolicyForbids
from proxy.pipeline.target import Shown, Target, is_met, smallest
from proxy.plan.words.outputs import output_noise
from proxy.session.session import ClientSession
from tests.unit.plan.shop import plan
from tests.unit.plan.test_centred import means
from tests.unit.plan.test_kept import KNOWN
from tests.unit.plan.test_profile import PROFILE, PROFILED, ROWS
from tests.unit.session.running import Slow, session_with, sessions_with
from tests.unit.session.test_estimate import asked

COUNT = "select count(*) from users"
MEANS = replace(PROFILED, profiles=(replace(PROFILE, means=(means(22.5),)),))


@pytest.mark.parametrize(
    ("least", "most", "found"),
    [(0.0001, 100, 0.0001), (0.0001234, 100, 0.000124), (0.5, 100, 0.5), (0.50001, 100, 0.501), (9.995, 100, 10.0),
     (60.01, 100, 60.1), (99.99, 100, 100), (1.0, 1.005, 1.0), (1.004, 1.005, 1.005), (7.0, 5.0, 5.0)],
)  # fmt: skip
def test_the_smallest_epsilon_of_three_digits_is_found(least: float, most: float, found: float) -> None:
    assert smallest(lambda epsilon: epsilon >= least, most) == found


@pytest.mark.parametrize(("reach", "fewer", "is_so"), [
    (8.0, 1.0, True), (8.0, 1.9, True),  # near enough as it was shown, or nearer
    (16.0, 1.0, True), (16.0, 1.2, True), (16.0, 1.3, False),
])  # fmt: skip
@pytest.mark.parametrize("target", [Target(10.0), Target(0.1, is_share=True)])
def test_what_was_too_wide_is_asked_for_as_if_of_fewer_rows(
    target: Target, reach: float, fewer: float, is_so: bool
) -> None:
    (now,) = output_noise(plan("select avg(age) from users"))
    value = 100.0 if reach < 10.0 else 100.0 + reach  # a share is of its lower end, where it was too wide
    shown = Shown(value, reach, stated=2.0 * now.half_width_95, fewer=fewer)
    assert is_met(target, [now], [shown]) is is_so


def test_what_bounds_are_expected_to_leave_out_counts_like_noise() -> None:
    (now,) = output_noise(plan("select count(*) from orders", KNOWN))
    assert now.missing > 0.0
    assert now.usual == pytest.approx(sum(ROWS), rel=0.05)
    both = now.half_width_95 + now.missing
    assert is_met(Target(both * 1.001), [now], [None])
    assert not is_met(Target(both * 0.999), [now], [None])
    (average,) = output_noise(plan("select avg(amount) from orders", MEANS))
    assert average.missing > 0.0
    rows = Shown(20.0, reach=1.0, stated=average.half_width_95)
    assert is_met(Target(1.001 + average.missing), [average], [rows])
    assert not is_met(Target(0.999 + average.missing), [average], [rows])


def test_a_share_is_of_what_a_profile_tells_where_nothing_was_shown() -> None:
    (now,) = output_noise(plan("select count(*) from orders", KNOWN))
    share = (now.half_width_95 + now.missing) / now.usual
    assert is_met(Target(share * 1.001, is_share=True), [now], [None])
    assert not is_met(Target(share * 0.999, is_share=True), [now], [None])
    (several,) = output_noise(plan("select store_id, count(*) from orders group by 1", KNOWN))
    with pytest.raises(PolicyForbids, match="needs a value"):
        is_met(Target(0.05, is_share=True), [several], [None])


def explained(session: ClientSession, text: str, settings: Mapping[str, str]) -> dict[str, Any]:
    lines = asked(session, f"explain (format json) {text}", settings).arrays[0].text
    found: dict[str, Any] = json.loads(lines[2:-2].replace('\\"', '"').replace("\\\\", "\\"))[0]
    return found


@pytest.mark.parametrize("text", [COUNT, "select count(*), sum(age), count(distinct city) from users",
                                  "select plan, min(age) from users group by plan",
                                  "select (select count(*) from users), (select sum(kids) from users)",
                                  "select plan, age, count(*) from users group by rollup (plan, age)"])  # fmt: skip
@pytest.mark.parametrize("error", [90.0, 900.0])
def test_every_number_is_near_enough_and_hardly_nearer(tmp_path: Path, text: str, error: float) -> None:
    def largest(epsilon: float) -> float:
        of = explained(session, text, {"hush.epsilon": repr(epsilon)})
        outputs = [o for r in of["releases"] for o in r["outputs"]]
        return float(max(o.get("half_width_95", o.get("rank_error_95")) for o in outputs))

    with session_with(Slow(), tmp_path / "state") as (session, _ledger, _workers):
        chosen = explained(session, text, {"hush.target_error": repr(error), "hush.epsilon": "3"})["epsilon"]
        assert largest(chosen) <= error
        assert chosen == 0.0001 or largest(chosen * 0.989) > error, "three digits"


def test_what_cannot_be_had_is_refused_with_its_price(tmp_path: Path) -> None:
    noise = Slow()
    noise.may_go_on.set()
    with session_with(noise, tmp_path / "state") as (session, ledger, _workers):
        for text, settings, says in (
            (COUNT, {"hush.target_error": "1e-9"}, "no epsilon that the policy allows is enough"),
            (COUNT, {"hush.target_error": "2", "hush.max_charge": "0.5"}, "it costs epsilon "),
            ("select avg(age) from users", {"hush.target_error": "5"}, "cannot be met for avg(age) yet"),
            (COUNT, {"hush.target_error": "5%"}, "a hush.target_error of 5% needs a value of count(*)"),
            ("select city, count(*) from users group by 1", {"hush.target_error": "5%"}, "needs a value"),
            ("select max(age) from users", {"hush.target_error": "5%"}, "needs a value"),
            ("select plan, count(*) from users group by rollup (plan)", {"hush.target_error": "5%"}, "needs a value"),
        ):
            with pytest.raises(PolicyForbids) as refused:
                asked(session, text, settings)
            assert says in refused.value.message, text
        assert ledger.all_accounts() == ()
        asked(session, COUNT)
        with pytest.raises(PolicyForbids, match="no epsilon"):
            asked(session, COUNT, {"hush.target_error": "5%"})  # of empty tables
        asked(session, "select avg(age) from users")
        with pytest.raises(PolicyForbids, match="avg"):
            asked(session, "select avg(age) from users", {"hush.target_error": "5"})  # which was NULL
        assert asyncio.run(session.prepare(COUNT, {}))


def test_what_another_session_was_shown_decides_nothing(tmp_path: Path) -> None:
    """Its account has not paid for the answer, so that its price must not tell of it."""
    noise = Slow()
    noise.may_go_on.set()
    with sessions_with(noise, tmp_path / "state", 2) as ((first, second), _ledger, _workers):
        asked(first, COUNT)
        with pytest.raises(PolicyForbids, match="no epsilon"):
            asked(first, COUNT, {"hush.target_error": "5%"})  # of empty tables
        with pytest.raises(PolicyForbids, match="needs a value"):
            asked(second, COUNT, {"hush.target_error": "5%"})
